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
