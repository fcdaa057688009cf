//===- UnitLoop.cpp -------------------------------------------------------===//

#include "lib/Transforms/Tile/UnitLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

/// Whether a value is, or comes from, one that is mapped or that is computed inside a loop.
bool Again::differs(Value value) {
  if (known.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  return op->getBlock() != &kernel.getBody().front() || llvm::any_of(op->getOperands(), [&](Value x) { return differs(x); });
}

Value Again::value(Value original) {
  if (Value done = known.lookupOrNull(original))
    return done;
  if (!differs(original))
    return original;
  return clone(original.getDefiningOp())->getResult(cast<OpResult>(original).getResultNumber());
}

SmallVector<Value> Again::values(ValueRange originals) {
  SmallVector<Value> result;
  for (Value original : originals)
    result.push_back(value(original));
  return result;
}

Operation *Again::clone(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *owner = isa<BlockArgument>(operand) ? operand.getParentBlock()->getParentOp() : operand.getDefiningOp();
      if (op->isAncestor(owner))
        continue;
      if (Value here = value(operand); here != operand)
        known.map(operand, here);
    }
  });
  return b.clone(*op, known);
}

UnitLoop::UnitLoop(KernelOp kernel, OpBuilder &b, Location loc, Again &again, int64_t crews, Value rounds) {
  Value units = UnitsOp::create(b, loc), step = CTAsOp::create(b, loc), first = kernel.getUnit(), round;
  if (crews > 1) {
    Value crew = CrewOp::create(b, loc);
    first = arith::AddIOp::create(b, loc, first, arith::MulIOp::create(b, loc, crew, step));
    step = arith::MulIOp::create(b, loc, step, arith::ConstantIndexOp::create(b, loc, crews));
    round = arith::MulIOp::create(b, loc, crew, rounds);
  } else {
    round = arith::ConstantIndexOp::create(b, loc, 0);
  }
  loop = scf::ForOp::create(b, loc, first, units, step, ValueRange(round));
  firstRound = loop.getRegionIterArg(0);
  again.map(kernel.getUnit(), loop.getInductionVar());
  b.setInsertionPointToEnd(loop.getBody());
}

SnakeOrder::SnakeOrder(KernelOp kernel, OpBuilder &builder, Location loc) : kernel(kernel), b(builder), loc(loc) {
  Value units = narrow(UnitsOp::create(b, loc)), ctas = narrow(CTAsOp::create(b, loc));
  Value rows = arith::DivUIOp::create(b, loc, units, ctas), rest = arith::RemUIOp::create(b, loc, units, ctas);
  Value joins = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, placeIn(rows, ctas), rest); // the last row, which is not full
  count = arith::AddIOp::create(b, loc, rows, arith::ExtUIOp::create(b, loc, b.getI32Type(), joins));
}

Value SnakeOrder::narrow(Value x) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
Value SnakeOrder::number(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))); }

Value SnakeOrder::placeIn(Value row, Value ctas) {
  Value own = narrow(kernel.getUnit()), mirrored = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, ctas, number(1)), own);
  Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arith::RemUIOp::create(b, loc, row, number(2)), number(1));
  return arith::SelectOp::create(b, loc, odd, mirrored, own);
}

Value SnakeOrder::unit(Value visit) {
  Value ctas = narrow(CTAsOp::create(b, loc));
  Value unit = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, visit, ctas), placeIn(visit, ctas));
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), unit);
}

void UnitLoop::close(OpBuilder &b, Value nextRound) {
  b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(b, loop.getLoc(), nextRound);
}

void llmc::tile::eraseUnused(KernelOp kernel) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(kernel.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}
