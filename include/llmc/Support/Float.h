//===- Float.h - half, bfloat16, e4m3 and float on bit patterns -------*- C++ -*-===//
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

/// The 8-bit format with four bits of exponent (Micikevicius et al. 2022, "FP8 formats for deep learning"): no infinities, the largest
/// value is 448, seven bits of ones are a NaN.
inline constexpr float kMaxE4M3 = 448;
inline bool isNaNE4M3(uint8_t bits) { return (bits & 0x7f) == 0x7f; }

inline float e4m3ToF32(uint8_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24, exponent = bits >> 3 & 15u, mantissa = bits & 7u;
  if (isNaNE4M3(bits))
    return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) { // a multiple of 2^-9
    float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 120u) << 23 | mantissa << 20);
}

/// Beyond 448 (from 464 on, where the next value would be) it stays 448, as cvt.rn.satfinite has it.
inline uint8_t f32ToE4M3(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude >= 0x43e00000u) // 448
    return static_cast<uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) { // below 2^-6: the sum's last place is 2^-9
    float sum = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x46800000u));
  }
  magnitude += 0x7ffffu + (magnitude >> 20 & 1u);
  return static_cast<uint8_t>(sign | ((magnitude >> 20) - (120u << 3)));
}

} // namespace llmc

#endif // LLMC_SUPPORT_FLOAT_H
