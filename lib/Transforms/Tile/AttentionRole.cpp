//===- AttentionRole.cpp --------------------------------------------------===//

#include "lib/Transforms/Tile/AttentionRole.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace llmc::tile;

static constexpr int64_t kWide = 129; // columns of a head from where on registers are short

Value AttentionRole::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value AttentionRole::number(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))); }
Value AttentionRole::wide(Value x) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), x); }
Value AttentionRole::narrow(Value x) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
Value AttentionRole::plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value AttentionRole::before(Value round) { return arith::SubIOp::create(b, loc, round, number(1)); }
Value AttentionRole::isLess(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }

SmallVector<Value> AttentionRole::loadFields(SnakeOrder &order, Value visit) {
  Again again(kernel, b);
  again.map(kernel.getUnit(), order.unit(visit));
  return again.values(fields);
}

SmallVector<Value> AttentionRole::loadNextFields(SnakeOrder &order, Value visit) {
  return loadFields(order, arith::MinSIOp::create(b, loc, plus(visit, number(1)), before(order.visits())));
}

bool AttentionRole::isFrugal() const { return kernel->getParentOp()->hasAttr("llmc.frugal"); }

bool AttentionRole::hasRoom() const { return a.depth < kWide && !alone() && !isFrugal(); }

AttentionRole::Unit AttentionRole::unitAt(SnakeOrder &order, Value visit, ValueRange loaded, Value firstRound) {
  Unit unit{Again(kernel, b), visit, firstRound, {}, {}, {}};
  unit.again.map(kernel.getUnit(), order.unit(visit));
  for (auto [field, value] : llvm::zip_equal(fields, loaded))
    unit.again.map(field, value);
  unit.begin = narrow(unit.again.value(a.loops.front().loop.getLowerBound()));
  unit.end = narrow(unit.again.value(a.loops.back().loop.getUpperBound()));
  unit.step = narrow(unit.again.value(a.loops.front().loop.getStep()));
  return unit;
}

Value AttentionRole::roundOf(const Unit &unit, Value block) {
  return plus(unit.firstRound, arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, block, unit.begin), unit.step));
}

Value AttentionRole::endRound(const Unit &unit) {
  Value count = plus(arith::SubIOp::create(b, loc, unit.end, unit.begin), before(unit.step));
  return plus(unit.firstRound, arith::DivUIOp::create(b, loc, count, unit.step));
}

void AttentionRole::prepare(Unit &unit, Value value, scf::ForOp loop) {
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

Value AttentionRole::copyOf(Unit &unit, Value value, scf::ForOp loop, IRMapping &known) {
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
