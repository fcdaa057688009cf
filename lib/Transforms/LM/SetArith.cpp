//===- SetArith.cpp - the numerics contract of every product --------------===//
//
// The arithmetic follows from the weight's storage alone: never from the number of rows, the ISA or the
// thread count, which may change between runs of one package (DESIGN D1). On a GPU every product is bf16, or e4m3 where
// the weight is: that is what its matrix unit multiplies. On a CPU attention is, too, where no product of the model is more exact.
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMSETARITHPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

Arith defaultArith(Storage storage) {
  switch (storage) {
  case Storage::F32:
  case Storage::F16: // f16 activations would overflow; bf16 ones would waste the weights' mantissa
    return Arith::F32;
  case Storage::BF16:
  case Storage::E4M3: // whose values bf16 holds exactly
    return Arith::BF16;
  default:
    return Arith::Q16_G32;
  }
}

struct LMSetArithPass : llmc::lm::impl::LMSetArithPassBase<LMSetArithPass> {
  using LMSetArithPassBase::LMSetArithPassBase;

  void runOnOperation() override {
    if (compute != "default" && compute != "f32" && compute != "q8") {
      getOperation().emitError() << "expected compute default, f32 or q8, got '" << compute.getValue() << "'";
      return signalPassFailure();
    }
    if (target != "cpu" && (target != "cuda" || compute != "default")) {
      getOperation().emitError() << "expected target cpu, or cuda with compute default, got '" << target.getValue() << "' with '"
                                 << compute.getValue() << "'";
      return signalPassFailure();
    }
    SymbolTable weights(getOperation());
    bool narrow = true;
    auto product = [&](auto op) {
      decide(op, weights);
      narrow &= op.getArith() == Arith::BF16 || op.getArith() == Arith::E4M3 || op.getArith() == Arith::Q8_G32;
    };
    getOperation().walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        product(linear);
      else if (auto gated = dyn_cast<GatedLinearOp>(op))
        product(gated);
    });
    getOperation().walk([&](AttentionOp attention) {
      bool bf16 = cast<KVType>(attention.getCache().getType()).getElement().isBF16();
      if (target == "cuda" || (narrow && bf16))
        attention.setArith(Arith::BF16);
    });
  }

private:
  template <typename Op> void decide(Op op, SymbolTable &weights) {
    if (op.getArith())
      return;
    auto weight = weights.lookup<WeightOp>(op.getWeight());
    if (!weight) // of a nested module, which is none of this pass's; lm-verify-decided reports the op
      return;
    Storage storage = packedStorage(weight);
    constexpr int64_t kStep = 128; // of e4m3, on a GPU
    if (int64_t columns = weight.getShape().back(); target == "cuda" && storage == Storage::E4M3 && columns <= kStep) {
      weight.emitError() << "expected more than " << kStep << " columns of e4m3 on a GPU, got " << columns;
      return signalPassFailure();
    }
    Arith arith = target == "cuda"   ? (storage == Storage::E4M3 ? Arith::E4M3 : Arith::BF16)
                  : compute == "f32" ? Arith::F32
                                     : defaultArith(storage);
    if (compute == "q8" && arith == Arith::Q16_G32)
      arith = Arith::Q8_G32;
    op.setArith(arith);
  }
};

} // namespace
