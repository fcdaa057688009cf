//===- Linear.cpp - lm.linear and lm.gated_linear to tile -----------------===//
//
// One kernel unit computes one panel of 16 output rows of the weight (two panels
// for the gated form) for a block of tokens, looping over register tiles of tokens
// inside, so that a panel is read from memory once. Rows past the last token are
// computed on padding and not stored. Each token's sums are the same chain of
// operations whatever the tile, which is why all variants agree bit for bit (D1).
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;

namespace {

/// The product's shape, as the kernel needs it.
struct Product {
  lm::Arith arith;
  tile::Format format;  // of the weight
  int64_t k, n;         // padded k; result columns (padded)
  unsigned weightBuffer;
};

} // namespace

/// acc + the product over `width` k from step * stepK on.
static Value multiplyStep(KernelBuilder &k, const Product &p, Value panel, Value row, int64_t tokens, int64_t prefetch,
                          Value step, int64_t stepK, int64_t width, Value acc) {
  Value column = k.mulIndex(step, stepK);
  Value record = k.divIndex(column, tile::recordK(p.format));
  Value b = k.loadPacked(k.packed(width, 16, p.format), k.buffer(p.weightBuffer), {panel, record, k.index(0)}, prefetch);
  if (isCoded(lm::inputFormat(p.arith))) {
    Type code = k.b.getIntegerType(p.arith == lm::Arith::Q8_G32 ? 8 : 16);
    Value codes = k.load(k.vecOf({tokens, width}, code), k.buffer(0), {row, column});
    Value scales = k.load(k.vec({tokens, width / 32, 2}), k.buffer(1), {row, k.divIndex(column, 32), k.index(0)});
    return tile::ScaledDotOp::create(k.b, k.loc, acc.getType(), codes, scales, b, acc);
  }
  bool pairwise = p.arith == lm::Arith::BF16_EO32;
  Value a = k.load(k.vecOf({tokens, width}, pairwise ? Type(k.b.getBF16Type()) : k.f32()), k.buffer(0), {row, column});
  return tile::DotOp::create(k.b, k.loc, acc.getType(), a, b, acc, pairwise ? tile::DotArith::BF16_EO32 : tile::DotArith::F32);
}

/// acc[tokens, 16] = one panel's sums for `tokens` tokens from `row` on.
static Value accumulate(KernelBuilder &k, const Product &p, Value panel, Value row, int64_t tokens, int64_t prefetch) {
  // A step is a record of one or two groups of 32, or 32 k of a dense format.
  int64_t stepK = std::max<int64_t>(32, tile::recordK(p.format));
  int64_t steps = p.k / stepK;
  Value acc = k.splat({tokens, 16}, 0.0);
  acc = k.loop(k.index(0), k.index(steps), 1, {acc}, [&](Value step, ValueRange state) -> KernelBuilder::Values {
    return {multiplyStep(k, p, panel, row, tokens, prefetch, step, stepK, stepK, state[0])};
  })[0];
  if (int64_t rest = p.k % stepK) // the last record's first group
    acc = multiplyStep(k, p, panel, row, tokens, prefetch, k.index(steps), stepK, rest, acc);
  return acc;
}

/// The kernel's loops over tokens: register tiles of schedule.tokens, then of schedule.tailTokens.
static void forEachTile(KernelBuilder &k, const LinearSchedule &schedule, int64_t colBlocks,
                        llvm::function_ref<void(Value column, Value row, int64_t tokens)> body) {
  Value column = k.remIndex(k.unit(), colBlocks);
  Value first = k.mulIndex(k.divIndex(k.unit(), colBlocks), schedule.rowBlock);
  if (schedule.rowBlock == 1)
    return body(column, first, 1);
  Value last = k.minIndex(k.addIndex(first, schedule.rowBlock), k.rows());
  Value whole = first;
  if (schedule.tokens > schedule.tailTokens) {
    Value tiles = k.divIndex(arith::SubIOp::create(k.b, k.loc, last, first), schedule.tokens);
    whole = k.addIndex(first, k.mulIndex(tiles, schedule.tokens));
    k.loop(first, whole, schedule.tokens, [&](Value row) { body(column, row, schedule.tokens); });
  }
  k.loop(whole, last, schedule.tailTokens, [&](Value row) { body(column, row, schedule.tailTokens); });
}

static std::string productName(const Product &p, int64_t k, int64_t n) {
  return (lm::stringifyArith(p.arith) + "_" + tile::stringifyFormat(p.format) + "_" + Twine(k) + "x" + Twine(n)).str();
}

namespace {

struct LowerLinear : OpRewritePattern<lm::LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::LinearOp op, PatternRewriter &rewriter) const override {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t n = columnsOf(op.getResult()), kLogical = weight.getShape()[1];
    Dispatch dispatch(op, rowsOf(op.getInputs().front()));
    Product p{*op.getArith(), formatOf(*weight.getLayout()), pad32(kLogical), pad32(n), 0};
    bool residual = !!op.getResidual(), bias = !!op.getBias();
    MLIRContext *context = op.getContext();
    llvm::append_range(dispatch.inputs, op.getInputs());
    SmallVector<Type> buffers = formatTypes(context, kLogical, lm::inputFormat(p.arith));
    if (residual) {
      dispatch.inputs.push_back(op.getResidual());
      buffers.push_back(rowsType(context, n, rewriter.getF32Type()));
    }
    unsigned residualBuffer = buffers.size() - 1;
    p.weightBuffer = buffers.size();
    dispatch.weight(op.getWeightAttr());
    buffers.push_back(weightType(weight));
    unsigned biasBuffer = buffers.size();
    if (bias) {
      dispatch.weight(op.getBiasAttr());
      buffers.push_back(weightType(lookupWeight(op, op.getBiasAttr())));
    }
    unsigned out = buffers.size();
    buffers.push_back(rowsType(context, n, rewriter.getF32Type()));

    int64_t panels = p.n / 16;
    for (const LinearSchedule &schedule : linearSchedules(p.arith)) {
      std::string name = "linear_" + productName(p, kLogical, n) + (bias ? "_bias" : "") + (residual ? "_residual" : "") +
                         "_" + schedule.name.str();
      dispatch.variant(schedule.maxRows, schedule.rowBlock, panels, name, buffers, [&](KernelBuilder &k) {
        forEachTile(k, schedule, panels, [&](Value panel, Value row, int64_t tokens) {
          Value y = accumulate(k, p, panel, row, tokens, schedule.prefetch);
          Value column = k.mulIndex(panel, 16);
          if (bias) {
            Value b = k.load(k.vec({16}), k.buffer(biasBuffer), {k.index(0), column});
            y = k.add(y, k.spread(b, {tokens, 16}));
          }
          if (residual)
            y = k.add(y, k.load(k.vec({tokens, 16}), k.buffer(residualBuffer), {row, column}));
          k.store(y, k.buffer(out), {row, column}, k.rows());
        });
      });
    }
    dispatch.replace(rewriter);
    return success();
  }
};

struct LowerGatedLinear : OpRewritePattern<lm::GatedLinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::GatedLinearOp op, PatternRewriter &rewriter) const override {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t n = columnsOf(op.getResult()), kLogical = weight.getShape()[1];
    Dispatch dispatch(op, rowsOf(op.getInputs().front()));
    Product p{*op.getArith(), formatOf(*weight.getLayout()), pad32(kLogical), n, 0};
    MLIRContext *context = op.getContext();
    llvm::append_range(dispatch.inputs, op.getInputs());
    SmallVector<Type> buffers = formatTypes(context, kLogical, lm::inputFormat(p.arith));
    p.weightBuffer = buffers.size();
    dispatch.weight(op.getWeightAttr());
    buffers.push_back(weightType(weight));
    unsigned out = buffers.size();
    buffers.push_back(rowsType(context, n, rewriter.getF32Type()));

    // n is a multiple of 16 (lm-fuse-gate-up); an odd panel leaves 16 columns of padding to be zeroed.
    int64_t pairs = n / 16;
    bool ragged = n % 32;
    for (const LinearSchedule &schedule : linearSchedules(p.arith)) {
      std::string name = "gated_" + productName(p, kLogical, n) + "_" + schedule.name.str();
      dispatch.variant(schedule.maxRows, schedule.rowBlock, pairs, name, buffers, [&](KernelBuilder &k) {
        forEachTile(k, schedule, pairs, [&](Value pair, Value row, int64_t tokens) {
          Value gatePanel = k.mulIndex(pair, 2);
          Value gate = accumulate(k, p, gatePanel, row, tokens, schedule.prefetch);
          Value up = accumulate(k, p, k.addIndex(gatePanel, 1), row, tokens, schedule.prefetch);
          Value column = k.mulIndex(pair, 16);
          k.store(silu(k, gate, up), k.buffer(out), {row, column}, k.rows());
          if (ragged) // every unit writes the same zeros: no condition, no race in values
            k.store(k.splat({tokens, 16}, 0.0), k.buffer(out), {row, k.index(n)}, k.rows());
        });
      });
    }
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateLinearPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerLinear, LowerGatedLinear>(patterns.getContext());
}
