//===- PackWeights.cpp - layout and place of every weight -----------------===//
//
// One copy and one layout per weight serve every kernel of every ISA (DESIGN D4), so that both follow
// from the weight and the kind of machine. Sizes come from llmc/Target/Layout.h, the packer's own.
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/LM/StepFunctions.h"
#include "llmc/Frontend/CodedBlock.h"
#include "llmc/Target/Layout.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMPACKWEIGHTSPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

static Layout layoutOf(WeightOp weight, bool cuda) {
  // Vectors are added or multiplied in f32 whatever their storage; computed tables are small.
  if (weight.getShape().size() == 1 || weight.getValue())
    return Layout::RowsF32;
  Storage storage = packedStorage(weight);
  if (cuda && !isBlockStorage(storage))
    return storage == Storage::E4M3 ? Layout::RowsE4M3 : Layout::RowsBF16;
  // Storages and layouts have the order of their plain enums (lib/Target/Package/WritePackage.cpp asserts it).
  return Layout(llmc::panelLayout(llmc::DType(storage)));
}

uint64_t llmc::lm::packedBytes(WeightOp weight, Layout layout) {
  ArrayRef<int64_t> shape = weight.getShape();
  bool vector = shape.size() == 1; // packed as one row
  return llmc::packedBytes(llmc_layout(layout), vector ? 1 : shape[0], vector ? shape[0] : shape[1]);
}

namespace {

struct LMPackWeightsPass : llmc::lm::impl::LMPackWeightsPassBase<LMPackWeightsPass> {
  using LMPackWeightsPassBase::LMPackWeightsPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (target != "cpu" && target != "cuda") {
      module.emitError() << "expected target cpu or cuda, got '" << target.getValue() << "'";
      return signalPassFailure();
    }
    llvm::SetVector<StringAttr> used;
    auto collect = [&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        attribute.getValue().walk([&](FlatSymbolRefAttr symbol) { used.insert(symbol.getAttr()); });
    };
    for (func::FuncOp function : stepFunctions(module))
      function.walk(collect);
    module.walk(collect); // what only the reference uses comes last

    uint64_t offset = 0;
    SymbolTable symbols(module);
    Builder builder(module.getContext());
    for (StringAttr name : used) {
      auto weight = symbols.lookup<WeightOp>(name);
      if (!weight)
        continue;
      Layout layout = layoutOf(weight, target == "cuda");
      weight.setLayout(layout);
      weight.setOffsetAttr(builder.getI64IntegerAttr(int64_t(offset)));
      offset = llmc::roundUp(offset + packedBytes(weight, layout), 64);
    }
    for (WeightOp weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
      if (!used.contains(weight.getSymNameAttr()))
        weight.erase();
    module->setAttr("lm.weights_bytes", builder.getI64IntegerAttr(int64_t(offset)));
  }
};

} // namespace
