//===- RandomWeightsTest.cpp - values depend on nothing but the recipe ----===//
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "llmc/Target/Packing.h"
#include "llmc/Target/WeightsOptions.h"
#include "runtime/engine/UnpackWeight.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <thread>

using namespace llmc;

namespace {
constexpr DType kPlain[] = {DType::F32, DType::F16, DType::BF16};

llmc_layout panels(DType type) { return panelLayout(type); }

PackSpec matrix(DType storage, llmc_layout layout, uint64_t rows, uint64_t cols, const std::string &tensor = "blk.0.attn_q.weight") {
  PackSpec spec{.name = "w", .storage = storage, .layout = layout, .rows = rows, .cols = cols};
  spec.sources = {{.rows = rows, .tensor = tensor}};
  return spec;
}

/// [rows, cols] of the packed weight, read by the runtime's oracle.
std::vector<float> values(const PackSpec &spec, uint64_t seed) {
  std::vector<uint8_t> packed;
  packWeight(WeightPacker(spec, RandomWeights{seed}), [&](auto bytes) { packed.insert(packed.end(), bytes.begin(), bytes.end()); });
  EXPECT_EQ(packed.size(), spec.bytes());
  llmc_weight_v1 w{"w", 0, packed.size(), uint32_t(spec.layout), 0, spec.rows, spec.cols, padded(spec.rows), padded(spec.cols)};
  std::vector<float> out(spec.rows * spec.cols);
  unpackWeight(w, reinterpret_cast<const std::byte *>(packed.data()), out.data());
  return out;
}

std::vector<float> slice(const std::vector<float> &all, uint64_t cols, uint64_t begin, uint64_t end) {
  return {all.begin() + std::ptrdiff_t(begin * cols), all.begin() + std::ptrdiff_t(end * cols)};
}

TEST(RandomWeights, TheLayoutDoesNotMatter) {
  EXPECT_EQ(values(matrix(DType::BF16, LLMC_LAYOUT_ROWS_BF16, 47, 97), 3), values(matrix(DType::BF16, LLMC_LAYOUT_N16_BF16, 47, 97), 3));
  for (DType type : kDTypes) {
    const uint64_t cols = blockSize(type) == 256 ? 768 : 96;
    EXPECT_EQ(values(matrix(type, LLMC_LAYOUT_ROWS_F32, 47, cols), 3), values(matrix(type, panels(type), 47, cols), 3)) << toString(type);
  }
}

TEST(RandomWeights, StoragesRoundTheSameValues) {
  const std::vector<float> exact = values(matrix(DType::F32, LLMC_LAYOUT_N16_F32, 300, 512), 1);
  const std::vector<float> half = values(matrix(DType::F16, LLMC_LAYOUT_N16_F16, 300, 512), 1);
  const std::vector<float> bf16 = values(matrix(DType::BF16, LLMC_LAYOUT_N16_BF16, 300, 512), 1);
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(half[i], f16ToF32(f32ToF16(exact[i])));
    ASSERT_EQ(bf16[i], bf16ToF32(f32ToBf16(exact[i])));
  }
}

TEST(RandomWeights, RowsOfAShardAreRowsOfTheWhole) {
  for (DType type : kDTypes) {
    const uint64_t cols = blockSize(type) == 256 ? 256 : 64;
    const std::vector<float> whole = values(matrix(type, panels(type), 100, cols), 9);
    PackSpec shard = matrix(type, panels(type), 30, cols);
    shard.sources[0].row = 55;
    EXPECT_EQ(values(shard, 9), slice(whole, cols, 55, 85)) << toString(type);
  }
}

TEST(RandomWeights, FusionAndOrderDoNotMatter) {
  const std::vector<float> q = values(matrix(DType::BF16, LLMC_LAYOUT_N16_BF16, 32, 48, "q"), 5);
  const std::vector<float> k = values(matrix(DType::BF16, LLMC_LAYOUT_N16_BF16, 32, 48, "k"), 5);
  EXPECT_NE(q, k);
  PackSpec fused = matrix(DType::BF16, LLMC_LAYOUT_ROWS_BF16, 64, 48);
  fused.sources = {{.rows = 32, .tensor = "q"}, {.rows = 32, .tensor = "k"}};
  const std::vector<float> both = values(fused, 5);
  EXPECT_EQ(slice(both, 48, 0, 32), q);
  EXPECT_EQ(slice(both, 48, 32, 64), k);
  fused.interleave = 16;
  const std::vector<float> mixed = values(fused, 5);
  EXPECT_EQ(slice(mixed, 48, 16, 32), slice(k, 48, 0, 16));
  EXPECT_EQ(slice(mixed, 48, 32, 48), slice(q, 48, 16, 32));
  fused.interleave = 0;
  fused.sources[0].deinterleave = 8; // packed rows 0 .. 7 of a head are stored rows 0 2 4 6 1 3 5 7
  const std::vector<float> split = values(fused, 5);
  EXPECT_EQ(slice(split, 48, 9, 10), slice(q, 48, 10, 11));
  EXPECT_EQ(slice(split, 48, 12, 13), slice(q, 48, 9, 10));
}

TEST(RandomWeights, SeedNameAndPlaceAllCount) {
  const PackSpec spec = matrix(DType::F32, LLMC_LAYOUT_ROWS_F32, 64, 64);
  const std::vector<float> some = values(spec, 1);
  EXPECT_EQ(some, values(spec, 1));
  EXPECT_NE(some, values(spec, 2));
  EXPECT_NE(some, values(matrix(DType::F32, LLMC_LAYOUT_ROWS_F32, 64, 64, "blk.1.attn_q.weight"), 1));
  // 4096 values of 65536 possible: some 127 equal pairs are expected, rows or columns repeated would give thousands.
  std::vector<float> sorted = some;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_GT(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 3800);
}

// Values written down once: a package compiled today means the same weights to a later runtime.
TEST(RandomWeights, NeverChange) {
  const std::pair<DType, uint64_t> hashes[] = {
      {DType::F32, 0x245823493f4f3846}, {DType::F16, 0x3ee5e5b8b0a7fd92}, {DType::BF16, 0xf33e8463ff332c1e},
      {DType::Q4_0, 0xbfdf21b4f3710705}, {DType::Q4_1, 0x0529780bf14a9922}, {DType::Q8_0, 0xfefc9e24839b3f0a},
      {DType::Q5_0, 0x321d433dc666479b}, {DType::Q5_1, 0x340177b6674a5118}, {DType::Q2_K, 0xcea3a53c96d4de6d},
      {DType::Q3_K, 0x80e87f7205224623}, {DType::Q4_K, 0xc0b006ccd6921a91}, {DType::Q5_K, 0xfe13317b04298904},
      {DType::Q6_K, 0x341717c156a2c9ea}, {DType::IQ4_NL, 0x00905e66ee4075d6}, {DType::IQ4_XS, 0x3b94369a67dbe46c}};
  static_assert(std::size(hashes) == std::size(kDTypes));
  for (auto [type, hash] : hashes) {
    const PackSpec spec = matrix(type, panels(type), 33, blockSize(type) == 256 ? 512 : 96);
    EXPECT_EQ(packWeight(WeightPacker(spec, RandomWeights{42}), [](auto) {}), hash) << toString(type);
  }
}

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments(const std::vector<float> &v) {
  Moments m;
  for (float x : v) {
    m.mean += x / double(v.size());
    m.largest = std::max(m.largest, std::abs(double(x)));
  }
  for (float x : v)
    m.deviation += (x - m.mean) * (x - m.mean) / double(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(RandomWeights, SpreadKeepsActivationsFinite) {
  for (DType type : kDTypes)
    for (auto [tensor, deviation] : {std::pair{"blk.3.ffn_down.weight", 1 / std::sqrt(512.0)}, {"token_embd.weight", 4 / std::sqrt(512.0)}}) {
      const Moments m = moments(values(matrix(type, panels(type), 256, 512, tensor), 7));
      EXPECT_NEAR(m.mean, 0, 0.02 * deviation) << toString(type);
      EXPECT_NEAR(m.deviation, deviation, 0.03 * deviation) << toString(type);
      EXPECT_LT(m.largest, (codedForm(type).scaleBits && codedForm(type).minimum ? 3 : 2.5) * deviation) << toString(type);
    }
}

TEST(RandomWeights, VectorsAreNormsAndBiases) {
  for (DType type : kPlain) {
    auto vector = [&](const std::string &tensor, uint64_t row, uint64_t count) {
      PackSpec spec{.name = "v", .storage = type, .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = count, .vector = true};
      spec.sources = {{.rows = count, .tensor = tensor, .row = row}};
      return values(spec, 11);
    };
    const std::vector<float> norm = vector("blk.0.attn_norm.weight", 0, 1000), bias = vector("blk.0.attn_q.bias", 0, 1000);
    EXPECT_NEAR(moments(norm).mean, 1, 0.01);
    EXPECT_NEAR(moments(norm).deviation, 0.1 / std::sqrt(3.0), 0.01);
    EXPECT_NEAR(moments(bias).mean, 0, 0.002);
    EXPECT_LE(moments(bias).largest, 0.0201);
    EXPECT_EQ(vector("blk.0.attn_q.bias", 13, 50), slice(bias, 1, 13, 63));
  }
}

TEST(RandomWeights, NoCodeThatAFileWouldNotHave) {
  std::vector<uint8_t> packed;
  packWeight(WeightPacker(matrix(DType::Q8_0, LLMC_LAYOUT_N16_Q8_0, 64, 1024), RandomWeights{1}),
             [&](auto bytes) { packed.insert(packed.end(), bytes.begin(), bytes.end()); });
  unsigned counts[256] = {};
  for (size_t record = 0; record < packed.size(); record += 1088)
    for (size_t i = 64; i < 1088; ++i)
      ++counts[packed[record + i]];
  EXPECT_EQ(counts[0], 0u); // -128
  EXPECT_GT(counts[1], counts[2]);
  EXPECT_GT(counts[255], 150u);
}

// All codes, and integers of both signs, occur; scales are numbers.
TEST(RandomWeights, BlocksUseTheirWholeRange) {
  for (DType type : kDTypes) {
    if (blockSize(type) == 1)
      continue;
    const uint64_t cols = 1024, count = 64 * cols;
    const std::vector<float> v = values(matrix(type, LLMC_LAYOUT_ROWS_F32, 64, cols), 3);
    std::vector<float> sorted = v;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_GT(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), blockSize(type) == 32 ? 1000 : 50) << toString(type);
    EXPECT_NEAR(double(std::count_if(v.begin(), v.end(), [](float x) { return x > 0; })) / double(count), 0.5, 0.2) << toString(type);
    EXPECT_NEAR(moments(slice(v, cols, 0, 32)).deviation, moments(slice(v, cols, 32, 64)).deviation, 0.05 / 32) << toString(type);
  }
}

TEST(RandomWeights, TablesStay) {
  PackSpec spec{.name = "rope", .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = 3};
  spec.value = {1, 0.5f, 0.25f};
  EXPECT_EQ(values(spec, 1), spec.value);
}

// Parts in any order, by several threads, are the parts of the whole.
TEST(WeightPacker, PartsAreIndependent) {
  for (llmc_layout layout : {LLMC_LAYOUT_N16_BF16, LLMC_LAYOUT_ROWS_BF16, LLMC_LAYOUT_ROWS_F32}) {
    const WeightPacker packer(matrix(DType::BF16, layout, 75, 130), RandomWeights{4});
    std::vector<uint8_t> whole;
    packWeight(packer, [&](auto bytes) { whole.insert(whole.end(), bytes.begin(), bytes.end()); });
    ASSERT_EQ(packer.units() * packer.unitBytes(), whole.size());
    std::vector<uint8_t> parts(whole.size(), 0xcc);
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t unit = packer.units(); unit-- > 0;)
          if (unit % 3 == t)
            packer.pack(unit, parts.data() + unit * packer.unitBytes());
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(parts, whole);
  }
}

TEST(WeightsOptions, Parse) {
  using Mode = WeightsOptions::Mode;
  EXPECT_EQ(parseWeightsOptions("embedded").mode, Mode::Embedded);
  EXPECT_EQ(parseWeightsOptions("separate").mode, Mode::Separate);
  EXPECT_EQ(parseWeightsOptions("random:18446744073709551615").seed, UINT64_MAX);
  EXPECT_EQ(parseWeightsOptions("random:0").mode, Mode::Random);
  for (const char *text : {"", "random", "random:", "random:x", "random:-1", "random:1x", "random: 1", "random:18446744073709551616", "Embedded"})
    EXPECT_THROW(parseWeightsOptions(text), Error) << text;
}
} // namespace
