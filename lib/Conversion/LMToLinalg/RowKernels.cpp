//===- RowKernels.cpp - embedding, norm and elementwise ops of the oracle -===//
#include "Kernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using llmc::oracle::KernelBuilder;

static void copyRow(KernelBuilder &k, Value from, Value to) {
  k.elementwise({from}, to, [](ValueRange v) { return v[0]; });
}

static void padRow(KernelBuilder &k, Value result, Value t, int64_t columns) {
  k.zeroPadding(result, t, k.b.getIndexAttr(1), columns);
}

void oracle::embedding(KernelBuilder &k, int64_t tableRows, int64_t columns, double scale) {
  k.forEachUnit([&](Value t) {
    Value id = k.loadId(k.argument(1), t, k.index(tableRows));
    k.elementwise({k.row(k.argument(0), id, columns)}, k.row(k.argument(2), t, columns),
                  [&](ValueRange v) { return scale == 1 ? v[0] : k.mul(v[0], k.f32(scale)); });
    padRow(k, k.argument(2), t, columns);
  });
}

void oracle::gatherRows(KernelBuilder &k, int64_t columns) {
  // The input's row count is not known here (rows() counts the gathered ones); the runtime has checked the indices.
  Value limit = k.index(INT32_MAX);
  k.forEachUnit([&](Value t) {
    Value source = k.loadId(k.argument(1), t, limit);
    copyRow(k, k.row(k.argument(0), source, columns), k.row(k.argument(2), t, columns));
    padRow(k, k.argument(2), t, columns);
  });
}

void oracle::copyColumns(KernelBuilder &k, int64_t first, int64_t columns) {
  k.forEachUnit([&](Value t) {
    copyRow(k, k.row(k.argument(0), t, columns, first), k.row(k.argument(1), t, columns));
    padRow(k, k.argument(1), t, columns);
  });
}

// result = x / sqrt(mean(x^2) + eps) * weight
void oracle::rmsNorm(KernelBuilder &k, int64_t columns, double eps) {
  Value sum = k.scratch({});
  k.forEachUnit([&](Value t) {
    Value input = k.row(k.argument(0), t, columns), result = k.row(k.argument(2), t, columns);
    Value weight = k.row(k.argument(1), k.index(0), columns);
    k.fill(sum, 0);
    k.contract(input, input, sum, "r", {{0}, {0}, {}});
    Value total = memref::LoadOp::create(k.b, k.loc, sum);
    Value mean = arith::DivFOp::create(k.b, k.loc, total, k.f32(static_cast<double>(columns)));
    Value root = math::SqrtOp::create(k.b, k.loc, k.add(mean, k.f32(eps)));
    Value inverse = arith::DivFOp::create(k.b, k.loc, k.f32(1), root);
    k.elementwise({input, weight}, result, [&](ValueRange v) { return k.mul(k.mul(v[0], inverse), v[1]); });
    padRow(k, k.argument(2), t, columns);
  });
}

Value oracle::activate(KernelBuilder &k, lm::Activation activation, Value x) {
  if (activation == lm::Activation::SiLU)
    return k.silu(x);
  Value cube = k.mul(k.mul(x, x), x);
  Value inner = k.mul(k.f32(0.7978845608028654), k.add(x, k.mul(k.f32(0.044715), cube))); // sqrt(2 / pi)
  return k.mul(k.mul(k.f32(0.5), x), k.add(k.f32(1), k.tanh(inner)));
}

void oracle::gatedActivation(KernelBuilder &k, int64_t columns, lm::Activation activation) {
  k.forEachUnit([&](Value t) {
    k.elementwise({k.row(k.argument(0), t, columns), k.row(k.argument(1), t, columns)},
                  k.row(k.argument(2), t, columns), [&](ValueRange v) { return k.mul(activate(k, activation, v[0]), v[1]); });
    padRow(k, k.argument(2), t, columns);
  });
}

void oracle::add(KernelBuilder &k, int64_t columns) {
  k.forEachUnit([&](Value t) {
    k.elementwise({k.row(k.argument(0), t, columns), k.row(k.argument(1), t, columns)},
                  k.row(k.argument(2), t, columns), [&](ValueRange v) { return k.add(v[0], v[1]); });
    padRow(k, k.argument(2), t, columns);
  });
}

static void mapRows(KernelBuilder &k, int64_t columns, llvm::function_ref<Value(Value)> compute) {
  k.forEachUnit([&](Value t) {
    k.elementwise({k.row(k.argument(0), t, columns)}, k.row(k.argument(1), t, columns), [&](ValueRange v) { return compute(v[0]); });
    padRow(k, k.argument(1), t, columns);
  });
}

void oracle::scale(KernelBuilder &k, int64_t columns, double factor) {
  mapRows(k, columns, [&](Value x) { return k.mul(x, k.f32(factor)); });
}

void oracle::softCap(KernelBuilder &k, int64_t columns, double cap) {
  mapRows(k, columns, [&](Value x) { return k.mul(k.tanh(arith::DivFOp::create(k.b, k.loc, x, k.f32(cap))), k.f32(cap)); });
}
