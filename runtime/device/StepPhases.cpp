//===- StepPhases.cpp -----------------------------------------------------===//
#include "runtime/device/StepPhases.h"

#include <algorithm>

namespace llmc {

StepPhases::StepPhases(const llmc_module_v1 &module) : vocab_(module.vocab), hidden_(module.hidden) {
  starts_.reserve(module.max_seqs + 1);
  rows_.reserve(module.max_logits);
}

void StepPhases::split(const llmc_step_v1 &s) {
  const uint32_t tokens = s.num_tokens - s.num_generated;
  const auto *boundary = std::lower_bound(s.seq_starts, s.seq_starts + s.num_seqs, int32_t(tokens));
  const uint32_t seqs = uint32_t(boundary - s.seq_starts);
  const uint32_t logits = uint32_t(std::lower_bound(s.logits_rows, s.logits_rows + s.num_logits, int32_t(tokens)) - s.logits_rows);
  prompts = generated = s;
  prompts.num_generated = generated.num_generated = 0;
  prompts.num_tokens = tokens;
  prompts.num_seqs = seqs;
  prompts.num_logits = logits;
  generated.num_tokens -= tokens;
  generated.num_seqs -= seqs;
  generated.num_logits -= logits;
  if (!tokens || !s.num_generated)
    return;
  starts_.clear();
  for (uint32_t i = seqs; i <= s.num_seqs; ++i)
    starts_.push_back(s.seq_starts[i] - int32_t(tokens));
  rows_.clear();
  for (uint32_t i = logits; i < s.num_logits; ++i)
    rows_.push_back(s.logits_rows[i] - int32_t(tokens));
  view_ = s.kv[0];
  view_.block_table += uint64_t(seqs) * view_.block_table_stride;
  view_.slots += tokens;
  generated.token_ids += tokens;
  generated.positions += tokens;
  generated.seq_starts = starts_.data();
  generated.kv_lengths += seqs;
  generated.kv = &view_;
  generated.logits_rows = rows_.data();
  if (s.samplers)
    generated.samplers += logits;
  if (s.out_logits)
    generated.out_logits += logits * vocab_;
  if (s.out_hidden)
    generated.out_hidden += logits * hidden_;
}

} // namespace llmc
