//===- QuantizeWeights.cpp - matrices of the layers to e4m3 ---------------===//
//
// Says that packing quantises a weight: from here on it counts as e4m3, whatever its file stores. Only weights that products
// read, and only those of layers: embedding and head decide on single tokens, and what quantises models leaves them as they
// are (llm-compressor, transformers). The codes are the packer's (lib/Target/Packing), which sees the rows.
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMQUANTIZEWEIGHTSPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

struct LMQuantizeWeightsPass : llmc::lm::impl::LMQuantizeWeightsPassBase<LMQuantizeWeightsPass> {
  using LMQuantizeWeightsPassBase::LMQuantizeWeightsPassBase;

  void runOnOperation() override {
    if (to != "fp8") {
      getOperation().emitError() << "expected fp8 to quantise weights to, got '" << to.getValue() << "'";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    WalkResult result = getOperation().walk([&](Operation *op) {
      FlatSymbolRefAttr name;
      if (auto linear = dyn_cast<LinearOp>(op))
        name = linear.getWeightAttr();
      else if (auto gated = dyn_cast<GatedLinearOp>(op))
        name = gated.getWeightAttr();
      auto weight = name ? symbols.lookup<WeightOp>(name.getAttr()) : WeightOp();
      if (!weight || layerOf(weight.getSymName()) < 0 || packedStorage(weight) == Storage::E4M3)
        return WalkResult::advance();
      if (isBlockStorage(weight.getStorage())) {
        weight.emitError() << "expected f32, f16, bf16 or e4m3 to quantise to fp8, got " << stringifyStorage(weight.getStorage());
        return WalkResult::interrupt();
      }
      weight.setQuantize(Storage::E4M3);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
