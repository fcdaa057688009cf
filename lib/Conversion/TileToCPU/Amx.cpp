//===- Amx.cpp - products of bf16_eo32 in tile registers ------------------===//
//
// tdpbf16ps multiplies 16 rows of 32 k by a panel of 16 columns, as bf16_eo32 says (Intel's manual, vol. 2: an even and an odd
// chain of multiply-adds from zero, then their sum to the accumulator; round to nearest, denormals flushed). Sums of blocks of
// 16 tokens stay in tile registers from their zeros to the end of the loop over k; then they go through memory of the thread to
// the registers of whatever comes behind. Two such blocks by two panels are four accumulators and four operands: all eight
// tiles that there are. A kernel calls nothing, so no tile lives across a call; code generation checks that none is spilled.
//
// Emulated tiles are 1 KiB of the thread's memory each, so that the same structure runs, to the bit, where no AMX is.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

static constexpr int64_t kRows = 16, kRowBytes = 64; // of a tile: 16 f32, or 32 bf16

namespace {

/// The instructions, or what they do.
class Tiles {
public:
  Tiles(Emitter &e) : e(e) {}

  Type type() {
    return e.machine.emulateAmx ? Type(LLVM::LLVMPointerType::get(e.b.getContext())) : Type(LLVM::LLVMX86AMXType::get(e.b.getContext()));
  }
  Value zero() {
    if (!e.machine.emulateAmx)
      return e.intrinsic("llvm.x86.tilezero.internal", type(), {rows(), bytes()});
    Value tile = e.stack(kRows * kRowBytes);
    for (int64_t row = 0; row < kRows; ++row)
      e.store(e.splatF32(e.f32s(), 0), tile, row * kRowBytes);
    return tile;
  }
  /// `streamed`: read once and not soon again; leaves the first-level cache to the others.
  Value load(Value pointer, int64_t stride, bool streamed) {
    if (!e.machine.emulateAmx)
      return e.intrinsic(streamed ? "llvm.x86.tileloaddt164.internal" : "llvm.x86.tileloadd64.internal", type(),
                         {rows(), bytes(), pointer, e.i64(stride)});
    Value tile = e.stack(kRows * kRowBytes);
    for (int64_t row = 0; row < kRows; ++row)
      e.store(e.load(e.i32s(), pointer, row * stride), tile, row * kRowBytes);
    return tile;
  }
  void store(Value tile, Value pointer) {
    if (!e.machine.emulateAmx) {
      LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.x86.tilestored64.internal"),
                                    ValueRange{rows(), bytes(), pointer, e.i64(kRowBytes), tile});
      return;
    }
    for (int64_t row = 0; row < kRows; ++row)
      e.store(e.load(e.f32s(), tile, row * kRowBytes), pointer, row * kRowBytes);
  }
  /// sums + a b; emulated, in the place of `sums`.
  Value multiply(Value sums, Value a, Value b) {
    if (!e.machine.emulateAmx)
      return e.intrinsic("llvm.x86.tdpbf16ps.internal", type(), {rows(), bytes(), bytes(), sums, a, b});
    e.loop(kRows, 1, {}, [&](Value index, ValueRange) {
      Value row = arith::MulIOp::create(e.b, e.loc, e.toI64(index), e.i64(kRowBytes));
      Value target = e.offset(sums, row), left = e.offset(a, row), zero = e.splatF32(e.f32s(), 0);
      Value even = zero, odd = zero;
      for (int64_t pair = 0; pair < 16; ++pair) {
        Value x = e.broadcast(e.i32s(), e.load(e.b.getI32Type(), left, pair * 4)), w = e.load(e.i32s(), b, pair * kRowBytes);
        even = e.fma(e.evenBF16(x), e.evenBF16(w), even);
        odd = e.fma(e.oddBF16(x), e.oddBF16(w), odd);
      }
      Value both = arith::AddFOp::create(e.b, e.loc, even, odd);
      e.store(arith::AddFOp::create(e.b, e.loc, e.load(e.f32s(), target), both), target);
      return Values();
    });
    return sums;
  }

private:
  Value sixteen(int64_t value) { return e.constant(e.b.getI16IntegerAttr(static_cast<int16_t>(value))); }
  Value rows() { return sixteen(kRows); }
  Value bytes() { return sixteen(kRowBytes); }

  Emitter &e;
};

/// A kernel's sums, from vectors to tiles.
class Rewriter {
public:
  Rewriter(LLVM::LLVMFuncOp function, const Machine &machine) : b(function.getContext()), machine(machine) {}
  void block(Block &block);
  void finish();

private:
  static bool isSums(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getRank() == 2 && vector.getElementType().isF32() && vector.getDimSize(0) % kRows == 0 && vector.getDimSize(1) == 16;
  }
  bool isTiled(Value value) const { return tiles.contains(value) || (isSums(value.getType()) && matchPattern(value, m_AnyZeroFloat())); }
  bool isProduct(tile::DotOp dot) const;
  bool carriesSums(scf::ForOp loop) const;
  Values tilesOf(Emitter &e, Value value);
  void loop(scf::ForOp loop);
  void products(MutableArrayRef<tile::DotOp> dots);
  Value pointerOf(Emitter &e, Value memref) {
    return UnrealizedConversionCastOp::create(b, e.loc, LLVM::LLVMPointerType::get(b.getContext()), memref).getResult(0);
  }

  OpBuilder b;
  const Machine &machine;
  llvm::MapVector<Value, Values> tiles;   // of replaced values, a tile per 16 rows
  DenseMap<Value, Operation *> known;     // behind which op a result's tiles are
  SmallVector<Operation *> replaced;
};

} // namespace

/// One step of 32 k of blocks of 16 tokens, both operands in memory.
bool Rewriter::isProduct(tile::DotOp dot) const {
  auto b = cast<tile::PackedType>(dot.getB().getType());
  return dot.getArith() == tile::DotArith::BF16_EO32 && isSums(dot.getAcc().getType()) && b.getFormat() == tile::Format::BF16Pairs &&
         b.getK() == 32 && dot.getA().getDefiningOp<tile::LoadOp>() && dot.getB().getDefiningOp<tile::LoadPackedOp>();
}

/// Whether all that a loop carries are sums, from zeros or tiles to products that nothing else sees on the way.
bool Rewriter::carriesSums(scf::ForOp loop) const {
  auto product = [&](Operation *op) {
    auto dot = dyn_cast_or_null<tile::DotOp>(op);
    return dot && dot->getBlock() == loop.getBody() && isProduct(dot) ? dot : tile::DotOp();
  };
  auto sums = [&](Value value) {
    if (!product(value.getDefiningOp()))
      return false;
    while (tile::DotOp dot = product(value.getDefiningOp()))
      value = dot.getAcc();
    return isTiled(value) || llvm::is_contained(loop.getRegionIterArgs(), value);
  };
  auto usedByProducts = [&](Value argument) {
    return llvm::all_of(argument.getUses(), [&](OpOperand &use) {
      tile::DotOp dot = product(use.getOwner());
      return dot && dot.getAcc() == argument;
    });
  };
  return loop.getNumResults() && llvm::all_of(loop.getInitArgs(), [&](Value value) { return isTiled(value); }) &&
         llvm::all_of(loop.getRegionIterArgs(), usedByProducts) && llvm::all_of(loop.getBody()->getTerminator()->getOperands(), sums);
}

Values Rewriter::tilesOf(Emitter &e, Value value) {
  if (auto found = tiles.find(value); found != tiles.end())
    return found->second;
  Values zeros;
  for (int64_t row = 0; row < cast<VectorType>(value.getType()).getDimSize(0); row += kRows)
    zeros.push_back(Tiles(e).zero());
  return zeros;
}

void Rewriter::loop(scf::ForOp loop) {
  b.setInsertionPoint(loop);
  Emitter e(b, loop.getLoc(), machine);
  Values inits;
  SmallVector<size_t> counts;
  for (Value init : loop.getInitArgs()) {
    Values of = tilesOf(e, init);
    counts.push_back(of.size());
    llvm::append_range(inits, of);
  }
  auto carried = scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  Block *body = carried.getBody(), *old = loop.getBody();
  old->getArgument(0).replaceAllUsesWith(carried.getInductionVar());
  body->getOperations().splice(body->begin(), old->getOperations(), old->begin(), std::prev(old->end()));
  size_t next = 0;
  for (auto [i, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    tiles[argument] = Values(carried.getRegionIterArgs().slice(next, counts[i]));
    tiles[loop.getResult(i)] = Values(carried.getResults().slice(next, counts[i]));
    known[loop.getResult(i)] = loop;
    next += counts[i];
  }
  block(*body);
  Values results;
  for (Value value : old->getTerminator()->getOperands())
    llvm::append_range(results, tiles[value]);
  b.setInsertionPointToEnd(body);
  scf::YieldOp::create(b, loop.getLoc(), results);
  replaced.push_back(loop);
}

/// Neighbouring products: first all their operands, then they.
void Rewriter::products(MutableArrayRef<tile::DotOp> dots) {
  b.setInsertionPoint(dots.back());
  Emitter e(b, dots.back().getLoc(), machine);
  Tiles unit(e);
  llvm::MapVector<Value, Values> operands;
  for (tile::DotOp dot : dots) {
    if (auto [place, added] = operands.try_emplace(dot.getA()); added) {
      auto load = dot.getA().getDefiningOp<tile::LoadOp>();
      auto memref = cast<MemRefType>(load.getMemref().getType());
      Address address = addressOf(e, pointerOf(e, load.getMemref()), memref, load.getIndices());
      int64_t stride = address.strides[memref.getRank() - 2], rows = cast<VectorType>(dot.getA().getType()).getDimSize(0);
      for (int64_t row = 0; row < rows; row += kRows)
        place->second.push_back(unit.load(e.offset(address.pointer, row * stride), stride, /*streamed=*/true));
    }
    if (auto [place, added] = operands.try_emplace(dot.getB()); added) {
      auto load = dot.getB().getDefiningOp<tile::LoadPackedOp>();
      Address address = addressOf(e, pointerOf(e, load.getMemref()), cast<MemRefType>(load.getMemref().getType()), load.getIndices());
      place->second = {unit.load(address.pointer, kRowBytes, /*streamed=*/false)};
    }
  }
  SmallVector<Values> sums;
  for (tile::DotOp dot : dots)
    sums.push_back(tilesOf(e, dot.getAcc()));
  for (size_t row = 0; row < sums.front().size(); ++row)
    for (auto [i, dot] : llvm::enumerate(dots))
      sums[i][row] = unit.multiply(sums[i][row], operands[dot.getA()][row], operands[dot.getB()].front());
  for (auto [i, dot] : llvm::enumerate(dots)) {
    tiles[dot.getResult()] = sums[i];
    known[dot.getResult()] = dots.back();
    replaced.push_back(dot);
  }
}

void Rewriter::block(Block &block) {
  SmallVector<tile::DotOp> dots; // that may go together: none takes another's sums
  auto flush = [&] {
    if (!dots.empty())
      products(dots);
    dots.clear();
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto dot = dyn_cast<tile::DotOp>(op); dot && isProduct(dot)) {
      if (llvm::is_contained(dots, dot.getAcc().getDefiningOp<tile::DotOp>()) ||
          (!dots.empty() && dots.front().getAcc().getType() != dot.getAcc().getType()))
        flush();
      if (isTiled(dot.getAcc())) {
        dots.push_back(dot);
        continue;
      }
    }
    bool operand = isa<tile::LoadOp, tile::LoadPackedOp, arith::ConstantOp, arith::AddIOp, arith::MulIOp>(op);
    if (!operand)
      flush();
    if (auto inner = dyn_cast<scf::ForOp>(op); inner && carriesSums(inner))
      loop(inner);
    else
      for (Region &region : op.getRegions())
        for (Block &inside : region)
          this->block(inside);
  }
  flush();
}

/// What others want as vectors goes through memory; then the replaced ops go.
void Rewriter::finish() {
  SmallPtrSet<Operation *, 16> gone(replaced.begin(), replaced.end());
  auto stays = [&](OpOperand &use) { return !gone.contains(use.getOwner()) && !gone.contains(use.getOwner()->getParentOp()); };
  for (auto &[value, parts] : tiles) {
    if (!isa<OpResult>(value) || llvm::none_of(value.getUses(), stays))
      continue;
    b.setInsertionPointAfter(known[value]);
    Emitter e(b, value.getLoc(), machine);
    auto type = cast<VectorType>(value.getType());
    Value memory = e.stack(type.getDimSize(0) * kRowBytes);
    for (auto [i, tile] : llvm::enumerate(parts))
      Tiles(e).store(tile, e.offset(memory, static_cast<int64_t>(i) * kRows * kRowBytes));
    Value rows = UnrealizedConversionCastOp::create(b, e.loc, MemRefType::get(type.getShape(), type.getElementType()), memory).getResult(0);
    Value vector = tile::LoadOp::create(b, e.loc, type, rows, ValueRange{e.index(0), e.index(0)});
    value.replaceUsesWithIf(vector, stays);
  }
  for (Operation *op : replaced)
    op->dropAllReferences();
  for (Operation *op : replaced)
    op->erase();
}

void cpu::useTiles(LLVM::LLVMFuncOp function, const Machine &machine) {
  if (!machine.amx)
    return;
  Rewriter rewriter(function, machine);
  for (Block &block : function.getBody())
    rewriter.block(block);
  rewriter.finish();
}
