#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "runtime/engine/UnpackWeight.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace llmc;

namespace {

llmc_weight_v1 weight(uint32_t layout, uint64_t bytes, uint64_t rows, uint64_t cols) {
  auto pad = [](uint64_t n) { return (n + 31) / 32 * 32; };
  return {"w", 0, bytes, layout, 0, rows, cols, pad(rows), pad(cols)};
}

std::vector<float> unpack(const llmc_weight_v1 &w, const std::vector<uint8_t> &bytes) {
  std::vector<float> out(w.rows * w.cols);
  unpackWeight(w, reinterpret_cast<const std::byte *>(bytes.data()), out.data());
  return out;
}

TEST(UnpackWeight, HalfAgreesWithTheOtherConversion) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float a = halfToFloat(uint16_t(h)), b = f16ToF32(uint16_t(h));
    ASSERT_TRUE((std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, 4) == 0) << h;
  }
}

// Each test writes one byte where abi.h says that a value lies and looks for it in the result.
TEST(UnpackWeight, Q4_1) {
  std::vector<uint8_t> bytes(2 * 2 * 320); // 2 panels of 16 rows, 2 records of 32 k
  uint8_t *record = bytes.data() + 3 * 320; // rows 16.., k 32..
  const uint16_t d = f32ToF16(0.5f), m = f32ToF16(-2);
  std::memcpy(record + 2 * 3, &d, 2);      // row 19
  std::memcpy(record + 32 + 2 * 3, &m, 2);
  record[64 + 64 * 2 + 4 * 3 + 1] = 7 | 9 << 4; // chunk 2: k = 17 (low), 21 (high)
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q4_1, bytes.size(), 20, 64), bytes);
  EXPECT_EQ(out[19 * 64 + 32 + 17], 0.5f * 7 - 2);
  EXPECT_EQ(out[19 * 64 + 32 + 21], 0.5f * 9 - 2);
  EXPECT_EQ(out[19 * 64 + 32 + 18], -2);
  EXPECT_EQ(out[18 * 64 + 32 + 17], 0);
}

TEST(UnpackWeight, Q4_0) {
  std::vector<uint8_t> bytes(2 * 576);
  const uint16_t d = f32ToF16(2);
  std::memcpy(bytes.data() + 32 + 2 * 5, &d, 2); // group 1, row 5
  bytes[64 + 256 + 64 * 3 + 4 * 5 + 2] = 1 | 15 << 4; // chunk 3: k = 26, 30 of group 1
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q4_0, bytes.size(), 16, 64), bytes);
  EXPECT_EQ(out[5 * 64 + 32 + 26], 2.0f * (1 - 8));
  EXPECT_EQ(out[5 * 64 + 32 + 30], 2.0f * (15 - 8));
  EXPECT_EQ(out[5 * 64 + 32 + 27], -16);
}

TEST(UnpackWeight, Q8_0WithHalfARecordOfPadding) {
  std::vector<uint8_t> bytes(2 * 1088); // 32 columns take one record of 64 k
  const uint16_t d = f32ToF16(0.25f);
  std::memcpy(bytes.data() + 2 * 9, &d, 2);
  bytes[64 + 64 * 7 + 4 * 9 + 3] = 128 + 100; // chunk 7: k = 31
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q8_0, bytes.size(), 10, 32), bytes);
  EXPECT_EQ(out[9 * 32 + 31], 25);
  EXPECT_EQ(out[9 * 32 + 30], -32);
}

void put16(uint8_t *at, float value) {
  const uint16_t half = f32ToF16(value);
  std::memcpy(at, &half, 2);
}

TEST(UnpackWeight, Q5_1) {
  std::vector<uint8_t> bytes(2 * 384); // f16 d[16], m[16], 4 chunks of low bits, 1 of high ones
  put16(bytes.data() + 2 * 4, 0.5f);
  put16(bytes.data() + 32 + 2 * 4, -3);
  bytes[64 + 64 * 1 + 4 * 4 + 3] = 6 << 4;    // quad 3: k = 15
  bytes[64 + 256 + 4 * 4 + 3] = 1 << 3 | 1 << 7; // the fifth bits of k = 15 and 31
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q5_1, bytes.size(), 16, 32), bytes);
  EXPECT_EQ(out[4 * 32 + 15], 0.5f * (16 + 6) - 3);
  EXPECT_EQ(out[4 * 32 + 31], 0.5f * 16 - 3);
  EXPECT_EQ(out[4 * 32 + 14], -3);
}

TEST(UnpackWeight, Q5_0EndsInsideARecord) {
  std::vector<uint8_t> bytes(2 * 2 * 704); // 96 columns: two records of f16 d[2][16], 2 times (4 + 1) chunks
  uint8_t *record = bytes.data() + 704;
  put16(record + 2 * 15, 2);
  record[64 + 64 * 3 + 4 * 15] = 9;    // quad 6: k = 24
  record[64 + 256 + 4 * 15] = 1 << 6;
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q5_0, bytes.size(), 16, 96), bytes);
  EXPECT_EQ(out[15 * 96 + 64 + 24], 2.0f * (25 - 16));
  EXPECT_EQ(out[15 * 96 + 64 + 25], 2.0f * -16);
}

TEST(UnpackWeight, IQ4_NL) {
  std::vector<uint8_t> bytes(2 * 576);
  put16(bytes.data() + 2 * 1, 0.5f);
  bytes[64 + 4 * 1 + 2] = 3 | 15 << 4; // k = 2 and 6
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_IQ4_NL, bytes.size(), 16, 64), bytes);
  EXPECT_EQ(out[64 + 2], 0.5f * -65);
  EXPECT_EQ(out[64 + 6], 0.5f * 113);
  EXPECT_EQ(out[64 + 5], 0.5f * -127);
}

TEST(UnpackWeight, Q2_K) {
  constexpr unsigned codes = 64 + 32 * 8, size = codes + 8 * 128; // f16 d[16], dmin[16], 32 fields of 4 bits
  std::vector<uint8_t> bytes(2 * size);
  put16(bytes.data() + 2 * 2, 0.5f);
  put16(bytes.data() + 32 + 2 * 2, 0.25f);
  bytes[64 + 16 * 9 + 2] = 5 | 7 << 4;               // scale and minimum 9: k = 144 .. 159
  bytes[codes + 4 * 128 + 64 + 4 * 2 + 1] = 3 << 4;  // 32 k from 128, chunk 1, quad 6: k = 128 + 25
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q2_K, bytes.size(), 16, 256), bytes);
  EXPECT_EQ(out[2 * 256 + 153], 0.5f * 5 * 3 - 0.25f * 7);
  EXPECT_EQ(out[2 * 256 + 152], -0.25f * 7);
  EXPECT_EQ(out[2 * 256 + 143], 0);
}

TEST(UnpackWeight, Q3_K) {
  constexpr unsigned codes = 32 + 16 * 12, size = codes + 8 * 192; // f16 d[16], 16 fields of 6 bits
  std::vector<uint8_t> bytes(2 * size);
  put16(bytes.data() + 2 * 8, 0.5f);
  bytes[32 + 16 * 2 + 8] = 11 << 4;             // field 5: k = 80 .. 95
  bytes[32 + 16 * 8 + 16 * 1 + 8] = 3 << 2;     // 48 + 11 - 32 = 27
  bytes[codes + 2 * 192 + 64 + 4 * 8 + 3] = 2;  // quad 4: k = 64 + 19
  bytes[codes + 2 * 192 + 128 + 4 * 8 + 3] = 1 << 4;
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q3_K, bytes.size(), 16, 256), bytes);
  EXPECT_EQ(out[8 * 256 + 83], 0.5f * 27 * (6 - 4));
  EXPECT_EQ(out[8 * 256 + 84], 0.5f * 27 * -4);
  EXPECT_EQ(out[8 * 256 + 79], 0.5f * -32 * -4);
}

TEST(UnpackWeight, Q4_KAndQ5_K) {
  for (bool fifth : {false, true}) {
    const unsigned codes = 64 + 16 * 12, group = fifth ? 320 : 256, size = codes + 8 * group;
    std::vector<uint8_t> bytes(2 * size);
    put16(bytes.data() + 2 * 6, 0.5f);
    put16(bytes.data() + 32 + 2 * 6, 0.25f);
    bytes[64 + 16 * 7 + 6] = 1 | 2 << 4;                    // scale and minimum 7: fields 14 and 15
    bytes[64 + 16 * 8 + 16 * 3 + 6] = 2 << 4 | 3 << 6;      // 33 and 50
    bytes[codes + 7 * group + 64 * 2 + 4 * 6 + 2] = 12 << 4; // quad 5: k = 224 + 22
    if (fifth)
      bytes[codes + 7 * group + 256 + 4 * 6 + 2] = 1 << 5;
    const std::vector<float> out =
        unpack(weight(fifth ? LLMC_LAYOUT_N16_Q5_K : LLMC_LAYOUT_N16_Q4_K, bytes.size(), 16, 256), bytes);
    EXPECT_EQ(out[6 * 256 + 246], 0.5f * 33 * (fifth ? 28 : 12) - 0.25f * 50);
    EXPECT_EQ(out[6 * 256 + 245], -0.25f * 50);
  }
}

TEST(UnpackWeight, Q6_K) {
  constexpr unsigned codes = 32 + 16 * 16, size = codes + 8 * 384;
  std::vector<uint8_t> bytes(2 * size);
  put16(bytes.data() + 2 * 3, 0.5f);
  bytes[32 + 16 * 15 + 3] = uint8_t(-100);                 // k = 240 ..
  bytes[codes + 7 * 384 + 64 * 3 + 4 * 3] = 5 << 4;        // quad 7: k = 224 + 28
  bytes[codes + 7 * 384 + 256 + 64 + 4 * 3] = 3 << 6;      // chunk 1, quad 7
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_Q6_K, bytes.size(), 16, 256), bytes);
  EXPECT_EQ(out[3 * 256 + 252], 0.5f * -100 * (53 - 32));
  EXPECT_EQ(out[3 * 256 + 253], 0.5f * -100 * -32);
}

TEST(UnpackWeight, IQ4_XS) {
  constexpr unsigned codes = 32 + 8 * 12, size = codes + 8 * 256;
  std::vector<uint8_t> bytes(2 * size);
  put16(bytes.data(), 0.5f);
  bytes[32 + 16 * 1] = 9 << 4;                // field 3: k = 96 .. 127
  bytes[32 + 16 * 4] = 2 << 6;                // 32 + 9 - 32
  bytes[codes + 3 * 256 + 64 + 3] = 8;        // quad 2: k = 96 + 11
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_N16_IQ4_XS, bytes.size(), 16, 256), bytes);
  EXPECT_EQ(out[107], 0.5f * 9 * 1);
  EXPECT_EQ(out[106], 0.5f * 9 * -127);
}

TEST(UnpackWeight, Floats) {
  std::vector<uint8_t> bytes(2 * 32 * 64);
  const float x = 3.5f;
  std::memcpy(bytes.data() + (32 + 5) * 64 + 4 * 2, &x, 4); // second panel, k = 5, row 18
  EXPECT_EQ(unpack(weight(LLMC_LAYOUT_N16_F32, bytes.size(), 32, 30), bytes)[18 * 30 + 5], x);
  bytes.assign(2 * 16 * 64, 0);
  const uint16_t bf = f32ToBf16(x), half = f32ToF16(x);
  std::memcpy(bytes.data() + 2 * 64 + 4 * 7 + 2, &bf, 2); // k = 5 is the second of pair 2, row 7
  EXPECT_EQ(unpack(weight(LLMC_LAYOUT_N16_BF16, bytes.size(), 32, 32), bytes)[7 * 32 + 5], x);
  bytes.assign(2 * 32 * 32, 0);
  std::memcpy(bytes.data() + 5 * 32 + 2 * 7, &half, 2);
  EXPECT_EQ(unpack(weight(LLMC_LAYOUT_N16_F16, bytes.size(), 32, 32), bytes)[7 * 32 + 5], x);
}

TEST(UnpackWeight, RowsOfBf16) {
  std::vector<uint8_t> bytes(64 * 96 * 2); // 33 x 65, both padded
  const uint16_t bf = f32ToBf16(-3.5f);
  std::memcpy(bytes.data() + (32 * 96 + 64) * 2, &bf, 2);
  const std::vector<float> out = unpack(weight(LLMC_LAYOUT_ROWS_BF16, bytes.size(), 33, 65), bytes);
  EXPECT_EQ(out[32 * 65 + 64], -3.5f);
  EXPECT_EQ(out[32 * 65 + 63], 0);
  EXPECT_THROW(unpack(weight(LLMC_LAYOUT_ROWS_BF16, bytes.size() - 2, 33, 65), bytes), Error);
}

TEST(UnpackWeight, WrongSizeIsAnError) {
  std::vector<uint8_t> bytes(640);
  EXPECT_THROW(unpack(weight(LLMC_LAYOUT_N16_Q4_1, 320, 32, 32), bytes), Error);
  EXPECT_THROW(unpack(weight(LLMC_LAYOUT_ROWS_F32, 320, 32, 32), bytes), Error);
  EXPECT_THROW(unpack(weight(99, 320, 32, 32), bytes), Error);
}

} // namespace
