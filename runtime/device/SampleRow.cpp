//===- SampleRow.cpp ------------------------------------------------------===//
#include "runtime/device/SampleRow.h"

namespace llmc {

bool RowSampler::plainGreedy(const llmc_step_v1 &step, uint32_t row) {
  const llmc_sampler_v1 &s = step.samplers[row];
  return plain(step, row) && (!(s.temperature > 1e-6f) || s.top_k == 1);
}

bool RowSampler::plain(const llmc_step_v1 &step, uint32_t row) {
  const llmc_sampler_v1 &s = step.samplers[row];
  const bool repetition = s.repetition_penalty > 0 && s.repetition_penalty != 1;
  const bool penalties = s.history && (repetition || s.presence_penalty != 0 || s.frequency_penalty != 0);
  const bool probabilities = step.out_logprobs && step.out_logprob_ids;
  return !penalties && !s.bias_count && !s.token_mask && !probabilities;
}

int32_t RowSampler::sample(const llmc_step_v1 &step, uint32_t row, std::span<float> logits) {
  const llmc_sampler_v1 &settings = step.samplers[row];
  const bool wanted = step.out_logprobs && step.out_logprob_ids;
  const int32_t id = sampler_.sample(logits, settings, wanted ? &probabilities_ : nullptr);
  if (step.out_ids)
    step.out_ids[row] = id;
  for (uint32_t k = 0; wanted && id >= 0 && k < probabilities_.size(); ++k) {
    step.out_logprob_ids[uint64_t(row) * (1 + settings.logprobs) + k] = probabilities_[k].first;
    step.out_logprobs[uint64_t(row) * (1 + settings.logprobs) + k] = probabilities_[k].second;
  }
  return id;
}

} // namespace llmc
