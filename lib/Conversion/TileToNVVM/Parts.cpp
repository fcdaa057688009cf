//===- Parts.cpp - units of several CTAs ----------------------------------===//
//
// The CTAs of a unit are a cluster; each has sums over its part of k. Every one gets some
// rows of all parts from the others' registers (st.async, PTX ISA 9.7.9.12, which counts
// bytes on an mbarrier of the receiver) and adds them in the order of the parts: the same
// sums whichever CTA comes first.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kPiece = 16, kTicks = 10'000'000; // bytes of a store; of one attempt to wait

Value Emitter::part() {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), NVVM::BlockInClusterIdXOp::create(b, loc, b.getI32Type()));
}

void Emitter::clusterMeets() {
  NVVM::ClusterArriveOp::create(b, loc, UnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, UnitAttr());
}

void Emitter::openParts() {
  if (cta.parts == 1)
    return;
  partsBarriers = dynamicOffset = llvm::alignTo(dynamicOffset, kPiece);
  dynamicOffset += kPiece;
  when(less(thread, index(1)), [&] {
    NVVM::MBarrierInitOp::create(b, loc, dynamicShared(partsBarriers), i32(1), Value());
    NVVM::MBarrierInitOp::create(b, loc, dynamicShared(partsBarriers + 8), i32(cta.warps() * cta.parts), Value());
    NVVM::FenceMbarrierInitOp::create(b, loc);
  });
  clusterMeets();
}

void Emitter::closeParts() {
  if (cta.parts > 1) // the others may still arrive at this one's barriers
    clusterMeets();
}

/// The address of a place in the shared memory of another CTA of the cluster.
Value Emitter::inPart(Value place, int64_t part) {
  auto remote = LLVM::LLVMPointerType::get(b.getContext(), 7);
  return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), NVVM::MapaOp::create(b, loc, remote, place, i32(part)));
}

LogicalResult Emitter::emitSumParts(tile::SumPartsOp op) {
  const Layout &from = layouts.of(op.getSource()), &to = layouts.of(op.getResult());
  size_t each = to.size();
  bool fits = cta.parts > 1 && cta.transposed && from.rows == cta.parts * to.rows && from.size() == cta.parts * each && each % 4 == 0;
  for (size_t i = 0; fits && i < from.size(); ++i)
    fits = from.regs[i] == std::pair(static_cast<int32_t>(to.regs[i % each].first + i / each * to.rows), to.regs[i % each].second);
  if (!fits)
    return op.emitOpError("expected a transposed product, its rows dealt to ") << cta.parts << " parts, got " << op.getSource().getType();
  const Values source = regsIn(op.getSource(), from);
  int64_t pieces = kPiece * cta.threads, bytes = pieces * each / 4; // of one register of four; of a part
  dynamicOffset = llvm::alignTo(dynamicOffset, kPiece);
  Value own = at(dynamicShared(dynamicOffset), mul(thread, kPiece)), full = dynamicShared(partsBarriers), empty = dynamicShared(partsBarriers + 8);
  dynamicOffset += bytes * cta.parts;
  auto parity = [&](int64_t change) -> Value {
    Value visit = arith::IndexCastOp::create(b, loc, b.getI32Type(), scalar(op.getVisit()));
    return arith::AndIOp::create(b, loc, arith::AddIOp::create(b, loc, visit, i32(change)), i32(1));
  };
  NVVM::MBarrierTryWaitParityOp::create(b, loc, empty, parity(1), i32(kTicks)); // all have read what they got last
  when(less(thread, index(1)), [&] {
    NVVM::MBarrierArriveExpectTxOp::create(b, loc, Type(), full, i32(bytes * (cta.parts - 1)), NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
  });
  Value number = part(), sent = at(own, mul(number, bytes));
  for (int64_t receiver = 0; receiver < cta.parts; ++receiver) {
    Value itself = equal(number, index(receiver));
    ArrayRef<Value> rows = ArrayRef(source).slice(receiver * each, each);
    when(itself, [&] { // a thread reads what it wrote
      for (size_t i = 0; i < each; ++i)
        LLVM::StoreOp::create(b, loc, rows[i], at(sent, pieces * (i / 4) + 4 * (i % 4)), 4);
    });
    when(arith::XOrIOp::create(b, loc, itself, arith::ConstantOp::create(b, loc, b.getBoolAttr(true))), [&] {
      Value to = inPart(sent, receiver), barrier = inPart(full, receiver);
      for (size_t i = 0; i < each; i += 4)
        assembly("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [$0], {$1, $2, $3, $4}, [$5];", "r,f,f,f,f,r", {},
                 {arith::AddIOp::create(b, loc, to, i32(pieces * i / 4)), rows[i], rows[i + 1], rows[i + 2], rows[i + 3], barrier});
    });
  }
  NVVM::MBarrierTryWaitParityOp::create(b, loc, full, parity(0), i32(kTicks));
  Values sums;
  for (size_t i = 0; i < each; i += 4) {
    Value sum;
    for (int64_t other = 0; other < cta.parts; ++other) {
      Value x = load(VectorType::get({4}, b.getF32Type()), at(own, other * bytes + pieces * i / 4), kPiece);
      sum = sum ? Value(arith::AddFOp::create(b, loc, sum, x)) : x;
    }
    for (int64_t lane = 0; lane < 4; ++lane)
      sums.push_back(extract(sum, lane));
  }
  when(less(arith::AndIOp::create(b, loc, thread, index(31)), index(1)), [&] {
    for (int64_t sender = 0; sender < cta.parts; ++sender)
      assembly("mbarrier.arrive.shared::cluster.b64 _, [$0];", "r", {}, inPart(empty, sender));
  });
  set(op.getResult(), sums);
  return success();
}
