//===- AttentionConsumers.cpp - products and softmax ----------------------===//

#include "lib/Transforms/Tile/AttentionRole.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace llmc;
using tile::AttentionRole;

namespace {

constexpr int64_t kNarrow = 64; // columns of a head up to where the softmax is longer than the products (measured at 64 and 128)

class Consumers : AttentionRole {
public:
  explicit Consumers(const AttentionRole &role) : AttentionRole(role) {}

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

private:
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
      if (i == steps.accIndex || yielded.getDefiningOp<scf::IfOp>()) // what is put together reads the update
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

  SmallVector<Operation *> effects; ///< what stores behind the loops
};

} // namespace

void tile::consumeAttention(const AttentionRole &role, Block &block) { Consumers(role).consume(block); }
