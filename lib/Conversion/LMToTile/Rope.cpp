//===- Rope.cpp - rotary embedding and cache writes to tile ---------------===//

#include "NormedRows.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace llmc;

/// Steps of so many tokens leave a GPU room for a CTA for each head of each.
static constexpr uint32_t kHeadsApart = 64;

/// Rotary pairs of a table [?, 2 * pairs].
static int64_t pairsOf(Value table) { return columnsOf(table) / 2; }

/// Vectors of a register's width divide what is rotated and what passes.
static LogicalResult checkRotation(Operation *op, int64_t headDim, int64_t pairs) {
  if (headDim % 16 || pairs % 8)
    return op->emitError("expected head_dim to be a multiple of 16 and rotary pairs of 8, got head_dim ")
           << headDim << " and " << pairs << " pairs";
  return success();
}

namespace {
/// A head after rotation: y[0, P), y[P, 2P), and the columns that pass through (may be null).
struct Rotated {
  Value low, high, rest;
};
} // namespace

static Rotated rotate(KernelBuilder &k, Value heads, Value table, Value row, Value head, int64_t headDim, int64_t pairs) {
  Value zero = k.index(0), middle = k.index(pairs);
  Value cosines = k.load(k.vec({pairs}), table, {row, zero});
  Value sines = k.load(k.vec({pairs}), table, {row, middle});
  Value low = k.load(k.vec({pairs}), heads, {row, head, zero});
  Value high = k.load(k.vec({pairs}), heads, {row, head, middle});
  Rotated y;
  y.low = k.sub(k.mul(low, cosines), k.mul(high, sines));
  y.high = k.add(k.mul(high, cosines), k.mul(low, sines));
  if (headDim > 2 * pairs)
    y.rest = k.load(k.vec({headDim - 2 * pairs}), heads, {row, head, k.index(2 * pairs)});
  return y;
}

/// Rounded where `out` holds bf16.
static void storeHead(KernelBuilder &k, const Rotated &y, Value out, Value row, Value head, int64_t pairs) {
  bool narrow = cast<MemRefType>(out.getType()).getElementType().isBF16();
  auto store = [&](Value part, int64_t column) {
    if (!part)
      return;
    if (narrow)
      part = arith::TruncFOp::create(k.b, k.loc, cast<VectorType>(part.getType()).clone(k.b.getBF16Type()), part);
    k.store(part, out, {row, head, k.index(column)});
  };
  store(y.low, 0);
  store(y.high, pairs);
  store(y.rest, 2 * pairs);
}

/// Columns of the row from the last head's end on: heads of 16 may leave 16.
static void zeroPadding(KernelBuilder &k, Value out, Value row, int64_t heads, int64_t headDim) {
  Type element = cast<MemRefType>(out.getType()).getElementType();
  if (int64_t rest = pad32(heads * headDim) - heads * headDim) {
    Value zeros = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(k.vecOf({rest}, element)));
    k.store(zeros, out, {row, k.index(heads), k.index(0)});
  }
}

/// Keys are columns of the block's K operand (axis k), values are rows of its V operand (axis n).
static void storeKey(KernelBuilder &k, const KVGeometry &kv, Value view, Value block, Value head, Value token, Value part,
                     int64_t first) {
  SmallVector<Value> indices = kv.indices(k, head);
  indices.insert(indices.begin(), block);
  if (part)
    tile::StoreSliceOp::create(k.b, k.loc, part, view, indices, tile::Axis::K, token, first, kv.keys);
}

static void storeValue(KernelBuilder &k, const KVGeometry &kv, Value view, Value block, Value head, Value token, Value vector) {
  SmallVector<Value> indices = kv.indices(k, head);
  indices.insert(indices.begin(), block);
  tile::StoreSliceOp::create(k.b, k.loc, vector, view, indices, tile::Axis::N, token, 0, kv.values);
}

/// The step's slot for a row's token; body(block, token) runs where it has one.
static void withSlot(KernelBuilder &k, Value slots, Value row, llvm::function_ref<void(Value block, Value token)> body) {
  Value slot = k.load(k.b.getI32Type(), slots, {row});
  Value wanted = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::sge, slot, k.i32(0));
  auto branch = scf::IfOp::create(k.b, k.loc, wanted, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value index = k.toIndex(slot);
  body(k.divIndex(index, 16), k.remIndex(index, 16));
}

namespace {

struct LowerRopeTable : OpRewritePattern<lm::RopeTableOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::RopeTableOp op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op.getResult()), pairs = columns / 2;
    if (failed(checkRotation(op, 16, pairs)))
      return failure();
    Dispatch dispatch(op, rt::Rows::Tokens);
    dispatch.weight(op.getFrequenciesAttr());
    dispatch.field(rt::Field::Positions);
    SmallVector<Type> buffers{weightType(lookupWeight(op, op.getFrequenciesAttr())),
                              MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type()),
                              rowsType(op.getContext(), columns, rewriter.getF32Type())};
    dispatch.variant(kAllRows, 1, 1, "rope_table_" + std::to_string(pairs), buffers, [&](KernelBuilder &k) {
      Value position = k.load(k.b.getI32Type(), k.buffer(1), {k.unit()});
      Value p = k.spread(arith::SIToFPOp::create(k.b, k.loc, k.f32(), position), {pairs});
      Value angle = k.mul(p, k.load(k.vec({pairs}), k.buffer(0), {k.index(0), k.index(0)}));
      k.store(math::CosOp::create(k.b, k.loc, angle), k.buffer(2), {k.unit(), k.index(0)});
      k.store(math::SinOp::create(k.b, k.loc, angle), k.buffer(2), {k.unit(), k.index(pairs)});
      if (int64_t rest = pad32(columns) - columns)
        k.store(k.splat({rest}, 0.0), k.buffer(2), {k.unit(), k.index(columns)});
    });
    dispatch.replace(rewriter);
    return success();
  }
};

struct LowerRope : OpRewritePattern<lm::RopeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::RopeOp op, PatternRewriter &rewriter) const override {
    int64_t headDim = op.getHeadDim(), pairs = pairsOf(op.getTable());
    int64_t columns = columnsOf(op.getInput()), heads = columns / headDim;
    if (failed(checkRotation(op, headDim, pairs)))
      return failure();
    Dispatch dispatch(op, rt::Rows::Tokens);
    dispatch.inputs = {op.getInput(), op.getTable()};
    MLIRContext *context = op.getContext();
    Type view = headsType(context, heads, headDim, rewriter.getF32Type());
    SmallVector<Type> buffers{view, rowsType(context, 2 * pairs, rewriter.getF32Type()), view};
    std::string name = ("rope_" + Twine(heads) + "x" + Twine(headDim) + "_" + Twine(pairs)).str();
    dispatch.variant(kAllRows, 1, 1, name, buffers, [&](KernelBuilder &k) {
      k.loop(k.index(0), k.index(heads), 1, [&](Value head) {
        storeHead(k, rotate(k, k.buffer(0), k.buffer(1), k.unit(), head, headDim, pairs), k.buffer(2), k.unit(), head, pairs);
      });
      zeroPadding(k, k.buffer(2), k.unit(), heads, headDim);
    });
    dispatch.replace(rewriter);
    return success();
  }
};

struct LowerKVAppend : OpRewritePattern<lm::KVAppendOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::KVAppendOp op, PatternRewriter &rewriter) const override {
    KVGeometry kv = kvGeometry(op, cast<lm::KVType>(op.getCache().getType()));
    Dispatch dispatch(op, rt::Rows::Tokens);
    dispatch.inputs = {op.getCache(), op.getKeys(), op.getValues()};
    dispatch.field(rt::Field::Slots);
    MLIRContext *context = op.getContext();
    SmallVector<Type> buffers{MemRefType::get({ShapedType::kDynamic}, rewriter.getI8Type()),
                              headsType(context, kv.heads, kv.kDim, rewriter.getF32Type()),
                              headsType(context, kv.heads, kv.vDim, rewriter.getF32Type()),
                              MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type())};
    std::string name = ("kv_append_" + Twine(kv.heads) + "x" + Twine(kv.kDim)).str();
    dispatch.variant(kAllRows, 1, 1, name, buffers, [&](KernelBuilder &k) {
      Value keys = tile::ViewOp::create(k.b, k.loc, kv.keysType, k.buffer(0), 0);
      Value values = tile::ViewOp::create(k.b, k.loc, kv.valuesType, k.buffer(0), kv.valuesOffset);
      withSlot(k, k.buffer(3), k.unit(), [&](Value block, Value token) {
        k.loop(k.index(0), k.index(kv.heads), 1, [&](Value head) {
          storeKey(k, kv, keys, block, head, token, k.load(k.vec({kv.kDim}), k.buffer(1), {k.unit(), head, k.index(0)}), 0);
          storeValue(k, kv, values, block, head, token, k.load(k.vec({kv.vDim}), k.buffer(2), {k.unit(), head, k.index(0)}));
        });
      });
    });
    dispatch.replace(rewriter);
    return success();
  }
};

/// Arguments for the variants that multiply themselves; the work of this launch alone stays what it was.
static void takeProduct(Dispatch &dispatch, RotatedProduct &product, SmallVectorImpl<Type> &buffers) {
  dispatch.cost = costOf(dispatch);
  takeNormInput(dispatch, product.normed, buffers);
  product.weightBuffer = buffers.size();
  dispatch.weight(product.weight);
  buffers.push_back(weightType(lookupWeight(dispatch.op, product.weight)));
  takeNormWeight(dispatch, product.normed, buffers);
}

/// A unit: 32 pairs of a head of q, k or v, of all rows.
static void rotateProduct(KernelBuilder &k, const RotatedProduct &product, const KVGeometry &kv, int64_t heads, unsigned slots,
                          const LinearSchedule &schedule) {
  int64_t headDim = kv.kDim, units = headDim / (2 * kRotatedPairs), tokens = schedule.tokens;
  Value own = buildNormedRows(k, product.normed, schedule);
  auto weights = cast<MemRefType>(k.buffer(product.weightBuffer).getType());
  auto halvesType = MemRefType::get({heads + 2 * kv.heads, 2, headDim / 32, 16, weights.getDimSize(2)}, weights.getElementType());
  Value halves = tile::ViewOp::create(k.b, k.loc, halvesType, k.buffer(product.weightBuffer), 0);
  int64_t columnBlocks = units * (heads + 2 * kv.heads);
  Value unit = k.remIndex(k.unit(), columnBlocks), row = k.mulIndex(k.divIndex(k.unit(), columnBlocks), schedule.rowBlock);
  Value head = k.divIndex(unit, units), part = k.remIndex(unit, units), pair = k.mulIndex(part, kRotatedPairs);
  KernelBuilder::Values y = accumulateHalves(k, own, product.normed.columns, halves, head, k.mulIndex(part, kRotatedPairs / 16), row, schedule);
  auto table = [&](Value column) { return k.load(k.vec({tokens, kRotatedPairs}), k.buffer(1), {row, column}); };
  Value cosines = table(pair), sines = table(k.addIndex(pair, headDim / 2));
  auto below = [&](int64_t limit) -> Value { return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult, head, k.index(limit)); };
  Value rotates = below(heads + kv.heads), asks = below(heads);
  auto rounded = [&](Value rotated, Value plain) -> Value {
    return arith::TruncFOp::create(k.b, k.loc, k.vecOf({tokens, kRotatedPairs}, k.b.getBF16Type()), k.select(rotates, rotated, plain));
  };
  Value low = rounded(k.sub(k.mul(y[0], cosines), k.mul(y[1], sines)), y[0]);
  Value high = rounded(k.add(k.mul(y[1], cosines), k.mul(y[0], sines)), y[1]);
  Value yes = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  auto notYet = [&](Value x) -> Value { return arith::XOrIOp::create(k.b, k.loc, x, yes); };
  Value query = tile::ViewOp::create(k.b, k.loc, rowsType(k.b.getContext(), heads * headDim, k.b.getBF16Type()), k.buffer(slots + 1), 0);
  Value column = k.addIndex(k.mulIndex(head, headDim), pair), second = k.addIndex(pair, headDim / 2);
  Value secondColumn = k.addIndex(column, headDim / 2);
  Value keys = tile::ViewOp::create(k.b, k.loc, kv.keysType, k.buffer(2), 0);
  Value values = tile::ViewOp::create(k.b, k.loc, kv.valuesType, k.buffer(2), kv.valuesOffset);
  auto append = [&](Value condition, Value view, int64_t before) {
    Value of = arith::SubIOp::create(k.b, k.loc, head, k.index(before));
    k.when(condition, [&] {
      tile::ScatterOp::create(k.b, k.loc, low, view, ValueRange{of, pair}, k.buffer(slots), row, k.rows());
      tile::ScatterOp::create(k.b, k.loc, high, view, ValueRange{of, second}, k.buffer(slots), row, k.rows());
    });
  };
  Value isKey = arith::AndIOp::create(k.b, k.loc, rotates, notYet(asks)), isValue = notYet(rotates);
  k.when(asks, [&] {
    k.store(low, query, {row, column}, k.rows());
    k.store(high, query, {row, secondColumn}, k.rows());
  });
  append(isKey, keys, heads);
  append(isValue, values, heads + kv.heads);
}

/// Variants for few tokens that normalise, multiply, rotate and append.
static void addProductVariants(Dispatch &dispatch, const RotatedProduct &product, const KVGeometry &kv, int64_t heads, StringRef name,
                               ArrayRef<Type> buffers, unsigned slots) {
  LinearSchedule one{"v", 1, 1, 1, 1, 0, 4, 64, product.parts, true};
  uint32_t units = static_cast<uint32_t>((heads + 2 * kv.heads) * kv.kDim / (2 * kRotatedPairs));
  for (const LinearSchedule &schedule : normedSchedules(one, product.normed)) {
    std::string form = (name + "_" + Twine(product.normed.columns) + (product.parts > 1 ? "p2" : "") + "n" + Twine(schedule.maxRows) +
                        epsName(product.normed.eps)).str();
    dispatch.variant(schedule.maxRows, schedule.rowBlock, units, form, buffers, [&](KernelBuilder &k) {
      k.kernel->setAttr("pipelined", k.b.getUnitAttr());
      rotateProduct(k, product, kv, heads, slots, schedule);
    }, LLMC_FUSED);
  }
}

struct LowerRopeAppend : OpRewritePattern<lm::RopeAppendOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::RopeAppendOp op, PatternRewriter &rewriter) const override {
    int64_t headDim = op.getHeadDim(), pairs = pairsOf(op.getTable());
    if (failed(checkRotation(op, headDim, pairs)))
      return failure();
    KVGeometry kv = kvGeometry(op, cast<lm::KVType>(op.getCache().getType()));
    int64_t heads = columnsOf(op.getQuery()) / headDim;
    Dispatch dispatch(op, rt::Rows::Tokens);
    dispatch.inputs = {op.getInput(), op.getTable(), op.getCache()};
    dispatch.field(rt::Field::Slots);
    MLIRContext *context = op.getContext();
    SmallVector<Type> buffers{headsType(context, heads + 2 * kv.heads, headDim, rewriter.getF32Type()),
                              rowsType(context, 2 * pairs, rewriter.getF32Type()),
                              MemRefType::get({ShapedType::kDynamic}, rewriter.getI8Type())};
    std::optional<RotatedProduct> product = rotatedProduct(op.getInput());
    if (product)
      takeProduct(dispatch, *product, buffers);
    unsigned slots = buffers.size(), out = slots + 1;
    buffers.push_back(MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type()));
    buffers.push_back(headsType(context, heads, headDim, getElementTypeOrSelf(op.getQuery().getType())));
    bool narrow = getElementTypeOrSelf(op.getQuery().getType()).isBF16();
    std::string name = ("rope_append_" + Twine(heads) + "_" + Twine(kv.heads) + "x" + Twine(headDim) + "_" + Twine(pairs) +
                        (narrow ? "_bf16" : "") + (product ? "_product" : "")).str();
    auto query = [&](KernelBuilder &k, Value row, Value head) {
      storeHead(k, rotate(k, k.buffer(0), k.buffer(1), row, head, headDim, pairs), k.buffer(out), row, head, pairs);
    };
    auto append = [&](KernelBuilder &k, Value row, llvm::function_ref<void(llvm::function_ref<void(Value)>)> forHeads) {
      Value keys = tile::ViewOp::create(k.b, k.loc, kv.keysType, k.buffer(2), 0);
      Value values = tile::ViewOp::create(k.b, k.loc, kv.valuesType, k.buffer(2), kv.valuesOffset);
      withSlot(k, k.buffer(slots), row, [&](Value block, Value token) {
        forHeads([&](Value head) {
          Rotated y = rotate(k, k.buffer(0), k.buffer(1), row, k.addIndex(head, heads), headDim, pairs);
          storeKey(k, kv, keys, block, head, token, y.low, 0);
          storeKey(k, kv, keys, block, head, token, y.high, pairs);
          storeKey(k, kv, keys, block, head, token, y.rest, 2 * pairs);
          Value v = k.load(k.vec({headDim}), k.buffer(0), {row, k.addIndex(head, heads + kv.heads), k.index(0)});
          storeValue(k, kv, values, block, head, token, v);
        });
      });
    };
    if (product)
      addProductVariants(dispatch, *product, kv, heads, name, buffers, slots);
    if (isForGPU(op)) { // few tokens: a unit is a head, so that no head waits for another's loads
      int64_t units = heads + kv.heads;
      dispatch.variant(kHeadsApart, 1, units, name + "_heads", buffers, [&](KernelBuilder &k) {
        Value row = k.divIndex(k.unit(), units), head = k.remIndex(k.unit(), units), first = k.index(heads);
        auto compared = [&](arith::CmpIPredicate how, Value with) -> Value { return arith::CmpIOp::create(k.b, k.loc, how, head, with); };
        k.when(compared(arith::CmpIPredicate::ult, first), [&] { query(k, row, head); });
        k.when(compared(arith::CmpIPredicate::uge, first), [&] {
          append(k, row, [&](llvm::function_ref<void(Value)> body) { body(arith::SubIOp::create(k.b, k.loc, head, first)); });
        });
        k.when(compared(arith::CmpIPredicate::eq, k.index(0)), [&] { zeroPadding(k, k.buffer(out), row, heads, headDim); });
      });
    }
    dispatch.variant(kAllRows, 1, 1, name, buffers, [&](KernelBuilder &k) {
      k.loop(k.index(0), k.index(heads), 1, [&](Value head) { query(k, k.unit(), head); });
      zeroPadding(k, k.buffer(out), k.unit(), heads, headDim);
      append(k, k.unit(), [&](llvm::function_ref<void(Value)> body) { k.loop(k.index(0), k.index(kv.heads), 1, body); });
    });
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateRopePatterns(RewritePatternSet &patterns) {
  patterns.add<LowerRopeTable, LowerRope, LowerKVAppend, LowerRopeAppend>(patterns.getContext());
}
