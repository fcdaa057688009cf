//===- SplitPhases.cpp - a step of its own for the tokens of prompts ------===//
//
// Reading a prompt is arithmetic, generating is memory traffic: what multiplies fastest differs. So the tokens of prompts get a function
// of their own, @prompt, a copy of @step in which the layers' products have the arithmetic of matrix units; the runtime runs each token
// through the one that its place in its sequence decides. The number of tokens in a step plays no part, so chunks and batches change no bit.
//
// Only weights that are exact in bf16, or codes, whose rounding is far below what their quantisation lost: f32 and f16 keep f32.
// Attention and whatever sees rows of logits (a few of a prompt's) is the same in both.
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMSPLITPHASESPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

struct LMSplitPhasesPass : llmc::lm::impl::LMSplitPhasesPassBase<LMSplitPhasesPass> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step) {
      getOperation().emitError("expected a func @step");
      return signalPassFailure();
    }
    SymbolTable weights(getOperation());
    func::FuncOp prompt = step.clone();
    prompt.setSymName("prompt");
    OpBuilder b(step->getContext());
    b.setInsertionPointAfter(step);
    b.insert(prompt);
    prompt.walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        decide(linear, weights);
      else if (auto gated = dyn_cast<GatedLinearOp>(op))
        decide(gated, weights);
    });
  }

private:
  template <typename Op> void decide(Op op, SymbolTable &weights) {
    auto weight = weights.lookup<WeightOp>(op.getWeight());
    if (!weight || layerOf(weight.getSymName()) < 0)
      return;
    Arith arith = op.getArith().value_or(Arith::F32);
    bool codes = arith == Arith::Q8_G32 || arith == Arith::Q16_G32;
    if (codes || (arith == Arith::BF16 && packedStorage(weight) == Storage::BF16))
      op.setArith(Arith::BF16_EO32);
  }
};

} // namespace
