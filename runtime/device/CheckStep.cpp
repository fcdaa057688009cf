//===- CheckStep.cpp ------------------------------------------------------===//
#include "runtime/device/CheckStep.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <string>

namespace llmc {

namespace {

[[noreturn]] void fail(const std::string &what) { throw Error("step: " + what); }

void atMost(const char *what, uint32_t value, uint32_t limit) {
  if (value > limit)
    fail(std::string("expected at most ") + std::to_string(limit) + " " + what + ", got " + std::to_string(value));
}

// Before anything that indexes by the starts.
void checkStarts(const llmc_step_v1 &s) {
  if (s.seq_starts[0] != 0 || s.seq_starts[s.num_seqs] != int32_t(s.num_tokens))
    fail("the sequences do not cover the tokens");
  for (uint32_t i = 0; i < s.num_seqs; ++i)
    if (s.seq_starts[i + 1] < s.seq_starts[i])
      fail("the sequence starts descend");
}

void checkSequence(const llmc_module_v1 &m, const llmc_step_v1 &s, uint32_t i, uint32_t numBlocks) {
  const llmc_kv_view_v1 &kv = s.kv[0];
  const int32_t begin = s.seq_starts[i], end = s.seq_starts[i + 1];
  const int64_t length = s.kv_lengths[i];
  const int64_t limit = std::min<int64_t>(int64_t(kv.block_table_stride) * LLMC_KV_BLOCK, m.max_context);
  if (length < end - begin || length > limit)
    fail("expected a KV length of at least the new tokens and at most " + std::to_string(limit) + ", got " +
         std::to_string(length));
  for (int32_t t = begin; t < end; ++t)
    if (s.positions[t] != length - (end - t) || kv.slots[t] < -1 ||
        int64_t(kv.slots[t]) >= int64_t(numBlocks) * LLMC_KV_BLOCK)
      fail("token " + std::to_string(t) + " has position " + std::to_string(s.positions[t]) + " and slot " +
           std::to_string(kv.slots[t]) + ", which do not fit a cache of " + std::to_string(length) + " tokens and " +
           std::to_string(numBlocks) + " blocks");
  for (int64_t b = 0; b * LLMC_KV_BLOCK < length; ++b)
    if (uint32_t(kv.block_table[i * uint64_t(kv.block_table_stride) + uint64_t(b)]) >= numBlocks)
      fail("sequence " + std::to_string(i) + " refers to a block that does not exist");
}

} // namespace

void checkStep(const llmc_module_v1 &m, const llmc_step_v1 &s, uint32_t numBlocks) {
  if (s.version != LLMC_ABI_VERSION || s.struct_size != sizeof(llmc_step_v1))
    fail("expected version " + std::to_string(LLMC_ABI_VERSION) + ", got " + std::to_string(s.version));
  atMost("tokens", s.num_tokens, m.max_tokens);
  atMost("sequences", s.num_seqs, m.max_seqs);
  atMost("rows of logits", s.num_logits, m.max_logits);
  if (s.num_kv_groups != m.num_kv_groups)
    fail("expected " + std::to_string(m.num_kv_groups) + " KV groups, got " + std::to_string(s.num_kv_groups));
  if (s.tree_mask || s.adapter_ids || s.embeddings)
    fail("tree masks, adapters and embedding rows are not supported by this module");
  const bool tokensGiven = s.num_tokens == 0 || (s.token_ids && s.positions && s.kv && s.kv[0].slots);
  const bool sequencesGiven = s.num_seqs == 0 || (s.kv_lengths && s.kv && s.kv[0].block_table);
  if (!tokensGiven || !sequencesGiven || !s.seq_starts || !s.kv || (s.num_logits && !s.logits_rows))
    fail("an input is null");
  for (uint32_t t = 0; t < s.num_tokens; ++t) {
    const int64_t id = s.token_ids[t];
    if (id >= int64_t(m.vocab) || id < -int64_t(m.max_logits))
      fail("expected token ids below " + std::to_string(m.vocab) + ", got " + std::to_string(id));
  }
  checkStarts(s);
  for (uint32_t i = 0; i < s.num_logits; ++i)
    if (uint32_t(s.logits_rows[i]) >= s.num_tokens || (i && s.logits_rows[i] <= s.logits_rows[i - 1]))
      fail("the rows of logits are not ascending token indices");
  for (uint32_t i = 0; i < s.num_seqs; ++i)
    checkSequence(m, s, i, numBlocks);
  const int32_t prompts = int32_t(s.num_tokens - std::min(s.num_generated, s.num_tokens));
  if (s.num_generated > s.num_tokens || !std::binary_search(s.seq_starts, s.seq_starts + s.num_seqs + 1, prompts))
    fail("expected whole sequences of generated tokens at the end, got " + std::to_string(s.num_generated) + " of " +
         std::to_string(s.num_tokens) + " tokens");
}

bool endsEarly(const llmc_program_v1 &program, const llmc_step_v1 &s) {
  return s.stop_after_op >= 0 && uint32_t(s.stop_after_op) + 1 < program.num_launches;
}

uint32_t slotsFor(uint64_t swapBytes, uint64_t blockBytes) {
  return uint32_t(std::min<uint64_t>(swapBytes / blockBytes, INT32_MAX));
}

void checkBlock(int32_t block, uint32_t numBlocks) {
  if (uint32_t(block) >= numBlocks)
    throw Error("expected a KV block below " + std::to_string(numBlocks) + ", got " + std::to_string(block));
}

} // namespace llmc
