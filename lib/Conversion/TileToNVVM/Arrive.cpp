//===- Arrive.cpp - units that put their parts together -------------------===//
//
// Threads of a CTA store, then meet, then one of them counts: its atomic releases what all have stored, since it comes
// behind the barrier (PTX ISA 8.9, causality order), and in the last unit acquires what the others have released, for all
// threads, since they meet it again. Fences of all threads would say no more, and each waits until its stores have arrived. The
// counter is a place in line, never part of a sum: results do not depend on who is last.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

LogicalResult Emitter::emitArrive(tile::ArriveOp op) {
  dynamicOffset = llvm::alignTo(dynamicOffset, 16);
  Value flag = dynamicShared(dynamicOffset);
  dynamicOffset += 16;
  Type i32Type = b.getI32Type();
  consumersMeet();
  when(less(thread, index(1)), [&] {
    Value counter = at(scalar(op.getCounters()), mul(scalar(op.getIndex()), 4));
    Value before = assembly("atom.acq_rel.gpu.global.add.u32 $0, [$1], 1;", "=r,l,~{memory}", i32Type, {counter});
    Value parts = arith::IndexCastOp::create(b, loc, i32Type, scalar(op.getParts()));
    Value last = equal(arith::AddIOp::create(b, loc, before, i32(1)), parts);
    when(last, [&] { LLVM::StoreOp::create(b, loc, i32(0), counter, 4); });
    LLVM::StoreOp::create(b, loc, arith::ExtUIOp::create(b, loc, i32Type, last), flag, 4);
  });
  consumersMeet();
  mapping.map(op.getLast(), equal(load(i32Type, flag, 4), i32(1)));
  return success();
}
