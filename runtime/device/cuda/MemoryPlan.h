//===- MemoryPlan.h - what a CUDA module allocates, known before *- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_MEMORYPLAN_H
#define LLMC_RUNTIME_DEVICE_CUDA_MEMORYPLAN_H

#include "runtime/device/Device.h"
#include "runtime/device/StepBuffers.h"

namespace llmc::cuda {

/// Kernels may read rows up to a multiple of this past the last one.
constexpr uint32_t kRowPad = 128;
/// Steps that may be under way at a time.
constexpr uint32_t kStepSets = 2;

/// What the GPU has, as far as it is known.
struct FreeMemory {
  uint64_t free = UINT64_MAX, total = UINT64_MAX; // UINT64_MAX: no GPU to ask
  std::string name;
};

/// Every allocation of the device, in bytes as allocated. Nothing else is allocated, and nothing after load.
struct MemoryPlan {
  uint64_t weights = 0, arena = 0, kv = 0, step = 0; // on the GPU, multiples of 2 MiB
  uint64_t stepStaging = 0, maskStaging = 0, outputStaging = 0; // pinned on the host
  uint64_t swap = 0;                                 // likewise
  uint32_t numBlocks = 0, numSlots = 0;

  uint64_t onDevice() const { return weights + arena + kv + step; }
  Ledger ledger() const;
};

/// Rows and masks of a step (MaskLogits): behind its other inputs on the GPU, and in maskStaging.
struct MaskSpace {
  explicit MaskSpace(const llmc_module_v1 &module);
  uint64_t rows, words, bytes; // at most; of a mask; of all: row numbers, then masks
};

/// The inputs of a step on the GPU.
StepBufferShape stepShape(uint32_t numBlocks);

/// Throws Error with the number that would fit when `memory` is too small and options.checkMemory says to look. Without
/// --kv-memory and a wanted number of tokens, the KV pool has the model's longest context or what fits.
MemoryPlan planMemory(const llmc_module_v1 &module, const DeviceOptions &options, const FreeMemory &memory);

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_MEMORYPLAN_H
