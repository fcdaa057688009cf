//===- Batch.h - builds one step out of pieces of sequences -----*- C++ -*-===//
#ifndef LLMC_RUNTIME_ENGINE_BATCH_H
#define LLMC_RUNTIME_ENGINE_BATCH_H

#include "runtime/device/Device.h"
#include "runtime/engine/Sampler.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace llmc {

/// The arrays that one llmc_step_v1 points to. Allocated once, filled for every step.
class Batch {
public:
  explicit Batch(const Device &device);

  void clear();
  /// Tokens of one sequence that lie at positions first, first + 1, ... ; `blocks` covers them all. `chosenByRow`: one more behind
  /// them, the token that this row of logits of the step before gives.
  void add(std::span<const int32_t> ids, uint64_t first, std::span<const int32_t> blocks, std::optional<uint32_t> chosenByRow = {});
  /// The last so many tokens are no prompts'.
  void setGenerated(uint32_t tokens) { generated_ = tokens; }
  /// The token at `index` (counted over the whole batch) wants a row of logits; ascending.
  void wantLogits(uint32_t index, const llmc_sampler_v1 *sampler = nullptr);

  uint32_t tokens() const { return uint32_t(ids_.size()); }
  uint32_t sequences() const { return uint32_t(lengths_.size()); }
  uint32_t logitsRows() const { return uint32_t(rows_.size()); }

  /// Valid until the next clear() or add().
  llmc_step_v1 step();
  const std::vector<int32_t> &outIds() const { return outIds_; }
  /// What the sampler of row `row` asked for; empty if it asked for nothing or the row is bad.
  std::vector<TokenProbability> probabilities(uint32_t row) const;

private:
  uint32_t stride_;
  std::vector<int32_t> ids_, positions_, slots_, starts_, lengths_, rows_, table_, outIds_;
  std::vector<llmc_sampler_v1> samplers_;
  std::vector<float> outLogProbs_; // [rows, probabilityStride_], as outLogProbIds_
  std::vector<int32_t> outLogProbIds_;
  uint32_t probabilityStride_ = 0, generated_ = 0;
  llmc_kv_view_v1 view_{};
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_BATCH_H
