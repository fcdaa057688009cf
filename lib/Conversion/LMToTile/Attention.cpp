//===- Attention.cpp - lm.attention to tile -------------------------------===//
//
// Exact attention with online softmax (Milakov, Gimelshein 2018; Dao 2023, alg. 1):
// a unit is one query tile of one KV head. Its rows are the tile's tokens times the
// query heads that share the KV head, so that a block of the cache is read once for
// all of them. The loop over KV blocks carries the running maximum m, the running
// sum l and the accumulator; blocks are at absolute positions and in ascending order
// whatever the tile or the chunk, and a row's masked columns contribute exact zeros:
// that makes the result a function of the token alone (D1).
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace llmc;

static QueryTile loadTile(KernelBuilder &k, const AttentionShape &s, Value number) {
  auto field = [&](int64_t i) {
    return k.toIndex(k.load(k.b.getI32Type(), k.buffer(s.tiles()), {number, k.index(i)}));
  };
  return {field(0), field(1), field(2), field(3)};
}

/// Columns `block * 16 + c` that row `positions[r]` may see.
static Value visible(KernelBuilder &k, const AttentionShape &s, Value positions, Value block, int64_t rows) {
  int64_t width = s.columns();
  SmallVector<int32_t> iota(width);
  std::iota(iota.begin(), iota.end(), 0);
  Value columns = k.spread(k.add(k.ints({width}, iota), k.spread(k.toI32(k.mulIndex(block, 16)), {width})), {rows, width});
  Value row = k.expand(positions, width);
  Value seen = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sle, columns, row);
  if (s.window > 0) {
    Value window = arith::ConstantOp::create(
        k.b, k.loc, DenseElementsAttr::get(k.vecOf({rows, width}, k.b.getI32Type()), static_cast<int32_t>(s.window)));
    Value oldest = arith::SubIOp::create(k.b, k.loc, row, window);
    Value recent = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sgt, columns, oldest);
    seen = arith::AndIOp::create(k.b, k.loc, seen, recent);
  }
  return seen;
}

/// `x` as the left operand of a product.
static Value operandOf(KernelBuilder &k, const AttentionShape &s, Value x) {
  if (!s.narrow() || !getElementTypeOrSelf(x.getType()).isF32())
    return x;
  return arith::TruncFOp::create(k.b, k.loc, cast<VectorType>(x.getType()).clone(k.b.getBF16Type()), x);
}

/// The blocks of one step of the loop as right operands: keys and values.
static std::pair<Value, Value> cacheBlocks(KernelBuilder &k, const AttentionShape &s, Value keys, Value values, Value table,
                                           Value head, Value part) {
  if (!s.gpu) {
    Value page = k.toIndex(k.load(k.b.getI32Type(), k.buffer(s.table()), {table}));
    return {k.loadPacked(s.kv.keys, keys, {page, head, k.index(0)}), k.loadPacked(s.kv.values, values, {page, head, k.index(0)})};
  }
  // Entries past the sequence's end name blocks that exist; their columns are masked.
  Value pages = k.load(k.vecOf({s.pages}, k.b.getI32Type()), k.buffer(s.table()), {table});
  if (s.checks) {
    Value limit = k.load(k.b.getI32Type(), k.buffer(s.blocks()), {k.index(0)});
    tile::CheckOp::create(k.b, k.loc, pages, limit, "block id");
  }
  auto gather = [&](Value view, tile::PackedType type, Value column) -> Value {
    return tile::GatherPackedOp::create(k.b, k.loc, type, view, pages, ValueRange{head, k.index(0), column});
  };
  return {gather(keys, k.packed(s.headDim, s.columns(), tile::Format::BF16NK), k.index(0)),
          gather(values, k.packed(s.columns(), s.vColumns(), tile::Format::BF16KN), k.mulIndex(part, s.vColumns()))};
}

namespace {

/// What a step of the loop needs beside.
struct Operands {
  Value query, keys, values, positions, table, head, part;
  int64_t rows;
};

} // namespace

/// Scores in units of log2, so that softmax becomes exp2; `masked`: not every row sees every column; `starts`: the softmax does
/// (null: it goes on).
static Softmax step(KernelBuilder &k, const AttentionShape &s, const Operands &o, Value block, Softmax old, bool masked, Value starts = {}) {
  int64_t rows = o.rows, vDim = s.vColumns(), width = s.columns();
  double log2Scale = (s.softCap > 0 ? s.softCap : s.scale) / std::log(2.0);
  tile::DotArith arith = s.narrow() ? tile::DotArith::BF16 : tile::DotArith::F32;
  auto [keyBlock, valueBlock] = cacheBlocks(k, s, o.keys, o.values, k.addIndex(o.table, block), o.head, o.part);
  Value zero = k.splat({rows, width}, 0.0), factor = k.splat({rows, width}, log2Scale);
  Value scores = tile::DotOp::create(k.b, k.loc, zero.getType(), o.query, keyBlock, zero, arith);
  if (s.softCap > 0) // on a GPU roughly: by then rounding q and k to bf16 has cost as much
    scores = k.tanh(k.mul(scores, k.splat({rows, width}, s.scale / s.softCap)), /*roughly=*/s.gpu);
  if (!s.gpu)
    scores = k.mul(scores, factor);
  if (masked)
    scores = k.select(visible(k, s, o.positions, block, rows), scores, k.splat({rows, width}, -std::numeric_limits<double>::infinity()));
  Value highest = k.reduce(tile::Reduction::Max, scores);
  if (s.gpu) // scaling is part of the fused multiply-add below
    highest = k.mul(highest, k.splat({rows}, log2Scale));
  if (starts) {
    old.m = k.select(starts, k.splat({rows}, kNoScore), old.m);
    old.l = k.select(starts, k.splat({rows}, 0.0), old.l);
  }
  Softmax next;
  next.m = k.max(old.m, highest);
  Value relative = s.gpu ? k.fma(scores, factor, k.expand(k.mul(next.m, k.splat({rows}, -1.0)), width)) : k.sub(scores, k.expand(next.m, width));
  Value p = math::Exp2Op::create(k.b, k.loc, relative);
  Value alpha = math::Exp2Op::create(k.b, k.loc, k.sub(old.m, next.m));
  if (starts)
    alpha = k.select(starts, k.splat({rows}, 0.0), alpha);
  next.l = k.fma(old.l, alpha, k.reduce(tile::Reduction::Add, p));
  Value scaled = k.mul(old.acc, k.expand(alpha, vDim));
  next.acc = tile::DotOp::create(k.b, k.loc, scaled.getType(), operandOf(k, s, p), valueBlock, scaled, arith);
  return next;
}

PageRange llmc::visibleBlocks(KernelBuilder &k, const AttentionShape &s, const QueryTile &t) {
  Value last = k.addIndex(t.position, t.count); // positions below this are seen by some row
  Value begin = k.index(0), end = k.divIndex(k.addIndex(last, 15), 16);
  if (s.window > 0) { // first block that the first row sees: max(0, position - window + 1) / 16
    Value oldest = arith::SubIOp::create(k.b, k.loc, t.position, k.index(s.window - 1));
    begin = k.mulIndex(k.divIndex(arith::MaxSIOp::create(k.b, k.loc, oldest, k.index(0)), s.columns()), s.pages);
  }
  return {begin, end};
}

/// `sum` put to `total` where `starts` says that a segment ends, else `total`.
static Softmax totalAt(KernelBuilder &k, Value starts, const Softmax &total, const Softmax &sum, int64_t columns) {
  auto branch = scf::IfOp::create(k.b, k.loc, TypeRange(ValueRange{total.m, total.l, total.acc}), starts, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToEnd(branch.thenBlock());
  Softmax both = putTogether(k, total, sum, columns);
  scf::YieldOp::create(k.b, k.loc, ValueRange{both.m, both.l, both.acc});
  k.b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(k.b, k.loc, ValueRange{total.m, total.l, total.acc});
  return {branch.getResult(0), branch.getResult(1), branch.getResult(2)};
}

/// Of blocks in segments: the loop carries the sums of those before beside the running ones.
static Softmax attendSegments(KernelBuilder &k, const AttentionShape &s, const Operands &o, PageRange range, Value mask, const Softmax &none) {
  KernelBuilder::Values state = k.loop(range.begin, range.end, s.pages, {none.m, none.l, none.acc, none.m, none.l, none.acc},
                                       [&](Value block, ValueRange carried) -> KernelBuilder::Values {
    Value starts = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq, arith::AndIOp::create(k.b, k.loc, block, mask).getResult(), k.index(0));
    Softmax sum{carried[3], carried[4], carried[5]};
    Softmax total = totalAt(k, starts, {carried[0], carried[1], carried[2]}, sum, s.vColumns());
    Softmax next = step(k, s, o, block, sum, /*masked=*/true, starts);
    return {total.m, total.l, total.acc, next.m, next.l, next.acc};
  });
  return putTogether(k, {state[0], state[1], state[2]}, {state[3], state[4], state[5]}, s.vColumns());
}

Softmax llmc::attendOver(KernelBuilder &k, const AttentionShape &s, const QueryTile &t, Value head, Value part, int64_t tokens,
                         PageRange range, Value segmentMask) {
  int64_t rows = tokens * s.group, vDim = s.vColumns();
  Value query = k.load(k.vecOf({tokens, s.group, s.headDim}, s.queryElement), k.buffer(s.kQuery),
                       {t.first, k.mulIndex(head, s.group), k.index(0)});
  query = operandOf(k, s, k.reshape(query, {rows, s.headDim}));
  Value keys = tile::ViewOp::create(k.b, k.loc, s.kv.keysType, k.buffer(s.kCache), 0);
  Value values = tile::ViewOp::create(k.b, k.loc, s.kv.valuesType, k.buffer(s.kCache), s.kv.valuesOffset);

  SmallVector<int32_t> offsets;
  for (int64_t row = 0; row < rows; ++row)
    offsets.push_back(row / s.group);
  Value positions = k.add(k.ints({rows}, offsets), k.spread(k.toI32(t.position), {rows}));

  Operands o{query, keys, values, positions, t.table, head, part, rows};
  auto loop = [&](Value from, Value to, ValueRange state, bool masked) {
    return k.loop(from, to, s.pages, state, [&](Value block, ValueRange carried) -> KernelBuilder::Values {
      Softmax next = step(k, s, o, block, {carried[0], carried[1], carried[2]}, masked);
      return {next.m, next.l, next.acc};
    });
  };
  KernelBuilder::Values state{k.splat({rows}, kNoScore), k.splat({rows}, 0.0), k.splat({rows, vDim}, 0.0)};
  if (segmentMask)
    return attendSegments(k, s, o, range, segmentMask, {state[0], state[1], state[2]});
  if (s.splits) { // what every row sees needs no mask: behind what leaves a window, before what is not yet seen
    Value seen = k.mulIndex(k.divIndex(k.addIndex(t.position, 1), s.columns()), s.pages);
    if (s.window > 0) {
      Value last = k.addIndex(t.position, t.count); // positions below this are seen by some row
      Value oldest = arith::MaxSIOp::create(k.b, k.loc, arith::SubIOp::create(k.b, k.loc, last, k.index(s.window)), k.index(0));
      Value entered = k.mulIndex(k.divIndex(k.addIndex(oldest, s.columns() - 1), s.columns()), s.pages);
      entered = arith::MinSIOp::create(k.b, k.loc, entered, range.end);
      state = loop(range.begin, entered, state, /*masked=*/true);
      range.begin = entered;
      seen = arith::MaxSIOp::create(k.b, k.loc, entered, seen);
    }
    state = loop(range.begin, seen, state, /*masked=*/false);
    range.begin = seen;
  }
  state = loop(range.begin, range.end, state, /*masked=*/true);
  return {state[0], state[1], state[2]};
}

/// out[rows, columns of V] of one query tile and KV head; `part`: which of the vParts.
static Value attend(KernelBuilder &k, const AttentionShape &s, const QueryTile &t, Value head, Value part, int64_t tokens) {
  return quotient(k, s, attendOver(k, s, t, head, part, tokens, visibleBlocks(k, s, t)), head, tokens);
}

Value llmc::quotient(KernelBuilder &k, const AttentionShape &s, const Softmax &sum, Value head, int64_t tokens) {
  int64_t rows = tokens * s.group;
  Value total = sum.l;
  if (s.sinks) { // relative to the maximum as every term; should that be infinite, all weights are 0
    auto everyToken = MemRefType::get({ShapedType::kDynamic, s.sinks.getDimSize(1)}, k.f32(), StridedLayoutAttr::get(k.b.getContext(), 0, {0, 1}));
    Value view = tile::ViewOp::create(k.b, k.loc, everyToken, k.buffer(AttentionShape::kSinks), 0);
    Value sinks = k.reshape(k.load(k.vec({tokens, s.group}), view, {k.index(0), k.mulIndex(head, s.group)}), {rows});
    Value relative = k.fma(sinks, k.splat({rows}, 1 / std::log(2.0)), k.mul(sum.m, k.splat({rows}, -1.0)));
    total = k.add(total, math::Exp2Op::create(k.b, k.loc, relative));
  }
  return k.mul(sum.acc, k.expand(k.div(k.splat({rows}, 1.0), total), s.vColumns()));
}

void llmc::writeHeads(KernelBuilder &k, const AttentionShape &s, const QueryTile &t, Value head, Value part, Value out, int64_t tokens) {
  Value limit = k.addIndex(t.first, t.count);
  bool narrow = s.format == lm::Format::BF16;
  Type element = narrow ? Type(k.b.getBF16Type()) : k.f32();
  MemRefType type = headsType(k.b.getContext(), s.heads, s.kv.vDim, element);
  Value heads = tile::ViewOp::create(k.b, k.loc, type, k.buffer(s.result()), 0);
  if (narrow)
    out = operandOf(k, s, out);
  k.store(k.reshape(out, {tokens, s.group, s.vColumns()}), heads,
          {t.first, k.mulIndex(head, s.group), k.mulIndex(part, s.vColumns())}, limit);
  int64_t columns = s.heads * s.kv.vDim;
  if (int64_t rest = pad32(columns) - columns) {
    Value padding = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(k.vecOf({tokens, rest}, element)));
    k.store(padding, k.buffer(s.result()), {t.first, k.index(columns)}, limit);
  }
}

/// Writes out as columns of the group's heads in the op's format.
static void writeResult(KernelBuilder &k, const AttentionShape &s, const QueryTile &t, Value head, Value out, int64_t tokens) {
  int64_t width = s.group * s.kv.vDim;
  Value limit = k.addIndex(t.first, t.count);
  Value column = k.mulIndex(head, width);
  out = k.reshape(out, {tokens, width});
  // Heads of 16 may leave 16 columns of padding; every unit of the row writes the same zeros. (Codes have none.)
  int64_t columns = s.heads * s.kv.vDim, rest = pad32(columns) - columns;
  Value padding = rest ? k.splat({tokens, rest}, 0.0) : Value();
  auto storeWithPadding = [&](llvm::function_ref<Value(Value)> convert) {
    k.store(convert(out), k.buffer(s.result()), {t.first, column}, limit);
    if (padding)
      k.store(convert(padding), k.buffer(s.result()), {t.first, k.index(columns)}, limit);
  };
  switch (s.format) {
  case lm::Format::F32:
    return storeWithPadding([](Value x) { return x; });
  case lm::Format::BF16:
    return storeWithPadding([&](Value x) -> Value {
      return arith::TruncFOp::create(k.b, k.loc, cast<VectorType>(x.getType()).clone(k.b.getBF16Type()), x);
    });
  case lm::Format::Q8:
  case lm::Format::Q16: {
    int64_t groups = width / 32;
    Quantized q = quantize(k, k.reshape(out, {tokens * groups, 32}), s.format);
    k.store(k.reshape(q.codes, {tokens, width}), k.buffer(s.result()), {t.first, column}, limit);
    Value group = k.mulIndex(head, groups);
    k.store(k.reshape(q.scale, {tokens, groups, 1}), k.buffer(s.result() + 1), {t.first, group, k.index(0)}, limit);
    k.store(k.reshape(q.scaledSum, {tokens, groups, 1}), k.buffer(s.result() + 1), {t.first, group, k.index(1)}, limit);
    return;
  }
  case lm::Format::E4M3: // a scale for a whole row, of which this has a part
    break;
  }
  llvm_unreachable("unknown format");
}

/// Rows of two warpgroups.
static constexpr int64_t kWarpgroupRows = 128;

bool llmc::takesWarpgroups(const AttentionShape &s, int64_t rows) {
  return s.gpu && s.queryElement.isBF16() && !s.checks && s.group <= rows && s.headDim <= 256 && s.kv.kDim == s.kv.vDim;
}

/// Of a kernel for warpgroups: all columns of V, longer steps.
static AttentionShape wideShape(AttentionShape s) {
  s.vParts = 1;
  // What the registers of 64 rows leave to scores; quotients by other groups than powers of two take more.
  s.pages = s.headDim > 192 ? (llvm::isPowerOf2_64(s.group) ? 3 : 2) : s.headDim > 128 ? 4 : 8;
  s.splits = true;
  return s;
}

namespace {

struct LowerAttention : OpRewritePattern<lm::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::AttentionOp op, PatternRewriter &rewriter) const override {
    KVGeometry kv = kvGeometry(op, cast<lm::KVType>(op.getCache().getType()));
    int64_t headDim = op.getHeadDim();
    if (headDim % 16 || kv.vDim % 16)
      return op->emitError("expected head_dim to be a multiple of 16, got ") << headDim;
    int64_t heads = columnsOf(op.getQuery()) / headDim;
    bool gpu = isForGPU(op);
    AttentionShape s{heads, heads / kv.heads, headDim, gpu ? gpuPages(headDim) : 1, gpu, op.getScale().convertToDouble(),
                     static_cast<int64_t>(op.getWindow()), getElementTypeOrSelf(op.getQuery().getType()), op.getFormat(), kv};
    s.checks = wantsTrapChecks(op);
    s.softCap = op.getSoftCap() ? op.getSoftCap()->convertToDouble() : 0;
    if (op.getSinks())
      s.sinks = weightType(lookupWeight(op, op.getSinksAttr()));
    s.vParts = gpu && kv.vDim > 128 ? kv.vDim / 128 : 1; // a warp's 16 rows of 256 columns would not fit its registers
    if (gpu && s.scale <= 0)
      return op->emitError("expected a positive scale on a GPU, got ") << s.scale;
    if (gpu && (isCoded(s.format) || kv.vDim % s.vParts || !kv.element.isBF16()))
      return op->emitError("expected a bf16 cache and f32 or bf16 results on a GPU, and v_dim up to 128 or a multiple, got ") << kv.vDim;
    Dispatch dispatch(op, rt::Rows::QueryTiles);
    dispatch.inputs = {op.getQuery(), op.getCache()};
    dispatch.field(rt::Field::BlockTable);
    dispatch.field(rt::Field::QueryTiles);
    MLIRContext *context = op.getContext();
    Type i32 = rewriter.getI32Type();
    SmallVector<Type> buffers{headsType(context, heads, headDim, s.queryElement),
                              MemRefType::get({ShapedType::kDynamic}, rewriter.getI8Type())};
    if (s.sinks) {
      dispatch.weight(op.getSinksAttr());
      buffers.push_back(s.sinks);
    }
    buffers.append({MemRefType::get({ShapedType::kDynamic}, i32), MemRefType::get({ShapedType::kDynamic, 4}, i32)});
    if (s.checks) {
      dispatch.field(rt::Field::NumBlocks);
      buffers.push_back(MemRefType::get({ShapedType::kDynamic}, i32));
    }
    SmallVector<Type> results = formatTypes(context, heads * kv.vDim, s.format);
    s.spans = mayHaveSpans(s);
    if (s.spans)
      addSpanArguments(dispatch, buffers, results, s);
    llvm::append_range(buffers, results);
    std::string base = ("attention_" + Twine(heads) + "_" + Twine(kv.heads) + "x" + Twine(headDim) + "_" + formatName(s.format) +
                        (s.window ? "_w" + Twine(s.window) : Twine("")) + (!gpu && s.narrow() ? "_bf16" : "")).str();
    auto bits = [](double value) { return llvm::utohexstr(llvm::bit_cast<uint32_t>(static_cast<float>(value))); };
    if (static_cast<float>(s.scale) != static_cast<float>(1 / std::sqrt(static_cast<double>(headDim))))
      base += "_scale" + bits(s.scale);
    if (s.softCap > 0)
      base += "_cap" + bits(s.softCap);
    if (s.sinks)
      base += "_sinks";
    auto variant = [&](uint32_t maxRows, uint32_t tokens, const AttentionShape &s) {
      int64_t columns = kv.heads * s.vParts;
      dispatch.variant(maxRows, tokens, columns, base + "_q" + std::to_string(tokens), buffers, [&](KernelBuilder &k) {
        Value column = k.remIndex(k.unit(), columns);
        bool parts = s.vParts > 1;
        Value head = parts ? k.divIndex(column, s.vParts) : column;
        Value part = parts ? k.remIndex(column, s.vParts) : k.index(0);
        Value number = k.divIndex(k.unit(), columns);
        if (s.splits) // later tiles of a sequence see more of it: the longest work first
          number = arith::SubIOp::create(k.b, k.loc, k.rows(), k.addIndex(number, 1));
        QueryTile tile = loadTile(k, s, number);
        Value out = attend(k, s, tile, head, part, tokens);
        gpu ? writeHeads(k, s, tile, head, part, out, tokens) : writeResult(k, s, tile, head, out, tokens);
      });
    };
    if (gpu) {
      // Few tokens a sequence: spans of its cache. Else rows of a tile fill the 16 of a warp, or those of four warps or two
      // warpgroups.
      auto fitting = [&](int64_t rows) { return static_cast<uint32_t>(std::max<int64_t>(1, rows / s.group)); };
      if (s.spans)
        addSpanVariant(dispatch, s, base, buffers);
      else if (fitting(64) > 1)
        variant(kGPUDecodeTokens, 1, s);
      if (takesWarpgroups(s, kWarpgroupRows))
        variant(kAllRows, fitting(kWarpgroupRows), wideShape(s));
      else
        variant(kAllRows, fitting(64), s);
    } else {
      variant(kDecodeQueryTokens, kDecodeQueryTokens, s);
      variant(kAllRows, kPrefillQueryTokens, s);
    }
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateAttentionPatterns(RewritePatternSet &patterns) { patterns.add<LowerAttention>(patterns.getContext()); }

void llmc::splitPartialGroups(func::FuncOp step) {
  step.walk([](lm::AttentionOp op) {
    auto cache = cast<lm::KVType>(op.getCache().getType());
    int64_t heads = columnsOf(op.getQuery()) / static_cast<int64_t>(op.getHeadDim());
    if (!isCoded(op.getFormat()) || (heads / cache.getHeads() * cache.getVDim()) % 32 == 0)
      return;
    OpBuilder b(op);
    auto type = RankedTensorType::get(cast<RankedTensorType>(op.getResult(0).getType()).getShape(), b.getF32Type());
    auto plain = lm::AttentionOp::create(b, op.getLoc(), TypeRange{type}, op->getOperands(), op->getAttrs());
    plain.setFormat(lm::Format::F32);
    auto quantized = lm::QuantizeOp::create(b, op.getLoc(), op.getResult(0).getType(), op.getResult(1).getType(), plain.getResult(0));
    op->replaceAllUsesWith(quantized->getResults());
    op->erase();
  });
}
