//===- QuantizeActivations.cpp - explicit rounding of activations ---------===//
//
// A product's arithmetic says in which form it reads its input; here the form becomes an op, so that an
// input read by several products is rounded once and a producer can take the rounding over
// (lm-fuse-quantize).
//
//===----------------------------------------------------------------------===//
#include "dialects/LM/LM.h"
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMQUANTIZEACTIVATIONSPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

struct LMQuantizeActivationsPass : llmc::lm::impl::LMQuantizeActivationsPassBase<LMQuantizeActivationsPass> {
  void runOnOperation() override {
    forms.clear();
    getOperation().walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        round(linear);
      else if (auto gated = dyn_cast<GatedLinearOp>(op))
        round(gated);
      else if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getArith() == Arith::BF16 && isF32(attention.getQuery()))
        attention.getQueryMutable().assign(formOf(attention.getQuery(), Format::BF16).front());
    });
  }

private:
  static bool isF32(Value rows) { return getElementTypeOrSelf(rows.getType()).isF32(); }

  template <typename Op> void round(Op op) {
    if (!op.getArith())
      return;
    Format format = inputFormat(*op.getArith());
    Value input = op.getInputs()[0];
    if (format == Format::F32 || !isF32(input))
      return;
    op.getInputsMutable().assign(formOf(input, format));
  }

  /// `input` in `format`, made once, right after it is computed.
  ValueRange formOf(Value input, Format format) {
    Operation *&form = forms[{input, unsigned(format)}];
    if (form)
      return form->getResults();
    OpBuilder builder(input.getContext());
    builder.setInsertionPointAfterValue(input);
    SmallVector<Type> types = formattedTypes(cast<RankedTensorType>(input.getType()), format);
    // What writes parts of a row cannot know its largest value; it writes bf16, half as much to read again.
    if (format == Format::E4M3 && isa_and_nonnull<GatedLinearOp, AttentionOp>(input.getDefiningOp())) {
      Value narrow = formOf(input, Format::BF16).front();
      builder.setInsertionPointAfterValue(narrow);
      SmallVector<Type> types = formattedTypes(cast<RankedTensorType>(input.getType()), format);
      Operation *&made = forms[{input, unsigned(format)}]; // the map may have moved
      made = QuantizeOp::create(builder, nameOfForm(input, format, builder), types[0], types[1], narrow);
      return made->getResults();
    }
    bool codes = format != Format::BF16;
    Location loc = nameOfForm(input, format, builder);
    form = codes ? QuantizeOp::create(builder, loc, types[0], types[1], input).getOperation()
                 : RoundOp::create(builder, loc, types[0], input).getOperation();
    return form->getResults();
  }

  static Location nameOfForm(Value input, Format format, OpBuilder &builder) {
    StringRef source = input.getDefiningOp() ? nameOf(input.getDefiningOp()) : StringRef();
    return source.empty() ? input.getLoc() : NameLoc::get(builder.getStringAttr(source + "." + stringifyFormat(format)));
  }

  llvm::DenseMap<std::pair<Value, unsigned>, Operation *> forms;
};

} // namespace
