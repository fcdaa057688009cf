//===- CodedBlock.h - the quantised blocks of GGUF files --------*- C++ -*-===//
//
// Each block format of a file (ggml's ggml-common.h) taken apart into the codes, integers and f16 scales of its
// CodedForm, in order of k. Nothing is computed here: dequantising and packing both start from a CodedBlock.
//
// Blocks, all fields little endian and without padding. "halves": the low nibbles of n bytes are n values, the high
// nibbles the next n. "quarters": the same with 2 bits.
//
//   Q4_0    f16 d; u8 qs[16] halves                       Q4_1    f16 d, m; u8 qs[16] halves
//   Q5_0    f16 d; u32 qh: bit i is the 5th bit of        Q5_1    f16 d, m; u32 qh; u8 qs[16]
//           value i; u8 qs[16] halves
//   Q8_0    f16 d; i8 qs[32]                              IQ4_NL  f16 d; u8 qs[16] halves
//   Q2_K    u8 scales[16]: scale, minimum << 4; u8 qs[2][32] quarters; f16 d, dmin
//   Q3_K    u8 hmask[32]: bit i of byte j is the 3rd bit of value 32 i + j; u8 qs[2][32] quarters;
//           u8 scales[12]: low nibbles in halves of 8 bytes, high two bits in quarters of 4; f16 d
//   Q4_K    f16 d, dmin; u8 scales[12], below; u8 qs[4][32] halves
//   Q5_K    f16 d, dmin; u8 scales[12]; u8 qh[32]: bit i of byte j is the 5th bit of value 32 i + j; u8 qs[4][32] halves
//   Q6_K    per 128 values: u8 ql[64] halves; then per 128: u8 qh[32] quarters; i8 scales[16]; f16 d
//   IQ4_XS  f16 d; u16 high: two bits of each scale; u8 low[4]: nibbles of scales 2 i and 2 i + 1; u8 qs[8][16] halves
//
// Q4_K's and Q5_K's 8 scales and 8 minima have 6 bits. The first four scales are the low 6 bits of bytes 0 .. 3, the
// first four minima those of bytes 4 .. 7; scale 4 + i is byte 8 + i's low nibble with the top two bits of byte i above it,
// minimum 4 + i its high nibble with those of byte 4 + i.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_FRONTEND_CODEDBLOCK_H
#define LLMC_FRONTEND_CODEDBLOCK_H

#include "llmc/Frontend/ModelFacts.h"
#include "llmc/Target/CodedForm.h"

#include <cstring>
#include <iterator>
#include <type_traits>

namespace llmc {

/// The panels that keep a storage bit by bit.
constexpr llmc_layout panelLayout(DType storage) {
  constexpr llmc_layout layouts[] = {
      LLMC_LAYOUT_N16_F32,  LLMC_LAYOUT_N16_F16,  LLMC_LAYOUT_N16_BF16, LLMC_LAYOUT_N16_Q4_0,   LLMC_LAYOUT_N16_Q4_1,
      LLMC_LAYOUT_N16_Q8_0, LLMC_LAYOUT_N16_Q5_0, LLMC_LAYOUT_N16_Q5_1, LLMC_LAYOUT_N16_Q2_K,   LLMC_LAYOUT_N16_Q3_K,
      LLMC_LAYOUT_N16_Q4_K, LLMC_LAYOUT_N16_Q5_K, LLMC_LAYOUT_N16_Q6_K, LLMC_LAYOUT_N16_IQ4_NL, LLMC_LAYOUT_N16_IQ4_XS,
      LLMC_LAYOUT_N16_E4M3};
  static_assert(std::size(layouts) == std::size(kDTypes) + 1);
  return layouts[int(storage)];
}

/// Of a block type; false for a plain one.
constexpr CodedForm codedForm(DType storage) { return codedForm(panelLayout(storage)); }

/// Values of a block: blockSize() at compile time.
constexpr unsigned blockValues(CodedForm form) { return form.scaleBits ? 256 : 32; }

struct CodedBlock {
  uint16_t d, m;      // bits of f16: the scale; the minimum or its scale
  uint8_t fields[32]; // in CodedForm's order
  uint8_t codes[256];
};

/// Calls f(std::integral_constant<DType, type>) for a block type; does nothing for a plain one.
template <class F> void withBlockType(DType type, F f) {
  switch (type) {
  case DType::F32: case DType::F16: case DType::BF16: case DType::E4M3: return;
#define LLMC_TYPE(T) case DType::T: return f(std::integral_constant<DType, DType::T>())
  LLMC_TYPE(Q4_0); LLMC_TYPE(Q4_1); LLMC_TYPE(Q8_0); LLMC_TYPE(Q5_0); LLMC_TYPE(Q5_1); LLMC_TYPE(Q2_K); LLMC_TYPE(Q3_K);
  LLMC_TYPE(Q4_K); LLMC_TYPE(Q5_K); LLMC_TYPE(Q6_K); LLMC_TYPE(IQ4_NL); LLMC_TYPE(IQ4_XS);
#undef LLMC_TYPE
  }
}

namespace coded_block {
/// Parts of `bits` bits: value i + n j is at bit `bits` * j of byte i.
template <unsigned n, unsigned bits> void split(const uint8_t *__restrict bytes, uint8_t *__restrict values) {
  for (unsigned j = 0; j < 8 / bits; ++j)
    for (unsigned i = 0; i < n; ++i)
      values[n * j + i] = uint8_t(bytes[i] >> (bits * j) & ((1 << bits) - 1));
}
/// The same, laid above bit `at` of values that are there.
template <unsigned n, unsigned bits, unsigned at> void splitAbove(const uint8_t *__restrict bytes, uint8_t *__restrict values) {
  for (unsigned j = 0; j < 8 / bits; ++j)
    for (unsigned i = 0; i < n; ++i)
      values[n * j + i] |= uint8_t((bytes[i] >> (bits * j) & ((1 << bits) - 1)) << at);
}

inline void fifthBits(const uint8_t *__restrict qh, uint8_t *__restrict codes) {
  for (unsigned i = 0; i < 32; ++i)
    codes[i] |= uint8_t((qh[i / 8] >> (i % 8) & 1) << 4);
}

/// Q4_K, Q5_K: scale 0, minimum 0, scale 1, ...
inline void sixBitPairs(const uint8_t *__restrict bytes, uint8_t *__restrict fields) {
  for (unsigned i = 0; i < 4; ++i) {
    fields[2 * i] = bytes[i] & 63;
    fields[2 * i + 1] = bytes[4 + i] & 63;
    fields[8 + 2 * i] = uint8_t((bytes[8 + i] & 15) | bytes[i] >> 6 << 4);
    fields[8 + 2 * i + 1] = uint8_t(bytes[8 + i] >> 4 | bytes[4 + i] >> 6 << 4);
  }
}
} // namespace coded_block

/// Takes a block of blockBytes(type) bytes at any alignment apart.
template <DType type> void readBlock(const uint8_t *__restrict bytes, CodedBlock &__restrict block) {
  using namespace coded_block;
  static_assert(codedForm(type));
  auto half = [&](unsigned at) {
    uint16_t bits;
    std::memcpy(&bits, bytes + at, 2);
    return bits;
  };
  // Where d is; the minimum follows it.
  constexpr unsigned dAt = type == DType::Q2_K ? 80 : type == DType::Q3_K ? 108 : type == DType::Q6_K ? 208 : 0;
  block.d = half(dAt);
  block.m = codedForm(type).minimum ? half(dAt + 2) : 0;

  if constexpr (type == DType::Q4_0 || type == DType::IQ4_NL) {
    split<16, 4>(bytes + 2, block.codes);
  } else if constexpr (type == DType::Q4_1) {
    split<16, 4>(bytes + 4, block.codes);
  } else if constexpr (type == DType::Q5_0 || type == DType::Q5_1) {
    constexpr unsigned at = type == DType::Q5_0 ? 2 : 4;
    split<16, 4>(bytes + at + 4, block.codes);
    fifthBits(bytes + at, block.codes);
  } else if constexpr (type == DType::Q8_0) {
    for (unsigned i = 0; i < 32; ++i) // x ^ 128 is x + 128 of a signed byte, as unsigned
      block.codes[i] = bytes[2 + i] ^ 128;
  } else if constexpr (type == DType::Q2_K) {
    for (unsigned g = 0; g < 16; ++g) {
      block.fields[2 * g] = bytes[g] & 15;
      block.fields[2 * g + 1] = bytes[g] >> 4;
    }
    split<32, 2>(bytes + 16, block.codes);
    split<32, 2>(bytes + 48, block.codes + 128);
  } else if constexpr (type == DType::Q3_K) {
    split<8, 4>(bytes + 96, block.fields);
    splitAbove<4, 2, 4>(bytes + 104, block.fields);
    split<32, 2>(bytes + 32, block.codes);
    split<32, 2>(bytes + 64, block.codes + 128);
    splitAbove<32, 1, 2>(bytes, block.codes);
  } else if constexpr (type == DType::Q4_K || type == DType::Q5_K) {
    constexpr unsigned qs = type == DType::Q4_K ? 16 : 48;
    sixBitPairs(bytes + 4, block.fields);
    for (unsigned i = 0; i < 4; ++i)
      split<32, 4>(bytes + qs + 32 * i, block.codes + 64 * i);
    if constexpr (type == DType::Q5_K)
      splitAbove<32, 1, 4>(bytes + 16, block.codes);
  } else if constexpr (type == DType::Q6_K) {
    std::memcpy(block.fields, bytes + 192, 16);
    for (unsigned i = 0; i < 2; ++i) {
      split<64, 4>(bytes + 64 * i, block.codes + 128 * i);
      splitAbove<32, 2, 4>(bytes + 128 + 32 * i, block.codes + 128 * i);
    }
  } else {
    static_assert(type == DType::IQ4_XS);
    for (unsigned g = 0; g < 8; ++g)
      block.fields[g] = uint8_t((bytes[4 + g / 2] >> (4 * (g % 2)) & 15) | (half(2) >> (2 * g) & 3) << 4);
    for (unsigned i = 0; i < 8; ++i)
      split<16, 4>(bytes + 8 + 16 * i, block.codes + 32 * i);
  }
}

} // namespace llmc

#endif // LLMC_FRONTEND_CODEDBLOCK_H
