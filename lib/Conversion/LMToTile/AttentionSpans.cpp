//===- AttentionSpans.cpp - few queries, their context in segments --------===//
//
// Few query tokens and a long context leave a card idle if a unit goes through all of it, and long units of many sequences fill
// it. So a context is cut into segments (llmc_kv_span in abi.h), and a unit is one segment, or a group of them, of a query tile
// and KV head (FlashDecoding: Dao et al. 2023). Inside a unit the softmax starts anew with every segment, whose sums are then put
// to those of the group so far; units that are not all of a context leave theirs in memory, where the last unit of a tile and head
// to finish puts them together (found by a counter as in Stream-K: Osama et al. 2023). Up to 64 rows, tokens times query heads of the KV head, cost hardly more than
// one: the cache is what is read.
//
// Segments and groups are a function of a token's position, are put together from the oldest to the newest whatever the units
// are, and a segment that a token does not see changes nothing (its weight is exactly 0). So a token's bits do not depend on the
// tile, on other tokens or sequences of the step, or on the card.
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Schedule.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace llmc;

static constexpr int64_t kRows = 64;     // of a warpgroup
static constexpr int64_t kFoldRows = 16; // that are put together at a time where a tile has more tokens than one
static constexpr int64_t kWide = 129;    // columns of a head from where on there are no registers for the sums of a group

/// Tokens whose parts there is room for, each with `count` places a span: a step with more takes another variant.
/// At segments of 256 tokens that is a million tokens of context with one query token each.
static constexpr int64_t kSpanRows = 4096;

/// Tiles of a sequence's new tokens at most, where units may be groups: more fill a card without spans.
static constexpr int64_t kMostTiles = 8;

bool llmc::mayHaveSpans(const AttentionShape &s) { return takesWarpgroups(s, kRows); }

int64_t llmc::spanTokens(const AttentionShape &s) { return kRows / s.group; }

/// Rows behind the last may be read with them.
static int64_t resultRows(const AttentionShape &s) { return s.kv.heads * s.group * kSpanRows + kRows; }

namespace {

/// The fields of this unit's llmc_kv_span.
struct Span {
  QueryTile tile;
  Value begin, end, slot, firstSlot, spans, number, segment;
};

/// The buffers behind the result.
struct Results {
  Value out, m, l;
  Results(KernelBuilder &k, const AttentionShape &s)
      : out(k.buffer(s.result() + 1)), m(k.buffer(s.result() + 2)), l(k.buffer(s.result() + 3)) {}
};

} // namespace

static Span loadSpan(KernelBuilder &k, const AttentionShape &s, Value number) {
  auto field = [&](int64_t i) {
    return k.toIndex(k.load(k.b.getI32Type(), k.buffer(s.kvSpans()), {number, k.index(i)}));
  };
  return {{field(0), field(1), field(2), field(3)}, field(4), field(5), field(6), field(7), field(8), field(9), field(10)};
}

/// The span's blocks, without those before a window; never none, since a pipeline has a first step (which is then masked).
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

Softmax llmc::putTogether(KernelBuilder &k, const Softmax &older, const Softmax &newer, int64_t columns) {
  Value m = k.max(older.m, newer.m);
  Value old = math::Exp2Op::create(k.b, k.loc, k.sub(older.m, m)), weight = math::Exp2Op::create(k.b, k.loc, k.sub(newer.m, m));
  Value acc = k.fma(newer.acc, k.expand(weight, columns), k.mul(older.acc, k.expand(old, columns)));
  return {m, k.fma(newer.l, weight, k.mul(older.l, old)), acc};
}

/// The parts of `tokens` tokens from token `first` of the tile on, put together and written. Parts that are segments are taken group
/// by group; those that are groups are fewer than make one, which gives the same.
static void fold(KernelBuilder &k, const AttentionShape &s, const Span &span, Value head, Value first, int64_t tokens) {
  int64_t rows = tokens * s.group, columns = s.kv.vDim;
  // Parts that are loaded side by side: 128 registers of each of 128 threads, far fewer where columns or rows must be masked.
  int64_t registers = columns % 32 || rows % 4 ? 16 : 128, each = llvm::divideCeil(rows, 4) * llvm::divideCeil(columns, 32);
  int64_t batch = llvm::bit_floor<uint64_t>(static_cast<uint64_t>(std::clamp<int64_t>(registers / each, 1, LLMC_KV_GROUP)));
  Results results(k, s);
  Value row = rowOf(k, s, head, k.addIndex(span.firstSlot, first)), stride = k.mulIndex(span.tile.count, s.group);
  Value newest = k.addIndex(span.spans, -1);
  auto addParts = [&](Value from, Softmax sum) {
    SmallVector<Softmax> parts;
    for (int64_t i = 0; i < batch; ++i) {
      Value place = k.addIndex(row, arith::MulIOp::create(k.b, k.loc, k.minIndex(k.addIndex(from, i), newest), stride).getResult());
      parts.push_back({k.load(k.vec({rows}), results.m, {place}), k.load(k.vec({rows}), results.l, {place}),
                       k.load(k.vec({rows, columns}), results.out, {place, k.index(0)})});
    }
    for (auto [i, part] : llvm::enumerate(parts)) { // what is no part has no score, and the weight of one that no token sees
      Value exists = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, k.addIndex(from, static_cast<int64_t>(i)), span.spans);
      part.m = k.select(exists, part.m, k.splat({rows}, kNoScore));
      part.l = k.select(exists, part.l, k.splat({rows}, 0.0));
      sum = putTogether(k, sum, part, columns);
    }
    return sum;
  };
  KernelBuilder::Values none{k.splat({rows}, kNoScore), k.splat({rows}, 0.0), k.splat({rows, columns}, 0.0)};
  auto asValues = [](const Softmax &sum) { return KernelBuilder::Values{sum.m, sum.l, sum.acc}; };
  KernelBuilder::Values state = k.loop(k.index(0), span.spans, LLMC_KV_GROUP, none, [&](Value from, ValueRange total) {
    Value to = k.minIndex(k.addIndex(from, LLMC_KV_GROUP), span.spans);
    KernelBuilder::Values group = k.loop(from, to, batch, none, [&](Value from, ValueRange sum) {
      return asValues(addParts(from, {sum[0], sum[1], sum[2]}));
    });
    return asValues(putTogether(k, {total[0], total[1], total[2]}, {group[0], group[1], group[2]}, columns));
  });
  QueryTile rest{k.addIndex(span.tile.first, first), arith::SubIOp::create(k.b, k.loc, span.tile.count, first), {}, {}};
  writeHeads(k, s, rest, head, k.index(0), quotient(k, s, {state[0], state[1], state[2]}, head, tokens), tokens);
}

static void foldTile(KernelBuilder &k, const AttentionShape &s, const Span &span, Value head) {
  int64_t many = std::max<int64_t>(1, kFoldRows / s.group);
  // One token, as in decoding, wants its few rows only.
  Value two = k.index(2), single = many == 1 ? span.tile.count : arith::MaxSIOp::create(
      k.b, k.loc, arith::SubIOp::create(k.b, k.loc, two, span.tile.count), k.index(0));
  k.loop(k.index(0), single, 1, [&](Value first) { fold(k, s, span, head, first, 1); });
  if (many > 1)
    k.loop(single, span.tile.count, many, [&](Value first) { fold(k, s, span, head, first, many); });
}

/// The unit's sums, written as what they are, or left in memory, where the last unit of the tile and head puts them together.
static void writeSpan(KernelBuilder &k, const AttentionShape &s, const Span &span, Value head, const Softmax &sum) {
  int64_t tokens = spanTokens(s);
  Value only = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, span.spans, k.index(1));
  auto branch = scf::IfOp::create(k.b, k.loc, only, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPoint(branch.thenBlock()->getTerminator());
  writeHeads(k, s, span.tile, head, k.index(0), quotient(k, s, sum, head, tokens), tokens);
  k.b.setInsertionPoint(branch.elseBlock()->getTerminator());
  Results results(k, s);
  Value row = rowOf(k, s, head, span.slot), limit = k.addIndex(row, k.mulIndex(span.tile.count, s.group));
  k.store(sum.acc, results.out, {row, k.index(0)}, limit);
  k.store(sum.m, results.m, {row}, limit);
  k.store(sum.l, results.l, {row}, limit);
  Value counter = k.addIndex(k.mulIndex(span.number, s.kv.heads), head);
  Value last = tile::ArriveOp::create(k.b, k.loc, k.buffer(s.arrivals()), counter, span.spans);
  k.when(last, [&] { foldTile(k, s, span, head); });
}

static void buildSpans(KernelBuilder &k, const AttentionShape &s) {
  Value head = k.remIndex(k.unit(), s.kv.heads);
  Span span = loadSpan(k, s, k.divIndex(k.unit(), s.kv.heads));
  bool grouped = s.headDim < kWide;
  // Blocks of a segment, less one: a power of two.
  Value mask = grouped ? k.addIndex(k.divIndex(span.segment, 16), -1) : Value();
  Softmax sum = attendOver(k, s, span.tile, head, k.index(0), spanTokens(s), blocksOf(k, s, span), mask);
  writeSpan(k, s, span, head, sum);
}

void llmc::addSpanArguments(Dispatch &dispatch, SmallVectorImpl<Type> &fieldBuffers, SmallVectorImpl<Type> &resultBuffers,
                            const AttentionShape &s) {
  dispatch.field(rt::Field::KVSpans);
  dispatch.field(rt::Field::Arrivals);
  Type i32 = IntegerType::get(dispatch.context(), 32), f32 = Float32Type::get(dispatch.context());
  fieldBuffers.push_back(MemRefType::get({ShapedType::kDynamic, sizeof(llmc_kv_span) / 4}, i32));
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
  bool grouped = s.headDim < kWide;
  uint32_t tokens = static_cast<uint32_t>(spanTokens(s));
  dispatch.variant(static_cast<uint32_t>(grouped ? kMostTiles : 1) * tokens, tokens, static_cast<uint32_t>(s.kv.heads), (name + "_s" + Twine(tokens)).str(), buffers,
                   [&](KernelBuilder &k) { buildSpans(k, s); }, kSpanRows | (grouped ? LLMC_SPAN_GROUPS : 0));
}
