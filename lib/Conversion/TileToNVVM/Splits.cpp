//===- Splits.cpp - warps that share the steps of a product ---------------===//
//
// A product of few tokens is as fast as its weights come: all warps of the card should have loads in flight, however few
// panels the weight has. So several warps compute the same columns, split s the steps s, s + splits, ... of k, and their
// sums are added in the order of the splits: the order is the schedule's, and no other result depends on it.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// A loop that carries nothing but sums of products from zero.
bool Emitter::isSplit(scf::ForOp op) {
  if (cta.splits == 1 || op.getInitArgs().empty())
    return false;
  return llvm::all_of(llvm::zip_equal(op.getInitArgs(), op.getYieldedValues()), [](auto pair) {
    auto [init, yielded] = pair;
    Operation *last = yielded.getDefiningOp();
    return matchPattern(init, m_AnyZeroFloat()) && isa_and_nonnull<tile::DotOp, tile::ScaledDotOp>(last);
  });
}

Value Emitter::splitNumber() {
  if (split)
    return split;
  // Made at the start of the kernel, where it dominates every use.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(quad.getDefiningOp());
  return split = arith::DivUIOp::create(b, loc, warpOfCTA, index(cta.warps()));
}

Values Emitter::foldSplits(ValueRange values) {
  int64_t count = static_cast<int64_t>(values.size()), lanes = 32 * cta.warps();
  Value memory = shared(b.getF32Type(), lanes * cta.splits * count);
  Value lane = arith::RemUIOp::create(b, loc, thread, index(lanes)); // of the split
  // [split][value][lane]
  auto place = [&](Value base, int64_t constant) { return at(at(memory, mul(base, 4)), 4 * constant); };
  Value own = add(lane, mul(splitNumber(), lanes * count));
  NVVM::Barrier0Op::create(b, loc); // the memory may still be read for an earlier loop
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(b, loc, value, place(own, static_cast<int64_t>(i) * lanes), 4);
  NVVM::Barrier0Op::create(b, loc);
  Values sums;
  for (int64_t i = 0; i < count; ++i) {
    Value sum = load(b.getF32Type(), place(lane, i * lanes), 4);
    for (int64_t split = 1; split < cta.splits; ++split)
      sum = arith::AddFOp::create(b, loc, sum, load(b.getF32Type(), place(lane, (split * count + i) * lanes), 4));
    sums.push_back(sum);
  }
  return sums;
}
