//===- SampleRow.cpp ------------------------------------------------------===//
#include "runtime/device/SampleRow.h"

#include <algorithm>

namespace llmc {

bool RowSampler::plainGreedy(const llmc_step_v1 &step, uint32_t row) {
  return plain(step, row) && isGreedy(step.samplers[row]);
}

static bool plainly(const llmc_sampler_v1 &s, bool takesProbabilities) {
  return !shiftsLogits(s) && !(takesProbabilities && s.logprobs) && (isGreedy(s) || !(s.typical_p < 1));
}

bool RowSampler::plain(const llmc_step_v1 &step, uint32_t row) {
  return plainly(step.samplers[row], step.out_logprobs && step.out_logprob_ids);
}

bool RowSampler::plain(const llmc_sampler_v1 &sampler) { return plainly(sampler, true); }

// Rows of the outputs are as wide as the widest of the step.
static uint64_t probabilityStride(const llmc_step_v1 &step) {
  uint32_t widest = 0;
  for (uint32_t i = 0; i < step.num_logits; ++i)
    widest = std::max(widest, step.samplers[i].logprobs);
  return widest;
}

int32_t RowSampler::sample(const llmc_step_v1 &step, uint32_t row, std::span<float> logits) {
  const bool wanted = step.out_logprobs && step.out_logprob_ids;
  probabilities_.clear();
  const int32_t id = sampler_.sample(logits, step.samplers[row], wanted ? &probabilities_ : nullptr);
  if (step.out_ids)
    step.out_ids[row] = id;
  if (wanted) {
    const uint64_t stride = probabilityStride(step), start = row * stride;
    for (uint64_t k = 0; k < stride; ++k) {
      const bool there = k < probabilities_.size();
      step.out_logprob_ids[start + k] = there ? probabilities_[k].id : -1;
      step.out_logprobs[start + k] = there ? probabilities_[k].logProbability : 0;
    }
  }
  return id;
}

} // namespace llmc
