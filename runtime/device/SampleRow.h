//===- SampleRow.h - the sampled outputs of a step --------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_SAMPLEROW_H
#define LLMC_RUNTIME_DEVICE_SAMPLEROW_H

#include "runtime/engine/Sampler.h"

namespace llmc {

class RowSampler {
public:
  /// True if the token is the largest logit that its mask leaves, as the model computed it, and nothing else is wanted of the row:
  /// then a device may choose it.
  static bool plainGreedy(const llmc_step_v1 &step, uint32_t row);

  /// True if the row's logits are used as the model computed them, a mask apart, nothing but the token is wanted, and the filters are
  /// those of llmc_row_sampler: no typical-p.
  static bool plain(const llmc_step_v1 &step, uint32_t row);
  static bool plain(const llmc_sampler_v1 &sampler); // where all outputs are there

  /// Chooses the token of a row from its logits [vocab], which are changed, and fills the step's outputs. Returns the id,
  /// or Sampler::kBadLogits.
  int32_t sample(const llmc_step_v1 &step, uint32_t row, std::span<float> logits);

private:
  Sampler sampler_;
  std::vector<TokenProbability> probabilities_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_SAMPLEROW_H
