//===- SampleOnDevice.cpp - greedy ids as a result of the step ------------===//
//
// A row of logits is some hundred kilobytes that would cross the bus for each token only to find its largest
// value. The ids come in addition: a row with another sampler is copied as before.
//
// Sound because the host's sampler takes the largest logit, and the lowest id on ties, where a row is greedy and nothing
// changes its logits (llmc_sampler_v1).
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMSAMPLEONDEVICEPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

bool isIds(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 && tensor.getElementType().isInteger(32);
}

struct LMSampleOnDevicePass : llmc::lm::impl::LMSampleOnDevicePassBase<LMSampleOnDevicePass> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step) {
      getOperation().emitError("expected a func @step");
      return signalPassFailure();
    }
    auto end = dyn_cast<func::ReturnOp>(step.front().getTerminator());
    auto logits = end && end.getNumOperands() ? dyn_cast<RankedTensorType>(end.getOperand(0).getType()) : RankedTensorType();
    if (!logits || logits.getRank() != 2 || !logits.getElementType().isF32()) {
      step.emitOpError("expected logits tensor<?xVxf32> as the first result");
      return signalPassFailure();
    }
    if (llvm::any_of(end.getOperandTypes(), isIds))
      return;
    OpBuilder b(end);
    auto type = RankedTensorType::get({logits.getDimSize(0)}, b.getI32Type());
    Location loc = NameLoc::get(b.getStringAttr("sampled_ids"));
    end.getOperandsMutable().append(SampleOp::create(b, loc, type, end.getOperand(0)).getResult());
    FunctionType old = step.getFunctionType();
    step.setFunctionType(b.getFunctionType(old.getInputs(), end.getOperandTypes()));
  }
};

} // namespace
