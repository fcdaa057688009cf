//===- Float.h - half, bfloat16 and float on bit patterns -------*- C++ -*-===//
//
// Conversions between f32 and the 16 bit formats, round to nearest even,
// subnormals kept, overflow to infinity. A NaN becomes the quiet NaN of its sign
// (7fc0, 7e00). Compiler, runtime and tests share these, so that the host path
// agrees bit for bit with VCVTPS2PH/VCVTPH2PS and VCVTNEPS2BF16 (NaN payloads and,
// for the latter, flushed subnormals aside).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_SUPPORT_FLOAT_H
#define LLMC_SUPPORT_FLOAT_H

#include <bit>
#include <cstdint>

namespace llmc {

inline float bf16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t f32ToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16 & 0x8000u) | 0x7fc0u);
  // Adding half of the last kept place, less one when it is even, rounds to
  // nearest even; a carry runs into the exponent, up to infinity.
  bits += 0x7fffu + (bits >> 16 & 1u);
  return static_cast<uint16_t>(bits >> 16);
}

inline float f16ToF32(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0u));
  if (exponent == 0) { // zero or subnormal: mantissa * 2^-24, exact in f32
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112u) << 23 | mantissa << 13);
}

inline uint16_t f32ToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) // 65520 and above round to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { // below 2^-14: a multiple of 2^-24
    if (magnitude < 0x33000000u) // below 2^-25
      return static_cast<uint16_t>(sign);
    uint32_t shift = 126u - (magnitude >> 23); // 14 .. 24
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1u));
    return static_cast<uint16_t>(sign | kept);
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((magnitude >> 13) - (112u << 10)));
}

} // namespace llmc

#endif // LLMC_SUPPORT_FLOAT_H
