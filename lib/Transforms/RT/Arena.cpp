//===- Arena.cpp - greedy by size, lowest free place ----------------------===//
//
// The order "largest first" is what keeps the arena near the largest sum of buffers alive at once
// (Pisarchyk, Lee 2020, sec. 5: greedy by size).
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/RT/Arena.h"

#include <algorithm>
#include <numeric>

using namespace llmc;

static constexpr uint64_t kAlignment = 64;
static uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

uint64_t llmc::planArena(std::vector<ArenaBuffer> &buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });

  std::vector<const ArenaBuffer *> placed; // by offset
  uint64_t end = 0;
  for (size_t index : order) {
    ArenaBuffer &buffer = buffers[index];
    buffer.offset = 0;
    for (const ArenaBuffer *other : placed) {
      if (other->last < buffer.first || buffer.last < other->first)
        continue; // never alive together
      if (buffer.offset + buffer.bytes <= other->offset)
        break; // fits before this one; the later ones start no lower
      buffer.offset = std::max(buffer.offset, aligned(other->offset + other->bytes));
    }
    placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer.offset,
                                   [](uint64_t offset, const ArenaBuffer *other) { return offset < other->offset; }),
                  &buffer);
    end = std::max(end, aligned(buffer.offset + buffer.bytes));
  }
  return end;
}
