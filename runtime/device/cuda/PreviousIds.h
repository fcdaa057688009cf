//===- PreviousIds.h - tokens that only the GPU knows yet -------*- C++ -*-===//
//
// A step that is started before the host has the ids of the one before says -1 - row in their place. This kernel, one of two
// that no compiler makes, puts the ids there, before the step's first launch.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H
#define LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H

#include "runtime/device/cuda/PtxKernel.h"

namespace llmc::cuda {

class PreviousIds {
public:
  explicit PreviousIds(const Gpu &gpu);

  /// Enqueues it: of `count` ids those below 0 become the `chosen` ones, or 0 where a row was bad.
  void launch(Pointer ids, Pointer chosen, uint32_t count) const;

private:
  PtxKernel kernel_;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_PREVIOUSIDS_H
