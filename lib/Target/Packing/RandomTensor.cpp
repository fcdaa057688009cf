//===- RandomTensor.cpp ---------------------------------------------------===//
#include "lib/Target/Packing/RandomTensor.h"

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
  const double levels = storage == DType::Q8_0 ? 255 : 16; // deviation of n equally likely integers: sqrt((n^2 - 1) / 12)
  scale = float(deviation / std::sqrt((levels * levels - 1) / 12));
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
  for (uint64_t b = 0; b < cols / 32; ++b) {
    const uint64_t first = word(rowKey, 8 * b);
    // Scales differ by up to a quarter, as a file's do. With q4_0 the codes' mean is -1/2: its scale has either sign.
    float d = scale * (1 + float(int16_t(first)) * (0.25f / 32768));
    if (storage == DType::Q4_0 && first >> 63)
      d = -d;
    const uint16_t half = finiteToF16(d);
    std::memcpy(to, &half, 2);
    to += 2;
    if (storage == DType::Q4_1) {
      const uint16_t minimum = finiteToF16(-7.5f * d);
      std::memcpy(to, &minimum, 2);
      to += 2;
    }
    const unsigned words = storage == DType::Q8_0 ? 4 : 2;
    uint64_t codes[4];
    for (unsigned i = 0; i < words; ++i)
      codes[i] = word(rowKey, 8 * b + 1 + i);
    if (storage == DType::Q8_0)
      for (unsigned i = 0; i < 4; ++i) { // -128, which no file has, becomes -127
        const uint64_t low = 0x0101010101010101, other = codes[i] ^ 0x8080808080808080; // a byte is 0 where it is -128
        const uint64_t zero = ~(((other & ~(low << 7)) + ~(low << 7)) | other) >> 7 & low;
        codes[i] |= zero;
      }
    std::memcpy(to, codes, 8 * words);
    to += 8 * words;
  }
}

void RandomTensor::row(uint64_t i, uint8_t *to) const {
  const uint64_t rowKey = word(key, i);
  if (storage <= DType::BF16)
    plain(rowKey, 0, cols, to);
  else
    blocks(rowKey, to);
}

void RandomTensor::element(uint64_t i, uint8_t *to) const { plain(word(key, 0), i, 1, to); }
