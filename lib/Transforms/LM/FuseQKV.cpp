//===- FuseQKV.cpp - q, k and v in one projection -------------------------===//
//
// One product with the rows of three weights reads its input once and is large enough
// to split over threads where k and v alone are not. Rotation and the cache's write follow it in one op,
// which reads the joint result once.
//
// Sound because every output column's sum is unchanged, and because the append moves nowhere: the new ops
// stand where the append stood, and the query's users come after it.
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/LM/WeightFusion.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMFUSEQKVPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

/// What the pattern matched, or `why` it did not.
struct Projections {
  KVAppendOp append;
  RopeOp queryRope, keyRope;
  LinearOp query, key, value;
  std::string why;
};

std::string whyNotTogether(const Projections &p) {
  auto query = p.query, key = p.key, value = p.value;
  for (LinearOp linear : {query, key, value})
    if (std::string why = whyNotJoinable(linear); !why.empty())
      return why;
  if (query.getInputs() != key.getInputs() || query.getInputs() != value.getInputs())
    return "the projections have different inputs";
  if (bool(query.getBias()) != bool(key.getBias()) || bool(query.getBias()) != bool(value.getBias()))
    return "only some projections have a bias";
  RopeOp queryRope = p.queryRope, keyRope = p.keyRope;
  if (!queryRope.getResult().hasOneUse() || !keyRope.getResult().hasOneUse())
    return "a rotated value has other users";
  if (queryRope.getTable() != keyRope.getTable() || queryRope.getHeadDim() != keyRope.getHeadDim())
    return "q and k are rotated differently";
  auto cache = cast<KVType>(KVAppendOp(p.append).getCache().getType());
  int64_t headDim = queryRope.getHeadDim();
  if (cache.getKDim() != headDim || cache.getVDim() != headDim)
    return "key or value dimension differs from the head dimension";
  return {};
}

/// An attention without any of the parts is none of this pattern's business: `append` stays null.
Projections match(AttentionOp attention) {
  Projections p;
  p.append = attention.getCache().getDefiningOp<KVAppendOp>();
  if (!p.append)
    return p;
  p.queryRope = attention.getQuery().getDefiningOp<RopeOp>();
  p.keyRope = p.append.getKeys().getDefiningOp<RopeOp>();
  if (!p.queryRope || !p.keyRope) {
    p.why = "q or k is not a rotated value";
    return p;
  }
  p.query = p.queryRope.getInput().getDefiningOp<LinearOp>();
  p.key = p.keyRope.getInput().getDefiningOp<LinearOp>();
  p.value = p.append.getValues().getDefiningOp<LinearOp>();
  p.why = p.query && p.key && p.value ? whyNotTogether(p) : "q, k or v is not a projection";
  return p;
}

struct FuseQKV : OpRewritePattern<AttentionOp> {
  FuseQKV(MLIRContext *context, SymbolTable &weights) : OpRewritePattern(context), weights(weights) {}

  LogicalResult matchAndRewrite(AttentionOp attention, PatternRewriter &rewriter) const override {
    Projections p = match(attention);
    if (!p.append)
      return rewriter.notifyMatchFailure(attention, "no append feeds the attention");
    SmallVector<WeightOp> parts, biases;
    if (p.why.empty())
      parts = joinableWeights({p.query.getWeightAttr(), p.key.getWeightAttr(), p.value.getWeightAttr()},
                              weights, p.why);
    if (p.why.empty() && p.query.getBias())
      biases = joinableWeights({p.query.getBiasAttr(), p.key.getBiasAttr(), p.value.getBiasAttr()}, weights,
                               p.why);
    if (!p.why.empty()) {
      remark::missed(attention.getLoc(), remark::RemarkOpts::name("FuseQKV").category("lm-fuse-qkv"))
          << remark::reason("{0}", p.why);
      return rewriter.notifyMatchFailure(attention, p.why);
    }
    rewrite(p, parts, biases, rewriter);
    return success();
  }

private:
  void rewrite(Projections &p, MutableArrayRef<WeightOp> parts, MutableArrayRef<WeightOp> biases,
               PatternRewriter &rewriter) const {
    std::string name = siblingName(parts[0].getSymName(), "attn_qkv");
    WeightOp weight = joinWeights(rewriter, weights, parts, name), bias;
    if (!biases.empty())
      bias = joinWeights(rewriter, weights, biases, name + ".bias");
    rewriter.setInsertionPoint(p.append);
    Type queryType = p.queryRope.getType();
    auto jointType = cast<RankedTensorType>(queryType).clone({ShapedType::kDynamic, weight.getShape()[0]});
    auto joint = LinearOp::create(
        rewriter, NameLoc::get(rewriter.getStringAttr(name)), jointType, p.query.getInputs(),
        /*residual=*/nullptr, FlatSymbolRefAttr::get(weight.getSymNameAttr()),
        bias ? FlatSymbolRefAttr::get(bias.getSymNameAttr()) : FlatSymbolRefAttr(), ArithAttr());
    auto both =
        RopeAppendOp::create(rewriter, p.append.getLoc(), queryType, p.append.getType(), joint.getResult(),
                             p.queryRope.getTable(), p.append.getCache(), p.queryRope.getHeadDimAttr());
    rewriter.replaceOp(p.append, both.getResult());
    rewriter.replaceOp(p.queryRope, both.getQuery());
    for (Operation *op :
         {p.keyRope.getOperation(), p.query.getOperation(), p.key.getOperation(), p.value.getOperation()})
      rewriter.eraseOp(op);
  }

  SymbolTable &weights;
};

struct LMFuseQKVPass : llmc::lm::impl::LMFuseQKVPassBase<LMFuseQKVPass> {
  void runOnOperation() override {
    SymbolTable weights(getOperation());
    RewritePatternSet patterns(&getContext());
    populateFuseQKVPatterns(patterns, weights);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    eraseUnusedWeights(getOperation());
  }
};

} // namespace

void llmc::lm::populateFuseQKVPatterns(RewritePatternSet &patterns, SymbolTable &weights) {
  patterns.add<FuseQKV>(patterns.getContext(), weights);
}
