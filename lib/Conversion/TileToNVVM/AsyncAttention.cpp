//===- AsyncAttention.cpp - gathered copies, products of rows, turns ------===//
//
// What tile-pipeline-attention-cuda writes, in the instructions of Hopper. Operands of products are tiles of shared memory
// with 128-byte swizzling (PTX ISA 9.7.16.5.1): keys with k along the row (K-major), values with k down the rows (MN-major).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kRowBytes = 128, kPanel = 64; // of a panel: bytes of a row, columns

// Copies are issued one by one, some sixty cycles each: the warps share a slot's pages.
LogicalResult Emitter::emitGatherAsync(tile::GatherAsyncOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  auto ring = cast<tile::RingType>(op.getRing().getType());
  auto roles = op->getParentOfType<tile::RolesOp>();
  if (!roles || !roles.getWarps())
    return op.emitOpError("expected a producer with warps");
  int64_t tokens = op.getPageTokens(), pages = ring.getRows() / tokens, warps = cta.producers / 32;
  SmallVector<int64_t> box(memref.getRank(), 1);
  box[box.size() - 2] = tokens;
  box.back() = kPanel;
  FailureOr<Value> map = nextMap(op, op.getMemref(), box);
  if (failed(map))
    return failure();
  Value ownFirst = arith::SubIOp::create(b, loc, warp, index(cta.warps()));
  Value slot = slotOf(scalar(op.getRound()), ring.getStages()).first;
  Value full = barrier(op.getPipeline(), slot, /*empty=*/false);
  for (int64_t first = 0; first < pages; first += warps) {
    Value own = add(ownFirst, first);
    when(pages - first < warps ? less(own, index(pages)) : Value(), [&] {
      Value page = load(b.getI32Type(), at(scalar(op.getTable()), mul(add(scalar(op.getFirst()), own), 4)), 4);
      Value target = at(slotAddress(op.getRing(), slot), mul(own, tokens * kRowBytes));
      for (int64_t panel = 0; panel * kPanel < ring.getColumns(); ++panel) {
        Values coordinates{i32(panel * kPanel)};
        for (Value index : llvm::reverse(op.getIndices()))
          coordinates.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), scalar(index)));
        coordinates.push_back(page);
        copyBox(*map, at(target, panel * ring.getRows() * kRowBytes), coordinates, full);
      }
    });
  }
  return success();
}

/// `start` + bytes in the units of a descriptor's address.
static Value advanced(OpBuilder &b, Location loc, Value start, int64_t bytes) {
  if (!bytes)
    return start;
  return arith::AddIOp::create(b, loc, start, arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes >> 4)));
}

LogicalResult Emitter::emitWarpgroupDotRows(tile::WarpgroupDotRowsOp op) {
  auto ringA = cast<tile::RingType>(op.getA().getType()), ringB = cast<tile::RingType>(op.getB().getType());
  if (cta.transposed || ringA.getRows() != 16 * cta.warps())
    return op.emitOpError("expected 64 rows for each warpgroup, got ") << ringA.getRows();
  Value slotA = slotOf(scalar(op.getRoundA()), ringA.getStages()).first, slotB = slotOf(scalar(op.getRoundB()), ringB.getStages()).first;
  Value warpgroup = arith::DivUIOp::create(b, loc, warp, index(4));
  Value a = descriptor(op.getA(), slotA, mul(warpgroup, 64)), k = descriptor(op.getB(), slotB, {});
  int64_t columns = ringB.getRows();
  Value chain = LLVM::PoisonOp::create(b, loc, structOf(b.getContext(), columns / 2));
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t depth = 0; depth < static_cast<int64_t>(op.getDepth()); depth += 16) {
    auto place = [&](const tile::RingType &ring) { return depth / kPanel * ring.getRows() * kRowBytes + depth % kPanel * 2; };
    chain = NVVM::WgmmaMmaAsyncOp::create(b, loc, chain.getType(), chain, advanced(b, loc, a, place(ringA)), advanced(b, loc, k, place(ringB)),
                                          NVVM::MMAShapeAttr::get(b.getContext(), 64, static_cast<int>(columns), 16), NVVM::WGMMATypes::bf16,
                                          NVVM::WGMMATypes::bf16, NVVM::WGMMATypes::f32,
                                          depth ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero, NVVM::WGMMAScaleIn::one,
                                          NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row, NVVM::MMALayout::col, NVVM::MMAIntOverflowAttr());
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  mapping.map(op.getResult(), chain);
  return success();
}

// The op of the nvvm dialect takes both operands from shared memory; this form is written as PTX (9.7.16.5.2).
LogicalResult Emitter::emitWarpgroupUpdate(tile::WarpgroupUpdateOp op) {
  auto ring = cast<tile::RingType>(op.getB().getType());
  Value slot = slotOf(scalar(op.getRoundB()), ring.getStages()).first;
  // Panels of 64 columns follow each other after as many rows as the ring has.
  Value start = descriptor(op.getB(), slot, {}, ring.getRows() * kRowBytes);
  Value chain = scalar(op.getAcc());
  size_t count = cast<LLVM::LLVMStructType>(chain.getType()).getBody().size();
  int64_t columns = cast<tile::InFlightType>(op.getAcc().getType()).getVector().getDimSize(1);
  std::string sums, constraints;
  for (size_t i = 0; i < count; ++i) {
    sums += (i ? ", $" : "$") + std::to_string(i);
    constraints += "=f,";
  }
  for (size_t i = 0; i < count; ++i)
    constraints += std::to_string(i) + ",";
  constraints += "r,r,r,r,l";
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32.bf16.bf16 {" + sums + "}, {";
  for (size_t i = 0; i < 4; ++i)
    text += (i ? ", $" : "$") + std::to_string(2 * count + i);
  text += "}, $" + std::to_string(2 * count + 4) + ", 1, 1, 1, 1;";

  const Values &a = regs(op.getA());
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t k = 0; k < ring.getRows(); k += 16) { // 16 columns of an accumulator are exactly an operand's fragment
    Values operands;
    for (size_t i = 0; i < count; ++i)
      operands.push_back(LLVM::ExtractValueOp::create(b, loc, chain, i));
    for (int64_t i = 0; i < 8; i += 2)
      operands.push_back(pair(a[k / 2 + i], a[k / 2 + i + 1]));
    operands.push_back(advanced(b, loc, start, k * kRowBytes));
    chain = assembly(text, constraints, chain.getType(), operands);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  mapping.map(op.getResult(), chain);
  return success();
}

// A named barrier for each warpgroup; it opens when the warpgroup has come and the one before has passed the turn on.
LogicalResult Emitter::emitTurn(Operation *op) {
  int64_t warpgroups = cta.threads / 128;
  Value both = i32(256), warpgroup = arith::IndexCastOp::create(b, loc, b.getI32Type(), arith::DivUIOp::create(b, loc, warpOfCTA, index(4)));
  if (isa<tile::TakeTurnOp>(op)) {
    meet(arith::AddIOp::create(b, loc, warpgroup, i32(kFirstTurn)), 256);
    return success();
  }
  if (isa<tile::OpenTurnsOp>(op)) {
    Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, warpgroup, i32(warpgroups - 1));
    when(isLast, [&] { NVVM::BarrierArriveOp::create(b, loc, i32(kFirstTurn), both); });
    return success();
  }
  Value next = arith::RemUIOp::create(b, loc, arith::AddIOp::create(b, loc, warpgroup, i32(1)), i32(warpgroups));
  NVVM::BarrierArriveOp::create(b, loc, arith::AddIOp::create(b, loc, next, i32(kFirstTurn)), both);
  return success();
}
