//===- RandomTensor.cpp ---------------------------------------------------===//
#include "lib/Target/Packing/RandomTensor.h"

#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Support/Float.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llmc;

namespace {
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

inline uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
inline uint64_t word(uint64_t key, uint64_t n) { return mix(key + (n + 1) * kStep); }

/// f32ToF16 without branches, for |value| < 65504: the loop over a row becomes vector code.
inline uint16_t finiteToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the sum's last place is 2^-24, that of f16's subnormals.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10);
  return uint16_t((bits >> 16 & 0x8000u) | (magnitude < 0x38800000u ? small : normal));
}
inline uint16_t finiteToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

constexpr uint64_t kPiece = 256; // values: the words of a piece stay in the first cache

bool isEmbedding(const std::string &name) { return name.starts_with("token_embd"); }

/// Of equally likely integers; exact, since their count is a power of two.
struct Moments {
  int64_t sum = 0, squares = 0, count = 0;
  void add(int64_t x) { sum += x, squares += x * x, ++count; }
  double mean() const { return double(sum) / double(count); }
  double square() const { return double(squares) / double(count); }
};

/// Of the integers that superBlocks() makes: the upper half of unsigned ones, the outer half of signed ones.
Moments integerMoments(CodedForm form) {
  Moments m;
  const int half = 1 << (form.scaleBits - 1);
  if (form.minimum)
    for (int i = half; i < 2 * half; ++i)
      m.add(i);
  else
    for (int i = half / 2; i < half; ++i)
      m.add(i), m.add(-1 - i);
  return m;
}

Moments codeMoments(CodedForm form) {
  Moments m;
  for (unsigned code = 0; code <= form.maxCode(); ++code)
    m.add(form.table ? kIQ4Values[code] : int(code) - form.zero);
  return m;
}

/// Standard deviation of weights whose scales are 1, or whose d is 1. With integers and a minimum, minimum and scale have
/// independent integers of equal distribution, and dmin is d times the codes' mean.
double unitDeviation(DType storage) {
  const CodedForm form = codedForm(storage);
  if (!form)
    return 1;
  if (storage == DType::Q4_0 || storage == DType::Q8_0) { // about the codes' mean; -128 does not occur
    const double levels = storage == DType::Q8_0 ? 255 : 16;
    return std::sqrt((levels * levels - 1) / 12);
  }
  const Moments code = codeMoments(form), integer = form.scaleBits ? integerMoments(form) : Moments{1, 1, 1};
  double variance = integer.square() * code.square(); // d has either sign: about 0
  if (form.minimum)
    variance += code.mean() * code.mean() * (integer.square() - 2 * integer.mean() * integer.mean());
  return std::sqrt(variance);
}
} // namespace

RandomTensor::RandomTensor(uint64_t seed, const std::string &name, DType storage, uint64_t cols, bool vector)
    : storage(storage), cols(cols), key(XXH3_64bits_withSeed(name.data(), name.size(), seed)) {
  double deviation = (isEmbedding(name) ? 4 : 1) / std::sqrt(double(std::max<uint64_t>(cols, 1)));
  double width = std::sqrt(3.0) * deviation; // of a uniform value: half its range
  if (vector) {
    const bool bias = name.ends_with(".bias");
    center = bias ? 0 : 1;
    width = bias ? 0.02 : 0.1;
  }
  spread = float(width / 32768);
  scale = float(deviation / unitDeviation(storage));
  if (const CodedForm form = codedForm(storage))
    codeMean = float(codeMoments(form).mean());
}

// Values [first, first + count) of a row; `first` a multiple of 4 or `count` 1.
void RandomTensor::plain(uint64_t rowKey, uint64_t first, uint64_t count, uint8_t *to) const {
  uint64_t words[kPiece / 4];
  int16_t codes[kPiece];
  float values[kPiece];
  uint16_t halves[kPiece];
  for (uint64_t done = 0; done < count; done += kPiece) {
    const uint64_t n = std::min(kPiece, count - done), at = first + done, skip = at % 4;
    for (uint64_t i = 0; i < (n + skip + 3) / 4; ++i)
      words[i] = word(rowKey, at / 4 + i);
    std::memcpy(codes, reinterpret_cast<const uint8_t *>(words) + 2 * skip, 2 * n);
    for (uint64_t i = 0; i < n; ++i) {
      // Two roundings, also where the compiler would fuse: the value depends on nothing else.
#pragma clang fp contract(off)
      const float offset = (float(codes[i]) + 0.5f) * spread;
      values[i] = center + offset;
    }
    if (storage == DType::F32) {
      std::memcpy(to + 4 * done, values, 4 * n);
      continue;
    }
    if (storage == DType::F16)
      for (uint64_t i = 0; i < n; ++i)
        halves[i] = finiteToF16(values[i]);
    else
      for (uint64_t i = 0; i < n; ++i)
        halves[i] = finiteToBf16(values[i]);
    std::memcpy(to + 2 * done, halves, 2 * n);
  }
}

// Blocks of 32 uniform codes; words 8b .. 8b + 7 of the row are those of block b, the first its scale's.
void RandomTensor::blocks(uint64_t rowKey, uint8_t *to) const {
  const CodedForm form = codedForm(storage);
  const uint64_t words = form.lowBits / 2; // of 32 codes
  for (uint64_t b = 0; b < cols / 32; ++b) {
    auto put = [&](const void *from, uint64_t bytes) {
      std::memcpy(to, from, bytes);
      to += bytes;
    };
    const uint64_t first = word(rowKey, 8 * b);
    // Scales differ by up to a quarter, as a file's do. Where the codes' mean is not 0, a scale has either sign.
    float d = scale * (1 + float(int16_t(first)) * (0.25f / 32768));
    if (!form.minimum && storage != DType::Q8_0 && first >> 63)
      d = -d;
    const uint16_t half = finiteToF16(d), minimum = finiteToF16(-codeMean * d);
    put(&half, 2);
    if (form.minimum)
      put(&minimum, 2);
    if (form.highBits) {
      const uint64_t high = word(rowKey, 8 * b + 1 + words);
      put(&high, 4);
    }
    uint64_t codes[4];
    for (uint64_t i = 0; i < words; ++i)
      codes[i] = word(rowKey, 8 * b + 1 + i);
    if (storage == DType::Q8_0)
      for (unsigned i = 0; i < 4; ++i) { // -128, which no file has, becomes -127
        const uint64_t low = 0x0101010101010101, other = codes[i] ^ 0x8080808080808080; // a byte is 0 where it is -128
        const uint64_t zero = ~(((other & ~(low << 7)) + ~(low << 7)) | other) >> 7 & low;
        codes[i] |= zero;
      }
    put(codes, 8 * words);
  }
}

// Blocks of 256: all bits are uniform but those that keep integers of scales away from 0. Words 32b .. of the row are
// those of block b, in the order of its bytes; the last of the 32 is its scale's sign.
void RandomTensor::superBlocks(uint64_t rowKey, uint8_t *to) const {
  const uint64_t bytes = blockBytes(storage);
  // d is the same everywhere: the integers differ. The minimum belongs to the rounded d.
  const uint16_t half = finiteToF16(scale), minimum = finiteToF16(codeMean * f16ToF32(half));
  auto orBytes = [&](unsigned at, unsigned count, uint8_t bits) {
    for (unsigned i = at; i < at + count; ++i)
      to[i] |= bits;
  };
  auto doubleBits = [&](unsigned at, unsigned count) { // both high bits of a 6-bit integer alike: outer half
    for (unsigned i = at; i < at + count; ++i)
      to[i] = uint8_t((to[i] & 0x55) * 3);
  };
  for (uint64_t b = 0; b < cols / 256; ++b, to += bytes) {
    uint64_t words[32];
    for (uint64_t i = 0; i < (bytes + 7) / 8; ++i)
      words[i] = word(rowKey, 32 * b + i);
    std::memcpy(to, words, bytes);
    unsigned dAt = 0;
    switch (storage) {
    case DType::Q2_K: dAt = 80, orBytes(0, 16, 0x88); break;
    case DType::Q3_K: dAt = 108, doubleBits(104, 4); break;
    case DType::Q6_K: // bit 6 unlike the sign
      dAt = 208;
      for (unsigned i = 192; i < 208; ++i)
        to[i] = uint8_t((to[i] & 0xbf) | (~to[i] >> 1 & 0x40));
      break;
    case DType::IQ4_XS: doubleBits(2, 2); break;
    default: orBytes(4, 8, 0xa0); // Q4_K, Q5_K: bit 5 of the first four, bit 7 is bit 5 of the others
    }
    const bool signs = !codedForm(storage).minimum;
    const uint16_t d = signs && word(rowKey, 32 * b + 31) >> 63 ? half ^ 0x8000 : half;
    std::memcpy(to + dAt, &d, 2);
    if (!signs)
      std::memcpy(to + dAt + 2, &minimum, 2);
  }
}

void RandomTensor::row(uint64_t i, uint8_t *to) const {
  const uint64_t rowKey = word(key, i);
  if (blockSize(storage) == 1)
    plain(rowKey, 0, cols, to);
  else if (blockSize(storage) == 32)
    blocks(rowKey, to);
  else
    superBlocks(rowKey, to);
}

void RandomTensor::element(uint64_t i, uint8_t *to) const { plain(word(key, 0), i, 1, to); }
