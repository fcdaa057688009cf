//===- VerifyDecided.cpp - closes the decided phase -----------------------===//
#include "lib/Transforms/LM/StepFunctions.h"
#include "llmc/Transforms/LM/Passes.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMVERIFYDECIDEDPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

template <typename Op> LogicalResult verifyProduct(Op op) {
  if (!op.getArith())
    return op.emitOpError() << "expected a decided arith";
  Type element = cast<RankedTensorType>(op.getInputs()[0].getType()).getElementType();
  bool isF32 = inputFormat(*op.getArith()) == Format::F32;
  if (element.isF32() != isF32)
    return op.emitOpError() << "expected inputs in " << stringifyFormat(inputFormat(*op.getArith()))
                            << " for " << stringifyArith(*op.getArith()) << ", got " << element;
  return success();
}

LogicalResult verifyOp(Operation *op) {
  auto undecided = [](Type type) {
    auto kv = dyn_cast<KVType>(type);
    return kv && kv.getBlock() == 0;
  };
  if (llvm::any_of(op->getOperandTypes(), undecided) || llvm::any_of(op->getResultTypes(), undecided))
    return op->emitOpError() << "expected a KV cache with a decided block";
  if (auto linear = dyn_cast<LinearOp>(op))
    return verifyProduct(linear);
  if (auto gated = dyn_cast<GatedLinearOp>(op))
    return verifyProduct(gated);
  return success();
}

LogicalResult verifyWeights(ModuleOp module) {
  SmallVector<WeightOp> weights(module.getOps<WeightOp>());
  auto total = module->getAttrOfType<IntegerAttr>("lm.weights_bytes");
  for (WeightOp weight : weights)
    if (!weight.getLayout())
      return weight.emitOpError() << "expected a layout";
  if (!weights.empty() && !total)
    return module.emitOpError() << "expected the attribute lm.weights_bytes";
  llvm::sort(weights, [](WeightOp a, WeightOp b) { return *a.getOffset() < *b.getOffset(); });
  for (size_t i = 0; i < weights.size(); ++i) {
    uint64_t end = *weights[i].getOffset() + packedBytes(weights[i], *weights[i].getLayout());
    uint64_t limit = i + 1 < weights.size() ? *weights[i + 1].getOffset() : total.getValue().getZExtValue();
    if (end > limit)
      return weights[i].emitOpError() << "expected the packed weight to end by " << limit << ", got " << end;
  }
  return success();
}

struct LMVerifyDecidedPass : llmc::lm::impl::LMVerifyDecidedPassBase<LMVerifyDecidedPass> {
  void runOnOperation() override {
    for (func::FuncOp function : stepFunctions(getOperation())) {
      WalkResult result = function.walk([](Operation *op) {
        return failed(verifyOp(op)) ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
    if (failed(verifyWeights(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
