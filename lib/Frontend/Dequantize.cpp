//===- Dequantize.cpp -----------------------------------------------------===//
#include "llmc/Frontend/Dequantize.h"
#include "llmc/Support/Float.h"

#include <cassert>
#include <cstring>

using namespace llmc;

template <class T> static T load(const unsigned char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// d * (q - zero) + m. For Q4_1 the compiler may not fuse the multiply and the add:
/// the reference is two roundings (the build does not set -ffp-contract=fast).
static void dequantizeNibbles(const unsigned char *nibbles, float d, int zero, float m, bool hasMinimum,
                              float *out) {
#pragma clang fp contract(off)
  for (int i = 0; i < 16; ++i) {
    float low = static_cast<float>((nibbles[i] & 15) - zero) * d;
    float high = static_cast<float>((nibbles[i] >> 4) - zero) * d;
    out[i] = hasMinimum ? low + m : low;
    out[i + 16] = hasMinimum ? high + m : high;
  }
}

static void dequantizeBlock(DType type, const unsigned char *block, float *out) {
  float d = f16ToF32(load<uint16_t>(block));
  if (type == DType::Q4_0)
    return dequantizeNibbles(block + 2, d, 8, 0, false, out);
  if (type == DType::Q4_1)
    return dequantizeNibbles(block + 4, d, 0, f16ToF32(load<uint16_t>(block + 2)), true, out);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<float>(static_cast<int8_t>(block[2 + i])) * d;
}

void llmc::dequantizeRow(DType type, const void *source, int64_t count, float *destination) {
  assert(count >= 0 && count % blockSize(type) == 0 && "row of whole blocks");
  const unsigned char *bytes = static_cast<const unsigned char *>(source);
  if (type == DType::F32) {
    std::memcpy(destination, bytes, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  if (type == DType::F16 || type == DType::BF16) {
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits = load<uint16_t>(bytes + 2 * i);
      destination[i] = type == DType::F16 ? f16ToF32(bits) : bf16ToF32(bits);
    }
    return;
  }
  uint64_t blockBytes = storageBytes(type, 32);
  for (int64_t i = 0; i < count; i += 32, bytes += blockBytes)
    dequantizeBlock(type, bytes, destination + i);
}
