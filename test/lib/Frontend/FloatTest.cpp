//===- FloatTest.cpp - 16 bit formats and block types ---------------------===//
#include "llmc/Support/Float.h"
#include "llmc/Frontend/Dequantize.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

uint16_t toBf16(uint32_t bits) { return f32ToBf16(std::bit_cast<float>(bits)); }
uint16_t bf16ToF16(uint16_t bits) { return f32ToF16(bf16ToF32(bits)); }

TEST(Float, ToBf16) {
  EXPECT_EQ(toBf16(0x7F800001), 0x7FC0);
  EXPECT_EQ(toBf16(0x7FFFFFFF), 0x7FC0);
  EXPECT_EQ(toBf16(0x007FFFFF), 0x0080);
  EXPECT_EQ(toBf16(0x00018000), 0x0002);
  EXPECT_EQ(toBf16(0x3F808000), 0x3F80);
  EXPECT_EQ(toBf16(0x3F818000), 0x3F82);
  EXPECT_EQ(toBf16(0x7F7FFFFF), 0x7F80);
  EXPECT_EQ(toBf16(0x80000000), 0x8000);
  EXPECT_EQ(toBf16(0xFF800001), 0xFFC0);
}

TEST(Float, Bf16ToF16) {
  EXPECT_EQ(bf16ToF16(0x477F), 0x7BF8);
  EXPECT_EQ(bf16ToF16(0x4780), 0x7C00);
  EXPECT_EQ(bf16ToF16(0x3300), 0x0000);
  EXPECT_EQ(bf16ToF16(0x3301), 0x0001);
  EXPECT_EQ(bf16ToF16(0xFF80), 0xFC00);
  EXPECT_EQ(bf16ToF16(0x7FC0), 0x7E00);
}

TEST(Float, ToF16) {
  EXPECT_EQ(f32ToF16(65519.996f), 0x7BFF);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7C00);
  EXPECT_EQ(f32ToF16(6.1e-5f), 0x03FF);
  EXPECT_EQ(f32ToF16(-0.0f), 0x8000);
}

TEST(Float, RoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t value = static_cast<uint16_t>(bits);
    float wide = bf16ToF32(value), half = f16ToF32(value);
    if (std::isnan(wide))
      EXPECT_EQ(f32ToBf16(wide), (value & 0x8000) | 0x7FC0);
    else
      EXPECT_EQ(f32ToBf16(wide), value);
    if (std::isnan(half))
      EXPECT_EQ(f32ToF16(half), (value & 0x8000) | 0x7E00);
    else
      EXPECT_EQ(f32ToF16(half), value);
  }
}

// The compiler's own _Float16 (correctly rounded) as second opinion, on all halves'
// neighbourhoods and midpoints.
TEST(Float, F16AgreesWithTheCompiler) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    _Float16 native = std::bit_cast<_Float16>(static_cast<uint16_t>(bits));
    float value = static_cast<float>(native);
    EXPECT_EQ(f16ToF32(static_cast<uint16_t>(bits)), value);
    float next = f16ToF32(static_cast<uint16_t>(bits + 1)), middle = value + (next - value) / 2;
    for (float probe :
         {std::nextafter(value, 1e9f), std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)}) {
      if (!std::isfinite(probe))
        continue;
      ASSERT_EQ(f32ToF16(probe), std::bit_cast<uint16_t>(static_cast<_Float16>(probe))) << bits;
      ASSERT_EQ(f32ToF16(-probe), std::bit_cast<uint16_t>(static_cast<_Float16>(-probe)));
    }
  }
}

// Every value, its neighbours in f32 and the midpoints between it and the next.
TEST(Float, E4M3RoundsToNearestEven) {
  for (int bits = 0; bits < 0x7f; ++bits) {
    const auto code = static_cast<uint8_t>(bits);
    const float value = e4m3ToF32(code);
    const int exponent = bits >> 3, mantissa = bits & 7;
    ASSERT_EQ(value, exponent ? std::ldexp(float(8 + mantissa), exponent - 10) : std::ldexp(float(mantissa), -9)) << bits;
    EXPECT_EQ(e4m3ToF32(static_cast<uint8_t>(bits | 0x80)), -value);
    EXPECT_EQ(f32ToE4M3(value), code);
    EXPECT_EQ(f32ToE4M3(-value), code | 0x80);
    const float middle = bits < 0x7e ? value + (e4m3ToF32(static_cast<uint8_t>(bits + 1)) - value) / 2 : 464;
    EXPECT_EQ(f32ToE4M3(std::nextafter(middle, 0.0f)), code) << bits;
    EXPECT_EQ(f32ToE4M3(middle), bits % 2 && bits < 0x7e ? bits + 1 : bits) << bits;
    EXPECT_EQ(f32ToE4M3(std::nextafter(middle, 1e9f)), bits < 0x7e ? bits + 1 : bits) << bits;
  }
  for (float large : {1e4f, std::numeric_limits<float>::infinity()})
    EXPECT_EQ(f32ToE4M3(-large), 0xfe);
  EXPECT_EQ(f32ToE4M3(std::nanf("")), 0x7f);
  EXPECT_TRUE(std::isnan(e4m3ToF32(0x7f)) && std::isnan(e4m3ToF32(0xff)));
}

template <class T> void put(std::vector<unsigned char> &bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

TEST(Dequantize, Blocks) {
  float out[64];
  std::vector<unsigned char> q4_0(36), q4_1(40), q8_0(68);
  for (int block = 0; block < 2; ++block) {
    uint16_t d = f32ToF16(block ? -0.5f : 0.25f), m = f32ToF16(-3.0f);
    put(q4_0, block * 18, d);
    put(q4_1, block * 20, d);
    put(q4_1, block * 20 + 2, m);
    put(q8_0, block * 34, d);
    for (int i = 0; i < 16; ++i) {
      unsigned char nibbles = static_cast<unsigned char>(i | (15 - i) << 4);
      q4_0[block * 18 + 2 + i] = q4_1[block * 20 + 4 + i] = nibbles;
    }
    for (int i = 0; i < 32; ++i)
      q8_0[block * 34 + 2 + i] = static_cast<unsigned char>(i * 8 - 128);
  }
  float scales[2] = {0.25f, -0.5f};
  dequantizeRow(DType::Q4_0, q4_0.data(), 64, out);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], scales[i / 32] * static_cast<float>((i % 32 < 16 ? i % 16 : 15 - i % 16) - 8));
  dequantizeRow(DType::Q4_1, q4_1.data(), 64, out);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], scales[i / 32] * static_cast<float>(i % 32 < 16 ? i % 16 : 15 - i % 16) - 3.0f);
  dequantizeRow(DType::Q8_0, q8_0.data(), 64, out);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], scales[i / 32] * static_cast<float>(i % 32 * 8 - 128));
}

TEST(Dequantize, PlainTypesUnaligned) {
  std::vector<unsigned char> bytes(1 + 3 * 4);
  float out[3];
  for (int i = 0; i < 3; ++i)
    put(bytes, 1 + 4 * i, 1.5f * static_cast<float>(i));
  dequantizeRow(DType::F32, bytes.data() + 1, 3, out);
  EXPECT_EQ(out[2], 3.0f);
  put<uint16_t>(bytes, 1, 0x3C00);
  put<uint16_t>(bytes, 3, 0x8001);
  dequantizeRow(DType::F16, bytes.data() + 1, 2, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -0x1p-24f);
  put<uint16_t>(bytes, 1, 0x3F80);
  dequantizeRow(DType::BF16, bytes.data() + 1, 1, out);
  EXPECT_EQ(out[0], 1.0f);
}

TEST(Dequantize, StorageBytes) {
  EXPECT_EQ(storageBytes(DType::Q4_0, 64), 36u);
  EXPECT_EQ(storageBytes(DType::Q4_1, 64), 40u);
  EXPECT_EQ(storageBytes(DType::Q8_0, 64), 68u);
  EXPECT_EQ(storageBytes(DType::BF16, 3), 6u);
}

} // namespace
