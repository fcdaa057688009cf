//===- CheckStep.h - refuses an ill-formed step -----------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CHECKSTEP_H
#define LLMC_RUNTIME_DEVICE_CHECKSTEP_H

#include "llmc/abi.h"

namespace llmc {

/// Compares every size, id, position, slot and block of a step with the module's limits and the `numBlocks` of the KV
/// pool, so that kernels need not. Throws Error ("step: expected X, got Y").
void checkStep(const llmc_module_v1 &module, const llmc_step_v1 &step, uint32_t numBlocks);

/// Whether a step that is well formed leaves out the program's last ops, and so has no outputs.
bool endsEarly(const llmc_program_v1 &program, const llmc_step_v1 &step);

/// Blocks that fit in so many bytes of host memory.
uint32_t slotsFor(uint64_t swapBytes, uint64_t blockBytes);

/// Throws Error unless `block` is one of `numBlocks`.
void checkBlock(int32_t block, uint32_t numBlocks);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CHECKSTEP_H
