//===- UnpackWeight.cpp ---------------------------------------------------===//
#include "runtime/engine/UnpackWeight.h"
#include "llmc/Support/Error.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace llmc {

float halfToFloat(uint16_t half) {
  const uint32_t sign = half >> 15, exponent = half >> 10 & 31, mantissa = half & 1023;
  float value;
  if (exponent == 0)
    value = std::ldexp(float(mantissa), -24);
  else if (exponent == 31)
    value = mantissa ? std::nanf("") : INFINITY;
  else
    value = std::ldexp(float(mantissa | 1024), int(exponent) - 25);
  return sign ? -value : value;
}

namespace {

struct Form {
  unsigned k;     // values of one row in a record
  unsigned bytes; // of a record (16 rows)
};

Form form(const llmc_weight_v1 &w) {
  switch (w.layout) {
  case LLMC_LAYOUT_N16_F32:
    return {1, 64};
  case LLMC_LAYOUT_N16_F16:
    return {1, 32};
  case LLMC_LAYOUT_N16_BF16:
    return {2, 64};
  case LLMC_LAYOUT_N16_Q4_0:
    return {64, 576};
  case LLMC_LAYOUT_N16_Q4_1:
    return {32, 320};
  case LLMC_LAYOUT_N16_Q8_0:
    return {64, 1088};
  }
  throw Error(std::string("weight ") + w.name + ": unknown layout " + std::to_string(w.layout));
}

template <typename T> T load(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Value of row `r` (of 16) at `k` inside a record.
float element(uint32_t layout, const uint8_t *record, unsigned r, unsigned k) {
  switch (layout) {
  case LLMC_LAYOUT_N16_F32:
    return load<float>(record + 4 * r);
  case LLMC_LAYOUT_N16_F16:
    return halfToFloat(load<uint16_t>(record + 2 * r));
  case LLMC_LAYOUT_N16_BF16:
    return std::bit_cast<float>(uint32_t(load<uint16_t>(record + 4 * r + 2 * k)) << 16);
  case LLMC_LAYOUT_N16_Q4_1: {
    const float d = halfToFloat(load<uint16_t>(record + 2 * r)), m = halfToFloat(load<uint16_t>(record + 32 + 2 * r));
    const uint8_t byte = record[64 + k / 8 * 64 + 4 * r + k % 4];
    return d * float(k % 8 < 4 ? byte & 15 : byte >> 4) + m;
  }
  case LLMC_LAYOUT_N16_Q4_0: {
    const unsigned group = k / 32, in = k % 32;
    const float d = halfToFloat(load<uint16_t>(record + 32 * group + 2 * r));
    const uint8_t byte = record[64 + 256 * group + in / 8 * 64 + 4 * r + in % 4];
    return d * float(int(in % 8 < 4 ? byte & 15 : byte >> 4) - 8);
  }
  default: { // Q8_0
    const unsigned group = k / 32, in = k % 32;
    const float d = halfToFloat(load<uint16_t>(record + 32 * group + 2 * r));
    return d * float(int(record[64 + 512 * group + in / 4 * 64 + 4 * r + in % 4]) - 128);
  }
  }
}

void expectBytes(const llmc_weight_v1 &w, uint64_t bytes) {
  if (w.bytes != bytes)
    throw Error(std::string("weight ") + w.name + ": expected " + std::to_string(bytes) + " packed bytes, got " +
                std::to_string(w.bytes));
}

} // namespace

void unpackWeight(const llmc_weight_v1 &w, const std::byte *weights, float *out) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(weights) + w.offset;
  if (w.layout == LLMC_LAYOUT_ROWS_F32) {
    // A vector has one row however the padding of its rows is counted.
    if (w.bytes < w.rows * w.padded_cols * sizeof(float))
      expectBytes(w, w.rows * w.padded_cols * sizeof(float));
    for (uint64_t r = 0; r < w.rows; ++r)
      std::memcpy(out + r * w.cols, bytes + r * w.padded_cols * sizeof(float), w.cols * sizeof(float));
    return;
  }
  if (w.layout == LLMC_LAYOUT_ROWS_BF16) {
    expectBytes(w, w.padded_rows * w.padded_cols * 2);
    for (uint64_t row = 0; row < w.rows; ++row)
      for (uint64_t k = 0; k < w.cols; ++k)
        out[row * w.cols + k] = std::bit_cast<float>(uint32_t(load<uint16_t>(bytes + (row * w.padded_cols + k) * 2)) << 16);
    return;
  }
  const Form f = form(w);
  const uint64_t records = (w.padded_cols + f.k - 1) / f.k, panels = w.padded_rows / 16;
  expectBytes(w, panels * records * f.bytes);
  for (uint64_t row = 0; row < w.rows; ++row)
    for (uint64_t k = 0; k < w.cols; ++k)
      out[row * w.cols + k] = element(w.layout, bytes + (row / 16 * records + k / f.k) * f.bytes, unsigned(row % 16),
                                      unsigned(k % f.k));
}

} // namespace llmc
