//===- PipelineAttentionCuda.cpp - attention as a pipeline ----------------===//
//
// A kernel whose loops carry a softmax between two products (scores of a query with gathered keys, an update with gathered
// values) becomes a producer that copies the query and page after page of keys and values to shared memory, and two
// warpgroups of 64 rows each (FlashAttention-3, Shah et al. 2024, alg. 1 and 2):
// - inside a warpgroup the update of step n - 1 runs with the scores of step n; the softmax of n is computed meanwhile;
// - the warpgroups take turns to issue products, so that one's softmax runs under the other's products.
// Both walk over the units of their CTA (UnitLoop.h): the producer is at the next unit while the consumers write a result.
// The loops follow each other over ascending steps; the last one's body holds for every step (it masks), so the first step
// of all takes it. Sound because keys, values and the page table are immutable while the kernel runs; every value is computed
// by the operations of the loops, in their order.
//
//===----------------------------------------------------------------------===//

#include "llmc/Transforms/Tile/Passes.h"

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Tile/UnitLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;

namespace {

constexpr int64_t kRows = 128, kConsumers = 256, kProducers = 128, kStages = 2, kPanel = 64; // columns of a panel

/// A loop of the kernel: its products and what feeds them.
struct Steps {
  scf::ForOp loop;
  tile::DotOp scores, update;
  tile::GatherPackedOp keys, values;
  tile::LoadOp pages;
  Value p;                               ///< f32, rounded it is the update's left operand
  unsigned accIndex = 0;                 ///< the update's among the carried values
};

struct Attention {
  SmallVector<Steps> loops;
  tile::LoadOp query;
  int64_t rows = 0, width = 0, depth = 0, columns = 0, pageTokens = 0; ///< of queries, of a step, of K, of V
};

} // namespace

/// null: fits; else why not.
static const char *matchLoop(scf::ForOp loop, Steps &steps) {
  steps.loop = loop;
  for (auto dot : loop.getOps<tile::DotOp>()) {
    if (dot.getArith() != tile::DotArith::BF16 || (steps.scores && steps.update))
      return "expected two bf16 products";
    (steps.scores ? steps.update : steps.scores) = dot;
  }
  if (!steps.update)
    return "expected two products";
  steps.keys = steps.scores.getB().getDefiningOp<tile::GatherPackedOp>();
  steps.values = steps.update.getB().getDefiningOp<tile::GatherPackedOp>();
  auto rounding = steps.update.getA().getDefiningOp<arith::TruncFOp>();
  if (!steps.keys || !steps.values || !rounding || !matchPattern(steps.scores.getAcc(), m_AnyZeroFloat()))
    return "expected products with gathered pages, the first from zero, the second of rounded values";
  steps.p = rounding.getIn();
  steps.pages = steps.keys.getPages().getDefiningOp<tile::LoadOp>();
  if (!steps.pages || steps.values.getPages() != steps.keys.getPages())
    return "expected one load of page numbers";
  unsigned users = llvm::range_size(steps.update.getResult().getUses());
  for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues()))
    if (yielded == steps.update.getResult() && users == 1) {
      steps.accIndex = i;
      return nullptr;
    }
  return "expected an update that is carried";
}

/// Of the memref [pages, heads, tokens, columns] that is a view of a buffer; -1: none.
static int64_t viewOffset(tile::GatherPackedOp gather) {
  auto view = gather.getMemref().getDefiningOp<tile::ViewOp>();
  return view && isa<BlockArgument>(view.getSource()) ? static_cast<int64_t>(view.getOffset()) : -1;
}

/// Indices behind the page: [head, 0, 0].
static bool wholePages(tile::GatherPackedOp gather) {
  auto indices = gather.getIndices();
  return indices.size() == 3 && matchPattern(indices[1], m_Zero()) && matchPattern(indices[2], m_Zero());
}

static const char *matchShape(Attention &a) {
  Steps &first = a.loops.front();
  auto scores = cast<VectorType>(first.scores.getType()), update = cast<VectorType>(first.update.getType());
  auto keys = cast<MemRefType>(first.keys.getMemref().getType()), values = cast<MemRefType>(first.values.getMemref().getType());
  a.rows = scores.getDimSize(0), a.width = scores.getDimSize(1);
  a.depth = cast<VectorType>(first.scores.getA().getType()).getDimSize(1), a.columns = update.getDimSize(1);
  a.pageTokens = keys.getRank() == 4 ? keys.getDimSize(2) : 0;
  if (keys != values || keys.getRank() != 4 || a.depth != keys.getDimSize(3) || a.columns != a.depth || !wholePages(first.keys) ||
      !wholePages(first.values) || viewOffset(first.keys) != 0 || viewOffset(first.values) != 2 * a.pageTokens * a.depth)
    return "expected whole pages of keys, followed by values of the same shape";
  if (a.rows <= kRows / 2 || a.rows > kRows || a.width % a.pageTokens || a.width / a.pageTokens > 32 || a.depth > 256 ||
      a.pageTokens % 8)
    return "expected rows for two warpgroups and at most 32 pages in a step";
  Value query = first.scores.getA();
  if (auto reshape = query.getDefiningOp<vector::ShapeCastOp>())
    query = reshape.getSource();
  a.query = query.getDefiningOp<tile::LoadOp>();
  return a.query && cast<VectorType>(a.query.getType()).getRank() == 3 ? nullptr : "expected a query that is loaded";
}

static const char *match(tile::KernelOp kernel, Attention &a) {
  for (auto loop : kernel.getBody().getOps<scf::ForOp>())
    if (const char *why = matchLoop(loop, a.loops.emplace_back()))
      return why;
  if (a.loops.empty())
    return "expected loops";
  for (size_t i = 1; i < a.loops.size(); ++i) {
    Steps &before = a.loops[i - 1], &after = a.loops[i];
    if (after.loop.getLowerBound() != before.loop.getUpperBound() || after.accIndex != before.accIndex ||
        !llvm::equal(after.loop.getInitArgs(), before.loop.getResults()) || after.scores.getA() != before.scores.getA())
      return "expected loops that go on where the one before ends";
  }
  return matchShape(a);
}

namespace {

class Rewriter {
public:
  Rewriter(tile::KernelOp kernel, Attention &attention)
      : kernel(kernel), a(attention), b(kernel.getContext()), loc(attention.loops.front().loop.getLoc()) {}

  void run() {
    hoist();
    b.setInsertionPoint(a.loops.front().loop);
    int64_t panels = (a.depth + kPanel - 1) / kPanel;
    auto ring = [&](int64_t rows, int64_t stages) -> Value {
      return tile::AllocRingOp::create(b, loc, tile::RingType::get(b.getContext(), rows, panels * kPanel, stages));
    };
    auto pipe = [&](int64_t stages) -> Value {
      return tile::AllocPipelineOp::create(b, loc, tile::PipelineType::get(b.getContext(), stages));
    };
    query = ring(kRows, 1), keys = ring(a.width, kStages), values = ring(a.width, kStages);
    queryReady = pipe(1), keysReady = pipe(kStages), valuesReady = pipe(kStages);
    auto roles = tile::RolesOp::create(b, loc, /*lanes=*/true);
    produce(roles.getProducer().emplaceBlock(), panels);
    consume(roles.getConsumers().emplaceBlock());
    for (Steps &steps : llvm::reverse(a.loops))
      steps.loop.erase();
    tile::eraseUnused(kernel);
    kernel->setAttr("schedule", b.getDictionaryAttr({b.getNamedAttr("persistent", b.getUnitAttr()),
                                                     b.getNamedAttr("producers", b.getI32IntegerAttr(kProducers)),
                                                     b.getNamedAttr("threads", b.getI32IntegerAttr(kConsumers))}));
  }

private:
  /// What stands behind the loops and needs nothing of them moves before them, where the roles may use it.
  void hoist() {
    llvm::SmallPtrSet<Operation *, 16> behind;
    for (Steps &steps : a.loops)
      behind.insert(steps.loop);
    Operation *first = a.loops.front().loop, *next;
    for (Operation *op = first->getNextNode(); op && !op->hasTrait<OpTrait::IsTerminator>(); op = next) {
      next = op->getNextNode();
      bool needs = behind.contains(op) || isa<tile::StoreOp>(op) ||
                   llvm::any_of(op->getOperands(), [&](Value x) { return x.getDefiningOp() && behind.contains(x.getDefiningOp()); });
      if (needs)
        behind.insert(op);
      else
        op->moveBefore(first);
    }
  }

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value before(Value round) { return arith::SubIOp::create(b, loc, round, index(1)); }

  /// A role's walk over its units: where the steps of one begin and end, and their rounds.
  struct Walk {
    tile::Again again;
    tile::UnitLoop units;
    Value begin, end, step;
    Walk(Rewriter &r) : again(r.kernel, r.b), units(r.kernel, r.b, r.loc, again, tile::UnitLoop::Snake) {
      begin = again.value(r.a.loops.front().loop.getLowerBound()), end = again.value(r.a.loops.back().loop.getUpperBound());
      step = again.value(r.a.loops.front().loop.getStep());
    }
  };

  Value roundOf(Walk &walk, Value block) {
    Value steps = arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, block, walk.begin), walk.step);
    return arith::AddIOp::create(b, loc, walk.units.firstRound, steps);
  }

  /// The round behind the unit's last one.
  Value endRound(Walk &walk) {
    Value count = arith::AddIOp::create(b, loc, arith::SubIOp::create(b, loc, walk.end, walk.begin), before(walk.step));
    return arith::AddIOp::create(b, loc, walk.units.firstRound, arith::DivUIOp::create(b, loc, count, walk.step));
  }

  //===--- producer -------------------------------------------------------===//

  void produce(Block &block, int64_t panels) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    Walk walk(*this);
    copyQuery(walk, panels);
    Steps &model = a.loops.back();
    scf::ForOp original = model.loop;
    prepare(walk, model.pages.getIndices().front(), original);
    // Keys and values of a page are one box of twice the tokens.
    auto view = cast<tile::ViewOp>(model.keys.getMemref().getDefiningOp());
    auto type = cast<MemRefType>(view.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[2] *= 2;
    auto both = MemRefType::get(shape, type.getElementType(), type.getLayout());
    Value pool = tile::ViewOp::create(b, loc, both, view.getSource(), 0), head = walk.again.value(model.keys.getIndices().front());
    auto loop = scf::ForOp::create(b, loc, walk.begin, walk.end, walk.step);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPoint(loop.getBody()->getTerminator());
      Value round = roundOf(walk, loop.getInductionVar());
      IRMapping known;
      known.map(original.getInductionVar(), loop.getInductionVar());
      Value first = copyOf(walk, model.pages.getIndices().front(), original, known);
      auto gather = [&](Value pipeline, Value ring, int64_t token) {
        tile::AcquireOp::create(b, loc, pipeline, round, 2 * kPanel * panels * a.width);
        tile::GatherAsyncOp::create(b, loc, pool, ValueRange{head, index(token)}, model.pages.getMemref(), first, a.pageTokens, ring, round,
                                    pipeline);
      };
      gather(keysReady, keys, 0);
      gather(valuesReady, values, a.pageTokens);
    }
    walk.units.close(b, endRound(walk));
  }

  void copyQuery(Walk &walk, int64_t panels) {
    auto loaded = cast<VectorType>(a.query.getType());
    SmallVector<Value> indices = walk.again.values(a.query.getIndices());
    tile::AcquireOp::create(b, loc, queryReady, walk.units.visit, 2 * kPanel * panels * a.rows);
    for (int64_t panel = 0; panel < panels; ++panel) {
      indices.back() = index(panel * kPanel); // whole heads
      tile::CopyAsyncOp::create(b, loc, a.query.getMemref(), indices, ArrayRef<int64_t>{loaded.getDimSize(0), loaded.getDimSize(1), kPanel},
                                query, walk.units.visit, queryReady, panel);
    }
  }

  /// Computes here, before any loop, what `value` of a step needs of the unit.
  void prepare(Walk &walk, Value value, scf::ForOp loop) {
    Operation *op = value.getDefiningOp();
    if (isa<BlockArgument>(value) && value.getParentBlock()->getParentOp() == loop)
      return;
    if (!op || !loop->isProperAncestor(op)) {
      walk.again.value(value);
      return;
    }
    for (Steps &steps : a.loops) {
      if (op == steps.scores)
        return;
      if (op == steps.update) { // what it adds to and its probabilities; its values are a ring's
        prepare(walk, steps.update.getA(), loop);
        return prepare(walk, steps.update.getAcc(), loop);
      }
    }
    for (Value operand : op->getOperands())
      prepare(walk, operand, loop);
  }

  /// `value` of a step of `loop` with what is mapped in place of the loop's arguments.
  Value copyOf(Walk &walk, Value value, scf::ForOp loop, IRMapping &known) {
    if (Value done = known.lookupOrNull(value))
      return done;
    Operation *op = value.getDefiningOp();
    if (!op || !loop->isProperAncestor(op))
      return walk.again.value(value);
    for (Value operand : op->getOperands())
      known.map(operand, copyOf(walk, operand, loop, known));
    Operation *copy = b.clone(*op, known);
    known.map(op->getResults(), copy->getResults());
    return known.lookup(value);
  }

  //===--- consumers ------------------------------------------------------===//

  /// What a step hands to the next: the carried values (the accumulator without the step's own update) and the probabilities
  /// of that update.
  struct State {
    SmallVector<Value> carried;
    Value p;
  };

  Value startScores(Walk &walk, Steps &steps, Value round) {
    tile::AwaitOp::create(b, loc, keysReady, round);
    tile::TakeTurnOp::create(b, loc);
    auto type = tile::InFlightType::get(b.getContext(), cast<VectorType>(steps.scores.getType()));
    return tile::WarpgroupDotRowsOp::create(b, loc, type, query, walk.units.visit, keys, round, a.depth);
  }

  Value startUpdate(const State &state, unsigned accIndex, Value round) {
    Value acc = state.carried[accIndex];
    tile::AwaitOp::create(b, loc, valuesReady, round);
    Value flying = tile::StartOp::create(b, loc, tile::InFlightType::get(b.getContext(), cast<VectorType>(acc.getType())), acc);
    return tile::WarpgroupUpdateOp::create(b, loc, flying.getType(), state.p, values, round, flying);
  }

  SmallVector<Value> wait(ValueRange operands, TypeRange types, int64_t pending) {
    return tile::WaitOp::create(b, loc, types, operands, pending).getResults();
  }

  static void mapArguments(Steps &steps, Value block, const State &state, Value scores, IRMapping &known) {
    known.map(steps.loop.getInductionVar(), block);
    known.map(steps.loop.getRegionIterArgs(), state.carried);
    known.map(steps.scores.getResult(), scores);
  }

  /// What follows from the softmax: the carried values, with `acc` (the update before) scaled, and the rounded p.
  State finish(Walk &walk, Steps &steps, IRMapping &known, Value acc, Value p) {
    State next;
    known.map(steps.loop.getRegionIterArgs()[steps.accIndex], acc);
    known.map(steps.p, p);
    scf::ForOp loop = steps.loop;
    for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues()))
      next.carried.push_back(copyOf(walk, i == steps.accIndex ? Value(steps.update.getAcc()) : yielded, loop, known));
    next.p = copyOf(walk, steps.update.getA(), loop, known);
    return next;
  }

  State firstStep(Walk &walk) {
    Steps &steps = a.loops.back();
    State start{walk.again.values(a.loops.front().loop.getInitArgs()), {}};
    Value round = walk.units.firstRound, flying = startScores(walk, steps, round);
    tile::PassTurnOp::create(b, loc);
    Value scores = wait(flying, steps.scores->getResultTypes(), 0).front();
    tile::ReleaseOp::create(b, loc, keysReady, round);
    IRMapping known;
    mapArguments(steps, walk.begin, start, scores, known);
    Value acc = start.carried[steps.accIndex], p = copyOf(walk, steps.p, steps.loop, known);
    State next = finish(walk, steps, known, acc, p);
    if (matchPattern(acc, m_AnyZeroFloat())) // scaled or not
      next.carried[steps.accIndex] = acc;
    return next;
  }

  State nextStep(Walk &walk, Steps &steps, Value block, const State &state) {
    Value round = roundOf(walk, block), last = before(round);
    Value scoresFlying = startScores(walk, steps, round), updateFlying = startUpdate(state, steps.accIndex, last);
    tile::PassTurnOp::create(b, loc);
    Value scores = wait(scoresFlying, steps.scores->getResultTypes(), 1).front();
    tile::ReleaseOp::create(b, loc, keysReady, round);
    IRMapping known;
    mapArguments(steps, block, state, scores, known);
    Value p = copyOf(walk, steps.p, steps.loop, known);
    // The other carried values are computed here too, under the update: finish() finds them made.
    scf::ForOp loop = steps.loop;
    for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues()))
      if (i != steps.accIndex)
        copyOf(walk, yielded, loop, known);
    // p is rounded after the wait: nothing but products may write operands of products while one runs.
    SmallVector<Value> done = wait({updateFlying, p}, {steps.update->getResult(0).getType(), p.getType()}, 0);
    tile::ReleaseOp::create(b, loc, valuesReady, last);
    return finish(walk, steps, known, done[0], done[1]);
  }

  void consume(Block &block) {
    SmallVector<Operation *> after;
    for (Operation *op = a.loops.back().loop->getNextNode(); op; op = op->getNextNode())
      if (!op->hasTrait<OpTrait::IsTerminator>())
        after.push_back(op);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    tile::OpenTurnsOp::create(b, loc);
    Walk walk(*this);
    for (Steps &steps : a.loops)
      for (Value yielded : steps.loop.getYieldedValues())
        prepare(walk, yielded, steps.loop);
    SmallVector<Value> bounds;
    for (Steps &steps : a.loops)
      bounds.push_back(walk.again.value(steps.loop.getUpperBound()));
    tile::AwaitOp::create(b, loc, queryReady, walk.units.visit);
    State state = firstStep(walk);
    Value from = arith::AddIOp::create(b, loc, walk.begin, walk.step);
    for (auto [steps, bound] : llvm::zip_equal(a.loops, bounds)) {
      state = loopOver(walk, steps, from, bound, state);
      from = arith::MaxSIOp::create(b, loc, from, bound); // the first step may have been the only one of its loop
    }
    tile::ReleaseOp::create(b, loc, queryReady, walk.units.visit);
    // The last update.
    unsigned accIndex = a.loops.back().accIndex;
    Value end = endRound(walk), last = before(end);
    Value flying = startUpdate(state, accIndex, last);
    SmallVector<Type> type{state.carried[accIndex].getType()};
    state.carried[accIndex] = wait(flying, type, 0).front();
    tile::ReleaseOp::create(b, loc, valuesReady, last);
    for (auto [result, value] : llvm::zip_equal(a.loops.back().loop.getResults(), state.carried))
      walk.again.map(result, value);
    for (Operation *op : after)
      if (isa<tile::StoreOp>(op)) // with what it needs
        walk.again.clone(op);
    for (Operation *op : llvm::reverse(after))
      if (isa<tile::StoreOp>(op) || op->use_empty())
        op->erase();
    walk.units.close(b, end);
  }

  State loopOver(Walk &walk, Steps &steps, Value from, Value to, const State &state) {
    SmallVector<Value> inits(state.carried);
    inits.push_back(state.p);
    auto loop = scf::ForOp::create(b, loc, from, to, walk.step, inits);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    ValueRange arguments = loop.getRegionIterArgs();
    State next = nextStep(walk, steps, loop.getInductionVar(), {SmallVector<Value>(arguments.drop_back()), arguments.back()});
    next.carried.push_back(next.p);
    scf::YieldOp::create(b, loc, next.carried);
    ValueRange results = loop.getResults();
    return {SmallVector<Value>(results.drop_back()), results.back()};
  }

  tile::KernelOp kernel;
  Attention &a;
  OpBuilder b;
  Location loc;
  Value query, keys, values, queryReady, keysReady, valuesReady;
};

struct TilePipelineAttentionCudaPass : PassWrapper<TilePipelineAttentionCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilePipelineAttentionCudaPass)

  StringRef getArgument() const override { return "tile-pipeline-attention-cuda"; }
  StringRef getDescription() const override { return "attention as a pipeline of page copies and warpgroup products"; }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      Attention attention;
      if (!kernel->hasAttr("schedule") && !match(kernel, attention))
        Rewriter(kernel, attention).run();
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTilePipelineAttentionCudaPass() { return std::make_unique<TilePipelineAttentionCudaPass>(); }
