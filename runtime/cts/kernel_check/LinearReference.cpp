//===- LinearReference.cpp - matrix products ------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/kernel_check/Reference.h"

#include <algorithm>
#include <cmath>

namespace llmc::kernel_check {

namespace {

bool roundsWeights(Arith arith) { return arith == Arith::BF16 || arith == Arith::BF16_EO32; }
bool roundsTokens(Arith arith) { return roundsWeights(arith) || arith == Arith::BF16_G32; }

/// input . weight^T: [rows, weight rows].
Matrix product(const Launch &l) {
  const llmc_weight_v1 &weight = l.weight(0);
  const bool rounded = roundsWeights(l.kernel.arith);
  Matrix x = l.input(0).read(l.rows);
  if (x.cols != weight.cols)
    throw Error(std::string("launch ") + l.launch.op + ": expected an input of " + std::to_string(weight.cols) + " columns, got " +
                std::to_string(x.cols));
  if (roundsTokens(l.kernel.arith))
    std::transform(x.values.begin(), x.values.end(), x.values.begin(), roundBF16);
  const auto values = l.weights.values(weight);
  Matrix y(l.rows, weight.rows);
  parallelFor(weight.rows, [&](uint64_t begin, uint64_t end) {
    std::vector<double> w(weight.cols);
    for (uint64_t n = begin; n < end; ++n) {
      for (uint64_t k = 0; k < weight.cols; ++k) {
        const double element = (*values)[n * weight.cols + k];
        w[k] = rounded ? roundBF16(element) : element;
      }
      for (uint64_t t = 0; t < l.rows; ++t)
        y.row(t)[n] = dot(x.row(t), w.data(), weight.cols);
    }
  });
  return y;
}

} // namespace

Matrix linear(const Launch &l) {
  Matrix y = product(l);
  if (l.kernel.bias) {
    const auto bias = l.weights.values(l.weight(1));
    if (bias->size() != y.cols)
      throw Error(std::string("launch ") + l.launch.op + ": expected a bias of " + std::to_string(y.cols) + " values, got " +
                  std::to_string(bias->size()));
    for (uint64_t t = 0; t < y.rows; ++t)
      for (uint64_t n = 0; n < y.cols; ++n)
        y.row(t)[n] += (*bias)[n];
  }
  if (l.kernel.residual) {
    const Matrix residual = l.input(1).read(l.rows);
    for (size_t i = 0; i < y.values.size(); ++i)
      y.values[i] += residual.values[i];
  }
  return y;
}

// Rows of gate and up alternate in blocks of 16.
Matrix gatedLinear(const Launch &l) {
  const Matrix both = product(l);
  Matrix y(l.rows, both.cols / 2);
  for (uint64_t t = 0; t < y.rows; ++t)
    for (uint64_t f = 0; f < y.cols; ++f) {
      const double gate = both.row(t)[f / 16 * 32 + f % 16], up = both.row(t)[f / 16 * 32 + 16 + f % 16];
      y.row(t)[f] = activate(l.kernel, gate) * up;
    }
  return y;
}

} // namespace llmc::kernel_check
