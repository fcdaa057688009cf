//===- Models.h - the numerics contract in plain scalar C++ -----*- C++ -*-===//
//
// What #lm.arith, the format of activations and the ops of the tile dialect say (dialects/LM/LMAttrs.td, LMOps.td,
// dialects/Tile/TileOps.td), one rounding at a time. Compiled without contraction and with FMA instructions; to be
// called with denormals flushed, like the kernels.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_NUMERICS_MODELS_H
#define LLMC_TEST_NUMERICS_MODELS_H

#include "Weights.h"

#include <array>
#include <cmath>

namespace llmc::test {

/// Activations in the form `q8` (int8_t) or `q16` (int16_t): scales are [rows, padded cols / 32, 2], without padding of
/// their own.
template <typename T> struct CodedRows {
  Rows<T> codes;
  Rows<float> scales;

  CodedRows(Rows<T> codes, Rows<float> scales) : codes(std::move(codes)), scales(std::move(scales)) {}
  CodedRows(int64_t rows, int64_t cols) : codes(rows, cols), scales(rows, alignUp(cols, 32) / 16, 0, 2) {}
  CodedRows first(int64_t count) const { return {firstRows(codes, count), firstRows(scales, count)}; }
  /// Before a launch.
  static CodedRows result(int64_t rows, int64_t cols) {
    return {resultRows<T>(rows, cols), resultRows<float>(rows, alignUp(cols, 32) / 16, 2)};
  }
};

/// Where a column's code stands: int16 codes are in pair order (tile.pair_order).
template <typename T> int64_t codeColumn(int64_t k) {
  return sizeof(T) == 1 || k % 4 == 0 || k % 4 == 3 ? k : k % 4 == 1 ? k + 1 : k - 1;
}

/// lm.quantize of rows.
template <typename T> CodedRows<T> modelQuantize(const Rows<float> &x) {
  constexpr float top = std::numeric_limits<T>::max();
  CodedRows<T> q(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t g = 0; g < x.stride / 32; ++g) {
      float largest = 0;
      for (int64_t k = 32 * g; k < 32 * g + 32; ++k)
        largest = std::max(largest, std::fabs(x.at(r, k)));
      float inverse = largest > 0x1p-100f ? top / largest : 0.0f;
      int sum = 0;
      for (int64_t k = 32 * g; k < 32 * g + 32; ++k) {
        float product = x.at(r, k) * inverse;
        int code = int(std::nearbyint(product));
        q.codes.at(r, codeColumn<T>(k)) = T(code);
        sum += code;
      }
      float scale = largest / top;
      q.scales.at(r, 2 * g) = scale;
      q.scales.at(r, 2 * g + 1) = scale * float(sum);
    }
  return q;
}

/// lm.round of rows.
inline Rows<uint16_t> modelRound(const Rows<float> &x) {
  Rows<uint16_t> y(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t c = 0; c < x.cols; ++c)
      y.at(r, c) = f32ToBf16(x.at(r, c));
  return y;
}

/// q8_g32 and q16_g32: one result.
template <typename T> float modelCoded(const Weight &w, int64_t n, const T *codes, const float *scales) {
  const BlockTraits traits = traitsOf(w.storage);
  float c = 0;
  for (int64_t first = 0; first < w.cols; first += traits.group) { // k that share a scale
    const int64_t g = first / 32;
    int64_t dot = 0, sum = 0;
    BlockValue value;
    for (int64_t k = first; k < first + traits.group; ++k) {
      value = w.block(n, k);
      dot += value.code * codes[codeColumn<T>(k)];
      sum += codes[codeColumn<T>(k)];
    }
    float factor = value.scale * scales[2 * g];
    c = std::fma(float(dot), factor, c);
    float scaledSum = traits.group == 32 ? scales[2 * g + 1] : float(sum) * scales[2 * g];
    if (traits.minimum)
      c = std::fma(value.minimum, scaledSum, c);
    if (traits.zero)
      c = std::fma(-float(traits.zero) * value.scale, scaledSum, c);
  }
  return c;
}

/// bf16_eo32: one result. Weights are rounded to bf16, what AMX multiplies.
inline float modelEvenOdd(const Weight &w, int64_t n, const uint16_t *x) {
  float c = 0;
  auto weight = [&](int64_t k) { return k < w.cols ? bf16ToF32(f32ToBf16(w.value(n, k))) : 0.0f; };
  for (int64_t g = 0; g < alignUp(w.cols, 32); g += 32) {
    float even = 0, odd = 0;
    for (int64_t k = g; k < g + 32; k += 2) {
      even = std::fma(weight(k), bf16ToF32(x[k]), even);
      odd = std::fma(weight(k + 1), bf16ToF32(x[k + 1]), odd);
    }
    float both = even + odd;
    c = c + both;
  }
  return c;
}

/// bf16 on a CPU: one result.
inline float modelPairs(const Weight &w, int64_t n, const uint16_t *x) {
  float c = 0;
  for (int64_t k = 0; k < alignUp(w.cols, 32); k += 2) {
    c = std::fma(k + 1 < w.cols ? w.value(n, k + 1) : 0.0f, bf16ToF32(x[k + 1]), c);
    c = std::fma(k < w.cols ? w.value(n, k) : 0.0f, bf16ToF32(x[k]), c);
  }
  return c;
}

/// f32: one result.
inline float modelF32(const Weight &w, int64_t n, const float *x) {
  float c = 0;
  for (int64_t k = 0; k < alignUp(w.cols, 32); ++k)
    c = std::fma(k < w.cols ? w.value(n, k) : 0.0f, x[k], c);
  return c;
}

/// math.exp as tile-expand-math defines it: Cephes expf's reduction and polynomial in FMA form.
inline float modelExp(float x) {
  float clamped = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  float product = clamped * 1.4426950408889634f;
  float n = std::nearbyint(product);
  float r = std::fma(n, 2.12194440e-4f, std::fma(n, -0.693359375f, clamped));
  float p = 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = std::fma(p, r, c);
  float square = r * r;
  float y = std::fma(p, square, r) + 1.0f;
  y = y * std::bit_cast<float>((int32_t(n) + 127) << 23);
  return x < -87.0f ? 0.0f : x > 88.0f ? std::numeric_limits<float>::infinity() : y;
}

/// silu(gate) * up
inline float modelGated(float gate, float up) {
  float e = 1.0f + modelExp(-gate);
  float quotient = gate / e;
  return quotient * up;
}

/// tile.reduce add of 32 elements.
inline float modelSum32(std::array<float, 32> x) {
  for (int half = 16; half >= 8; half /= 2)
    for (int i = 0; i < half; ++i)
      x[i] = x[i] + x[i + half];
  float a = (x[0] + x[1]) + (x[2] + x[3]), b = (x[4] + x[5]) + (x[6] + x[7]);
  return a + b;
}

} // namespace llmc::test

#endif // LLMC_TEST_NUMERICS_MODELS_H
