//===- Sample.cpp - lm.argmax to tile -------------------------------------===//
//
// A unit is one row of logits. Every column of the step's vector keeps its largest logit and
// where it was first seen; then the largest of those, and of the columns that have it the
// lowest id. Padding columns never win: they are -inf, and ids beyond any real one. A row with a number that is not
// finite chooses no token.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace llmc;

namespace {

struct LowerArgmax : OpRewritePattern<lm::ArgmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::ArgmaxOp op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op.getInput()), step = stepColumns(op, columns);
    Dispatch dispatch(op, rowsOf(op.getInput()));
    dispatch.inputs.push_back(op.getInput());
    SmallVector<Type> buffers{rowsType(op.getContext(), columns, rewriter.getF32Type()),
                              MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type())};
    dispatch.variant(kAllRows, 1, 1, "argmax_" + std::to_string(columns), buffers,
                     [&](KernelBuilder &k) { build(k, columns, step); });
    dispatch.replace(rewriter);
    return success();
  }

  static void build(KernelBuilder &k, int64_t columns, int64_t step) {
    Type i32s = k.vecOf({step}, k.b.getI32Type());
    auto ints = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(cast<ShapedType>(i32s), value));
    };
    SmallVector<int32_t> iota(step);
    std::iota(iota.begin(), iota.end(), 0);
    Value none = k.splat({step}, -std::numeric_limits<double>::infinity());
    auto best = k.loop(k.index(0), k.index(pad32(columns)), step, {none, ints(0), ints(0)},
                       [&](Value column, ValueRange state) -> KernelBuilder::Values {
      Value id = k.add(k.ints({step}, iota), k.spread(k.toI32(column), {step}));
      Value real = k.greater(ints(static_cast<int32_t>(columns)), id);
      Value logits = k.load(k.vec({step}), k.buffer(0), {k.unit(), column});
      Value finite = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, k.sub(logits, logits), k.splat({step}, 0.0));
      Value bad = k.select(real, k.select(finite, state[2], ints(1)), state[2]);
      Value x = k.select(real, logits, none);
      Value better = k.greater(x, state[0]); // ties keep the lower id
      return {k.select(better, x, state[0]), k.select(better, id, state[1]), bad};
    });
    Value largest = k.reduce(tile::Reduction::Max, best[0]);
    Value has = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, best[0], k.spread(largest, {step}));
    // The lowest id is the largest of top - id.
    constexpr int32_t top = std::numeric_limits<int32_t>::max();
    Value distance = arith::SubIOp::create(k.b, k.loc, ints(top), best[1]);
    Value furthest = k.reduce(tile::Reduction::Max, k.select(has, distance, ints(0)));
    Value id = arith::SubIOp::create(k.b, k.loc, k.i32(top), furthest);
    Value bad = k.greater(k.reduce(tile::Reduction::Max, best[2]), k.i32(0));
    k.store(k.select(bad, k.i32(-1), id), k.buffer(1), {k.unit()});
  }
};

} // namespace

void llmc::populateSamplePatterns(RewritePatternSet &patterns) { patterns.add<LowerArgmax>(patterns.getContext()); }
