//===- AttentionKernel.cpp - causal attention of the oracle ---------------===//
//
// Row t of the queries against rows max(0, t + 1 - window) .. t of keys and values: one sequence from position 0.
// Scores may be capped; a sink is one more term of a head's sum, which multiplies no value.
// The softmax runs online over tiles of keys (Dao 2023, alg. 1), so that scratch does not grow with the context.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;
using llmc::oracle::KernelBuilder;

namespace {
constexpr int64_t kKeyTile = 64;

struct AttentionEmitter {
  KernelBuilder &k;
  const oracle::AttentionShape &shape;
  Value query, keys, values, result;
  Value maximum, sum, scores, accumulator; // scratch of one head

  AttentionEmitter(KernelBuilder &k, const oracle::AttentionShape &shape)
      : k(k), shape(shape), query(k.argument(0)), keys(k.argument(1)), values(k.argument(2)), result(k.argument(shape.sinks ? 4 : 3)),
        maximum(k.scratch({})), sum(k.scratch({})), scores(k.scratch({kKeyTile})),
        accumulator(k.scratch({shape.valueDim})) {}

  /// [count, dim] of head `head`, from row `first` on.
  Value rowsOf(Value buffer, Value first, OpFoldResult count, Value head, int64_t dim) {
    int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
    return k.view(buffer, k.add(k.mul(first, stride), k.mul(head, dim)), {count, k.b.getIndexAttr(dim)}, {stride, 1});
  }

  /// [dim] of head `head` in row `row`.
  Value headOf(Value buffer, Value row, Value head, int64_t dim) {
    int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
    return k.view(buffer, k.add(k.mul(row, stride), k.mul(head, dim)), {k.b.getIndexAttr(dim)}, {1});
  }

  Value exp(Value x) { return math::ExpOp::create(k.b, k.loc, x); }
  Value load(Value scalar) { return memref::LoadOp::create(k.b, k.loc, scalar); }
  void store(Value x, Value scalar) { memref::StoreOp::create(k.b, k.loc, x, scalar, ValueRange{}); }

  Value capped(Value score) {
    if (shape.softCap <= 0)
      return score;
    return k.mul(k.tanh(arith::DivFOp::create(k.b, k.loc, score, k.f32(shape.softCap))), k.f32(shape.softCap));
  }

  /// The head's sum with its sink. exp may overflow to infinity: then all weights are 0.
  Value withSink(Value total, Value h) {
    if (!shape.sinks)
      return total;
    Value sink = memref::LoadOp::create(k.b, k.loc, k.argument(3), ValueRange{k.index(0), h});
    return k.add(total, exp(k.sub(sink, load(maximum))));
  }

  void tile(Value q, Value kvHead, Value first, Value end) {
    OpFoldResult count = k.min(k.sub(end, first), k.index(kKeyTile));
    Value s = k.view(scores, k.index(0), {count}, {1});
    k.fill(s, 0);
    k.contract(rowsOf(keys, first, count, kvHead, shape.keyDim), q, s, "pr", {{0, 1}, {1}, {0}});
    k.elementwise({}, s, [&](ValueRange v) { return capped(k.mul(v[0], k.f32(shape.scale))); });
    Value before = load(maximum);
    k.generic({s}, maximum, "r", {{0}, {}},
              [&](ValueRange v) { return Value(arith::MaximumFOp::create(k.b, k.loc, v[0], v[1])); });
    Value now = load(maximum);
    Value correction = exp(k.sub(before, now));
    k.elementwise({}, s, [&](ValueRange v) { return exp(k.sub(v[0], now)); });
    store(k.mul(load(sum), correction), sum);
    k.generic({s}, sum, "r", {{0}, {}}, [&](ValueRange v) { return k.add(v[1], v[0]); });
    k.elementwise({}, accumulator, [&](ValueRange v) { return k.mul(v[0], correction); });
    k.contract(s, rowsOf(values, first, count, kvHead, shape.valueDim), accumulator, "rp", {{0}, {0, 1}, {1}});
  }

  void head(Value t, Value h) {
    Value kvHead = arith::DivUIOp::create(k.b, k.loc, h, k.index(shape.heads / shape.kvHeads));
    Value end = k.add(t, 1), begin = k.index(0);
    if (shape.window > 0)
      begin = arith::MaxSIOp::create(k.b, k.loc, k.sub(end, k.index(shape.window)), begin);
    // Finite, so that the first correction is exp of a large negative number, not of inf - inf.
    k.fill(maximum, -3.0e38);
    k.fill(sum, 0);
    k.fill(accumulator, 0);
    Value q = headOf(query, t, h, shape.keyDim);
    k.loop(begin, end, kKeyTile, [&](Value first) { tile(q, kvHead, first, end); });
    Value total = withSink(load(sum), h);
    k.elementwise({accumulator}, headOf(result, t, h, shape.valueDim),
                  [&](ValueRange v) { return Value(arith::DivFOp::create(k.b, k.loc, v[0], total)); });
  }
};
} // namespace

void oracle::attention(KernelBuilder &k, const AttentionShape &shape) {
  AttentionEmitter emitter(k, shape);
  k.forEachUnit([&](Value t) {
    k.loop(k.index(0), k.index(shape.heads), 1, [&](Value h) { emitter.head(t, h); });
    k.zeroPadding(emitter.result, t, k.b.getIndexAttr(1), shape.heads * shape.valueDim);
  });
}
