//===- MaskLogits.h - tokens that a row may not choose ----------*- C++ -*-===//
//
// A mask is known only when the host has seen the token before, so it comes behind a step's launches: this kernel takes
// what it forbids out of the row's logits, and the launch that chooses is done once more.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_MASKLOGITS_H
#define LLMC_RUNTIME_DEVICE_CUDA_MASKLOGITS_H

#include "runtime/device/cuda/PtxKernel.h"

namespace llmc::cuda {

class MaskLogits {
public:
  explicit MaskLogits(const Gpu &gpu);

  /// Enqueues it: in row rows[i] of `logits`, `stride` numbers apart, those without their bit in masks[i], [ceil(vocab / 32)], become the
  /// lowest finite number. What is not finite stays, and spoils the row as ever.
  void launch(Pointer logits, uint64_t stride, uint32_t vocab, Pointer rows, Pointer masks, uint32_t count) const;

private:
  PtxKernel kernel_;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_MASKLOGITS_H
