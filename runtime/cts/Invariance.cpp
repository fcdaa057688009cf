//===- Invariance.cpp - chunks, batches, repetition -----------------------===//
#include "runtime/cts/Suite.h"

#include <algorithm>

namespace llmc::cts {

namespace {

std::vector<uint64_t> lengths(const Player &p) {
  return p.quick ? std::vector<uint64_t>{1, 2, 17, 40} : std::vector<uint64_t>{1, 2, 7, 15, 16, 17, 33, 63, 64, 65, 127, 128, 129, 200};
}

void repeated(Player &p) {
  for (uint64_t wanted : lengths(p)) {
    const uint64_t length = p.length(wanted);
    const Ids ids = p.text(length), blocks = range(0, int32_t(length / LLMC_KV_BLOCK + 1));
    const Row first = p.play({{ids, 0, blocks}})[0];
    const auto cache = p.readBlocks(blocks);
    for (int i = 0; i < (p.quick ? 2 : 5); ++i) {
      p.same(p.play({{ids, 0, blocks}})[0], first, std::to_string(length) + " tokens again");
      expect(p.readBlocks(blocks) == cache, std::to_string(length) + " tokens again: another cache");
    }
  }
}

void chunked(Player &p) {
  for (uint64_t wanted : lengths(p)) {
    const uint64_t length = p.length(wanted);
    const Ids ids = p.text(length), blocks = range(0, int32_t(length / LLMC_KV_BLOCK + 1));
    const Row whole = p.play({{ids, 0, blocks}})[0];
    for (uint64_t chunk : {1, 7, 16, 50})
      if (chunk < length && (chunk > 1 || length < 70))
        p.close(p.playChunked(ids, blocks, chunk), whole,
                std::to_string(length) + " tokens in pieces of " + std::to_string(chunk));
  }
}

// A prompt longer than one step.
void longPrompt(Player &p) {
  const uint64_t length = std::min<uint64_t>({p.m.max_context, uint64_t(p.blocks()) * LLMC_KV_BLOCK, p.quick ? 300u : 2000u});
  const Ids ids = p.text(length), blocks = range(0, int32_t((length + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK));
  const Row a = p.playChunked(ids, blocks, p.m.max_tokens);
  p.close(p.playChunked(ids, blocks, 61), a, std::to_string(length) + " tokens in pieces of 61");
}

// Sequences of a ragged batch, each as if it were alone: prompts, then single tokens, then both in one step.
struct Crowd {
  std::vector<Ids> texts;
  std::vector<Ids> blocks;

  explicit Crowd(const Player &p) {
    const uint64_t sizes[] = {1, 30, 5, 17, 2, 16, 48, 3, 1, 15, 9, 31};
    const uint32_t most = std::min({p.m.max_seqs, p.m.max_logits, p.quick ? 6u : 64u, p.blocks() / 4});
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < most; ++i) {
      const uint64_t size = std::min<uint64_t>(p.length(sizes[i % 12] + 2), 50);
      if ((tokens += size) > p.m.max_tokens || size < 3)
        break;
      texts.push_back(p.text(size, i + 1));
      blocks.push_back(range(int32_t(4 * i), int32_t(4 * i + 4)));
    }
  }
  /// Tokens [first, last) from the end: cut(i, 2, 0) are the last two.
  Part part(size_t i, size_t first, size_t last) const {
    return {Ids(texts[i].begin() + ptrdiff_t(first), texts[i].begin() + ptrdiff_t(last)), first, blocks[i]};
  }
};

void batched(Player &p) {
  const Crowd crowd(p);
  std::vector<std::vector<Row>> alone(crowd.texts.size());
  for (size_t i = 0; i < crowd.texts.size(); ++i) {
    const size_t n = crowd.texts[i].size();
    alone[i] = {p.play({crowd.part(i, 0, n - 2)})[0], p.play({crowd.part(i, n - 2, n - 1)})[0], p.play({crowd.part(i, n - 1, n)})[0]};
  }
  std::vector<Part> prompts, tokens;
  for (size_t i = 0; i < crowd.texts.size(); ++i) {
    prompts.push_back(crowd.part(i, 0, crowd.texts[i].size() - 2));
    tokens.push_back(crowd.part(i, crowd.texts[i].size() - 2, crowd.texts[i].size() - 1));
  }
  const std::string of = " of " + std::to_string(crowd.texts.size());
  const std::vector<Row> first = p.play(prompts), second = p.play(tokens);
  for (size_t i = 0; i < crowd.texts.size(); ++i) {
    p.close(first[i], alone[i][0], "prompt of sequence " + std::to_string(i) + of);
    p.close(second[i], alone[i][1], "token of sequence " + std::to_string(i) + of);
  }
  // Odd sequences start anew beside even ones that go on.
  std::vector<Part> mixed;
  for (size_t i = 0; i < crowd.texts.size(); ++i)
    mixed.push_back(i % 2 ? crowd.part(i, 0, crowd.texts[i].size() - 2) : crowd.part(i, crowd.texts[i].size() - 1, crowd.texts[i].size()));
  const std::vector<Row> third = p.play(mixed);
  for (size_t i = 0; i < crowd.texts.size(); ++i)
    p.close(third[i], alone[i][i % 2 ? 0 : 2], "mixed step, sequence " + std::to_string(i) + of);
}

void batchRepeated(Player &p) {
  const Crowd crowd(p);
  std::vector<Part> parts;
  for (size_t i = 0; i < crowd.texts.size(); ++i)
    parts.push_back(crowd.part(i, 0, crowd.texts[i].size()));
  const std::vector<Row> first = p.play(parts), second = p.play(parts);
  for (size_t i = 0; i < parts.size(); ++i)
    p.same(second[i], first[i], "batch again, sequence " + std::to_string(i));
}

void fullStep(Player &p) {
  const uint64_t length = p.length(p.quick ? 128 : UINT64_MAX);
  const Ids ids = p.text(length), blocks = range(0, int32_t((length + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK));
  const Row whole = p.play({{ids, 0, blocks}})[0];
  p.close(p.playChunked(ids, blocks, (length + 1) / 2), whole, std::to_string(length) + " tokens in two halves");
}

} // namespace

void addInvariance(Checks &checks) {
  checks.push_back({"the same step twice has the same bits", repeated});
  checks.push_back({"the same batch twice has the same bits", batchRepeated});
  checks.push_back({"whole prompt and pieces", chunked});
  checks.push_back({"a prompt longer than a step", longPrompt});
  checks.push_back({"the largest step and its halves", fullStep});
  checks.push_back({"ragged batch and each sequence alone", batched});
}

} // namespace llmc::cts
