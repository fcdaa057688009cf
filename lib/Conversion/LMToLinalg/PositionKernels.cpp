//===- PositionKernels.cpp - rotary embedding of the oracle ---------------===//
#include "Kernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using llmc::oracle::KernelBuilder;

// The angle is rounded to f32 as models were trained with it; its cosine and sine are those of that f32 angle.
void oracle::ropeTable(KernelBuilder &k, int64_t pairs) {
  OpBuilder &b = k.b;
  k.forEachUnit([&](Value t) {
    Value position = memref::LoadOp::create(b, k.loc, k.argument(1), t);
    Value p = arith::SIToFPOp::create(b, k.loc, b.getF32Type(), position);
    Value frequencies = k.row(k.argument(0), k.index(0), pairs);
    auto angle = [&](ValueRange v) -> Value {
      return arith::ExtFOp::create(b, k.loc, b.getF64Type(), k.mul(p, v[0]));
    };
    auto round = [&](Value wide) -> Value { return arith::TruncFOp::create(b, k.loc, b.getF32Type(), wide); };
    k.elementwise({frequencies}, k.row(k.argument(2), t, pairs),
                  [&](ValueRange v) { return round(math::CosOp::create(b, k.loc, angle(v))); });
    k.elementwise({frequencies}, k.row(k.argument(2), t, pairs, pairs),
                  [&](ValueRange v) { return round(math::SinOp::create(b, k.loc, angle(v))); });
    k.zeroPadding(k.argument(2), t, b.getIndexAttr(1), 2 * pairs);
  });
}

// y[i] = x[i] cos_i - x[P + i] sin_i; y[P + i] = x[P + i] cos_i + x[i] sin_i; the rest of a head as it is.
void oracle::rope(KernelBuilder &k, int64_t first, int64_t heads, int64_t headDim, int64_t pairs) {
  Value input = k.argument(0), table = k.argument(1), result = k.argument(2);
  k.forEachUnit([&](Value t) {
    // [heads, count] of the row: `count` columns from `column` on in every head.
    auto part = [&](Value buffer, int64_t start, int64_t column, int64_t count) {
      int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
      return k.view(buffer, k.add(k.mul(t, stride), start + column),
                    {k.b.getIndexAttr(heads), k.b.getIndexAttr(count)}, {headDim, 1});
    };
    Value low = part(input, first, 0, pairs), high = part(input, first, pairs, pairs);
    Value cos = k.row(table, t, pairs), sin = k.row(table, t, pairs, pairs);
    SmallVector<SmallVector<unsigned>> maps = {{0, 1}, {0, 1}, {1}, {1}, {0, 1}};
    k.generic({low, high, cos, sin}, part(result, 0, 0, pairs), "pp", maps,
              [&](ValueRange v) { return k.sub(k.mul(v[0], v[2]), k.mul(v[1], v[3])); });
    k.generic({low, high, cos, sin}, part(result, 0, pairs, pairs), "pp", maps,
              [&](ValueRange v) { return k.add(k.mul(v[1], v[2]), k.mul(v[0], v[3])); });
    if (int64_t rest = headDim - 2 * pairs)
      k.elementwise({part(input, first, 2 * pairs, rest)}, part(result, 0, 2 * pairs, rest),
                    [](ValueRange v) { return v[0]; });
    k.zeroPadding(result, t, k.b.getIndexAttr(1), heads * headDim);
  });
}
