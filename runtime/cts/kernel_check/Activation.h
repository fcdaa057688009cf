//===- Activation.h - rows of a launch's operands as numbers ----*- C++ -*-===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_ACTIVATION_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_ACTIVATION_H

#include "llmc/abi.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace llmc::kernel_check {

/// Row-major numbers.
struct Matrix {
  uint64_t rows = 0, cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(uint64_t rows, uint64_t cols) : rows(rows), cols(cols), values(rows * cols) {}
  double *row(uint64_t r) { return values.data() + r * cols; }
  const double *row(uint64_t r) const { return values.data() + r * cols; }
};

/// A value in an arena.
struct Activation {
  llmc_value_v1 value;
  const std::byte *arena;

  /// Integers with scales of 32 columns.
  bool coded() const { return value.element == LLMC_I8 || value.element == LLMC_I16; }
  /// Floats with a scale for the row.
  bool scaled() const { return value.element == LLMC_E4M3; }
  bool hasScales() const { return coded() || scaled(); }
  uint32_t elementBytes() const;
  uint64_t rowBytes() const { return uint64_t(value.stride) * elementBytes(); }
  uint64_t scaleBytes() const { return (scaled() ? LLMC_PAD : groups() * 2) * sizeof(float); } // of a row
  uint64_t groups() const { return (value.cols + LLMC_PAD - 1) / LLMC_PAD; }

  /// The element as stored: codes are not scaled. `column` < stride.
  double raw(uint64_t row, uint32_t column) const;
  /// (scale, scale * sum of codes) of 32 columns.
  const float *scales(uint64_t row, uint64_t group) const;
  float rowScale(uint64_t row) const;
  /// [cols] numbers, codes times their scale.
  void read(uint64_t row, double *to) const;
  /// The first `rows` rows.
  Matrix read(uint64_t rows) const;
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_ACTIVATION_H
