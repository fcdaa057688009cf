//===- LMToTile.cpp - decided lm to kernels and dispatches ----------------===//
//
// Each lm op of @step becomes one rt.dispatch of a tile.kernel in one or more
// variants (M classes). Kernels embed no layer constants and are shared by equal
// ops. The op's decisions (arithmetic, format, layout, paging) are read, not made,
// here: lm-verify-decided has checked that they are there.
//
//===----------------------------------------------------------------------===//

#include "llmc/Conversion/LMToTile.h"

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace llmc;

namespace {

struct LMToTilePass : PassWrapper<LMToTilePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LMToTilePass)
  LMToTilePass() = default;
  LMToTilePass(const LMToTilePass &other) : PassWrapper(other) {}
  explicit LMToTilePass(const LMToTileOptions &options) {
    target = options.cuda ? "cuda" : "cpu";
    trapChecks = options.trapChecks;
    linearTile = options.linearTile;
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("cpu or cuda"), llvm::cl::init("cpu")};
  Option<bool> trapChecks{*this, "trap-checks", llvm::cl::desc("check block and token ids (cuda)"), llvm::cl::init(false)};
  Option<std::string> linearTile{*this, "linear-tile", llvm::cl::desc("tile of products of more than 64 tokens (cuda)")};

  StringRef getArgument() const override { return "lm-to-tile"; }
  StringRef getDescription() const override { return "lower the ops of @step to dispatches of tile kernels"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<tile::TileDialect, rt::RTDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step) {
      getOperation().emitError("expected a function @step");
      return signalPassFailure();
    }
    Builder b(&getContext());
    SmallVector<NamedAttribute> facts{b.getNamedAttr("name", b.getStringAttr(target))};
    if (trapChecks)
      facts.push_back(b.getNamedAttr("trap_checks", b.getUnitAttr()));
    if (!linearTile.empty())
      facts.push_back(b.getNamedAttr("linear_tile", b.getStringAttr(linearTile)));
    getOperation()->setAttr("tile.target", b.getDictionaryAttr(facts));
    RewritePatternSet patterns(&getContext());
    populateLMToTilePatterns(patterns);
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (StringRef name : {"step", "prompt"})
      if (auto function = getOperation().lookupSymbol<func::FuncOp>(name))
        lower(function, frozen);
  }

private:
  void lower(func::FuncOp function, const FrozenRewritePatternSet &patterns) {
    splitPartialGroups(function);
    walkAndApplyPatterns(function, patterns);
    function.walk([&](Operation *op) {
      if (isa_and_nonnull<lm::LMDialect>(op->getDialect())) {
        op->emitError("expected every lm op to have a kernel, '") << op->getName() << "' has none for these types";
        signalPassFailure();
      }
    });
  }
};

} // namespace

void llmc::populateLMToTilePatterns(RewritePatternSet &patterns) {
  populateRowPatterns(patterns);
  populateRopePatterns(patterns);
  populateLinearPatterns(patterns);
  populateAttentionPatterns(patterns);
  populateSamplePatterns(patterns);
}

std::unique_ptr<Pass> llmc::createLMToTilePass(const LMToTileOptions &options) {
  return std::make_unique<LMToTilePass>(options);
}
