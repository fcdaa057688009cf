//===- FuseGateUp.cpp - gate, up and their product in one op --------------===//
//
// Rows of gate and up alternate in blocks of 16 in one weight, so that a block of a kernel computes
// both halves of 16 columns and writes only their product: the two wide intermediates never reach memory.
//
// Sound because every sum is unchanged and the activation is applied to the same f32 values.
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/LM/WeightFusion.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMFUSEGATEUPPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

/// Rows per block; the panel of every n16 layout.
constexpr int64_t interleave = 16;

std::string whyNotTogether(LinearOp gate, LinearOp up) {
  if (!gate || !up)
    return "gate or up is not a projection";
  for (LinearOp linear : {gate, up})
    if (std::string why = whyNotJoinable(linear); !why.empty())
      return why;
  if (gate.getInputs() != up.getInputs())
    return "the projections have different inputs";
  if (gate.getBias() || up.getBias())
    return "a projection has a bias";
  int64_t columns = cast<RankedTensorType>(gate.getType()).getDimSize(1);
  if (columns % interleave != 0)
    return std::to_string(columns) + " columns are no multiple of " + std::to_string(interleave);
  return {};
}

struct FuseGateUp : OpRewritePattern<GatedActivationOp> {
  FuseGateUp(MLIRContext *context, SymbolTable &weights) : OpRewritePattern(context), weights(weights) {}

  LogicalResult matchAndRewrite(GatedActivationOp activation, PatternRewriter &rewriter) const override {
    auto gate = activation.getGate().getDefiningOp<LinearOp>(),
         up = activation.getUp().getDefiningOp<LinearOp>();
    std::string why = whyNotTogether(gate, up);
    SmallVector<WeightOp> parts;
    if (why.empty())
      parts = joinableWeights({gate.getWeightAttr(), up.getWeightAttr()}, weights, why);
    if (why.empty() && llvm::any_of(parts, [](WeightOp part) { return part.getSources()->size() != 1; }))
      why = "a weight has several sources";
    if (!why.empty()) {
      remark::missed(activation.getLoc(), remark::RemarkOpts::name("FuseGateUp").category("lm-fuse-gate-up"))
          << remark::reason("{0}", why);
      return rewriter.notifyMatchFailure(activation, why);
    }
    std::string name = siblingName(parts[0].getSymName(), "ffn_gate_up");
    WeightOp weight = joinWeights(rewriter, weights, parts, name, interleave);
    rewriter.replaceOpWithNewOp<GatedLinearOp>(activation, activation.getType(),
                                               activation.getActivationAttr(), gate.getInputs(),
                                               FlatSymbolRefAttr::get(weight.getSymNameAttr()), ArithAttr(),
                                               FormatAttr::get(activation.getContext(), Format::F32));
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
    return success();
  }

private:
  SymbolTable &weights;
};

struct LMFuseGateUpPass : llmc::lm::impl::LMFuseGateUpPassBase<LMFuseGateUpPass> {
  void runOnOperation() override {
    SymbolTable weights(getOperation());
    RewritePatternSet patterns(&getContext());
    populateFuseGateUpPatterns(patterns, weights);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    eraseUnusedWeights(getOperation());
  }
};

} // namespace

void llmc::lm::populateFuseGateUpPatterns(RewritePatternSet &patterns, SymbolTable &weights) {
  patterns.add<FuseGateUp>(patterns.getContext(), weights);
}
