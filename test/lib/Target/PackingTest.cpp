//===- PackingTest.cpp - packed bytes against the words of llmc/abi.h -----===//
//
// Values from the bytes of a file are dequantizeRow's, which test/lib/Frontend holds against gguf's; values from packed
// bytes are read by the runtime's oracle, which shares no code with lib/Target/Packing, and padding is looked at here.
//
//===----------------------------------------------------------------------===//
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "llmc/Target/Packing.h"
#include "runtime/engine/UnpackWeight.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {
uint16_t u16(const uint8_t *bytes) { return uint16_t(bytes[0] | bytes[1] << 8); }
float f32(const uint8_t *bytes) {
  float value;
  std::memcpy(&value, bytes, 4);
  return value;
}

std::vector<float> storedRow(DType type, const uint8_t *row, uint64_t cols) {
  std::vector<float> values(cols);
  dequantizeRow(type, row, int64_t(cols), values.data());
  return values;
}

/// All rows and columns that are stored, padding included.
struct Everything {
  uint64_t rows, cols;
  std::vector<float> values;
};
Everything unpackAll(const PackSpec &spec, const std::vector<uint8_t> &packed) {
  Everything all{storedRows(spec.layout, spec.rows), recordsPerPanel(spec.layout, spec.cols) * recordK(spec.layout), {}};
  all.values.resize(all.rows * all.cols);
  llmc_weight_v1 weight{"w", 0, packed.size(), uint32_t(spec.layout), 0, all.rows, all.cols, all.rows, padded(spec.cols)};
  unpackWeight(weight, reinterpret_cast<const std::byte *>(packed.data()), all.values.data());
  return all;
}

/// Where the f16 of a block lie.
std::vector<size_t> halves(DType type) {
  switch (type) {
  case DType::Q4_1: case DType::Q5_1: case DType::Q4_K: case DType::Q5_K: return {0, 2};
  case DType::Q2_K: return {80, 82};
  case DType::Q3_K: return {108};
  case DType::Q6_K: return {208};
  default: return {0};
  }
}

/// Rows of random values, with plain numbers as scales.
std::string randomRows(DType type, uint64_t rows, uint64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(rows * storageBytes(type, cols), 0);
  for (char &byte : bytes)
    byte = char(random());
  std::uniform_real_distribution<float> values(-2, 2);
  for (size_t at = 0; at < bytes.size(); at += blockBytes(type)) {
    if (float value = values(random); type == DType::F32)
      std::memcpy(&bytes[at], &value, 4);
    else
      for (size_t half : halves(type)) {
        uint16_t bits = type == DType::BF16 ? f32ToBf16(value) : f32ToF16(value);
        std::memcpy(&bytes[at + half], &bits, 2);
        value = values(random);
      }
  }
  return bytes;
}

std::vector<uint8_t> pack(const PackSpec &spec, std::initializer_list<std::string_view> contents) {
  std::vector<InputFile> files;
  for (std::string_view content : contents)
    files.push_back(InputFile::fromMemory("model", content));
  std::vector<uint8_t> packed;
  uint64_t hash = packWeight(spec, files, [&](auto bytes) { packed.insert(packed.end(), bytes.begin(), bytes.end()); });
  EXPECT_EQ(hash, XXH3_64bits(packed.data(), packed.size()));
  EXPECT_EQ(packed.size(), spec.bytes());
  EXPECT_EQ(packed.size() % 64, 0u);
  return packed;
}

/// Every value equals that of the stored row `source(row)`, and every padded one is 0.
template <class Source> void expectValues(const PackSpec &spec, const std::vector<uint8_t> &packed, Source source) {
  const Everything all = unpackAll(spec, packed);
  for (uint64_t row = 0; row < all.rows; ++row) {
    std::vector<float> expected(all.cols);
    if (row < spec.rows)
      dequantizeRow(spec.storage, source(row), int64_t(spec.cols), expected.data());
    for (uint64_t k = 0; k < all.cols; ++k) {
      float value = spec.layout == LLMC_LAYOUT_ROWS_BF16 ? bf16ToF32(f32ToBf16(expected[k])) : expected[k];
      ASSERT_EQ(all.values[row * all.cols + k], value) << "row " << row << " column " << k;
    }
  }
}

TEST(Packing, everyStorageInPanelsAndRows) {
  for (DType type : kDTypes)
    for (llmc_layout layout : {panelLayout(type), LLMC_LAYOUT_ROWS_F32, LLMC_LAYOUT_ROWS_BF16})
      for (uint64_t rows : {1, 16, 33, 47})
        // Also columns that end inside a record.
        for (uint64_t cols : blockSize(type) == 1    ? std::vector<uint64_t>{1, 31, 64, 97}
                             : blockSize(type) == 32 ? std::vector<uint64_t>{32, 64, 96}
                                                     : std::vector<uint64_t>{256, 768}) {
          if (layout == LLMC_LAYOUT_ROWS_BF16 && blockSize(type) != 1)
            continue;
          SCOPED_TRACE(testing::Message() << toString(type) << " layout " << layout << " " << rows << "x" << cols);
          PackSpec spec{.name = "w", .storage = type, .layout = layout, .rows = rows, .cols = cols};
          spec.sources = {{.file = 0, .offset = 5, .rows = rows}};
          std::string content = "12345" + randomRows(spec.storage, rows, cols, 7);
          const auto *base = reinterpret_cast<const uint8_t *>(content.data()) + 5;
          expectValues(spec, pack(spec, {content}), [&](uint64_t row) { return base + row * storageBytes(type, cols); });
        }
}

// A packed weight takes no more bits than the file's blocks: panels of whole records are a permutation of them.
TEST(Packing, nothingIsWidened) {
  for (DType type : kDTypes)
    EXPECT_EQ(packedBytes(panelLayout(type), 64, 512), 64 * storageBytes(type, 512)) << toString(type);
}

// Whatever a kernel reads as scale of a padding row: the codes themselves are those of 0.
TEST(Packing, codesOfPaddingAreZero) {
  for (DType type : kDTypes) {
    const CodedForm form = codedForm(type);
    if (!form || form.table || form.minimum)
      continue;
    PackSpec spec{.name = "w", .storage = type, .layout = panelLayout(type), .rows = 17, .cols = 256};
    spec.sources = {{.rows = 17}};
    std::vector<uint8_t> packed = pack(spec, {randomRows(type, 17, 256, 2)});
    for (size_t record = 0; record < packed.size(); record += form.recordBytes())
      std::memset(&packed[record], 0x3c, form.codeOffset()); // every f16 is 1.06
    const Everything all = unpackAll(spec, packed);
    EXPECT_NE(all.values[16 * all.cols], 0) << toString(type);
    for (size_t i = 17 * all.cols; i < all.values.size(); ++i)
      ASSERT_EQ(all.values[i], 0) << toString(type);
  }
}

TEST(Packing, concatenatesSourcesOfTwoFiles) {
  PackSpec spec{.name = "qkv", .storage = DType::Q4_1, .layout = LLMC_LAYOUT_N16_Q4_1, .rows = 25, .cols = 64};
  spec.sources = {{.file = 1, .offset = 0, .rows = 9}, {.file = 0, .offset = 40, .rows = 16}};
  std::string a = std::string(40, 'x') + randomRows(spec.storage, 16, 64, 1), b = randomRows(spec.storage, 9, 64, 2);
  expectValues(spec, pack(spec, {a, b}), [&](uint64_t row) {
    return reinterpret_cast<const uint8_t *>(row < 9 ? &b[row * 40] : &a[40 + (row - 9) * 40]);
  });
}

TEST(Packing, interleavesInBlocks) {
  PackSpec spec{.name = "gate_up", .storage = DType::Q8_0, .layout = LLMC_LAYOUT_N16_Q8_0, .rows = 96, .cols = 32};
  spec.sources = {{.file = 0, .offset = 0, .rows = 48}, {.file = 0, .offset = 48 * 34, .rows = 48}};
  spec.interleave = 16;
  std::string content = randomRows(spec.storage, 96, 32, 3);
  expectValues(spec, pack(spec, {content}), [&](uint64_t row) {
    uint64_t stored = row / 32 * 16 + row % 16 + (row % 32 < 16 ? 0 : 48);
    return reinterpret_cast<const uint8_t *>(&content[stored * 34]);
  });
}

TEST(Packing, deinterleavesHeads) {
  // head of 6: packed rows 0..5 are stored rows 0 2 4 1 3 5
  const uint64_t order[] = {0, 2, 4, 1, 3, 5};
  PackSpec spec{.name = "q", .storage = DType::F16, .layout = LLMC_LAYOUT_N16_F16, .rows = 18, .cols = 8};
  spec.sources = {{.file = 0, .offset = 0, .rows = 12, .deinterleave = 6}, {.file = 0, .offset = 192, .rows = 6}};
  std::string content = randomRows(spec.storage, 18, 8, 4);
  expectValues(spec, pack(spec, {content}), [&](uint64_t row) {
    return reinterpret_cast<const uint8_t *>(&content[16 * (row < 12 ? row / 6 * 6 + order[row % 6] : row)]);
  });
}

// Both orders at once in rows of bf16: gate and up alternate, and heads are split.
TEST(Packing, ordersRowsOfBf16) {
  const uint64_t order[] = {0, 2, 1, 3};
  PackSpec spec{.name = "w", .storage = DType::F16, .layout = LLMC_LAYOUT_ROWS_BF16, .rows = 16, .cols = 40};
  spec.sources = {{.file = 0, .offset = 0, .rows = 8, .deinterleave = 4}, {.file = 0, .offset = 8 * 80, .rows = 8}};
  spec.interleave = 2;
  std::string content = randomRows(spec.storage, 16, 40, 8);
  expectValues(spec, pack(spec, {content}), [&](uint64_t row) {
    uint64_t in = row / 4 * 2 + row % 2; // of its source
    uint64_t stored = row % 4 < 2 ? in / 4 * 4 + order[in % 4] : 8 + in;
    return reinterpret_cast<const uint8_t *>(&content[stored * 80]);
  });
}

TEST(Packing, roundsToBf16) {
  struct {
    float value;
    uint16_t bits;
  } const cases[] = {{1.0f, 0x3f80},
                     {0x1.01p0f, 0x3f80},       // a tie goes to the even one
                     {0x1.03p0f, 0x3f82},       // and upwards
                     {0x1.010002p0f, 0x3f81},   // just above the tie
                     {-0x1.fffffep127f, 0xff80}, // overflows to infinity
                     {0x1p-149f, 0x0000},
                     {-0.0f, 0x8000},
                     {INFINITY, 0x7f80}};
  const uint32_t signalling = 0x7f800001; // would become infinity if its low bits were only cut off
  std::string content;
  for (auto &c : cases)
    content.append(reinterpret_cast<const char *>(&c.value), 4);
  content.append(reinterpret_cast<const char *>(&signalling), 4);
  PackSpec spec{.name = "w", .storage = DType::F32, .layout = LLMC_LAYOUT_ROWS_BF16, .rows = 1, .cols = std::size(cases) + 1};
  spec.sources = {{.rows = 1}};
  std::vector<uint8_t> packed = pack(spec, {content});
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(u16(&packed[2 * i]), cases[i].bits) << cases[i].value;
  EXPECT_TRUE(std::isnan(bf16ToF32(u16(&packed[2 * std::size(cases)]))));
}

TEST(Packing, vectorsBecomeOneRow) {
  for (DType type : {DType::F32, DType::F16, DType::BF16}) {
    PackSpec spec{.name = "bias", .storage = type, .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = 10, .vector = true};
    spec.sources = {{.file = 0, .offset = 0, .rows = 4, .deinterleave = 4},
                    {.file = 0, .offset = 4 * blockBytes(type), .rows = 6}};
    std::string content = randomRows(type, 1, 10, 5);
    std::vector<uint8_t> packed = pack(spec, {content});
    const uint64_t order[] = {0, 2, 1, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<float> stored = storedRow(type, reinterpret_cast<const uint8_t *>(content.data()), 10);
    for (uint64_t i = 0; i < 32; ++i)
      EXPECT_EQ(f32(&packed[4 * i]), i < 10 ? stored[order[i]] : 0.0f);
  }
}

// Codes as they are stored, with one scale for all rows of a source or one for each, whatever their order.
TEST(Packing, e4m3OfFiles) {
  const uint64_t rows = 36, cols = 50;
  std::mt19937 random(3);
  std::string codes(rows * cols, 0), scales(2 * 20 + 4, 0);
  for (char &code : codes)
    code = char(random() % 0x7f | (random() & 0x80));
  for (unsigned i = 0; i < 20; ++i) {
    const uint16_t bits = f32ToBf16(0.001f * float(i + 1));
    std::memcpy(&scales[2 * i], &bits, 2);
  }
  const float common = -0.25f;
  std::memcpy(&scales[40], &common, 4);
  for (llmc_layout layout : {LLMC_LAYOUT_N16_E4M3, LLMC_LAYOUT_ROWS_E4M3}) {
    PackSpec spec{.name = "w", .storage = DType::E4M3, .layout = layout, .rows = rows, .cols = cols};
    spec.sources = {{.file = 0, .rows = 20, .deinterleave = 4, .scalesFile = 1, .scalesCount = 20, .scalesType = DType::BF16},
                    {.file = 0, .offset = 20 * cols, .rows = 16, .scalesFile = 1, .scalesOffset = 40, .scalesCount = 1}};
    const Everything all = unpackAll(spec, pack(spec, {codes, scales}));
    ASSERT_EQ(all.cols, 64u);
    for (uint64_t row = 0; row < all.rows; ++row) {
      const uint64_t from = row >= 20 ? row : row / 4 * 4 + (row % 4 < 2 ? 2 * (row % 4) : 2 * (row % 4 - 2) + 1);
      const float scale = row >= 20 ? common : bf16ToF32(f32ToBf16(0.001f * float(from + 1)));
      for (uint64_t k = 0; k < all.cols; ++k)
        ASSERT_EQ(all.values[row * all.cols + k],
                  row < rows && k < cols ? scale * e4m3ToF32(uint8_t(codes[from * cols + k])) : 0.0f)
            << layout << " row " << row << " column " << k;
    }
  }
}

// Other plain values are quantised row by row: the largest becomes 448, every error is at most half a step.
TEST(Packing, quantisesToE4M3) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    for (llmc_layout layout : {LLMC_LAYOUT_N16_E4M3, LLMC_LAYOUT_ROWS_E4M3}) {
      const uint64_t rows = 18, cols = 96;
      std::string content = randomRows(type, rows, cols, 5);
      std::memset(content.data() + 3 * storageBytes(type, cols), 0, storageBytes(type, cols)); // a row of zeros
      PackSpec spec{.name = "w", .storage = type, .layout = layout, .rows = rows, .cols = cols};
      spec.sources = {{.rows = rows}};
      const Everything all = unpackAll(spec, pack(spec, {content}));
      for (uint64_t row = 0; row < rows; ++row) {
        const std::vector<float> exact =
            storedRow(type, reinterpret_cast<const uint8_t *>(content.data()) + row * storageBytes(type, cols), cols);
        float largest = 0;
        for (float value : exact)
          largest = std::max(largest, std::abs(value));
        for (uint64_t k = 0; k < cols; ++k) {
          const float value = all.values[row * cols + k], bound = std::max(std::abs(exact[k]) / 16, largest / 448 / 1024);
          ASSERT_LE(std::abs(value - exact[k]), bound * 1.0001f) << toString(type) << " row " << row << " column " << k;
          if (std::abs(exact[k]) == largest) {
            ASSERT_NEAR(value, exact[k], largest * 1e-6f);
          }
        }
      }
    }
}

TEST(Packing, addendsOfVectors) {
  for (DType type : {DType::F32, DType::F16, DType::BF16}) {
    PackSpec spec{.name = "norm", .storage = type, .layout = LLMC_LAYOUT_ROWS_F32, .rows = 1, .cols = 10, .vector = true};
    spec.sources = {{.file = 0, .offset = 0, .rows = 10}};
    spec.addend = 1;
    std::string content = randomRows(type, 1, 10, 6);
    std::vector<uint8_t> packed = pack(spec, {content});
    const std::vector<float> stored = storedRow(type, reinterpret_cast<const uint8_t *>(content.data()), 10);
    for (uint64_t i = 0; i < 32; ++i)
      EXPECT_EQ(f32(&packed[4 * i]), i < 10 ? stored[i] + 1.0f : 0.0f); // padding stays zero
  }
}

TEST(Packing, tablesOfValues) {
  PackSpec spec{.name = "rope", .layout = LLMC_LAYOUT_ROWS_F32, .rows = 2, .cols = 3};
  spec.value = {1, 2, 3, 4, 5, 6};
  std::vector<uint8_t> packed = pack(spec, {});
  ASSERT_EQ(packed.size(), 256u);
  EXPECT_EQ(f32(&packed[8]), 3.0f);
  EXPECT_EQ(f32(&packed[12]), 0.0f);
  EXPECT_EQ(f32(&packed[128]), 4.0f);
}

TEST(Packing, refusesWhatDoesNotFit) {
  auto message = [](PackSpec spec, std::string_view content) -> std::string {
    std::vector<InputFile> files;
    files.push_back(InputFile::fromMemory("model", content));
    try {
      packWeight(spec, files, [](auto) {});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  std::string content(1000, 0);
  PackSpec good{.name = "w", .storage = DType::F32, .layout = LLMC_LAYOUT_N16_F32, .rows = 4, .cols = 8};
  good.sources = {{.file = 0, .offset = 0, .rows = 4}};
  EXPECT_EQ(message(good, content), "");
  PackSpec spec = good;
  spec.sources[0].offset = 900;
  EXPECT_NE(message(spec, content), "") << "short file";
  spec = good;
  spec.sources[0].rows = 3;
  EXPECT_EQ(message(spec, content), "weight w: expected sources with 4 rows, got 3");
  spec = good;
  spec.layout = LLMC_LAYOUT_N16_F16;
  EXPECT_NE(message(spec, content), "");
  spec = good;
  spec.sources[0].file = 1;
  EXPECT_EQ(message(spec, content), "weight w: expected a file below 1, got 1");
  spec = good;
  spec.interleave = 2;
  EXPECT_NE(message(spec, content), "") << "one source";
  spec = good;
  spec.sources = {{.rows = UINT64_MAX}, {.rows = 5}};
  EXPECT_EQ(message(spec, content), "weight w: expected sources with 4 rows, got more");
  spec = good;
  spec.storage = DType::Q8_0;
  spec.layout = LLMC_LAYOUT_ROWS_BF16;
  EXPECT_EQ(message(spec, content), "weight w: storage Q8_0 has no layout 7");
  spec.storage = DType::Q8_0;
  spec.layout = LLMC_LAYOUT_N16_Q8_0;
  EXPECT_EQ(message(spec, content), "weight w: expected a multiple of 32 columns, got 8");
  spec.storage = DType::Q4_K;
  spec.layout = LLMC_LAYOUT_N16_Q4_K;
  spec.cols = 288;
  EXPECT_EQ(message(spec, content), "weight w: expected a multiple of 256 columns, got 288");
  spec.layout = LLMC_LAYOUT_N16_Q5_K;
  EXPECT_EQ(message(spec, content), "weight w: storage Q4_K has no layout 13");

  spec = good;
  spec.storage = DType::E4M3;
  spec.layout = LLMC_LAYOUT_ROWS_E4M3;
  spec.sources[0].scalesCount = 3;
  EXPECT_EQ(message(spec, content), "weight w: expected one scale or 4, in F32, F16 or BF16, got 3 in F32");
  spec.sources[0].scalesCount = 4;
  EXPECT_EQ(message(spec, content), "");
  spec.sources[0].scalesOffset = 990;
  EXPECT_NE(message(spec, content), "") << "scales past the end of the file";
  spec.sources[0].scalesFile = 1;
  EXPECT_EQ(message(spec, content), "weight w: expected a file below 1, got 1");
  spec.layout = LLMC_LAYOUT_ROWS_F32;
  EXPECT_EQ(message(spec, content), "weight w: storage E4M3 has no layout 0");
  spec.layout = LLMC_LAYOUT_N16_E4M3;
  spec.sources[0] = {.rows = 4, .scalesOffset = 100, .scalesCount = 4};
  std::string bad = content;
  bad[2 * 8 + 5] = char(0xff);
  EXPECT_EQ(message(spec, bad), "weight w: row 2: expected e4m3 values, got a NaN in column 5");
  bad = content;
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(&bad[100 + 4], &infinite, 4);
  EXPECT_EQ(message(spec, bad), "weight w: row 1: expected a finite scale, got inf");
  spec = good;
  spec.layout = LLMC_LAYOUT_N16_E4M3;
  EXPECT_EQ(message(spec, content), "");
  std::memcpy(&bad[3 * 32], &infinite, 4);
  EXPECT_EQ(message(spec, bad), "weight w: row 3: expected finite values to quantise, got others");
  spec.storage = DType::E4M3;
  try {
    WeightPacker(spec, RandomWeights{1});
    FAIL() << "random codes";
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()), "weight w: expected one scale or 4, in F32, F16 or BF16, got 0 in F32");
  }
}
} // namespace
