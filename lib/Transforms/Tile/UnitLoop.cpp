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

UnitLoop::UnitLoop(KernelOp kernel, OpBuilder &b, Location loc, Again &again, Order order) {
  Value units = UnitsOp::create(b, loc), ctas = CTAsOp::create(b, loc), first = kernel.getUnit();
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value zero = index(0), one = index(1);
  if (order == Strided) {
    loop = scf::ForOp::create(b, loc, first, units, ctas, zero);
    firstRound = loop.getRegionIterArg(0);
    again.map(first, loop.getInductionVar());
    b.setInsertionPointToEnd(loop.getBody());
    return;
  }
  Value mirrored = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, ctas, one), first);
  auto placeIn = [&](Value row) -> Value {
    Value odd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, arith::RemUIOp::create(b, loc, row, index(2)), one);
    return arith::SelectOp::create(b, loc, odd, mirrored, first);
  };
  Value rows = arith::DivUIOp::create(b, loc, units, ctas), rest = arith::RemUIOp::create(b, loc, units, ctas);
  Value joins = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, placeIn(rows), rest); // the last row, which is not full
  Value visits = arith::AddIOp::create(b, loc, rows, arith::SelectOp::create(b, loc, joins, one, zero));
  loop = scf::ForOp::create(b, loc, zero, visits, one, zero);
  firstRound = loop.getRegionIterArg(0);
  visit = loop.getInductionVar();
  b.setInsertionPointToEnd(loop.getBody());
  again.map(first, arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, visit, ctas), placeIn(visit)));
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
