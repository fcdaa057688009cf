//===- OwnRows.cpp - rows that a CTA computes for its products ------------===//
//
// Consumers write the left operand of their products themselves, as [columns / 8][rows][8 bf16] without swizzling (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Shared Memory Layout"): what the instruction takes for its 8 rows of 16 bytes begins
// at row 0 and goes on into the next columns where the unit has fewer rows, whose results nobody wants. So one row of 4,096 columns takes
// 8 KiB and not eight times as much. The products read shared memory through another proxy, so a fence stands before the
// barrier behind which they start.
//
// And where rows of results go to places of their own: scattered to the slots of a paged cache.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <map>

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kPiece = 16, kRowsRead = 8; // bytes of eight columns of a row; rows that the instruction reads

static int64_t ownRowsOf(Value own) { return cast<MemRefType>(own.getType()).getDimSize(0); }

LogicalResult Emitter::emitAllocRows(tile::AllocRowsOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  dynamicOffset = llvm::alignTo(dynamicOffset, kPiece);
  dynamicPlaces[op.getMemref()] = dynamicOffset;
  dynamicOffset += 2 * memref.getNumElements() + kPiece * kRowsRead;
  return success();
}

/// `registers`, bf16 that are neighbours, as one value to store.
static Value joined(Emitter &e, OpBuilder &b, Location loc, ArrayRef<Value> registers) {
  Value all = LLVM::PoisonOp::create(b, loc, VectorType::get({static_cast<int64_t>(registers.size())}, b.getBF16Type()));
  for (auto [i, x] : llvm::enumerate(registers))
    all = LLVM::InsertElementOp::create(b, loc, all, x, e.i32(static_cast<int64_t>(i)));
  return all;
}

LogicalResult Emitter::emitStage(tile::StageOp op) {
  if (isFree(op.getValue()))
    return op.emitOpError("expected a value that is no constant");
  const Layout &layout = layouts.of(op.getValue());
  int64_t run = layout.col.scale, rows = ownRowsOf(op.getOwn()); // run: neighbours of a thread
  if (layout.kind != Layout::Spread || layout.colsPadded || layout.col.modulo || divisorOf(op.getColumn()) % 8)
    return op.emitOpError("expected as many columns as all consumers have, from a multiple of 8 on, got ") << op.getValue().getType();
  Value own = base(layout.col), first = scalar(op.getColumn());
  Value start = at(dynamicShared(dynamicPlaces.at(op.getOwn())), mul(scalar(op.getRow()), kPiece));
  const Values &registers = regs(op.getValue());
  for (size_t i = 0; i < registers.size(); i += run) {
    Value column = add(add(first, own), layout.regs[i].second);
    Value bytes = add(mul(arith::DivUIOp::create(b, loc, column, index(8)), kPiece * rows), mul(arith::RemUIOp::create(b, loc, column, index(8)), 2));
    LLVM::StoreOp::create(b, loc, joined(*this, b, loc, ArrayRef(registers).slice(i, run)), at(start, bytes), 2 * run);
  }
  return success();
}

/// No swizzling: bytes from eight columns to the next eight, from eight rows to the next (which are read again where there are none).
Value Emitter::ownDescriptor(Value own, Value first) {
  int64_t rows = ownRowsOf(own), nextColumns = kPiece * rows, nextRows = rows > kRowsRead ? kPiece * kRowsRead : 0;
  Value place = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), dynamicShared(dynamicPlaces.at(own)));
  Value bytes = mul(arith::DivUIOp::create(b, loc, first, index(8)), nextColumns);
  place = arith::AddIOp::create(b, loc, place, arith::IndexCastOp::create(b, loc, b.getI32Type(), bytes));
  Value start = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, place, i32(4)), i32(0x3FFF));
  uint64_t mode = (uint64_t(nextRows >> 4) << 32) | (uint64_t(nextColumns >> 4) << 16);
  return arith::OrIOp::create(b, loc, arith::ExtUIOp::create(b, loc, b.getI64Type(), start),
                              arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(mode))));
}

LogicalResult Emitter::emitWarpgroupDotOwn(tile::WarpgroupDotOwnOp op) {
  int64_t rows = cast<tile::InFlightType>(op.getResult().getType()).getVector().getDimSize(0);
  // 16 k are two times eight columns further.
  return startProducts(op, op.getAcc(), ownDescriptor(op.getOwn(), scalar(op.getFirst())), 2 * ownRowsOf(op.getOwn()), rows, op.getB(), op.getRoundB());
}

LogicalResult Emitter::emitPublish(tile::PublishOp) {
  assembly("fence.proxy.async.shared::cta;", "", {}, {});
  consumersMeet();
  return success();
}

LogicalResult Emitter::emitScatter(tile::ScatterOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  const Layout &layout = layouts.of(op.getValue());
  SmallVector<int64_t> strides;
  int64_t offset, rank = memref.getRank(), page = memref.getDimSize(rank - 2);
  (void)memref.getStridesAndOffset(strides, offset);
  if (layout.kind != Layout::Accumulator || layout.rowsPadded || layout.colsPadded || strides.back() != 1)
    return op.emitOpError("expected whole blocks of a product and contiguous columns, got ") << op.getValue().getType() << " and " << memref;
  Value start = at(scalar(op.getMemref()), mul(base(layout.col), 2));
  for (auto [i, index] : llvm::enumerate(op.getIndices().drop_back())) // behind the page
    start = at(start, mul(scalar(index), 2 * strides[1 + i]));
  start = at(start, mul(scalar(op.getIndices().back()), 2));
  std::map<int32_t, SmallVector<size_t>> byRow;
  for (auto [i, place] : llvm::enumerate(layout.regs))
    byRow[place.first].push_back(i);
  const Values values = regsIn(op.getValue(), layout);
  for (auto &[constant, registers] : byRow) {
    Value row = add(scalar(op.getFirst()), coordinate(layout.row, constant));
    when(op.getLimit() ? less(row, scalar(op.getLimit())) : Value(), [&] {
      Value slot = load(b.getI32Type(), at(scalar(op.getSlots()), mul(row, 4)), 4);
      when(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, slot, i32(0)), [&] {
        Value wide = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), slot);
        Value bytes = add(mul(arith::DivUIOp::create(b, loc, wide, index(page)), 2 * strides[0]),
                          mul(arith::RemUIOp::create(b, loc, wide, index(page)), 2 * strides[rank - 2]));
        Value to = at(start, bytes);
        for (size_t i : registers)
          LLVM::StoreOp::create(b, loc, values[i], at(to, 2 * static_cast<int64_t>(layout.regs[i].second)), 2);
      });
    });
  }
  return success();
}
