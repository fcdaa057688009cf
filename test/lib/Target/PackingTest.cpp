//===- PackingTest.cpp - packed bytes against the words of llmc/abi.h -----===//
//
// `Stored` reads values from the bytes of a file, `Packed` reads them from packed bytes; both are written from
// the format descriptions, one value at a time, and share no code with lib/Target/Packing.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "llmc/Target/Packing.h"

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

const uint64_t kBlockBytes[] = {4, 2, 2, 18, 20, 34};
uint64_t storedRowBytes(DType type, uint64_t cols) {
  return kBlockBytes[int(type)] * (int(type) < 3 ? cols : cols / 32);
}

float storedValue(DType type, const uint8_t *row, uint64_t k) {
  uint64_t i = k % 32;
  const uint8_t *block = row + k / 32 * kBlockBytes[int(type)];
  auto nibble = [&](const uint8_t *codes) { return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4; };
  switch (type) {
  case DType::F32: return f32(row + 4 * k);
  case DType::F16: return f16ToF32(u16(row + 2 * k));
  case DType::BF16: return bf16ToF32(u16(row + 2 * k));
  case DType::Q4_0: return f16ToF32(u16(block)) * float(nibble(block + 2) - 8);
  case DType::Q4_1: return f16ToF32(u16(block)) * float(nibble(block + 4)) + f16ToF32(u16(block + 2));
  case DType::Q8_0: return f16ToF32(u16(block)) * float(int8_t(block[2 + i]));
  }
  return NAN;
}

/// Value (row, k) of a packed weight with `cols` logical columns.
float packedValue(llmc_layout layout, const std::vector<uint8_t> &bytes, uint64_t cols, uint64_t row, uint64_t k) {
  uint64_t width = (cols + 31) / 32 * 32, r = row % 16, panel = row / 16;
  auto code4 = [&](const uint8_t *codes, uint64_t i) { // i in 0 .. 31
    uint8_t byte = codes[64 * (i / 8) + 4 * r + i % 4];
    return i % 8 < 4 ? byte & 15 : byte >> 4;
  };
  switch (layout) {
  case LLMC_LAYOUT_ROWS_F32: return f32(&bytes[(row * width + k) * 4]);
  case LLMC_LAYOUT_ROWS_BF16: return bf16ToF32(u16(&bytes[(row * width + k) * 2]));
  case LLMC_LAYOUT_N16_F32: return f32(&bytes[((panel * width + k) * 16 + r) * 4]);
  case LLMC_LAYOUT_N16_F16: return f16ToF32(u16(&bytes[((panel * width + k) * 16 + r) * 2]));
  case LLMC_LAYOUT_N16_BF16: return bf16ToF32(u16(&bytes[(panel * width / 2 + k / 2) * 64 + r * 4 + k % 2 * 2]));
  case LLMC_LAYOUT_N16_Q4_1: {
    const uint8_t *record = &bytes[(panel * width / 32 + k / 32) * 320];
    return f16ToF32(u16(record + 2 * r)) * float(code4(record + 64, k % 32)) + f16ToF32(u16(record + 32 + 2 * r));
  }
  case LLMC_LAYOUT_N16_Q4_0: {
    const uint8_t *record = &bytes[(panel * ((width + 63) / 64) + k / 64) * 576];
    uint64_t half = k % 64 / 32;
    return f16ToF32(u16(record + 32 * half + 2 * r)) * float(code4(record + 64 + 256 * half, k % 32) - 8);
  }
  case LLMC_LAYOUT_N16_Q8_0: {
    const uint8_t *record = &bytes[(panel * ((width + 63) / 64) + k / 64) * 1088];
    uint64_t half = k % 64 / 32, i = k % 32;
    int code = record[64 + 512 * half + 64 * (i / 4) + 4 * r + i % 4];
    return f16ToF32(u16(record + 32 * half + 2 * r)) * float(code - 128);
  }
  }
  return NAN;
}

/// Rows of random values, with plain numbers as scales.
std::string randomRows(DType type, uint64_t rows, uint64_t cols, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(rows * storedRowBytes(type, cols), 0);
  for (char &byte : bytes)
    byte = char(random());
  std::uniform_real_distribution<float> values(-2, 2);
  auto put16 = [&](size_t at, uint16_t bits) { std::memcpy(&bytes[at], &bits, 2); };
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes[int(type)]) {
    float value = values(random);
    if (type == DType::F32)
      std::memcpy(&bytes[at], &value, 4);
    else
      put16(at, type == DType::BF16 ? f32ToBf16(value) : f32ToF16(value));
    if (type == DType::Q4_1)
      put16(at + 2, f32ToF16(values(random)));
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
  uint64_t width = spec.layout == LLMC_LAYOUT_N16_Q4_0 || spec.layout == LLMC_LAYOUT_N16_Q8_0
                       ? (spec.cols + 63) / 64 * 64
                       : (spec.cols + 31) / 32 * 32;
  uint64_t height = spec.layout == LLMC_LAYOUT_ROWS_F32 ? spec.rows : (spec.rows + 31) / 32 * 32;
  for (uint64_t row = 0; row < height; ++row)
    for (uint64_t k = 0; k < width; ++k) {
      float expected = row < spec.rows && k < spec.cols ? storedValue(spec.storage, source(row), k) : 0.0f;
      if (spec.layout == LLMC_LAYOUT_ROWS_BF16)
        expected = bf16ToF32(f32ToBf16(expected));
      ASSERT_EQ(packedValue(spec.layout, packed, spec.cols, row, k), expected) << "row " << row << " column " << k;
    }
}

struct Case {
  DType storage;
  llmc_layout layout;
  uint64_t rows, cols;
};

const DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0};
const llmc_layout kPanels[] = {LLMC_LAYOUT_N16_F32,  LLMC_LAYOUT_N16_F16,  LLMC_LAYOUT_N16_BF16,
                               LLMC_LAYOUT_N16_Q4_0, LLMC_LAYOUT_N16_Q4_1, LLMC_LAYOUT_N16_Q8_0};

TEST(Packing, everyStorageInPanelsAndRows) {
  for (int type = 0; type < 6; ++type)
    for (llmc_layout layout : {kPanels[type], LLMC_LAYOUT_ROWS_F32, LLMC_LAYOUT_ROWS_BF16})
      for (uint64_t rows : {1, 16, 33, 47})
        for (uint64_t cols : type < 3 ? std::vector<uint64_t>{1, 31, 64, 97} : std::vector<uint64_t>{32, 64, 96}) {
          if (layout == LLMC_LAYOUT_ROWS_BF16 && type >= 3)
            continue;
          SCOPED_TRACE(testing::Message() << toString(kTypes[type]) << " layout " << layout << " " << rows << "x" << cols);
          PackSpec spec{.name = "w", .storage = kTypes[type], .layout = layout, .rows = rows, .cols = cols};
          spec.sources = {{.file = 0, .offset = 5, .rows = rows}};
          std::string content = "12345" + randomRows(spec.storage, rows, cols, 7);
          const auto *base = reinterpret_cast<const uint8_t *>(content.data()) + 5;
          expectValues(spec, pack(spec, {content}),
                       [&](uint64_t row) { return base + row * storedRowBytes(spec.storage, cols); });
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
                    {.file = 0, .offset = 4 * kBlockBytes[int(type)], .rows = 6}};
    std::string content = randomRows(type, 1, 10, 5);
    std::vector<uint8_t> packed = pack(spec, {content});
    const uint64_t order[] = {0, 2, 1, 3, 4, 5, 6, 7, 8, 9};
    for (uint64_t i = 0; i < 32; ++i)
      EXPECT_EQ(f32(&packed[4 * i]),
                i < 10 ? storedValue(type, reinterpret_cast<const uint8_t *>(content.data()), order[i]) : 0.0f);
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
}
} // namespace
