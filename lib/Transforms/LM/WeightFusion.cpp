//===- WeightFusion.cpp - joining the weights of joined projections -------===//
#include "lib/Transforms/LM/WeightFusion.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace llmc::lm;

std::string llmc::lm::whyNotJoinable(LinearOp linear) {
  std::string name = linear.getWeight().str();
  if (!linear.getResult().hasOneUse())
    return "the projection by " + name + " has other users";
  if (linear.getResidual())
    return "the projection by " + name + " has a residual";
  if (linear.getArith())
    return "the projection by " + name + " has its arithmetic decided";
  return {};
}

SmallVector<WeightOp> llmc::lm::joinableWeights(ArrayRef<FlatSymbolRefAttr> names, SymbolTable &weights,
                                                std::string &why) {
  SmallVector<WeightOp> result;
  for (FlatSymbolRefAttr name : names) {
    auto weight = weights.lookup<WeightOp>(name.getAttr());
    if (!weight) {
      why = "there is no weight " + name.getValue().str();
    } else if (!weight.getSources() || weight.getInterleave() != 0 || weight.getLayout()) {
      why = "weight " + name.getValue().str() + " is computed, joined or packed already";
    } else if (!result.empty() && weight.getStorage() != result[0].getStorage()) {
      why = "storages differ: " + result[0].getSymName().str() + " is " +
            stringifyStorage(result[0].getStorage()).str() + ", " + weight.getSymName().str() + " is " +
            stringifyStorage(weight.getStorage()).str();
    } else if (!result.empty() && weight.getShape().drop_front() != result[0].getShape().drop_front()) {
      why = "columns differ: " + result[0].getSymName().str() + " and " + weight.getSymName().str();
    } else {
      result.push_back(weight);
      continue;
    }
    return {};
  }
  return result;
}

WeightOp llmc::lm::joinWeights(PatternRewriter &rewriter, SymbolTable &weights,
                               MutableArrayRef<WeightOp> parts, StringRef name, int64_t interleave) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(parts[0]);
  SmallVector<int64_t> shape(parts[0].getShape());
  shape[0] = 0;
  SmallVector<Attribute> spans;
  for (WeightOp part : parts) {
    shape[0] += part.getShape()[0];
    llvm::append_range(spans, part.getSources()->getValue());
  }
  auto loc = NameLoc::get(rewriter.getStringAttr(name));
  auto joined =
      WeightOp::create(rewriter, loc, name, shape, parts[0].getStorage(), rewriter.getArrayAttr(spans),
                       interleave, ElementsAttr(), StorageAttr(), LayoutAttr(), IntegerAttr(), FloatAttr());
  weights.insert(joined); // renames it where the name is taken
  return joined;
}

std::string llmc::lm::siblingName(StringRef name, StringRef last) {
  size_t dot = name.rfind('.');
  return dot == StringRef::npos ? last.str() : (name.take_front(dot + 1) + last).str();
}

void llmc::lm::eraseUnusedWeights(ModuleOp module) {
  llvm::DenseSet<StringAttr> used;
  module->walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      attribute.getValue().walk([&](SymbolRefAttr symbol) { used.insert(symbol.getRootReference()); });
  });
  for (WeightOp weight : llvm::make_early_inc_range(module.getOps<WeightOp>()))
    if (!used.contains(weight.getSymNameAttr()))
      weight.erase();
}
