//===- FuseResidual.cpp - the residual sum in the projection before it ----===//
//
// The projection's kernel holds its result in registers when the residual is added, which saves writing
// and reading it once.
//
// Sound because a linear op adds its residual last, after the bias, and IEEE addition is commutative.
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMFUSERESIDUALPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

std::string whyNot(LinearOp linear) {
  if (!linear)
    return "no summand is a projection";
  if (!linear.getResult().hasOneUse())
    return "the projection by " + linear.getWeight().str() + " has other users";
  if (linear.getResidual())
    return "the projection by " + linear.getWeight().str() + " has a residual already";
  return {};
}

struct FuseResidual : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    Value residual = add.getLhs();
    auto linear = add.getRhs().getDefiningOp<LinearOp>();
    std::string why = whyNot(linear);
    if (!why.empty()) {
      if (auto other = add.getLhs().getDefiningOp<LinearOp>(); whyNot(other).empty()) {
        linear = other;
        residual = add.getRhs();
        why.clear();
      }
    }
    if (!why.empty()) {
      remark::missed(add.getLoc(), remark::RemarkOpts::name("FuseResidual").category("lm-fuse-residual"))
          << remark::reason("{0}", why);
      return rewriter.notifyMatchFailure(add, why);
    }
    rewriter.replaceOpWithNewOp<LinearOp>(add, add.getType(), linear.getInputs(), residual,
                                          linear.getWeightAttr(), linear.getBiasAttr(),
                                          linear.getArithAttr());
    rewriter.eraseOp(linear);
    return success();
  }
};

struct LMFuseResidualPass : llmc::lm::impl::LMFuseResidualPassBase<LMFuseResidualPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFuseResidualPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void llmc::lm::populateFuseResidualPatterns(RewritePatternSet &patterns) {
  patterns.add<FuseResidual>(patterns.getContext());
}
