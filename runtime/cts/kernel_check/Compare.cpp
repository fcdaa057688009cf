//===- Compare.cpp --------------------------------------------------------===//
#include "runtime/cts/kernel_check/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace llmc::kernel_check {

namespace {

/// What rounding to a format costs by itself, in shares of the whole result.
double formatError(uint32_t element) {
  switch (element) {
  case LLMC_BF16:
    return 3.9e-3; // half a step is 2^-8 of the smallest number of a binade, and one such number may be most of a row
  case LLMC_I8:
    return 2e-2; // half a step is 1/254 of the largest of 32
  case LLMC_I16:
    return 1e-4;
  case LLMC_E4M3:
    return 4e-2; // half a step is 2^-4 of the smallest number of a binade; 2.6e-2 where mantissas are spread
  }
  return 0;
}

/// Hopper adds products of e4m3 with some 14 bits, cutting off the rest; the error grows with the number of sums.
Bounds e4m3Bounds(Op op, uint64_t k) {
  const double length = std::max(1.0, double(k) / 4096) * (op == Op::Gated ? 2 : 1);
  return {2e-3 * length, 1.5e-2 * length};
}

Bounds arithmeticBounds(Op op, bool narrow, uint64_t k) {
  switch (op) {
  // f32 sums: some 2^-24 a step, and a GPU's matrix unit drops bits where a CPU rounds. Grows with the number of steps.
  case Op::Linear: {
    const double length = std::max(1.0, double(k) / 2048);
    return {1e-5 * length, 1e-4 * length};
  }
  case Op::Gated: { // two products, and the exponential of one
    const double length = std::max(1.0, double(k) / 2048);
    return {2e-5 * length, 4e-4 * length};
  }
  // Probabilities that are rounded to bf16 before they meet the values: 2^-9 each, of either sign.
  case Op::Attention:
    return narrow ? Bounds{4e-3, 2e-2} : Bounds{1e-5, 1e-4};
  case Op::RMSNorm:
  case Op::GatedActivation:
  case Op::SoftCap:
  case Op::Rope:
  case Op::RopeAppend:
    return {1e-6, 1e-5};
  case Op::RopeTable: // angles of thousands of radians, reduced in f32
    return {1e-6, 1e-5};
  case Op::Add:
  case Op::Quantize: // the product with the inverse scale, in f32
    return {1e-7, 1e-6};
  case Op::Embedding: // exact but for the format
  case Op::Scale:
  case Op::Round:
  case Op::GatherRows:
  case Op::Argmax:
  case Op::KVAppend:
    return {};
  }
  return {};
}

std::string at(uint64_t row, uint64_t column, double want, double got) {
  char text[120];
  std::snprintf(text, sizeof text, "row %llu, column %llu: expected %.9g, got %.9g", static_cast<unsigned long long>(row),
                static_cast<unsigned long long>(column), want, got);
  return text;
}

double relativeOf(double difference, double reference) {
  return difference == 0 ? 0 : std::sqrt(difference) / std::sqrt(std::max(reference, 1e-300));
}

/// Scales of a row of codes: largest / top, and that times the sum of the codes.
std::string checkScales(const Activation &got, uint64_t row, const double *want, double error) {
  const double top = got.value.element == LLMC_I8 ? 127 : 32767;
  for (uint64_t g = 0; g < got.groups(); ++g) {
    double largest = 0, sum = 0;
    for (uint64_t c = g * LLMC_PAD; c < std::min<uint64_t>((g + 1) * LLMC_PAD, got.value.cols); ++c) {
      largest = std::max(largest, std::fabs(want[c]));
      sum += got.raw(row, uint32_t(c));
    }
    const float *scales = got.scales(row, g);
    const double scale = largest / top;
    if (!(std::fabs(scales[0] - scale) <= error * scale + 1e-37))
      return "scale of " + at(row, g * LLMC_PAD, scale, scales[0]);
    if (!(std::fabs(scales[1] - scales[0] * sum) <= 1e-6 * std::fabs(scales[0] * sum) + 1e-37))
      return "scaled sum of " + at(row, g * LLMC_PAD, scales[0] * sum, scales[1]);
  }
  return "";
}

/// Of a row of e4m3: its largest magnitude / 448.
std::string checkRowScale(const Activation &got, uint64_t row, const double *want) {
  double largest = 0x1p-100;
  for (uint32_t c = 0; c < got.value.cols; ++c)
    largest = std::max(largest, std::fabs(want[c]));
  const double scale = largest / 448, is = got.rowScale(row);
  return std::fabs(is - scale) <= 1e-4 * scale ? "" : "scale of " + at(row, 0, scale, is);
}

std::string checkPadding(const Activation &got, uint64_t row) {
  for (uint32_t c = got.value.cols; c < got.value.stride; ++c)
    if (got.raw(row, c) != 0)
      return "padding at " + at(row, c, 0, got.raw(row, c));
  return "";
}

double halfStep(const Activation &got, uint64_t row, uint64_t column, double want) {
  if (got.value.element == LLMC_BF16)
    return halfStepBF16(want);
  if (got.scaled()) { // of four bits, at most half a step of the subnormal ones
    const double scale = std::fabs(double(got.rowScale(row))), code = std::fabs(want) / scale;
    return scale * std::ldexp(1.0, std::max(code > 0 ? std::ilogb(code) : -6, -6) - 4);
  }
  return got.coded() ? 0.5 * std::fabs(*got.scales(row, column / LLMC_PAD)) : 0;
}

} // namespace

double halfStepBF16(double x) {
  if (x == 0)
    return 0;
  return std::ldexp(1.0, std::max(std::ilogb(x), -126) - 8);
}

Bounds boundsOf(const KernelName &kernel, bool gpu, uint64_t k, uint32_t element) {
  const bool product = kernel.op == Op::Linear || kernel.op == Op::Gated;
  Bounds bounds = product && kernel.arith == Arith::E4M3 ? e4m3Bounds(kernel.op, k) : arithmeticBounds(kernel.op, gpu || kernel.narrow, k);
  bounds.relative += formatError(element);
  return bounds;
}

Deviation compare(const Activation &got, const Matrix &want, double ofScales) {
  Deviation result;
  double difference = 0, reference = 0;
  std::vector<double> row(want.cols);
  auto fault = [&](const std::string &what) {
    if (result.fault.empty())
      result.fault = what;
  };
  if (got.value.cols != want.cols) {
    fault("expected " + std::to_string(want.cols) + " columns, got " + std::to_string(got.value.cols));
    return result;
  }
  for (uint64_t r = 0; r < want.rows; ++r) {
    const double *expected = want.row(r);
    got.read(r, row.data());
    const double squares = dot(expected, expected, want.cols), rms = std::sqrt(squares / double(std::max<uint64_t>(want.cols, 1)));
    reference += squares;
    for (uint64_t c = 0; c < want.cols; ++c) {
      const double d = std::fabs(row[c] - expected[c]);
      if (!std::isfinite(row[c]) || !std::isfinite(d))
        fault(at(r, c, expected[c], row[c]));
      difference += d * d;
      const double beyond = std::max(0.0, d - halfStep(got, r, c, expected[c]));
      const double element = beyond == 0 ? 0 : beyond / std::max({std::fabs(expected[c]), rms, 1e-37});
      if (element > result.element || (result.worst.empty() && element > 0)) {
        result.element = element;
        result.worst = at(r, c, expected[c], row[c]);
      }
    }
    if (std::string text = checkPadding(got, r); !text.empty())
      fault(text);
    if (got.coded())
      if (std::string text = checkScales(got, r, expected, ofScales); !text.empty())
        fault(text);
    if (got.scaled())
      if (std::string text = checkRowScale(got, r, expected); !text.empty())
        fault(text);
  }
  result.relative = relativeOf(difference, reference);
  return result;
}

} // namespace llmc::kernel_check
