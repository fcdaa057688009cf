//===- CodedForm.h - how a quantised panel's records are made ---*- C++ -*-===//
//
// The block formats of GGUF files (ggml-common.h) differ in few properties: bits of a
// code, how many k share a scale, whether scales are f16 or small integers times an f16
// of the block, whether there is a minimum. This table says them for every n16 layout
// of codes; packing, unpacking and the kernels of all targets read it, so that a format
// is one row here. MLIR-free, header only.
//
// A record of a panel of 16 rows (lanes), in bytes:
//
//   scales without integers (scaleBits == 0)   f16 d[groups][16], f16 m[groups][16] (with a minimum)
//   scales with integers                       f16 d[16], f16 dmin[16] (with a minimum), then their fields
//   codes                                      for every 32 k: the low plane, then the high plane
//
// Fields are the groups' integers in order: scale 0, (minimum 0,) scale 1, ... Of 8 bits: byte [field][16], signed. Of
// 4 or 6 bits: low nibbles, byte [field / 2][16], nibble field % 2; then (6) the two high bits, byte
// [field / 4][16], at bit 2 * (field % 4).
//
// A plane of b bits has b chunks of 64 bytes. Four neighbouring k of a row are a quad; byte 4 * row + i of
// chunk p holds, at bit b * j, the bits of value i of quad p * (8 / b) + j.
//
//   value of a weight = scale * (code - zero) + minimum,  a table's code stands for table[code]
//   scale = d, or d * (field - scaleZero); minimum = m, or -(dmin * field)
//
// Products of an f16 and a field are exact in f32.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TARGET_CODEDFORM_H
#define LLMC_TARGET_CODEDFORM_H

#include "llmc/abi.h"

#include <cstdint>

namespace llmc {

struct CodedForm {
  uint16_t recordK = 0;           // k of a record; 0: not a form of codes
  uint8_t lowBits = 0, highBits = 0; // of a code, in the two planes
  uint8_t zero = 0;               // the code of value 0 (without a table)
  bool table = false;             // codes index kIQ4Values
  uint8_t scaleGroup = 32;        // k that share a scale: 32 or 16
  uint8_t scaleBits = 0;          // of a field: 0, 4, 6 or 8
  uint8_t scaleZero = 0;
  bool minimum = false;

  constexpr explicit operator bool() const { return recordK != 0; }
  constexpr unsigned bits() const { return lowBits + highBits; }
  /// The largest code.
  constexpr unsigned maxCode() const { return (1u << bits()) - 1; }
  /// Scales of a record, and fields that hold them.
  constexpr unsigned groups() const { return recordK / scaleGroup; }
  constexpr unsigned fields() const { return groups() * (minimum ? 2 : 1); }

  // Bytes from the start of a record.
  constexpr unsigned minimumOffset() const { return scaleBits ? 32 : 32 * groups(); } // f16 m or dmin
  constexpr unsigned fieldOffset() const { return 32 * (minimum ? 2 : 1); }
  constexpr unsigned highFieldOffset() const { return fieldOffset() + fields() * 8; } // 6 bits
  constexpr unsigned codeOffset() const {
    return scaleBits ? fieldOffset() + fields() * 2 * scaleBits : 32 * groups() * (minimum ? 2 : 1);
  }
  /// Of 32 k: both planes.
  constexpr unsigned groupBytes() const { return 64 * bits(); }
  constexpr unsigned highPlaneOffset() const { return 64 * lowBits; } // from the 32 k's start
  constexpr unsigned recordBytes() const { return codeOffset() + recordK / 32 * groupBytes(); }
};

/// What 4-bit codes of IQ4_NL and IQ4_XS stand for (ggml-common.h, kvalues_iq4nl).
inline constexpr int8_t kIQ4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

constexpr CodedForm codedForm(llmc_layout layout) {
  switch (layout) {
  case LLMC_LAYOUT_N16_Q4_0: return {.recordK = 64, .lowBits = 4, .zero = 8};
  case LLMC_LAYOUT_N16_Q4_1: return {.recordK = 32, .lowBits = 4, .minimum = true};
  case LLMC_LAYOUT_N16_Q8_0: return {.recordK = 64, .lowBits = 8, .zero = 128};
  case LLMC_LAYOUT_N16_Q5_0: return {.recordK = 64, .lowBits = 4, .highBits = 1, .zero = 16};
  case LLMC_LAYOUT_N16_Q5_1: return {.recordK = 32, .lowBits = 4, .highBits = 1, .minimum = true};
  case LLMC_LAYOUT_N16_Q2_K: return {.recordK = 256, .lowBits = 2, .scaleGroup = 16, .scaleBits = 4, .minimum = true};
  case LLMC_LAYOUT_N16_Q3_K:
    return {.recordK = 256, .lowBits = 2, .highBits = 1, .zero = 4, .scaleGroup = 16, .scaleBits = 6, .scaleZero = 32};
  case LLMC_LAYOUT_N16_Q4_K: return {.recordK = 256, .lowBits = 4, .scaleBits = 6, .minimum = true};
  case LLMC_LAYOUT_N16_Q5_K: return {.recordK = 256, .lowBits = 4, .highBits = 1, .scaleBits = 6, .minimum = true};
  case LLMC_LAYOUT_N16_Q6_K: return {.recordK = 256, .lowBits = 4, .highBits = 2, .zero = 32, .scaleGroup = 16, .scaleBits = 8};
  case LLMC_LAYOUT_N16_IQ4_NL: return {.recordK = 64, .lowBits = 4, .table = true};
  case LLMC_LAYOUT_N16_IQ4_XS: return {.recordK = 256, .lowBits = 4, .table = true, .scaleBits = 6, .scaleZero = 32};
  default: return {};
  }
}

} // namespace llmc

#endif // LLMC_TARGET_CODEDFORM_H
