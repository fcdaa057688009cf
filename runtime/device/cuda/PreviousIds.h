//===- PreviousIds.h - tokens that only the GPU knows yet -------*- C++ -*-===//
//
// A step that is started before the host has the ids of the one before says -1 - row in their place. This kernel, one of two
// that no compiler makes, puts the ids there, before the step's first launch.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H
#define LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H

#include "runtime/device/cuda/Gpu.h"

namespace llmc::cuda {

class PreviousIds {
public:
  explicit PreviousIds(const Gpu &gpu);
  ~PreviousIds() { gpu_.driver().cuModuleUnload(module_); }
  PreviousIds(const PreviousIds &) = delete;
  PreviousIds &operator=(const PreviousIds &) = delete;

  /// Enqueues it: of `count` ids those below 0 become the `chosen` ones, or 0 where a row was bad.
  void launch(Pointer ids, Pointer chosen, uint32_t count) const;

private:
  const Gpu &gpu_;
  Module module_ = nullptr;
  Function function_ = nullptr;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H
