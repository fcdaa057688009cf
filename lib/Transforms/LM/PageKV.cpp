//===- PageKV.cpp - element and block of the KV cache ---------------------===//
//
// One decision for all layers: the runtime keeps one block table for all of them. Block tables themselves
// never appear in the IR; a paged `!lm.kv` only says how a block is laid out.
//
//===----------------------------------------------------------------------===//
#include "lib/Transforms/LM/StepFunctions.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMPAGEKVPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

struct LMPageKVPass : llmc::lm::impl::LMPageKVPassBase<LMPageKVPass> {
  using LMPageKVPassBase::LMPageKVPassBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    Type type = element == "bf16"  ? Type(BFloat16Type::get(context))
                : element == "f16" ? Type(Float16Type::get(context))
                : element == "f32" ? Type(Float32Type::get(context))
                                   : Type();
    if (!type) {
      getOperation().emitError() << "expected element bf16, f16 or f32, got '" << element.getValue() << "'";
      return signalPassFailure();
    }
    if (block <= 0 || block % 16 != 0) {
      getOperation().emitError() << "expected block to be a positive multiple of 16, got "
                                 << block.getValue();
      return signalPassFailure();
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](KVType kv) -> Type {
      return kv.getBlock() != 0
                 ? kv
                 : KVType::get(context, kv.getHeads(), kv.getKDim(), kv.getVDim(), type, block);
    });
    for (func::FuncOp function : stepFunctions(getOperation()))
      replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                            /*replaceTypes=*/true);
  }
};

} // namespace
