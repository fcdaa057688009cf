//===- FakeModel.h - a model small enough to write by hand ------*- C++ -*-===//
//
// x = embedding[id]; the KV cache keeps x as key and value; y = mean of the values up to
// the token; logits = head (x + y). One layer, one KV head, f32. Enough to exercise
// every argument kind, row kind and variant of abi.h. Token kNanToken embeds to NaN.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_RUNTIME_DEVICE_FAKEMODEL_H
#define LLMC_TEST_RUNTIME_DEVICE_FAKEMODEL_H

#include "llmc/abi.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace fake {

constexpr uint32_t kVocab = 260, kPaddedVocab = 288, kHidden = 32;
constexpr uint32_t kMaxTokens = 32, kMaxSeqs = 4, kMaxLogits = 8, kMaxContext = 96;
constexpr int32_t kNanToken = 259, kEos = 257;
// Weights: embedding ROWS_F32 [260, 32], then head N16_F32 [260, 32] padded to [288, 32].
constexpr uint64_t kEmbeddingBytes = kVocab * kHidden * 4, kHeadOffset = (kEmbeddingBytes + 63) / 64 * 64;
constexpr uint64_t kWeightsBytes = kHeadOffset + uint64_t(kPaddedVocab) * kHidden * 4;
// KV block: K [32][16], V [16][32].
constexpr uint64_t kHeadBytes = 2 * kHidden * LLMC_KV_BLOCK * 4, kBlockBytes = kHeadBytes;

inline float pseudo(uint32_t i) { // in [-1, 1)
  i = (i ^ 61) ^ (i >> 16);
  i *= 9;
  i ^= i >> 4;
  i *= 0x27d4eb2d;
  i ^= i >> 15;
  return float(i) * 0x1p-31f - 1.0f;
}

inline float embedding(uint32_t id, uint32_t j) {
  return id == uint32_t(kNanToken) ? std::numeric_limits<float>::quiet_NaN() : pseudo(id * kHidden + j);
}
inline float head(uint32_t id, uint32_t j) { return pseudo(1000003 + id * kHidden + j); }

/// Costs of the launches, in order: embedding, append, attention, gather, head (llmc_cost_v1).
inline constexpr llmc_cost_v1 fakeCosts[] = {
    {LLMC_COST_F32, 0, 0, 0, 0, kHidden * 4, kHidden * 4 + 4, 0, 0},
    {LLMC_COST_F32, 0, 0, 0, 0, 0, kHidden * 4, 0, 2 * kHidden * 4},
    {LLMC_COST_F32, 0, 0, 4 * kHidden, 0, 0, kHidden * 4, 2 * kHidden * 4, 0},
    {LLMC_COST_F32, 0, kHidden, 0, 0, 0, 3 * kHidden * 4, 0, 0},
    {LLMC_COST_F32, 0, 2 * kHidden * kVocab, 0, kWeightsBytes - kHeadOffset, 0, (kHidden + kPaddedVocab) * 4, 0, 0}};

/// The weights section.
inline std::vector<uint8_t> weights() {
  std::vector<uint8_t> bytes(kWeightsBytes, 0);
  auto *e = reinterpret_cast<float *>(bytes.data());
  for (uint32_t v = 0; v < kVocab; ++v)
    for (uint32_t j = 0; j < kHidden; ++j)
      e[v * kHidden + j] = embedding(v, j);
  auto *h = reinterpret_cast<float *>(bytes.data() + kHeadOffset);
  for (uint32_t v = 0; v < kVocab; ++v)
    for (uint32_t j = 0; j < kHidden; ++j)
      h[(v / 16 * kHidden + j) * 16 + v % 16] = head(v, j);
  return bytes;
}

/// Logits after `ids`, in the order of operations of the compiled program.
inline std::vector<float> expectedLogits(const std::vector<int32_t> &ids) {
  std::vector<float> x(kHidden), logits(kVocab);
  for (uint32_t j = 0; j < kHidden; ++j) {
    float sum = 0;
    for (int32_t id : ids)
      sum += embedding(uint32_t(id), j);
    x[j] = embedding(uint32_t(ids.back()), j) + sum / float(ids.size());
  }
  for (uint32_t v = 0; v < kVocab; ++v)
    for (uint32_t j = 0; j < kHidden; ++j)
      logits[v] = std::fma(x[j], head(v, j), logits[v]);
  return logits;
}

} // namespace fake

#endif // LLMC_TEST_RUNTIME_DEVICE_FAKEMODEL_H
