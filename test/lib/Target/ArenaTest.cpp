//===- ArenaTest.cpp - buffers alive together do not overlap --------------===//
#include "lib/Transforms/RT/Arena.h"

#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {
bool overlap(uint64_t a, uint64_t sizeA, uint64_t b, uint64_t sizeB) { return a < b + sizeB && b < a + sizeA; }

/// Largest sum of bytes alive at one launch: no arena is smaller.
uint64_t lowerBound(const std::vector<ArenaBuffer> &buffers) {
  uint64_t largest = 0;
  for (const ArenaBuffer &at : buffers) {
    uint64_t sum = 0;
    for (const ArenaBuffer &other : buffers)
      sum += other.first <= at.first && at.first <= other.last ? other.bytes : 0;
    largest = std::max(largest, sum);
  }
  return largest;
}

void expectSound(const std::vector<ArenaBuffer> &buffers, uint64_t size) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].offset % 64, 0u);
    EXPECT_LE(buffers[i].offset + buffers[i].bytes, size);
    for (size_t j = 0; j < i; ++j) {
      bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      EXPECT_FALSE(together && overlap(buffers[i].offset, buffers[i].bytes, buffers[j].offset, buffers[j].bytes))
          << i << " and " << j;
    }
  }
}

TEST(Arena, empty) {
  std::vector<ArenaBuffer> none;
  EXPECT_EQ(planArena(none), 0u);
}

TEST(Arena, aChainNeedsTwoBuffers) {
  std::vector<ArenaBuffer> buffers;
  for (uint32_t i = 0; i < 10; ++i)
    buffers.push_back({1000, i, i + 1, 0});
  uint64_t size = planArena(buffers);
  expectSound(buffers, size);
  EXPECT_EQ(size, 2048u);
}

TEST(Arena, aSmallBufferFillsAGap) {
  // 128 bytes live throughout; 256 early, then 64 + 64 in its place.
  std::vector<ArenaBuffer> buffers = {{128, 0, 9, 0}, {256, 0, 3, 0}, {64, 4, 9, 0}, {64, 5, 9, 0}};
  uint64_t size = planArena(buffers);
  expectSound(buffers, size);
  EXPECT_EQ(size, 384u);
}

TEST(Arena, randomLives) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < 40; ++i) {
      uint32_t first = random() % 30;
      buffers.push_back({1 + random() % 5000, first, first + uint32_t(random() % 5), 0});
    }
    uint64_t size = planArena(buffers);
    expectSound(buffers, size);
    EXPECT_GE(size, lowerBound(buffers));
    EXPECT_LE(size, 2 * lowerBound(buffers) + 64 * 40);
  }
}
} // namespace
