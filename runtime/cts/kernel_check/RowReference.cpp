//===- RowReference.cpp - ops that work row by row ------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/kernel_check/Reference.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace llmc::kernel_check {

Matrix embedding(const Launch &l) {
  const llmc_weight_v1 &table = l.weight(0);
  const auto values = l.weights.values(table);
  Matrix y(l.rows, table.cols);
  for (uint64_t t = 0; t < y.rows; ++t)
    for (uint64_t c = 0; c < y.cols; ++c)
      y.row(t)[c] = l.kernel.factor * (*values)[uint64_t(l.step.ids[t]) * table.cols + c]; // rounded once, as in the kernel
  return y;
}

Matrix rmsNorm(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  const auto weight = l.weights.values(l.weight(0));
  if (weight->size() != y.cols)
    throw Error(std::string("launch ") + l.launch.op + ": expected a weight of " + std::to_string(y.cols) + " values, got " +
                std::to_string(weight->size()));
  for (uint64_t t = 0; t < y.rows; ++t) {
    double *row = y.row(t);
    const double factor = 1 / std::sqrt(dot(row, row, y.cols) / double(y.cols) + double(l.kernel.eps));
    for (uint64_t c = 0; c < y.cols; ++c)
      row[c] *= factor * double((*weight)[c]);
  }
  return y;
}

Matrix add(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  const Matrix other = l.input(1).read(l.rows);
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] += other.values[i];
  return y;
}

Matrix scale(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  for (double &value : y.values)
    value = l.kernel.factor * float(value); // rounded once, as in the kernel
  return y;
}

Matrix softCap(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  const double cap = l.kernel.cap;
  for (double &value : y.values)
    value = cap * std::tanh(value / cap);
  return y;
}

double activate(const KernelName &kernel, double x) {
  if (!kernel.gelu)
    return x / (1 + std::exp(-x));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

Matrix gatedActivation(const Launch &l) {
  Matrix y = l.input(0).read(l.rows);
  const Matrix up = l.input(1).read(l.rows);
  for (size_t i = 0; i < y.values.size(); ++i)
    y.values[i] = up.values[i] * activate(l.kernel, y.values[i]);
  return y;
}

Matrix gatherRows(const Launch &l) {
  Matrix y(l.rows, l.input(0).value.cols);
  for (uint64_t i = 0; i < y.rows; ++i)
    l.input(0).read(uint64_t(l.step.rows[i]), y.row(i));
  return y;
}

Matrix argmax(const Launch &l) {
  const Matrix x = l.input(0).read(l.rows);
  Matrix ids(l.rows, 1);
  for (uint64_t t = 0; t < x.rows; ++t) {
    double best = -std::numeric_limits<double>::infinity();
    for (uint64_t c = 0; c < x.cols; ++c)
      if (x.row(t)[c] > best) { // the lowest id on ties
        best = x.row(t)[c];
        ids.row(t)[0] = double(c);
      }
  }
  return ids;
}

} // namespace llmc::kernel_check
