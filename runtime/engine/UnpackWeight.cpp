//===- UnpackWeight.cpp ---------------------------------------------------===//
#include "runtime/engine/UnpackWeight.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Float.h"
#include "llmc/Target/Layout.h"

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

template <typename T> T load(const uint8_t *p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Bits of the code at `k` inside 32 k whose plane starts at `plane`.
unsigned planeBits(const uint8_t *plane, unsigned bits, unsigned r, unsigned k) {
  const unsigned perByte = 8 / bits, quad = k / 4;
  const uint8_t byte = plane[64 * (quad / perByte) + 4 * r + k % 4];
  return byte >> (bits * (quad % perByte)) & ((1u << bits) - 1);
}

unsigned field(const CodedForm &form, const uint8_t *record, unsigned r, unsigned i) {
  const uint8_t *low = record + form.fieldOffset();
  if (form.scaleBits == 8)
    return low[16 * i + r];
  unsigned value = low[16 * (i / 2) + r] >> (4 * (i % 2)) & 15;
  if (form.scaleBits == 6)
    value |= (record[form.highFieldOffset() + 16 * (i / 4) + r] >> (2 * (i % 4)) & 3u) << 4;
  return value;
}

float codedElement(const CodedForm &form, const uint8_t *record, unsigned r, unsigned k) {
  const uint8_t *codes = record + form.codeOffset() + k / 32 * form.groupBytes();
  unsigned code = planeBits(codes, form.lowBits, r, k % 32);
  if (form.highBits)
    code |= planeBits(codes + form.highPlaneOffset(), form.highBits, r, k % 32) << form.lowBits;
  const float value = float(form.table ? kIQ4Values[code] : int(code) - form.zero);

  const unsigned group = k / form.scaleGroup;
  auto half = [&](unsigned at) { return halfToFloat(load<uint16_t>(record + at + 2 * r)); };
  if (!form.scaleBits) {
    const float product = half(32 * group) * value;
    return form.minimum ? product + half(form.minimumOffset() + 32 * group) : product;
  }
  const unsigned first = group * (form.minimum ? 2 : 1), integer = field(form, record, r, first);
  const float product = half(0) * float(form.scaleBits == 8 ? int8_t(integer) : int(integer) - form.scaleZero) * value;
  return form.minimum ? product - half(form.minimumOffset()) * float(field(form, record, r, first + 1)) : product;
}

// Value of row `r` (of 16) at `k` inside a record.
float element(llmc_layout layout, const CodedForm &form, const uint8_t *record, unsigned r, unsigned k) {
  switch (layout) {
  case LLMC_LAYOUT_N16_F32:
    return load<float>(record + 4 * r);
  case LLMC_LAYOUT_N16_F16:
    return halfToFloat(load<uint16_t>(record + 2 * r));
  case LLMC_LAYOUT_N16_BF16:
    return std::bit_cast<float>(uint32_t(load<uint16_t>(record + 4 * r + 2 * k)) << 16);
  default:
    return codedElement(form, record, r, k);
  }
}

// Panels of 16 rows of codes, row by row or in pairs of k, and behind them a scale for each row.
void unpackE4M3(const llmc_weight_v1 &w, const uint8_t *bytes, float *out) {
  const bool rows = w.layout == LLMC_LAYOUT_ROWS_E4M3;
  const uint64_t step = panelBytes(llmc_layout(w.layout), w.padded_cols);
  for (uint64_t row = 0; row < w.rows; ++row) {
    const uint8_t *panel = bytes + row / kPanelRows * step;
    const uint64_t lane = row % kPanelRows;
    const float scale = load<float>(panel + kPanelRows * w.padded_cols + 4 * lane);
    for (uint64_t k = 0; k < w.cols; ++k) {
      const uint64_t at = rows ? lane * w.padded_cols + k : k / 2 * 2 * kPanelRows + 2 * lane + k % 2;
      out[row * w.cols + k] = scale * e4m3ToF32(panel[at]);
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
  if (w.layout == LLMC_LAYOUT_N16_E4M3 || w.layout == LLMC_LAYOUT_ROWS_E4M3) {
    expectBytes(w, packedBytes(llmc_layout(w.layout), w.padded_rows, w.padded_cols));
    return unpackE4M3(w, bytes, out);
  }
  if (w.layout > LLMC_LAYOUT_N16_IQ4_XS)
    throw Error(std::string("weight ") + w.name + ": unknown layout " + std::to_string(w.layout));
  const llmc_layout layout = llmc_layout(w.layout);
  const CodedForm form = codedForm(layout);
  const uint64_t perRecord = recordK(layout), size = recordBytes(layout);
  const uint64_t records = (w.padded_cols + perRecord - 1) / perRecord, panels = w.padded_rows / 16;
  expectBytes(w, panels * records * size);
  for (uint64_t row = 0; row < w.rows; ++row)
    for (uint64_t k = 0; k < w.cols; ++k)
      out[row * w.cols + k] = element(layout, form, bytes + (row / 16 * records + k / perRecord) * size,
                                      unsigned(row % 16), unsigned(k % perRecord));
}

} // namespace llmc
