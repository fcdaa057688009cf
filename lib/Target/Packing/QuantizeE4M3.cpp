//===- QuantizeE4M3.cpp ---------------------------------------------------===//
#include "lib/Target/Packing/QuantizeE4M3.h"

#include "llmc/Support/Float.h"

#include <algorithm>

using namespace llmc;

namespace {
/// f32ToE4M3 without branches, for |value| up to 448 and a little: the loop over a row becomes vector code.
inline uint8_t finiteToE4M3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  // Below 2^-6 the sum's last place is 2^-9, that of e4m3's subnormals.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000u;
  const uint32_t normal = ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3);
  return uint8_t((bits >> 24 & 0x80u) | std::min(magnitude < 0x3c800000u ? small : normal, 0x7eu));
}
} // namespace

float llmc::quantizeE4M3(const float *values, uint64_t count, uint8_t *codes) {
  uint32_t largest = 0; // as bits: in the order of magnitudes, infinities and NaNs last
  for (uint64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  float scale = std::bit_cast<float>(largest) / kMaxE4M3;
  if (scale == 0) // zeros, or too small for a scale
    scale = 1;
  for (uint64_t i = 0; i < count; ++i)
    codes[i] = finiteToE4M3(values[i] / scale);
  return scale;
}
