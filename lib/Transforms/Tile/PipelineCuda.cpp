//===- PipelineCuda.cpp - matrix products as pipelines --------------------===//
//
// A loop over k whose only work is tile.dot on dense panels, all with one left operand,
// becomes two roles that run side by side: a producer that copies the operands of step
// after step into rings of slots in shared memory, and warpgroups that multiply them
// from there. Sound because the operands are immutable while the kernel runs and the
// loop carries nothing but the sums; the order of the sums over k stays the loop's.
//
//===----------------------------------------------------------------------===//

#include "llmc/Transforms/Tile/Passes.h"

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;

namespace {

constexpr int64_t kStepK = 64, kColumns = 128, kConsumers = 256; // k of a slot; two warpgroups of 64 columns
constexpr int64_t kSharedBytes = 200 * 1024, kMaxStages = 6;

/// What the pass looks for: a loop of products, and where their operands come from.
struct Products {
  scf::ForOp loop;
  tile::LoadOp left;
  SmallVector<tile::DotOp> dots;            // in the order of the loop's results
  SmallVector<tile::LoadPackedOp> panels;
  int64_t rows = 0;
};

/// null: fits; else why not.
const char *match(tile::KernelOp kernel, Products &products) {
  for (auto loop : kernel.getBody().getOps<scf::ForOp>()) {
    if (products.loop)
      return "expected one loop";
    products.loop = loop;
  }
  int64_t dots = 0;
  kernel.walk([&](tile::DotOp) { ++dots; });
  scf::ForOp loop = products.loop;
  if (!loop || !matchPattern(loop.getLowerBound(), m_Zero()) || !matchPattern(loop.getStep(), m_One()))
    return "expected a loop from 0 by 1";
  if (loop.getNumResults() != static_cast<unsigned>(dots))
    return "expected a loop that carries the sums of all products";
  for (auto [argument, yielded] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    auto dot = yielded.getDefiningOp<tile::DotOp>();
    if (!dot || dot.getAcc() != argument || dot->getParentOp() != loop || !argument.hasOneUse() || !yielded.hasOneUse())
      return "expected sums of nothing but products";
    auto left = dot.getA().getDefiningOp<tile::LoadOp>();
    auto panels = dot.getB().getDefiningOp<tile::LoadPackedOp>();
    if (dot.getArith() != tile::DotArith::BF16 || !left || !panels || (products.left && products.left != left))
      return "expected bf16 products with one left operand";
    auto a = cast<VectorType>(dot.getA().getType());
    auto b = cast<tile::PackedType>(dot.getB().getType());
    if (b.getFormat() != tile::Format::BF16NK || b.getK() != kStepK || b.getN() != kColumns)
      return "expected panels of bf16_nk, 64 x 128";
    if (a.getRank() != 2 || cast<MemRefType>(left.getMemref().getType()).getRank() != 2 || a.getDimSize(0) % 16 || a.getDimSize(0) > 256)
      return "expected a multiple of 16 rows, at most 256";
    products.left = left;
    products.rows = a.getDimSize(0);
    products.dots.push_back(dot);
    products.panels.push_back(panels);
  }
  if (products.rows * static_cast<int64_t>(products.dots.size()) > 256)
    return "expected sums that fit the registers";
  return dots ? nullptr : "expected a product";
}

class Rewriter {
public:
  Rewriter(tile::KernelOp kernel, Products &products) : kernel(kernel), p(products), b(kernel.getContext()), loc(products.loop.getLoc()) {}

  void run() {
    int64_t bytes = 128 * (p.rows + kColumns * static_cast<int64_t>(p.dots.size()));
    int64_t stages = std::clamp<int64_t>(kSharedBytes / bytes, 2, kMaxStages);
    b.setInsertionPoint(p.loop);
    auto ring = [&](int64_t rows) -> Value {
      return tile::AllocRingOp::create(b, loc, tile::RingType::get(b.getContext(), rows, kStepK, stages));
    };
    tokens = ring(p.rows);
    for (size_t i = 0; i < p.dots.size(); ++i)
      weights.push_back(ring(kColumns));
    pipeline = tile::AllocPipelineOp::create(b, loc, tile::PipelineType::get(b.getContext(), stages));
    auto roles = tile::RolesOp::create(b, loc);
    produce(roles.getProducer().emplaceBlock(), bytes);
    consume(roles.getConsumers().emplaceBlock(), roles);
    kernel->setAttr("schedule", b.getDictionaryAttr({b.getNamedAttr("threads", b.getI32IntegerAttr(kConsumers)),
                                                     b.getNamedAttr("producers", b.getI32IntegerAttr(32)),
                                                     b.getNamedAttr("transposed", b.getUnitAttr())}));
  }

private:
  /// An index as it is in `round`: what is computed in the loop is computed again.
  Value at(Value index, Value round, IRMapping &known) {
    if (index == p.loop.getInductionVar())
      return round;
    Operation *op = index.getDefiningOp();
    if (!op || !p.loop->isProperAncestor(op))
      return index;
    if (Value done = known.lookupOrNull(index))
      return done;
    for (Value operand : op->getOperands())
      known.map(operand, at(operand, round, known));
    return b.clone(*op, known)->getResult(0);
  }

  void produce(Block &block, int64_t bytes) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    auto loop = scf::ForOp::create(b, loc, p.loop.getLowerBound(), p.loop.getUpperBound(), p.loop.getStep());
    b.setInsertionPoint(loop.getBody()->getTerminator());
    Value round = loop.getInductionVar();
    IRMapping known;
    auto indices = [&](ValueRange originals) {
      SmallVector<Value> result;
      for (Value original : originals)
        result.push_back(at(original, round, known));
      return result;
    };
    tile::AcquireOp::create(b, loc, pipeline, round, bytes);
    tile::CopyAsyncOp::create(b, loc, p.left.getMemref(), indices(p.left.getIndices()), ArrayRef<int64_t>{p.rows, kStepK}, tokens, round, pipeline);
    for (auto [panels, ring] : llvm::zip_equal(p.panels, weights)) {
      // [panels, ..., 16, k]: whole panels, one of each dimension between.
      SmallVector<int64_t> box(cast<MemRefType>(panels.getMemref().getType()).getRank(), 1);
      box.front() = kColumns / 16;
      box[box.size() - 2] = 16;
      box.back() = kStepK;
      tile::CopyAsyncOp::create(b, loc, panels.getMemref(), indices(panels.getIndices()), box, ring, round, pipeline);
    }
  }

  /// The loop over products, and what follows it.
  void consume(Block &block, tile::RolesOp roles) {
    SmallVector<Operation *> after;
    for (Operation *op = roles->getNextNode(); op; op = op->getNextNode())
      if (op != p.loop && !op->hasTrait<OpTrait::IsTerminator>())
        after.push_back(op);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    SmallVector<Value> starts;
    for (Value init : p.loop.getInitArgs())
      starts.push_back(tile::StartOp::create(b, loc, tile::InFlightType::get(b.getContext(), cast<VectorType>(init.getType())), init));
    auto loop = scf::ForOp::create(b, loc, p.loop.getLowerBound(), p.loop.getUpperBound(), p.loop.getStep(), starts);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToEnd(loop.getBody());
      Value round = loop.getInductionVar();
      tile::AwaitOp::create(b, loc, pipeline, round);
      SmallVector<Value> sums;
      for (auto [ring, acc] : llvm::zip_equal(weights, loop.getRegionIterArgs()))
        sums.push_back(tile::WarpgroupDotOp::create(b, loc, acc.getType(), tokens, round, ring, round, acc));
      // This round's products go on while the last round's slot is given back.
      auto wait = tile::WaitOp::create(b, loc, ValueRange(sums).getTypes(), sums, p.dots.size());
      Value last = arith::SubIOp::create(b, loc, round, arith::ConstantIndexOp::create(b, loc, 1));
      tile::ReleaseOp::create(b, loc, pipeline, last);
      scf::YieldOp::create(b, loc, wait.getResults());
    }
    auto done = tile::WaitOp::create(b, loc, p.loop.getResultTypes(), loop.getResults(), 0);
    p.loop.replaceAllUsesWith(done.getResults());
    p.loop.erase();
    for (Operation *op : after)
      op->moveBefore(&block, block.end());
  }

  tile::KernelOp kernel;
  Products &p;
  OpBuilder b;
  Location loc;
  Value tokens, pipeline;
  SmallVector<Value> weights;
};

struct TilePipelineCudaPass : PassWrapper<TilePipelineCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilePipelineCudaPass)

  StringRef getArgument() const override { return "tile-pipeline-cuda"; }
  StringRef getDescription() const override { return "matrix products as pipelines of bulk copies and warpgroup products"; }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      Products products;
      if (!kernel->hasAttr("schedule") && !match(kernel, products))
        Rewriter(kernel, products).run();
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTilePipelineCudaPass() { return std::make_unique<TilePipelineCudaPass>(); }
