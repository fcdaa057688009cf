//===- UnpackAsync.cpp - producers that unpack codes ----------------------===//
//
// Codes cannot come by bulk copies: a slot has what wgmma reads. So four warps of producers read them, dequantise and round them as
// for mma.sync (Fragments.cpp), and store them as such a copy would: eight neighbouring k of a row are 16 bytes, at a place
// that the row's number swizzles. What they store is made visible to the asynchronous proxy (PTX ISA 8.8), then each
// warp arrives at the slot's barrier.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kStepK = 64, kRowBytes = 2 * kStepK;

LogicalResult Emitter::emitUnpackAsync(tile::UnpackAsyncOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  auto ring = cast<tile::RingType>(op.getRing().getType());
  bool paired = memref.getRank() == 4;
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)memref.getStridesAndOffset(strides, offset); // in bytes
  PackedRef ref;
  ref.type = tile::PackedType::get(b.getContext(), kStepK, 16, op.getFormat());
  ref.recordBytes = strides[strides.size() - 2];
  Value ownWarp = arith::SubIOp::create(b, loc, warpOfCTA, index(cta.threads / 32));
  // Past the last step tokens are zeros; what they meet has to be a number.
  int64_t lastStep = memref.getDimSize(memref.getRank() - 2) - kStepK / tile::recordK(op.getFormat());
  Value record = arith::MinUIOp::create(b, loc, scalar(op.getRecord()), index(lastStep));
  Value base = at(scalar(op.getMemref()), mul(record, ref.recordBytes));

  // Of a unit's panels (or pairs) this warp has numbers w, w + 4, ... of each kind.
  struct Piece {
    Value row;      // of the slot, less that of the lane
    int64_t second; // from the rows of the lower half of a panel to the upper
    Value words[2][2][4]; // [32 k][half of the panel's rows]
  };
  SmallVector<Piece> pieces;
  int64_t kinds = paired ? 2 : 1;
  for (int64_t i = 0; i < ring.getRows() / 16 / kinds; i += 4) {
    Value number = add(ownWarp, i);
    Value there = arith::MinUIOp::create(b, loc, add(number, scalar(op.getPanel())), index(memref.getDimSize(0) - 1));
    for (int64_t kind = 0; kind < kinds; ++kind) {
      Value panel = at(at(base, mul(there, strides.front())), paired ? kind * strides[1] : 0);
      Piece piece{add(mul(number, 16 * kinds), 8 * kind), 8 * kinds, {}};
      for (int64_t group = 0; group < 2; ++group)
        for (int64_t half = 0; half < 2; ++half)
          dequantize(ref, panel, group, 8 * half, piece.words[group][half]);
      pieces.push_back(piece);
    }
  }

  acquire(op.getPipeline(), op.getRound(), op.getBytes(), /*manyThreads=*/true);
  Value slot = slotOf(scalar(op.getRound()), ring.getStages()).first, target = slotAddress(op.getRing(), slot);
  auto four = VectorType::get({4}, b.getI32Type());
  for (int64_t k = 0; k < 2; ++k) { // rows are multiples of eight and the lane's number
    Value chunk = mul(arith::XOrIOp::create(b, loc, add(quad, 4 * k), group), 16);
    Value lane = at(target, add(mul(group, kRowBytes), chunk));
    for (const Piece &piece : pieces)
      for (int64_t half = 0; half < 2; ++half) {
        Value all = LLVM::PoisonOp::create(b, loc, four);
        for (int64_t i = 0; i < 4; ++i)
          all = LLVM::InsertElementOp::create(b, loc, all, piece.words[k][half][i], i32(i));
        LLVM::StoreOp::create(b, loc, all, at(lane, mul(add(piece.row, half * piece.second), kRowBytes)), 16);
      }
  }
  assembly("fence.proxy.async.shared::cta;", "", {}, {});
  NVVM::SyncWarpOp::create(b, loc, i32(-1));
  Value first = equal(arith::AndIOp::create(b, loc, thread, index(31)), index(0));
  when(first, [&] {
    NVVM::MBarrierArriveOp::create(b, loc, Type(), barrier(op.getPipeline(), slot, /*empty=*/false), Value(), NVVM::MemScopeKind::CTA,
                                   /*relaxed=*/false);
  });
  return success();
}
