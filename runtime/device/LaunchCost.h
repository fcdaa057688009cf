//===- LaunchCost.h - the work of a launch in a given step ------*- C++ -*-===//
//
// Evaluates llmc_cost_v1, which the compiler wrote, for a step of equal sequences. Needs no device.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_LAUNCHCOST_H
#define LLMC_RUNTIME_DEVICE_LAUNCHCOST_H

#include "llmc/abi.h"
#include "runtime/device/StepPhases.h"

#include <cstdint>
#include <string>

namespace llmc {

/// Every sequence brings `tokens` new ones, has `context` in the cache afterwards (these included) and wants one row of logits.
struct StepShape {
  uint64_t sequences = 1, tokens = 1, context = 1;

  bool operator==(const StepShape &) const = default;
};

/// "2 sequences of 1 new token, 1024 in the cache"
std::string describe(const StepShape &shape);

/// What is computed and moved, each once.
struct LaunchWork {
  double flops = 0;
  double weightBytes = 0, activationBytes = 0, kvBytes = 0;

  double bytes() const { return weightBytes + activationBytes + kvBytes; }
  LaunchWork &operator+=(const LaunchWork &other);
};

/// How a launch runs: which variant, its rows (of query tiles: the tiles) and units.
struct LaunchForm {
  const llmc_variant_v1 *variant;
  uint64_t rows, units;
  /// Row blocks of products: each reads all weights again, from a cache where they fit.
  uint64_t rowBlocks;
};

/// A step of single tokens is one of generated ones, any other of prompts; and the program that takes it.
inline bool ofGenerated(const StepShape &shape) { return shape.tokens == 1; }
inline const llmc_program_v1 &programOf(const llmc_module_v1 &module, const StepShape &shape) {
  return ofGenerated(shape) ? module.program : promptProgram(module);
}

LaunchForm formOf(const llmc_launch_v1 &launch, const StepShape &shape);
/// Null: unknown.
const llmc_cost_v1 *costOf(const llmc_module_v1 &module, const llmc_launch_v1 &launch);
LaunchWork workOf(const llmc_cost_v1 &cost, const llmc_launch_v1 &launch, const StepShape &shape);

/// The op without its layer: "attn_output" of "blk.3.attn_output".
std::string opInLayer(const std::string &op, int32_t layer);

/// "f32", "bf16", "int16", "int8"; enum llmc_cost_arithmetic.
const char *arithmeticName(uint32_t arithmetic);

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_LAUNCHCOST_H
