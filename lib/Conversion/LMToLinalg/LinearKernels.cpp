//===- LinearKernels.cpp - matrix products of the oracle ------------------===//
//
// A unit is a block of rows. The loop over weight rows is outermost, so that a weight row comes from memory
// once a unit; the innermost loop is the sum over k, which LLVM keeps in vector registers.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

using namespace mlir;
using namespace llmc;
using llmc::oracle::KernelBuilder;

namespace {
/// The rows of one unit: the last unit may be short.
struct RowBlock {
  Value first;
  OpFoldResult count;

  RowBlock(KernelBuilder &k, Value unit) : first(k.mul(unit, oracle::kRowBlock)) {
    count = k.min(k.sub(k.rows(), first), k.index(oracle::kRowBlock));
  }
  /// `columns` columns from `column` on of these rows.
  Value of(KernelBuilder &k, Value buffer, int64_t columns, Value column = {}) const {
    int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
    Value offset = k.mul(first, stride);
    if (column)
      offset = k.add(offset, column);
    return k.view(buffer, offset, {count, k.b.getIndexAttr(columns)}, {stride, 1});
  }
};
} // namespace

/// output[t, n] = sum_k input[t, k] * weight[n, k], dimensions (n, t, k).
static void product(KernelBuilder &k, Value input, Value weight, Value output) {
  k.fill(output, 0);
  k.contract(input, weight, output, "ppr", {{1, 2}, {0, 2}, {1, 0}});
}

void oracle::linear(KernelBuilder &k, int64_t columns, int64_t depth, bool bias, bool residual) {
  unsigned next = 1;
  Value residualArg = residual ? k.argument(next++) : Value();
  Value weight = k.argument(next++);
  Value biasArg = bias ? k.argument(next++) : Value();
  Value result = k.argument(next);
  k.forEachUnit([&](Value unit) {
    RowBlock block(k, unit);
    Value output = block.of(k, result, columns);
    product(k, block.of(k, k.argument(0), depth), weight, output);
    if (bias) {
      Value row = k.row(biasArg, k.index(0), columns);
      k.generic({row}, output, "pp", {{1}, {0, 1}}, [&](ValueRange v) { return k.add(v[1], v[0]); });
    }
    if (residual)
      k.elementwise({block.of(k, residualArg, columns)}, output, [&](ValueRange v) { return k.add(v[1], v[0]); });
    k.zeroPadding(result, block.first, block.count, columns);
  });
}

void oracle::gatedLinear(KernelBuilder &k, int64_t columns, int64_t depth, int64_t interleave, lm::Activation activation) {
  Value input = k.argument(0), weight = k.argument(1), result = k.argument(2);
  Value upBuffer = k.scratch({kRowBlock, interleave});
  k.forEachUnit([&](Value unit) {
    RowBlock block(k, unit);
    Value x = block.of(k, input, depth);
    Value up = k.view(upBuffer, k.index(0), {block.count, k.b.getIndexAttr(interleave)}, {interleave, 1});
    k.loop(k.index(0), k.index(columns), interleave, [&](Value column) {
      auto panel = [&](int64_t row) { // `interleave` weight rows, `row` after the first gate row
        Value offset = k.mul(k.add(k.mul(column, 2), row), depth);
        return k.view(weight, offset, {k.b.getIndexAttr(interleave), k.b.getIndexAttr(depth)}, {depth, 1});
      };
      Value output = block.of(k, result, interleave, column);
      product(k, x, panel(0), output);
      product(k, x, panel(interleave), up);
      k.elementwise({up}, output, [&](ValueRange v) { return k.mul(activate(k, activation, v[1]), v[0]); });
    });
    k.zeroPadding(result, block.first, block.count, columns);
  });
}
