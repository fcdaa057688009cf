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
#include "lib/Transforms/Tile/AttentionLoops.h"
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
using tile::Attention;
using Steps = tile::Attention::Steps;

namespace {

constexpr int64_t kRows = 64, kThreads = 128, kPanel = 64; // of a warpgroup; columns of a panel
constexpr int64_t kLoneRingBytes = 96 << 10; // keys and values of the only warpgroup of a CTA, two of which share a multiprocessor
constexpr int64_t kSharedBytes = 226 << 10; // for rings; the barriers take less than 1 KiB
// Columns of a head: up to here the softmax is longer than the products (measured at 64 and 128), and from here on registers are short.
constexpr int64_t kNarrow = 64, kWide = 129;

class Rewriter {
public:
  Rewriter(tile::KernelOp kernel, Attention &attention)
      : kernel(kernel), a(attention), b(kernel.getContext()), loc(attention.loops.front().loop.getLoc()) {}

  void run() {
    hoist();
    for (auto load : kernel.getBody().getOps<tile::LoadOp>())
      if (!isa<VectorType>(load.getType()))
        fields.push_back(load);
    b.setInsertionPoint(a.loops.front().loop);
    allocate();
    if (hasRoom()) // should ptxas spill after all, the worker compiles the module again as llmc.frugal
      kernel->getParentOp()->setAttr("llmc.has_frugal_form", b.getUnitAttr());
    auto roles = tile::RolesOp::create(b, loc, /*warps=*/true);
    produce(roles.getProducer().emplaceBlock());
    consume(roles.getConsumers().emplaceBlock());
    for (Steps &steps : llvm::reverse(a.loops))
      steps.loop.erase();
    tile::eraseUnused(kernel);
    setSchedule();
  }

private:
  bool alone() const { return a.rows <= kRows; } ///< one warpgroup

  void setSchedule() {
    auto count = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI32IntegerAttr(static_cast<int32_t>(value))); };
    SmallVector<NamedAttribute> schedule{b.getNamedAttr("persistent", b.getUnitAttr())};
    // Two warpgroups want the registers of a third, one has enough.
    schedule.push_back(count("producers", alone() ? kThreads / 2 : kThreads));
    if (alone() && a.depth % kPanel == 0 && panels <= 2) // else results take more registers
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
      bool needs = behind.contains(op) || isa<tile::StoreOp, tile::ArriveOp>(op) ||
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

  // Visits, rounds and steps are counted in i32: registers are short.
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value number(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))); }
  Value wide(Value x) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), x); }
  Value narrow(Value x) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value before(Value round) { return arith::SubIOp::create(b, loc, round, number(1)); }
  Value isLess(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }

  //===--- units ----------------------------------------------------------===//

  /// What a role knows of a unit: the kernel's values computed again, where its steps begin and end, and their first round.
  struct Unit {
    tile::Again again;
    Value visit, firstRound, begin, end, step;
  };

  /// The scalars that the kernel loads for the unit of a visit.
  SmallVector<Value> loadFields(tile::SnakeOrder &order, Value visit) {
    tile::Again again(kernel, b);
    again.map(kernel.getUnit(), order.unit(visit));
    return again.values(fields);
  }

  /// Those of the visit after; of the last visit its own. Loaded a unit ahead nobody waits for them, but they take registers that
  /// wide heads do not have: there they are loaded where they are needed.
  SmallVector<Value> loadNextFields(tile::SnakeOrder &order, Value visit) {
    return loadFields(order, arith::MinSIOp::create(b, loc, plus(visit, number(1)), before(order.visits())));
  }

  /// Whether registers suffice for two units at a time. (What few queries do with a result takes many.)
  bool hasRoom() const { return a.depth < kWide && !alone() && !kernel->getParentOp()->hasAttr("llmc.frugal"); }

  Unit unitAt(tile::SnakeOrder &order, Value visit, ValueRange loaded, Value firstRound) {
    Unit unit{tile::Again(kernel, b), visit, firstRound, {}, {}, {}};
    unit.again.map(kernel.getUnit(), order.unit(visit));
    for (auto [field, value] : llvm::zip_equal(fields, loaded))
      unit.again.map(field, value);
    unit.begin = narrow(unit.again.value(a.loops.front().loop.getLowerBound()));
    unit.end = narrow(unit.again.value(a.loops.back().loop.getUpperBound()));
    unit.step = narrow(unit.again.value(a.loops.front().loop.getStep()));
    return unit;
  }

  Value roundOf(const Unit &unit, Value block) {
    return plus(unit.firstRound, arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, block, unit.begin), unit.step));
  }

  /// The round behind the unit's last one.
  Value endRound(const Unit &unit) {
    Value count = plus(arith::SubIOp::create(b, loc, unit.end, unit.begin), before(unit.step));
    return plus(unit.firstRound, arith::DivUIOp::create(b, loc, count, unit.step));
  }

  //===--- producer -------------------------------------------------------===//

  /// Copies follow each other as the consumers need them: the values of a step come behind the keys of the next.
  void produce(Block &block) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    tile::SnakeOrder order(kernel, b, loc);
    Value zero = number(0);
    SmallVector<Value> inits{zero, index(0), index(0)}; // the unit's first round, head and first page of the last step
    if (hasRoom())
      llvm::append_range(inits, loadFields(order, zero));
    auto loop = scf::ForOp::create(b, loc, zero, order.visits(), number(1), inits);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToEnd(loop.getBody());
      ValueRange carried = loop.getRegionIterArgs();
      Value visit = loop.getInductionVar();
      SmallVector<Value> own(carried.drop_front(3)), next;
      if (hasRoom())
        next = loadNextFields(order, visit);
      else
        own = loadFields(order, visit);
      Unit unit = unitAt(order, visit, own, carried[0]);
      copyQuery(unit);
      SmallVector<Value> yielded{endRound(unit)};
      llvm::append_range(yielded, copySteps(unit, carried.slice(1, 2)));
      llvm::append_range(yielded, next);
      scf::YieldOp::create(b, loc, yielded);
    }
    gather(valuesReady, values, before(loop.getResult(0)), loop.getResults().slice(1, 2), a.pageTokens);
  }

  void copyQuery(Unit &unit) {
    auto loaded = cast<VectorType>(a.query.getType());
    SmallVector<Value> indices = unit.again.values(a.query.getIndices());
    Value visit = wide(unit.visit);
    tile::AcquireOp::create(b, loc, queryReady, visit, 2 * kPanel * panels * a.rows);
    for (int64_t panel = 0; panel < panels; ++panel) {
      indices.back() = index(panel * kPanel); // whole heads
      tile::CopyAsyncOp::create(b, loc, a.query.getMemref(), indices, ArrayRef<int64_t>{loaded.getDimSize(0), loaded.getDimSize(1), kPanel},
                                query, visit, queryReady, panel);
    }
  }

  /// Head and first page of the unit's last step.
  SmallVector<Value> copySteps(Unit &unit, ValueRange last) {
    Steps &model = a.loops.back();
    Value pages = model.pages.getIndices().front(), head = unit.again.value(model.keys.getIndices().front());
    prepare(unit, pages, model.loop);
    auto loop = scf::ForOp::create(b, loc, unit.begin, unit.end, unit.step, last);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value round = roundOf(unit, loop.getInductionVar());
    IRMapping known;
    known.map(model.loop.getInductionVar(), wide(loop.getInductionVar()));
    SmallVector<Value> own{head, copyOf(unit, pages, model.loop, known)};
    gather(keysReady, keys, round, own, 0);
    auto branch = scf::IfOp::create(b, loc, isLess(number(0), round), /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard then(b);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      gather(valuesReady, values, before(round), loop.getRegionIterArgs(), a.pageTokens);
    }
    scf::YieldOp::create(b, loc, own);
    return SmallVector<Value>(loop.getResults());
  }

  /// The pages of a step, of which head and the first are given, from a token of each on.
  void gather(Value pipeline, Value ring, Value round, ValueRange step, int64_t token) {
    // Keys and values of a page are one box of twice the tokens.
    auto view = cast<tile::ViewOp>(a.loops.back().keys.getMemref().getDefiningOp());
    auto type = cast<MemRefType>(view.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[2] *= 2;
    auto both = MemRefType::get(shape, type.getElementType(), type.getLayout());
    Value pool = tile::ViewOp::create(b, loc, both, view.getSource(), 0);
    round = wide(round);
    tile::AcquireOp::create(b, loc, pipeline, round, 2 * kPanel * panels * a.width);
    tile::GatherAsyncOp::create(b, loc, pool, ValueRange{step[0], index(token)}, a.loops.back().pages.getMemref(), step[1], a.pageTokens, ring,
                                round, pipeline);
  }

  /// Computes here, before any loop, what `value` of a step needs of the unit.
  void prepare(Unit &unit, Value value, scf::ForOp loop) {
    Operation *op = value.getDefiningOp();
    if (isa<BlockArgument>(value) && value.getParentBlock()->getParentOp() == loop)
      return;
    if (!op || !loop->isProperAncestor(op)) {
      unit.again.value(value);
      return;
    }
    for (Steps &steps : a.loops) {
      if (op == steps.scores)
        return;
      if (op == steps.update) { // what it adds to and its probabilities; its values are a ring's
        prepare(unit, steps.update.getA(), loop);
        return prepare(unit, steps.update.getAcc(), loop);
      }
    }
    for (Value operand : op->getOperands())
      prepare(unit, operand, loop);
  }

  /// `value` of a step of `loop` with what is mapped in place of the loop's arguments.
  Value copyOf(Unit &unit, Value value, scf::ForOp loop, IRMapping &known) {
    if (Value done = known.lookupOrNull(value))
      return done;
    Operation *op = value.getDefiningOp();
    if (!op || !loop->isProperAncestor(op))
      return unit.again.value(value);
    for (Value operand : op->getOperands())
      known.map(operand, copyOf(unit, operand, loop, known));
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

  Value startScores(Unit &unit, Steps &steps, Value round) {
    tile::AwaitOp::create(b, loc, keysReady, wide(round));
    if (!alone())
      tile::TakeTurnOp::create(b, loc);
    auto type = tile::InFlightType::get(b.getContext(), cast<VectorType>(steps.scores.getType()));
    return tile::WarpgroupDotRowsOp::create(b, loc, type, query, wide(unit.visit), keys, wide(round), a.depth);
  }

  void passTurn() {
    if (!alone())
      tile::PassTurnOp::create(b, loc);
  }

  Value startUpdate(const State &state, unsigned accIndex, Value round) {
    Value acc = state.carried[accIndex];
    tile::AwaitOp::create(b, loc, valuesReady, wide(round));
    Value flying = tile::StartOp::create(b, loc, tile::InFlightType::get(b.getContext(), cast<VectorType>(acc.getType())), acc);
    return tile::WarpgroupUpdateOp::create(b, loc, flying.getType(), state.p, values, wide(round), flying);
  }

  SmallVector<Value> wait(ValueRange operands, TypeRange types, int64_t pending) {
    return tile::WaitOp::create(b, loc, types, operands, pending).getResults();
  }

  void mapArguments(Steps &steps, Value block, const State &state, Value scores, IRMapping &known) {
    known.map(steps.loop.getInductionVar(), wide(block));
    known.map(steps.loop.getRegionIterArgs(), state.carried);
    known.map(steps.scores.getResult(), scores);
  }

  /// What follows from the softmax: the carried values, with `acc` (the update before) scaled, and the rounded p.
  State finish(Unit &unit, Steps &steps, IRMapping &known, Value acc, Value p) {
    State next;
    known.map(steps.loop.getRegionIterArgs()[steps.accIndex], acc);
    known.map(steps.p, p);
    scf::ForOp loop = steps.loop;
    for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues()))
      next.carried.push_back(copyOf(unit, i == steps.accIndex ? Value(steps.update.getAcc()) : yielded, loop, known));
    next.p = copyOf(unit, steps.update.getA(), loop, known);
    return next;
  }

  /// The unit's scores, softmax and scaling of a step that starts from nothing.
  Value firstSoftmax(Unit &unit, const State &start, Value scores, IRMapping &known) {
    Steps &steps = a.loops.back();
    mapArguments(steps, unit.begin, start, scores, known);
    return copyOf(unit, steps.p, steps.loop, known);
  }

  State finishFirst(Unit &unit, const State &start, IRMapping &known, Value p) {
    Steps &steps = a.loops.back();
    Value acc = start.carried[steps.accIndex];
    State next = finish(unit, steps, known, acc, p);
    if (matchPattern(acc, m_AnyZeroFloat())) // scaled or not
      next.carried[steps.accIndex] = acc;
    return next;
  }

  /// The first step of a unit that follows none, or whose registers do not suffice for two.
  State firstStep(Unit &unit) {
    State start{unit.again.values(a.loops.front().loop.getInitArgs()), {}};
    tile::AwaitOp::create(b, loc, queryReady, wide(unit.visit));
    Value flying = startScores(unit, a.loops.back(), unit.firstRound);
    passTurn();
    Value scores = wait(flying, a.loops.back().scores->getResultTypes(), 0).front();
    tile::ReleaseOp::create(b, loc, keysReady, wide(unit.firstRound));
    IRMapping known;
    Value p = firstSoftmax(unit, start, scores, known);
    return finishFirst(unit, start, known, p);
  }

  /// The last update of a unit, with the first scores of the next.
  State passOver(Unit unit, Unit &next, const State &state) {
    Steps &steps = a.loops.back();
    State start{next.again.values(a.loops.front().loop.getInitArgs()), {}}, ended = state;
    Value round = next.firstRound, last = before(round);
    tile::AwaitOp::create(b, loc, queryReady, wide(next.visit));
    Value scoresFlying = startScores(next, steps, round), updateFlying = startUpdate(state, steps.accIndex, last);
    passTurn();
    Value scores = wait(scoresFlying, steps.scores->getResultTypes(), 1).front();
    tile::ReleaseOp::create(b, loc, keysReady, wide(round));
    IRMapping known;
    Value p = firstSoftmax(next, start, scores, known);
    auto [acc, waited] = waitForUpdate(next, steps, known, updateFlying, p);
    tile::ReleaseOp::create(b, loc, valuesReady, wide(last));
    State begun = finishFirst(next, start, known, waited);
    ended.carried[steps.accIndex] = acc;
    write(unit, ended);
    return begun;
  }

  /// The last update of a unit that none follows (what it returns nobody reads; it needs no registers of its own), or that is
  /// written before the next begins.
  State lastUpdate(Unit unit, const State &state, Value last) {
    unsigned accIndex = a.loops.back().accIndex;
    State ended = state;
    Value flying = startUpdate(state, accIndex, last);
    ended.carried[accIndex] = wait(flying, state.carried[accIndex].getType(), 0).front();
    tile::ReleaseOp::create(b, loc, valuesReady, wide(last));
    write(unit, ended);
    return ended;
  }

  /// What follows the loops: stores, and what is done by the last unit of several, with what they need.
  void write(Unit &unit, const State &ended) {
    for (auto [result, value] : llvm::zip_equal(a.loops.back().loop.getResults(), ended.carried))
      unit.again.map(result, value);
    for (Operation *op : effects) {
      if (auto store = dyn_cast<tile::StoreOp>(op); store && store == staged)
        tile::StoreStagedOp::create(b, loc, unit.again.value(store.getValue()), unit.again.value(store.getMemref()),
                                    unit.again.values(store.getIndices()), result, store.getLimit() ? unit.again.value(store.getLimit()) : Value());
      else
        unit.again.clone(op);
    }
  }

  /// The update's result and p, behind the wait for it: nothing but products may write operands of products while one runs, so
  /// p is rounded only then. Of narrow heads of many queries the carried values pass through the wait too, so that they, and the softmax with
  /// them, are computed under the update: it takes longer than the other warpgroup's products, which hide it elsewhere.
  std::pair<Value, Value> waitForUpdate(Unit &unit, Steps &steps, IRMapping &known, Value flying, Value p) {
    scf::ForOp loop = steps.loop;
    SmallVector<Value> passing{flying, p}, originals;
    for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues())) {
      if (i == steps.accIndex)
        continue;
      Value made = copyOf(unit, yielded, loop, known); // finish() finds it
      if (a.depth <= kNarrow && !alone()) {
        originals.push_back(yielded);
        passing.push_back(made);
      }
    }
    SmallVector<Type> types{steps.update->getResult(0).getType()};
    llvm::append_range(types, TypeRange(ValueRange(passing).drop_front()));
    SmallVector<Value> done = wait(passing, types, 0);
    for (auto [original, value] : llvm::zip_equal(originals, ArrayRef(done).drop_front(2)))
      known.map(original, value);
    return {done[0], done[1]};
  }

  State nextStep(Unit &unit, Steps &steps, Value block, const State &state) {
    Value round = roundOf(unit, block), last = before(round);
    Value scoresFlying = startScores(unit, steps, round), updateFlying = startUpdate(state, steps.accIndex, last);
    passTurn();
    Value scores = wait(scoresFlying, steps.scores->getResultTypes(), 1).front();
    tile::ReleaseOp::create(b, loc, keysReady, wide(round));
    IRMapping known;
    mapArguments(steps, block, state, scores, known);
    Value p = copyOf(unit, steps.p, steps.loop, known);
    auto [acc, waited] = waitForUpdate(unit, steps, known, updateFlying, p);
    tile::ReleaseOp::create(b, loc, valuesReady, wide(last));
    return finish(unit, steps, known, acc, waited);
  }

  void consume(Block &block) {
    SmallVector<Operation *> after;
    for (Operation *op = a.loops.back().loop->getNextNode(); op; op = op->getNextNode())
      if (!op->hasTrait<OpTrait::IsTerminator>())
        after.push_back(op);
    for (Operation *op : after)
      if (isa<tile::StoreOp, tile::ArriveOp, scf::IfOp>(op))
        effects.push_back(op);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    if (!alone())
      tile::OpenTurnsOp::create(b, loc);
    tile::SnakeOrder order(kernel, b, loc);
    if (hasRoom())
      consumeTwoByTwo(order);
    else
      consumeOneByOne(order);
    for (Operation *op : llvm::reverse(after))
      if (isa<tile::StoreOp, scf::IfOp>(op) || op->use_empty())
        op->erase();
  }

  /// A unit ends before the next begins: nothing of one is held through the other.
  void consumeOneByOne(tile::SnakeOrder &order) {
    auto loop = scf::ForOp::create(b, loc, number(0), order.visits(), number(1), ValueRange{number(0)});
    b.setInsertionPointToEnd(loop.getBody());
    Value visit = loop.getInductionVar(), firstRound = loop.getRegionIterArgs().front();
    Unit unit = unitAt(order, visit, loadFields(order, visit), firstRound);
    State state = allSteps(unit, firstStep(unit));
    Value end = endRound(unit);
    Unit ended = unitAt(order, visit, loadFields(order, visit), firstRound); // for the stores
    lastUpdate(ended, state, before(end));
    scf::YieldOp::create(b, loc, end);
  }

  /// The last update of a unit runs with the first scores of the next.
  void consumeTwoByTwo(tile::SnakeOrder &order) {
    Value zero = number(0);
    SmallVector<Value> loaded = loadFields(order, zero);
    Unit first = unitAt(order, zero, loaded, zero);
    State state = firstStep(first);
    SmallVector<Value> inits{zero};
    llvm::append_range(inits, loaded);
    llvm::append_range(inits, state.carried);
    inits.push_back(state.p);
    auto loop = scf::ForOp::create(b, loc, zero, order.visits(), number(1), inits);
    b.setInsertionPointToEnd(loop.getBody());
    consumeUnit(order, loop.getInductionVar(), loop.getRegionIterArgs());
  }

  /// The steps of a visit behind its first, and the first of the next. `carried` and what is yielded: first round, fields,
  /// state.
  void consumeUnit(tile::SnakeOrder &order, Value visit, ValueRange carried) {
    size_t count = fields.size();
    Unit unit = unitAt(order, visit, carried.slice(1, count), carried[0]);
    SmallVector<Value> loaded = loadNextFields(order, visit);
    State begun{SmallVector<Value>(carried.drop_front(1 + count).drop_back()), carried.back()};
    State state = allSteps(unit, begun);
    Value end = endRound(unit), nextVisit = plus(visit, number(1));
    SmallVector<Value> flat(state.carried);
    flat.push_back(state.p);
    auto branch = scf::IfOp::create(b, loc, TypeRange(ValueRange(flat)), isLess(nextVisit, order.visits()), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard inner(b);
      auto yield = [&](State state) {
        state.carried.push_back(state.p);
        scf::YieldOp::create(b, loc, state.carried);
      };
      b.setInsertionPointToEnd(branch.thenBlock());
      Unit next = unitAt(order, nextVisit, loaded, end);
      yield(passOver(unit, next, state));
      b.setInsertionPointToEnd(branch.elseBlock());
      yield(lastUpdate(unit, state, before(end)));
    }
    SmallVector<Value> yielded{end};
    llvm::append_range(yielded, loaded);
    llvm::append_range(yielded, branch.getResults());
    scf::YieldOp::create(b, loc, yielded);
  }

  /// The steps behind the first.
  State allSteps(Unit &unit, State state) {
    for (Steps &steps : a.loops)
      for (Value yielded : steps.loop.getYieldedValues())
        prepare(unit, yielded, steps.loop);
    SmallVector<Value> bounds;
    for (Steps &steps : a.loops)
      bounds.push_back(narrow(unit.again.value(steps.loop.getUpperBound())));
    Value from = plus(unit.begin, unit.step);
    for (auto [steps, bound] : llvm::zip_equal(a.loops, bounds)) {
      state = loopOver(unit, steps, from, bound, state);
      from = arith::MaxSIOp::create(b, loc, from, bound); // the first step may have been the only one of its loop
    }
    tile::ReleaseOp::create(b, loc, queryReady, wide(unit.visit));
    return state;
  }

  State loopOver(Unit &unit, Steps &steps, Value from, Value to, const State &state) {
    SmallVector<Value> inits(state.carried);
    inits.push_back(state.p);
    auto loop = scf::ForOp::create(b, loc, from, to, unit.step, inits);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    ValueRange arguments = loop.getRegionIterArgs();
    State next = nextStep(unit, steps, loop.getInductionVar(), {SmallVector<Value>(arguments.drop_back()), arguments.back()});
    next.carried.push_back(next.p);
    scf::YieldOp::create(b, loc, next.carried);
    ValueRange results = loop.getResults();
    return {SmallVector<Value>(results.drop_back()), results.back()};
  }

  tile::KernelOp kernel;
  Attention &a;
  OpBuilder b;
  Location loc;
  int64_t panels = 0;                             ///< of 64 columns of a head
  SmallVector<Value> fields;                      ///< scalars that the kernel loads for its unit
  SmallVector<Operation *> effects;               ///< what stores behind the loops
  tile::StoreOp staged;                           ///< that goes through shared memory
  Value query, keys, values, result;              ///< rings
  Value queryReady, keysReady, valuesReady;
};

struct TilePipelineAttentionCudaPass : PassWrapper<TilePipelineAttentionCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilePipelineAttentionCudaPass)

  StringRef getArgument() const override { return "tile-pipeline-attention-cuda"; }
  StringRef getDescription() const override { return "attention as a pipeline of page copies and warpgroup products"; }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      Attention attention;
      if (!kernel->hasAttr("schedule") && !attention.match(kernel))
        Rewriter(kernel, attention).run();
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTilePipelineAttentionCudaPass() { return std::make_unique<TilePipelineAttentionCudaPass>(); }
