//===- AttentionSpans.cpp - few queries, their context in segments --------===//
//
// Few query tokens and a long context leave a card idle if a unit goes through all of it. So a context is cut into segments
// (llmc_kv_span in abi.h), a unit is a segment of a query tile and KV head, and the last unit of a tile and head to finish
// puts the segments together (FlashDecoding: Dao et al. 2023; with the last one found by a counter as in Stream-K: Osama et
// al. 2023). Up to 64 rows, tokens times query heads of the KV head, cost hardly more than one: the cache is what is read.
//
// Segments are a function of a token's position, are folded from the oldest to the newest whichever unit comes last, and one
// that a token does not see changes nothing when it is folded (its weight is exactly 0). So a token's bits do not depend
// on the tile, on other tokens or sequences of the step, or on the card.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace llmc;

static constexpr int64_t kRows = 64;      // of a warpgroup
static constexpr int64_t kFoldRows = 16;  // that are folded at a time where a tile has more tokens than one
static constexpr double kNone = -1e30;    // maximum of no score

/// Tokens whose segments' results there is room for, each with `count` places a span: a step with more takes another variant.
/// At segments of 256 tokens that is a million tokens of context with one query token each.
static constexpr int64_t kSpanRows = 4096;

bool llmc::mayHaveSpans(const AttentionShape &s) { return takesWarpgroups(s, kRows); }

int64_t llmc::spanTokens(const AttentionShape &s) { return kRows / s.group; }

/// A fold of the last rows may read past them.
static int64_t resultRows(const AttentionShape &s) { return s.kv.heads * s.group * kSpanRows + kRows; }

namespace {

/// The fields of this unit's llmc_kv_span.
struct Span {
  QueryTile tile;
  Value begin, end, slot, firstSlot, spans, number;
};

/// The buffers behind the result.
struct Results {
  Value out, m, l;
  Results(KernelBuilder &k, const AttentionShape &s)
      : out(k.buffer(s.result() + 1)), m(k.buffer(s.result() + 2)), l(k.buffer(s.result() + 3)) {}
};

} // namespace

static Span loadSpan(KernelBuilder &k, Value number) {
  auto field = [&](int64_t i) {
    return k.toIndex(k.load(k.b.getI32Type(), k.buffer(AttentionShape::kSpans), {number, k.index(i)}));
  };
  return {{field(0), field(1), field(2), field(3)}, field(4), field(5), field(6), field(7), field(8), field(9)};
}

/// The segment's blocks, without those before a window; never none, since a pipeline has a first step (which is then masked).
static PageRange blocksOf(KernelBuilder &k, const AttentionShape &s, const Span &span) {
  Value begin = k.divIndex(span.begin, 16), end = k.divIndex(k.addIndex(span.end, 15), 16);
  if (s.window > 0) {
    Value last = k.mulIndex(k.divIndex(k.addIndex(span.end, -1), s.columns()), s.pages);
    Value first = arith::MaxSIOp::create(k.b, k.loc, begin, visibleBlocks(k, s, span.tile).begin);
    begin = k.minIndex(first, last);
  }
  return {begin, end};
}

/// First row of the results of a slot: [KV head][slot][query heads of the KV head].
static Value rowOf(KernelBuilder &k, const AttentionShape &s, Value head, Value slot) {
  return k.mulIndex(k.addIndex(k.mulIndex(head, kSpanRows), slot), s.group);
}

/// Folds the segments of `tokens` tokens from token `first` of the tile on and writes them.
static void fold(KernelBuilder &k, const AttentionShape &s, const Span &span, Value head, Value first, int64_t tokens) {
  int64_t rows = tokens * s.group, columns = s.kv.vDim;
  // Segments that are loaded side by side: 64 registers of each of 128 threads, fewer where columns or rows must be masked.
  int64_t registers = columns % 32 || rows % 4 ? 32 : 64, each = llvm::divideCeil(rows, 4) * llvm::divideCeil(columns, 32);
  int64_t batch = std::clamp<int64_t>(registers / each, 1, 8);
  Results results(k, s);
  Value row = rowOf(k, s, head, k.addIndex(span.firstSlot, first)), stride = k.mulIndex(span.tile.count, s.group);
  Value newest = k.addIndex(span.spans, -1);
  KernelBuilder::Values none{k.splat({rows}, kNone), k.splat({rows}, 0.0), k.splat({rows, columns}, 0.0)};
  KernelBuilder::Values state = k.loop(k.index(0), span.spans, batch, none, [&](Value from, ValueRange carried) -> KernelBuilder::Values {
    SmallVector<Softmax> parts;
    for (int64_t i = 0; i < batch; ++i) {
      Value place = k.addIndex(row, arith::MulIOp::create(k.b, k.loc, k.minIndex(k.addIndex(from, i), newest), stride).getResult());
      parts.push_back({k.load(k.vec({rows}), results.m, {place}), k.load(k.vec({rows}), results.l, {place}),
                       k.load(k.vec({rows, columns}), results.out, {place, k.index(0)})});
    }
    Softmax sum{carried[0], carried[1], carried[2]};
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, k.addIndex(from, static_cast<int64_t>(i)), span.spans);
      Value m = k.max(sum.m, k.select(exists, part.m, k.splat({rows}, kNone)));
      Value old = math::Exp2Op::create(k.b, k.loc, k.sub(sum.m, m));
      Value weight = k.select(exists, math::Exp2Op::create(k.b, k.loc, k.sub(part.m, m)), k.splat({rows}, 0.0));
      sum.acc = k.fma(part.acc, k.expand(weight, columns), k.mul(sum.acc, k.expand(old, columns)));
      sum.l = k.fma(part.l, weight, k.mul(sum.l, old));
      sum.m = m;
    }
    return {sum.m, sum.l, sum.acc};
  });
  Value out = k.mul(state[2], k.expand(k.div(k.splat({rows}, 1.0), state[1]), columns));
  QueryTile rest{k.addIndex(span.tile.first, first), arith::SubIOp::create(k.b, k.loc, span.tile.count, first), {}, {}};
  writeHeads(k, s, rest, head, k.index(0), out, tokens);
}

static void buildSpans(KernelBuilder &k, const AttentionShape &s) {
  Value head = k.remIndex(k.unit(), s.kv.heads);
  Span span = loadSpan(k, k.divIndex(k.unit(), s.kv.heads));
  Softmax sum = attendOver(k, s, span.tile, head, k.index(0), spanTokens(s), blocksOf(k, s, span));

  Results results(k, s);
  Value row = rowOf(k, s, head, span.slot), limit = k.addIndex(row, k.mulIndex(span.tile.count, s.group));
  k.store(sum.acc, results.out, {row, k.index(0)}, limit);
  k.store(sum.m, results.m, {row}, limit);
  k.store(sum.l, results.l, {row}, limit);
  Value counter = k.addIndex(k.mulIndex(span.number, s.kv.heads), head);
  Value last = tile::ArriveOp::create(k.b, k.loc, k.buffer(AttentionShape::kArrivals), counter, span.spans);
  k.when(last, [&] {
    int64_t many = std::max<int64_t>(1, kFoldRows / s.group);
    // One token, as in decoding, wants its few rows only.
    Value two = k.index(2), single = many == 1 ? span.tile.count : arith::MaxSIOp::create(
        k.b, k.loc, arith::SubIOp::create(k.b, k.loc, two, span.tile.count), k.index(0));
    k.loop(k.index(0), single, 1, [&](Value first) { fold(k, s, span, head, first, 1); });
    if (many > 1)
      k.loop(single, span.tile.count, many, [&](Value first) { fold(k, s, span, head, first, many); });
  });
}

void llmc::addSpanArguments(Dispatch &dispatch, SmallVectorImpl<Type> &fieldBuffers, SmallVectorImpl<Type> &resultBuffers,
                            const AttentionShape &s) {
  dispatch.field(rt::Field::KVSpans);
  dispatch.field(rt::Field::Arrivals);
  Type i32 = IntegerType::get(dispatch.context(), 32), f32 = Float32Type::get(dispatch.context());
  fieldBuffers.push_back(MemRefType::get({ShapedType::kDynamic, 10}, i32));
  fieldBuffers.push_back(MemRefType::get({ShapedType::kDynamic}, i32));
  int64_t rows = resultRows(s);
  for (const SmallVector<int64_t> &shape : {SmallVector<int64_t>{rows, s.kv.vDim}, SmallVector<int64_t>{rows}, SmallVector<int64_t>{rows}}) {
    dispatch.scratch.push_back(RankedTensorType::get(shape, f32));
    resultBuffers.push_back(MemRefType::get(shape, f32));
  }
}

void llmc::addSpanVariant(Dispatch &dispatch, const AttentionShape &shape, StringRef name, ArrayRef<Type> buffers) {
  AttentionShape s = shape;
  s.pages = s.headDim > 192 ? 2 : 4;
  s.vParts = 1;
  uint32_t tokens = static_cast<uint32_t>(spanTokens(s));
  dispatch.variant(tokens, tokens, static_cast<uint32_t>(s.kv.heads), (name + "_s" + Twine(tokens)).str(), buffers,
                   [&](KernelBuilder &k) { buildSpans(k, s); }, kSpanRows);
}
