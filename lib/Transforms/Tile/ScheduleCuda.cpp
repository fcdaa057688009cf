//===- ScheduleCuda.cpp - the CTA of a kernel -----------------------------===//
//
// What a CTA looks like follows from the kernel's values, not from its name:
// - without products: enough threads for four elements each of the widest value;
// - products whose rows are reduced or scaled row by row (a softmax between two of
//   them) keep rows in rows of the tensor core's instruction, 16 per warp;
// - other products are computed transposed: the right operand's columns (a weight's
//   rows) fill the instruction's 16 rows, so that few tokens waste little of it. As many warps as the kernel's `splits` says
//   share the k of such a product.
//
//===----------------------------------------------------------------------===//

#include "llmc/Transforms/Tile/Passes.h"

#include "dialects/Tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc;

namespace {

constexpr int64_t kMaxRowThreads = 256, kMaxProductWarps = 4;

struct Facts {
  int64_t widest = 32;          // elements of a vector
  int64_t panels = 0, rows = 0; // of the products: columns / 16, rows
  bool products = false, rowwise = false;
};

Facts factsOf(tile::KernelOp kernel) {
  Facts facts;
  kernel.walk([&](Operation *op) {
    facts.rowwise |= isa<tile::ReduceOp, tile::ExpandOp>(op);
    for (Value result : op->getResults())
      if (auto vector = dyn_cast<VectorType>(result.getType()))
        facts.widest = std::max(facts.widest, vector.getNumElements());
    if (!isa<tile::DotOp, tile::ScaledDotOp>(op))
      return;
    auto type = cast<VectorType>(op->getResult(0).getType());
    facts.products = true;
    facts.rows = std::max(facts.rows, type.getDimSize(0));
    facts.panels = std::gcd(facts.panels, type.getDimSize(1) / 16);
  });
  return facts;
}

struct TileScheduleCudaPass : PassWrapper<TileScheduleCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileScheduleCudaPass)

  StringRef getArgument() const override { return "tile-schedule-cuda"; }
  StringRef getDescription() const override { return "decide the threads of every tile kernel on a GPU"; }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      if (!kernel->hasAttr("schedule"))
        schedule(kernel);
  }

private:
  void schedule(tile::KernelOp kernel) {
    Builder b(&getContext());
    Facts facts = factsOf(kernel);
    bool transposed = facts.products && !facts.rowwise;
    int64_t threads;
    if (!facts.products) {
      threads = std::clamp<int64_t>(llvm::PowerOf2Ceil(facts.widest) / 4, 32, kMaxRowThreads);
    } else {
      int64_t warps = transposed ? facts.panels : llvm::divideCeil(facts.rows, 16);
      if (transposed) // panels that do not fill the warps would be computed for nothing
        warps = std::gcd(warps, kMaxProductWarps);
      threads = 32 * std::clamp<int64_t>(warps, 1, kMaxProductWarps);
    }
    auto splits = kernel->getAttrOfType<IntegerAttr>("splits"); // wanted by whoever wrote the kernel
    if (splits && transposed)
      threads *= splits.getInt();
    SmallVector<NamedAttribute> schedule{b.getNamedAttr("threads", b.getI32IntegerAttr(static_cast<int32_t>(threads)))};
    if (transposed)
      schedule.push_back(b.getNamedAttr("transposed", b.getUnitAttr()));
    if (splits && transposed)
      schedule.push_back(b.getNamedAttr("splits", splits));
    kernel->setAttr("schedule", b.getDictionaryAttr(schedule));
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTileScheduleCudaPass() { return std::make_unique<TileScheduleCudaPass>(); }
