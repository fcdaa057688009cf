//===- Player.cpp ---------------------------------------------------------===//
#include "runtime/cts/Player.h"
#include "llmc/Support/Error.h"
#include "runtime/cts/Suite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace llmc::cts {

void fail(const std::string &what) { throw Error(what); }
void expect(bool good, const std::string &what) {
  if (!good)
    fail(what);
}

Ids range(int32_t first, int32_t last) {
  Ids ids(size_t(last - first));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

int32_t best(const Row &row) { return int32_t(std::max_element(row.begin(), row.end()) - row.begin()); }

Ids Player::text(uint64_t count, uint32_t salt) const {
  Ids ids;
  uint32_t x = salt * 2654435761u;
  for (uint64_t i = 0; i < count; ++i) {
    x = x * 1664525u + 1013904223u;
    ids.push_back(int32_t((x >> 8) % (m.vocab - m.vocab / 8))); // special tokens are at the end of most vocabularies
  }
  return ids;
}

uint64_t Player::length(uint64_t wanted) const {
  return std::min<uint64_t>({wanted, m.max_context, uint64_t(blocks()) * LLMC_KV_BLOCK, m.max_tokens});
}

llmc_step_v1 Player::step(const std::vector<Part> &parts, const llmc_sampler_v1 *sampler, bool logits) {
  batch_.clear();
  for (const Part &part : parts) {
    batch_.add(part.ids, part.first, part.blocks);
    if (logits && !part.ids.empty())
      batch_.wantLogits(batch_.tokens() - 1, sampler);
  }
  return batch_.step();
}

std::vector<Row> Player::play(const std::vector<Part> &parts) {
  llmc_step_v1 s = step(parts);
  std::vector<float> logits(uint64_t(s.num_logits) * m.vocab);
  s.out_logits = logits.data();
  device.step(s);
  std::vector<Row> rows;
  for (uint32_t i = 0; i < s.num_logits; ++i)
    rows.emplace_back(logits.begin() + ptrdiff_t(i * uint64_t(m.vocab)), logits.begin() + ptrdiff_t((i + 1) * uint64_t(m.vocab)));
  for (const Row &row : rows)
    for (float x : row)
      expect(std::isfinite(x), "expected finite logits, got " + std::to_string(x));
  return rows;
}

Row Player::playChunked(const Ids &ids, const Ids &blocks, uint64_t chunk) {
  chunk = std::min<uint64_t>(chunk, m.max_tokens);
  Row last;
  for (uint64_t first = 0; first < ids.size(); first += chunk) {
    const auto begin = ids.begin() + ptrdiff_t(first);
    last = play({{Ids(begin, begin + ptrdiff_t(std::min<uint64_t>(chunk, ids.size() - first))), first, blocks}})[0];
  }
  return last;
}

void Player::same(const Row &got, const Row &want, const std::string &what) const {
  for (size_t i = 0; i < want.size(); ++i)
    if (std::memcmp(&got[i], &want[i], sizeof(float)) != 0)
      fail(what + ": expected equal bits, got " + std::to_string(got[i]) + " instead of " + std::to_string(want[i]) +
           " for token " + std::to_string(i));
}

void Player::close(const Row &got, const Row &want, const std::string &what) const {
  if (onCpu())
    return same(got, want, what);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(want[i]));
    difference = std::max(difference, std::fabs(got[i] - want[i]));
  }
  const double allowed = kGpuTolerance * largest;
  if (!(difference <= allowed))
    fail(what + ": expected logits within " + std::to_string(allowed) + ", got a difference of " + std::to_string(difference));
  const auto a = size_t(best(got)), b = size_t(best(want));
  if (a != b && !(want[b] - want[a] <= allowed))
    fail(what + ": expected the likeliest token " + std::to_string(b) + ", got " + std::to_string(a));
}

std::vector<std::byte> Player::block(int32_t index) const {
  std::vector<std::byte> bytes(device.blockBytes());
  device.readBlock(index, bytes.data());
  return bytes;
}

std::vector<std::vector<std::byte>> Player::readBlocks(const Ids &blocks) const {
  std::vector<std::vector<std::byte>> all;
  for (int32_t b : blocks)
    all.push_back(block(b));
  return all;
}

} // namespace llmc::cts
