//===- FuseQuantize.cpp - producers that write the form their user wants --===//
//
// A normalisation or an attention holds a row when it is done with it; writing codes instead of f32
// saves one pass over the row and three quarters of its bytes. A gated product of bf16 holds elements, which is enough
// for bf16: saved is a pass over the widest activation of a layer.
//
// Sound because the format is defined as the op's f32 result followed by the very rounding of lm.quantize or
// lm.round.
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMFUSEQUANTIZEPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

template <typename RoundingOp> struct FuseQuantize : OpRewritePattern<RoundingOp> {
  using OpRewritePattern<RoundingOp>::OpRewritePattern;

  static Format formatOf(RoundingOp rounding) {
    if (std::is_same_v<RoundingOp, RoundOp>)
      return Format::BF16;
    Type element = getElementTypeOrSelf(rounding->getResult(0));
    return isa<Float8E4M3FNType>(element) ? Format::E4M3 : element.isInteger(16) ? Format::Q16 : Format::Q8;
  }

  LogicalResult matchAndRewrite(RoundingOp rounding, PatternRewriter &rewriter) const override {
    Value input = rounding.getInput();
    Format format = formatOf(rounding);
    Operation *producer = input.getDefiningOp();
    std::string why;
    if (!canWrite(producer, format))
      why = "the producer cannot write " + stringifyFormat(format).str();
    else if (!input.hasOneUse())
      why = "the f32 value of " + producer->getName().getStringRef().str() + " has other users";
    if (!why.empty()) {
      remark::missed(rounding.getLoc(), remark::RemarkOpts::name("FuseQuantize").category("lm-fuse-quantize"))
          << remark::reason("{0}", why);
      return rewriter.notifyMatchFailure(rounding, why);
    }
    rewriter.setInsertionPoint(producer);
    SmallVector<Type> types = formattedTypes(cast<RankedTensorType>(input.getType()), format);
    if (auto gated = dyn_cast<GatedLinearOp>(producer))
      rewriter.replaceOp(rounding, GatedLinearOp::create(rewriter, gated.getLoc(), types[0], gated.getActivationAttr(),
                                                         gated.getInputs(), gated.getWeightAttr(), gated.getArithAttr(),
                                                         FormatAttr::get(gated.getContext(), format)));
    else if (auto rope = dyn_cast<RopeAppendOp>(producer))
      rewriter.replaceOp(rounding, rewriteRope(rope, types[0], rewriter));
    else if (auto norm = dyn_cast<RMSNormOp>(producer))
      rewriter.replaceOp(rounding, RMSNormOp::create(rewriter, norm.getLoc(), types, norm.getInput(),
                                                     norm.getWeightAttr(), norm.getEpsAttr(),
                                                     FormatAttr::get(norm.getContext(), format)));
    else
      rewriter.replaceOp(rounding, rewriteAttention(cast<AttentionOp>(producer), types, format, rewriter));
    rewriter.eraseOp(producer);
    return success();
  }

private:
  /// A CPU's products keep f32: there the rounding is a small part of a kernel that reads the row again.
  static bool canWrite(Operation *producer, Format format) {
    if (auto gated = dyn_cast_or_null<GatedLinearOp>(producer))
      return format == Format::BF16 && llvm::is_contained({Arith::BF16, Arith::BF16_EO32, Arith::E4M3}, gated.getArith());
    if (format == Format::E4M3) // a scale for the whole row
      return isa_and_nonnull<RMSNormOp>(producer);
    return isa_and_nonnull<RMSNormOp, AttentionOp>(producer) || (isa_and_nonnull<RopeAppendOp>(producer) && format == Format::BF16);
  }

  /// The new query; the cache's users get the new cache.
  static Value rewriteRope(RopeAppendOp op, Type query, PatternRewriter &rewriter) {
    auto narrow = RopeAppendOp::create(rewriter, op.getLoc(), query, op.getResult().getType(), op.getInput(), op.getTable(), op.getCache(),
                                       op.getHeadDimAttr());
    rewriter.replaceAllUsesWith(op.getResult(), narrow.getResult());
    return narrow.getQuery();
  }

  static AttentionOp rewriteAttention(AttentionOp op, ArrayRef<Type> types, Format format,
                                      PatternRewriter &rewriter) {
    return AttentionOp::create(rewriter, op.getLoc(), types, op.getQuery(), op.getCache(),
                               op.getHeadDimAttr(), op.getScaleAttr(), op.getWindowAttr(), FormatAttr::get(op.getContext(), format),
                               op.getArithAttr(), op.getSoftCapAttr(), op.getSinksAttr());
  }
};

struct LMFuseQuantizePass : llmc::lm::impl::LMFuseQuantizePassBase<LMFuseQuantizePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFuseQuantizePatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void llmc::lm::populateFuseQuantizePatterns(RewritePatternSet &patterns) {
  patterns.add<FuseQuantize<QuantizeOp>, FuseQuantize<RoundOp>>(patterns.getContext());
}
