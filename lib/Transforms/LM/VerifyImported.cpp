//===- VerifyImported.cpp - closes the import phase -----------------------===//
#include "lib/Transforms/LM/StepFunctions.h"
#include "llmc/Transforms/LM/Passes.h"

namespace llmc::lm {
#define GEN_PASS_DEF_LMVERIFYIMPORTEDPASS
#include "llmc/Transforms/LM/Passes.h.inc"
} // namespace llmc::lm

using namespace mlir;
using namespace llmc::lm;

namespace {

LogicalResult verifyUndecided(Operation *op) {
  if (op->hasAttr("arith"))
    return op->emitOpError() << "expected no arith before lm-set-arith";
  if (auto format = op->getAttrOfType<FormatAttr>("format"); format && format.getValue() != Format::F32)
    return op->emitOpError() << "expected format f32 before lm-fuse-quantize, got "
                             << stringifyFormat(format.getValue());
  if (isa<QuantizeOp, RoundOp>(op))
    return op->emitOpError() << "expected no rounding of activations before lm-quantize-activations";
  return success();
}

/// A cache is a buffer updated in place: one append, all reads from the appended value.
LogicalResult verifyCache(Value cache) {
  if (cast<KVType>(cache.getType()).getBlock() != 0)
    return emitError(cache.getLoc()) << "expected an undecided block (0) before lm-page-kv, got "
                                     << cache.getType();
  Operation *writer = nullptr, *returner = nullptr;
  SmallVector<Operation *> users(cache.getUsers());
  for (Operation *user : llvm::reverse(users)) { // the use list is newest first
    Operation *&only = isa<func::ReturnOp>(user) ? returner : writer;
    if (isa<AttentionOp>(user)) {
      if (!cache.getDefiningOp())
        return user->emitOpError()
               << "expected a cache with the step's keys and values appended, got an argument";
      continue;
    }
    if (!isa<KVAppendOp, RopeAppendOp, func::ReturnOp>(user))
      return user->emitOpError() << "expected a cache to be appended to, read by attention or returned";
    if (only)
      return user->emitOpError() << "expected one use of the cache as a whole, got another at "
                                 << only->getName().getStringRef();
    only = user;
  }
  if (writer && returner)
    return writer->emitOpError() << "expected a cache that is appended to not to be returned as well";
  if (!writer && !returner)
    return emitError(cache.getLoc()) << "expected a cache to be returned after its last append";
  // Reads must not see a later append; program order decides, since the buffer is one.
  for (Operation *user : users)
    if (writer && user != writer && user->getBlock() == writer->getBlock() && writer->isBeforeInBlock(user))
      return user->emitOpError() << "expected a read before the cache's next append";
  return success();
}

LogicalResult verifyFunction(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    if (isa_and_nonnull<LMDialect>(op->getDialect()) && failed(verifyUndecided(op)))
      return WalkResult::interrupt();
    for (Value value : op->getResults())
      if (isa<KVType>(value.getType()) && failed(verifyCache(value)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (BlockArgument argument : function.getArguments())
    if (isa<KVType>(argument.getType()) && failed(verifyCache(argument)))
      return failure();
  return success();
}

struct LMVerifyImportedPass : llmc::lm::impl::LMVerifyImportedPassBase<LMVerifyImportedPass> {
  void runOnOperation() override {
    for (WeightOp weight : getOperation().getOps<WeightOp>())
      if (weight.getLayout()) {
        weight.emitOpError() << "expected no layout before lm-pack-weights";
        return signalPassFailure();
      }
    for (func::FuncOp function : stepFunctions(getOperation()))
      if (failed(verifyFunction(function)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
