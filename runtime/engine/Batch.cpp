//===- Batch.cpp ----------------------------------------------------------===//
#include "runtime/engine/Batch.h"
#include "runtime/device/KVBlocks.h"

#include <algorithm>

namespace llmc {

Batch::Batch(const Device &device) {
  const llmc_module_v1 &m = device.module();
  stride_ = std::min(uint32_t(blocksOf(m.max_context)), device.numBlocks());
  table_.assign(size_t(stride_) * m.max_seqs, 0);
  for (std::vector<int32_t> *v : {&ids_, &positions_, &slots_})
    v->reserve(m.max_tokens);
  clear();
}

void Batch::clear() {
  for (std::vector<int32_t> *v : {&ids_, &positions_, &slots_, &starts_, &lengths_, &rows_})
    v->clear();
  samplers_.clear();
  generated_ = 0;
  starts_.push_back(0);
}

void Batch::add(std::span<const int32_t> ids, uint64_t first, std::span<const int32_t> blocks, std::optional<uint32_t> chosenByRow) {
  const size_t before = ids_.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (chosenByRow)
    ids_.push_back(-1 - int32_t(*chosenByRow));
  const uint64_t end = first + ids_.size() - before;
  for (uint64_t position = first; position < end; ++position) {
    positions_.push_back(int32_t(position));
    slots_.push_back(blocks[position / LLMC_KV_BLOCK] * LLMC_KV_BLOCK + int32_t(position % LLMC_KV_BLOCK));
  }
  starts_.push_back(int32_t(ids_.size()));
  lengths_.push_back(int32_t(end));
  const size_t used = std::min<size_t>(blocks.size(), stride_);
  table_.resize(std::max(table_.size(), size_t(stride_) * lengths_.size())); // more sequences than a step takes are the device's to refuse
  // Beyond the sequence stays what was there: blocks that exist. Rows are long where contexts may be.
  std::copy_n(blocks.begin(), used, table_.begin() + ptrdiff_t(size_t(stride_) * (lengths_.size() - 1)));
}

void Batch::wantLogits(uint32_t index, const llmc_sampler_v1 *sampler) {
  rows_.push_back(int32_t(index));
  if (sampler)
    samplers_.push_back(*sampler);
}

llmc_step_v1 Batch::step() {
  view_.block_table = table_.data();
  view_.slots = slots_.data();
  view_.block_table_stride = stride_;
  outIds_.assign(rows_.size(), -1);
  llmc_step_v1 s{};
  s.struct_size = sizeof s;
  s.version = LLMC_ABI_VERSION;
  s.num_tokens = tokens();
  s.num_seqs = sequences();
  s.num_logits = logitsRows();
  s.num_generated = generated_;
  s.num_kv_groups = 1;
  s.token_ids = ids_.data();
  s.positions = positions_.data();
  s.seq_starts = starts_.data();
  s.kv_lengths = lengths_.data();
  s.kv = &view_;
  s.logits_rows = rows_.data();
  s.stop_after_op = -1;
  if (!samplers_.empty()) {
    s.samplers = samplers_.data();
    s.out_ids = outIds_.data();
    probabilityStride_ = 0;
    for (const llmc_sampler_v1 &sampler : samplers_)
      probabilityStride_ = std::max(probabilityStride_, sampler.logprobs);
  }
  if (!samplers_.empty() && probabilityStride_) {
    outLogProbs_.assign(rows_.size() * size_t(probabilityStride_), 0);
    outLogProbIds_.assign(outLogProbs_.size(), -1);
    s.out_logprobs = outLogProbs_.data();
    s.out_logprob_ids = outLogProbIds_.data();
  }
  return s;
}

std::vector<TokenProbability> Batch::probabilities(uint32_t row) const {
  std::vector<TokenProbability> result;
  const size_t start = row * size_t(probabilityStride_);
  for (size_t k = start; k < start + samplers_[row].logprobs && outLogProbIds_[k] >= 0; ++k)
    result.push_back({outLogProbIds_[k], outLogProbs_[k]});
  return result;
}

} // namespace llmc
