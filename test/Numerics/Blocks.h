//===- Blocks.h - file blocks of codes, value by value ----------*- C++ -*-===//
//
// A second reader of ggml's blocks (ggml-common.h), written for clarity, to judge packing and kernels by.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_NUMERICS_BLOCKS_H
#define LLMC_TEST_NUMERICS_BLOCKS_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Support/Float.h"

#include <cstdint>

namespace llmc::test {

/// Of a type: k that share a scale, the zero that a minimum stands for (else codes come without it), minimums.
struct BlockTraits {
  int group = 32, zero = 0;
  bool minimum = false;
};

inline BlockTraits traitsOf(DType type) {
  switch (type) {
  case DType::Q4_0: return {.zero = 8};
  case DType::Q5_0: return {.zero = 16};
  case DType::Q4_1: case DType::Q5_1: case DType::Q4_K: case DType::Q5_K: return {.minimum = true};
  case DType::Q2_K: return {.group = 16, .minimum = true};
  case DType::Q3_K: case DType::Q6_K: return {.group = 16};
  default: return {};
  }
}

/// A value of a block: scale * code + minimum (without traitsOf().zero).
struct BlockValue {
  int code = 0;
  float scale = 0, minimum = 0;
};

/// Value `k` of a block.
inline BlockValue blockValue(DType type, const uint8_t *b, int k) {
  static constexpr int8_t table[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  auto half = [&](int at) { return f16ToF32(uint16_t(b[at] | b[at + 1] << 8)); };
  auto nibble = [&](int at, bool high) { return high ? b[at] >> 4 : b[at] & 15; };
  auto simple = [&](int at) { return nibble(at + k % 16, k >= 16); };              // blocks of 32
  auto fifth = [&](int at) { return (b[at + k / 8] >> k % 8 & 1) << 4; };          // and their fifth bits
  int group = k / 32, l = k % 32;
  auto byScaleMin = [&](int code) -> BlockValue { // q4_k, q5_k: six bits each in 12 bytes behind d and dmin
    const uint8_t *s = b + 4;
    int scale = group < 4 ? s[group] & 63 : (s[group + 4] & 15) | s[group - 4] >> 6 << 4;
    int minimum = group < 4 ? s[group + 4] & 63 : s[group + 4] >> 4 | s[group] >> 6 << 4;
    return {code, half(0) * float(scale), -(half(2) * float(minimum))};
  };
  switch (type) {
  case DType::Q4_0: return {simple(2), half(0), 0};
  case DType::Q4_1: return {simple(4), half(0), half(2)};
  case DType::Q8_0: return {int8_t(b[2 + k]), half(0), 0};
  case DType::Q5_0: return {simple(6) | fifth(2), half(0), 0};
  case DType::Q5_1: return {simple(8) | fifth(4), half(0), half(2)};
  case DType::IQ4_NL: return {table[simple(2)], half(0), 0};
  case DType::Q4_K: return byScaleMin(nibble(16 + group / 2 * 32 + l, group % 2));
  case DType::Q5_K: return byScaleMin(nibble(48 + group / 2 * 32 + l, group % 2) | (b[16 + l] >> group & 1) << 4);
  case DType::Q2_K: {
    int code = b[16 + k / 128 * 32 + l] >> 2 * (group % 4) & 3, fields = b[k / 16];
    return {code, half(80) * float(fields & 15), -(half(82) * float(fields >> 4))};
  }
  case DType::Q3_K: {
    int code = (b[32 + k / 128 * 32 + l] >> 2 * (group % 4) & 3) - (b[l] >> group & 1 ? 0 : 4), s = k / 16;
    int scale = nibble(96 + s % 8, s >= 8) | (b[104 + s % 4] >> 2 * (s / 4) & 3) << 4;
    return {code, half(108) * float(scale - 32), 0};
  }
  case DType::Q6_K: {
    int in = k % 128, part = in / 32;
    int low = nibble(k / 128 * 64 + part % 2 * 32 + l, part >= 2), high = b[128 + k / 128 * 32 + l] >> 2 * part & 3;
    return {(low | high << 4) - 32, half(208) * float(int8_t(b[192 + k / 16])), 0};
  }
  case DType::IQ4_XS: {
    int scale = nibble(4 + group / 2, group % 2) | ((b[2] | b[3] << 8) >> 2 * group & 3) << 4;
    return {table[nibble(8 + group * 16 + l % 16, l >= 16)], half(0) * float(scale - 32), 0};
  }
  default: return {};
  }
}

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_BLOCKS_H
