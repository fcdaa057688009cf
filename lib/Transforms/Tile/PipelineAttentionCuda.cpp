//===- PipelineAttentionCuda.cpp - attention as a pipeline ----------------===//
//
// A kernel whose loops carry a softmax between two products (scores of a query with gathered keys, an update with gathered
// values) becomes a producer that copies the query and page after page of keys and values to shared memory, and one or two
// warpgroups of 64 rows each (FlashAttention-3, Shah et al. 2024, alg. 1 and 2):
// - inside a warpgroup the update of step n - 1 runs with the scores of step n; the softmax of n is computed meanwhile;
// - two warpgroups take turns to issue products, so that one's softmax runs under the other's products; one warpgroup has few
//   queries, waits for memory, and leaves room for a second CTA.
// Both walk over the units of their CTA, and the steps of one follow those of the last without a gap: the last update of a
// unit runs with the first scores of the next, whose softmax is computed before the result is written.
// The loops follow each other over ascending steps; the last one's body holds for every step (it masks), so the first step
// of all takes it. Sound because keys, values and the page table are immutable while the kernel runs; every value is computed
// by the operations of the loops, in their order.
//
//===----------------------------------------------------------------------===//

#include "llmc/Transforms/Tile/Passes.h"

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Tile/AttentionRole.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;
using tile::Attention;
using tile::AttentionRole;

namespace {

constexpr int64_t kThreads = 128; // of a warpgroup
constexpr int64_t kLoneRingBytes = 96 << 10; // keys and values of the only warpgroup of a CTA, two of which share a multiprocessor
constexpr int64_t kSharedBytes = 226 << 10; // for rings; the barriers take less than 1 KiB

class Rewriter : AttentionRole {
public:
  Rewriter(tile::KernelOp kernel, Attention &attention, OpBuilder &builder) : AttentionRole(kernel, attention, builder) {}

  void run() {
    hoist();
    for (auto load : kernel.getBody().getOps<tile::LoadOp>())
      if (!isa<VectorType>(load.getType()))
        fields.push_back(load);
    b.setInsertionPoint(a.loops.front().loop);
    allocate();
    if (hasRoom() || pairs()) // should ptxas spill after all, the worker compiles the module again as llmc.frugal
      kernel->getParentOp()->setAttr("llmc.has_frugal_form", b.getUnitAttr());
    auto roles = tile::RolesOp::create(b, loc, /*warps=*/true);
    tile::produceAttention(*this, roles.getProducer().emplaceBlock());
    tile::consumeAttention(*this, roles.getConsumers().emplaceBlock());
    for (Steps &steps : llvm::reverse(a.loops))
      steps.loop.erase();
    tile::eraseUnused(kernel);
    setSchedule();
    if (alone()) { // few and short units: what comes behind them may use the rest of the card
      b.setInsertionPointToStart(&kernel.getBody().front());
      NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::launch_dependents);
    }
  }

private:
  /// Whether two CTAs share a multiprocessor's registers: results of other heads take more.
  bool pairs() const { return alone() && a.depth % kPanel == 0 && a.depth <= 2 * kPanel && !isFrugal(); }

  void setSchedule() {
    auto count = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI32IntegerAttr(static_cast<int32_t>(value))); };
    SmallVector<NamedAttribute> schedule{b.getNamedAttr("persistent", b.getUnitAttr())};
    // The consumers want the registers of a warpgroup of producers, but for one warpgroup alone on its multiprocessor.
    schedule.push_back(count("producers", alone() && !pairs() ? kThreads / 2 : kThreads));
    if (pairs())
      schedule.push_back(count("residents", 2));
    schedule.push_back(count("threads", alone() ? kThreads : 2 * kThreads));
    kernel->setAttr("schedule", b.getDictionaryAttr(schedule));
  }

  /// What stands behind the loops and needs nothing of them moves before them, where the roles may use it.
  void hoist() {
    llvm::SmallPtrSet<Operation *, 16> behind;
    for (Steps &steps : a.loops)
      behind.insert(steps.loop);
    Operation *first = a.loops.front().loop, *next;
    for (Operation *op = first->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = next) {
      next = op->getNextNode();
      bool needs = behind.contains(op) || isa<tile::StoreOp, tile::ArriveOp, scf::IfOp>(op) ||
                   llvm::any_of(op->getOperands(), [&](Value x) { return x.getDefiningOp() && behind.contains(x.getDefiningOp()); });
      if (needs)
        behind.insert(op);
      else
        op->moveBefore(first);
    }
  }

  /// The rings: of queries two where there is room, so that the next unit's comes early.
  void allocate() {
    panels = (a.depth + kPanel - 1) / kPanel;
    auto ring = [&](int64_t rows, int64_t stages) -> Value {
      return tile::AllocRingOp::create(b, loc, tile::RingType::get(b.getContext(), rows, panels * kPanel, stages));
    };
    auto pipe = [&](int64_t stages) -> Value {
      return tile::AllocPipelineOp::create(b, loc, tile::PipelineType::get(b.getContext(), stages));
    };
    staged = stagedStore();
    int64_t rowBytes = 2 * kPanel * panels, ownRows = alone() ? kRows : 2 * kRows;
    int64_t stages = alone() ? std::clamp<int64_t>(kLoneRingBytes / (2 * a.width * rowBytes), 2, 4) : 2;
    int64_t rows = ownRows * (staged ? 3 : 2) + 2 * stages * a.width;
    int64_t queries = !alone() && rows * rowBytes <= kSharedBytes ? 2 : 1;
    query = ring(ownRows, queries), keys = ring(a.width, stages), values = ring(a.width, stages);
    if (staged)
      result = ring(ownRows, 1);
    queryReady = pipe(queries), keysReady = pipe(stages), valuesReady = pipe(stages);
  }

  /// The store of the result, if it is bf16: a thread has it in pieces of four bytes.
  tile::StoreOp stagedStore() {
    for (auto store : kernel.getBody().getOps<tile::StoreOp>()) {
      auto type = dyn_cast<VectorType>(store.getValue().getType());
      if (type && type.getRank() == 3 && type.getElementType().isBF16() && type.getNumElements() == a.rows * a.columns)
        return store;
    }
    return {};
  }
};


struct TilePipelineAttentionCudaPass : PassWrapper<TilePipelineAttentionCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilePipelineAttentionCudaPass)

  StringRef getArgument() const override { return "tile-pipeline-attention-cuda"; }
  StringRef getDescription() const override { return "attention as a pipeline of page copies and warpgroup products"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NVVM::NVVMDialect>(); }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      Attention attention;
      if (kernel->hasAttr("schedule") || attention.match(kernel))
        continue;
      OpBuilder builder(&getContext());
      Rewriter(kernel, attention, builder).run();
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTilePipelineAttentionCudaPass() { return std::make_unique<TilePipelineAttentionCudaPass>(); }