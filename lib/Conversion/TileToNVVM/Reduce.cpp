//===- Reduce.cpp - tile.reduce over threads ------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

Value Emitter::combine(tile::Reduction kind, Value x, Value y) {
  bool integers = x.getType().isInteger();
  if (kind == tile::Reduction::Add)
    return integers ? Value(arith::AddIOp::create(b, loc, x, y)) : Value(arith::AddFOp::create(b, loc, x, y));
  return integers ? Value(arith::MaxSIOp::create(b, loc, x, y)) : Value(arith::MaxNumFOp::create(b, loc, x, y));
}

Value Emitter::shuffleXor(Value x, int64_t mask) {
  return NVVM::ShflOp::create(b, loc, x.getType(), i32(-1), x, i32(mask), i32(31), NVVM::ShflKind::bfly, UnitAttr());
}

/// One value per warp and register, combined in the order of the warps' bits, the highest first.
Values Emitter::acrossWarps(tile::Reduction kind, Values regs) {
  int64_t warps = cta.warps(), count = regs.size();
  Value memory = shared(regs.front().getType(), cta.threads * count);
  Type element = regs.front().getType();
  auto slot = [&](Value warpNumber, int64_t constant, int64_t reg) {
    // [warp][register][lane]
    Value lane = arith::AndIOp::create(b, loc, thread, index(31));
    Value place = add(lane, (constant * count + reg) * 32);
    if (warpNumber)
      place = add(place, mul(warpNumber, count * 32));
    return at(memory, mul(place, 4));
  };
  // Beside producers the consumers meet alone.
  auto all = [&] { cta.producers ? consumersMeet() : void(NVVM::Barrier0Op::create(b, loc)); };
  all(); // the memory may still be read for an earlier round of a loop
  for (int64_t reg = 0; reg < count; ++reg)
    LLVM::StoreOp::create(b, loc, regs[reg], slot(warp, 0, reg), 4);
  all();
  Values results;
  for (int64_t reg = 0; reg < count; ++reg) {
    Values parts;
    for (int64_t w = 0; w < warps; ++w)
      parts.push_back(load(element, slot({}, w, reg), 4));
    for (int64_t half = warps / 2; half; half /= 2)
      for (int64_t w = 0; w < half; ++w)
        parts[w] = combine(kind, parts[w], parts[w + half]);
    results.push_back(parts[0]);
  }
  return results;
}

// The tree of tile.reduce on the bits of the element's number: element (q * threads + thread) * V + v. Bits are combined
// from the highest down to 8, then 1, 2, 4. Addition commutes, so a butterfly gives all threads the same bits.
Value Emitter::reduceSpread(tile::Reduction kind, Values regs, const Layout &layout) {
  int64_t perThread = layout.col.scale, columns = layout.cols;
  for (size_t half = regs.size() / 2; half >= static_cast<size_t>(perThread) && regs.size() > static_cast<size_t>(perThread); half /= 2) {
    for (size_t i = 0; i < half; ++i)
      regs[i] = combine(kind, regs[i], regs[i + half]);
    regs.resize(half);
  }
  if (cta.warps() > 1 && !layout.col.modulo)
    regs = acrossWarps(kind, regs);
  auto fold = [&](int64_t distance) { // of the element's number
    if (distance >= perThread) {
      for (Value &reg : regs)
        reg = combine(kind, reg, shuffleXor(reg, distance / perThread));
      return;
    }
    // Inside the thread: 1 and 2 come in this order, so that neighbours are combined first.
    Values next;
    for (size_t i = 0; i < regs.size(); i += 2)
      next.push_back(combine(kind, regs[i], regs[i + 1]));
    regs = next;
  };
  int64_t lanes = std::min<int64_t>(columns, 32 * perThread);
  for (int64_t distance = lanes / 2; distance >= 8; distance /= 2)
    fold(distance);
  for (int64_t distance = 1; distance <= 4; distance *= 2)
    fold(distance);
  return regs.front();
}

LogicalResult Emitter::emitReduce(tile::ReduceOp op) {
  if (isFree(op.getSource()))
    return op.emitOpError("expected a source that is no constant on a GPU");
  const Layout &layout = layouts.of(op.getSource());
  Values regs = this->regs(op.getSource());
  if (layout.kind == Layout::Spread) {
    if (layout.colsPadded || (layout.col.modulo && layout.cols > 32) || !llvm::isPowerOf2_64(layout.cols))
      return op.emitOpError("expected a power of two columns, at most 32 or at least the CTA's threads, got ") << layout.cols;
    mapping.map(op.getResult(), reduceSpread(op.getKind(), regs, layout));
    return success();
  }
  if (layout.kind != Layout::Accumulator || cta.transposed || layout.colsPadded)
    return op.emitOpError("expected the rows of a product, whole columns, on a GPU");
  const Layout &result = layouts.of(op.getResult());
  constexpr size_t kChains = 4; // independent: an addition waits four cycles for the one before
  SmallVector<Values> chains(result.size());
  SmallVector<size_t> seen(result.size(), 0);
  for (auto [i, at] : llvm::enumerate(layout.regs)) {
    size_t row = llvm::find(result.regs, std::pair<int32_t, int32_t>(at.first, 0)) - result.regs.begin();
    size_t chain = seen[row]++ % kChains;
    if (chain == chains[row].size())
      chains[row].push_back(regs[i]);
    else
      chains[row][chain] = combine(op.getKind(), chains[row][chain], regs[i]);
  }
  Values sums;
  for (Values &parts : chains) {
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2))
      for (size_t i = 0; 2 * i + 1 < parts.size() + (parts.size() & 1); ++i)
        parts[i] = 2 * i + 1 < parts.size() ? combine(op.getKind(), parts[2 * i], parts[2 * i + 1]) : parts[2 * i];
    sums.push_back(parts.front());
  }
  for (Value &sum : sums) // the four lanes that share a row
    for (int64_t mask : {1, 2})
      sum = combine(op.getKind(), sum, shuffleXor(sum, mask));
  set(op.getResult(), sums);
  return success();
}
