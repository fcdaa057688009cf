//===- Panels.cpp - weights of codes as pairs of bf16, once for a unit ----===//
//
// bf16_eo32 multiplies bf16 by bf16: weights of codes are dequantised in f32 and rounded. All tokens of a unit share its panels,
// so a panel becomes bf16_pairs in the thread's own memory before the loops over tokens, in the order of packed bf16 weights; products
// then read it as they read those. Sound because packed operands do not change while a kernel runs.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

/// Two f32 registers of neighbouring k, rounded to nearest even, as pairs of bf16 in 32-bit lanes.
static Value roundPairs(Emitter &e, Value even, Value odd) {
  if (e.machine.roundsBF16) {
    auto bf16s = e.vec(2 * e.machine.lanes, e.b.getBF16Type());
    Value both = e.bitcast(e.halves(), e.intrinsic("llvm.x86.avx512bf16.cvtne2ps2bf16.512", bf16s, {odd, even}));
    SmallVector<int16_t> places; // `even` is in the lower half
    for (int64_t i = 0; i < e.machine.lanes; ++i)
      places.append({static_cast<int16_t>(i), static_cast<int16_t>(i + e.machine.lanes)});
    Value order = e.constant(DenseElementsAttr::get(e.halves(), ArrayRef<int16_t>(places)));
    return e.bitcast(e.i32s(), e.intrinsic("llvm.x86.avx512.permvar.hi.512", e.halves(), {both, order}));
  }
  auto rounded = [&](Value x) -> Value { // to the upper half
    Value bits = e.bitcast(e.i32s(), x);
    Value last = arith::AndIOp::create(e.b, e.loc, arith::ShRUIOp::create(e.b, e.loc, bits, e.splatInt(e.i32s(), 16)), e.splatInt(e.i32s(), 1));
    Value half = arith::AddIOp::create(e.b, e.loc, last, e.splatInt(e.i32s(), 0x7fff));
    return arith::AddIOp::create(e.b, e.loc, bits, half);
  };
  Value low = arith::ShRUIOp::create(e.b, e.loc, rounded(even), e.splatInt(e.i32s(), 16));
  Value high = arith::AndIOp::create(e.b, e.loc, rounded(odd), e.splatInt(e.i32s(), 0xffff0000));
  return arith::OrIOp::create(e.b, e.loc, low, high);
}

/// 32 k of a record to 1 KiB at `to`.
static void unpackGroup(Emitter &e, CodedRecord &record, int64_t group, Value to, int64_t bytes) {
  const CodedForm &form = record.form;
  int64_t scales = 32 / form.scaleGroup;
  for (int64_t piece = 0; piece < record.pieces(); ++piece) {
    Values quads = record.quads(group, piece), d, m;
    for (int64_t i = 0; i < scales; ++i) {
      d.push_back(record.scale(group * scales + i, piece));
      m.push_back(form.minimum ? record.minimum(group * scales + i, piece) : Value());
    }
    auto weight = [&](int64_t k) {
      int64_t scale = k / form.scaleGroup;
      return widenCode(e, quads[k / 4], k % 4 * 8, record.zero(), d[scale], m[scale]);
    };
    for (int64_t k = 0; k < 32; k += 2)
      e.store(roundPairs(e, weight(k), weight(k + 1)), to, bytes + k / 2 * 64 + piece * e.machine.lanes * 4);
  }
}

/// All records of a panel at `from`.
static void unpackPanel(Emitter &e, tile::LoadPackedOp whole, Value from, int64_t records, Value to) {
  tile::Format format = cast<tile::PackedType>(whole.getType()).getFormat();
  int64_t groups = tile::recordK(format) / 32;
  e.loop(records, 1, {}, [&](Value index, ValueRange) {
    Value i = e.toI64(index);
    Value at = e.offset(from, arith::MulIOp::create(e.b, e.loc, i, e.i64(tile::recordBytes(format))));
    Value target = e.offset(to, arith::MulIOp::create(e.b, e.loc, i, e.i64(groups * 1024)));
    CodedRecord record(e, whole, at);
    int64_t stride = record.stride();
    if (groups <= stride || groups % stride) {
      for (int64_t group = 0; group < groups; ++group)
        unpackGroup(e, record, group, target, group * 1024);
      return Values();
    }
    e.loop(groups, stride, {}, [&](Value index, ValueRange) {
      Value group = e.toI64(index);
      CodedRecord moved = record.at(group);
      Value place = e.offset(target, arith::MulIOp::create(e.b, e.loc, group, e.i64(1024)));
      for (int64_t j = 0; j < stride; ++j)
        unpackGroup(e, moved, j, place, j * 1024);
      return Values();
    });
    return Values();
  });
}

namespace {

/// A panel in memory of its own: [1, k / 2, 64] bytes.
struct Panel {
  Value memref;
  SmallVector<Value> place; // leading indices
  Value unpacked;
};

} // namespace

/// The outermost loop of the unit around `op`; `op` where it is the same for all units.
static Operation *outermostInUnit(Operation *op) {
  while (!isa<LLVM::LLVMFuncOp>(op->getParentOp()) && !isa<LLVM::LLVMFuncOp>(op->getParentOp()->getParentOp()))
    op = op->getParentOp();
  return op;
}

static Panel unpack(tile::LoadPackedOp load, const Machine &machine) {
  auto memref = cast<MemRefType>(load.getMemref().getType());
  auto type = cast<tile::PackedType>(load.getType());
  OpBuilder b(outermostInUnit(load));
  Location loc = load.getLoc();
  Emitter e(b, loc, machine);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  int64_t record = tile::recordK(type.getFormat()), records = memref.getDimSize(memref.getRank() - 2);
  Panel panel{load.getMemref(), SmallVector<Value>(load.getIndices().drop_back(2)), {}};
  SmallVector<Value> first(panel.place);
  first.append(2, e.index(0));
  Value base = UnrealizedConversionCastOp::create(b, loc, pointer, load.getMemref()).getResult(0);
  Value from = addressOf(e, base, memref, first).pointer, to = e.stack(records * record * 32);
  auto whole = tile::LoadPackedOp::create(b, loc, tile::PackedType::get(b.getContext(), record, 16, type.getFormat()), load.getMemref(), first);
  unpackPanel(e, whole, from, records, to);
  whole.erase();
  panel.unpacked = UnrealizedConversionCastOp::create(b, loc, MemRefType::get({1, records * record / 2, 64}, b.getI8Type()), to).getResult(0);
  return panel;
}

LogicalResult cpu::unpackPanels(LLVM::LLVMFuncOp function, const Machine &machine) {
  llvm::SetVector<tile::LoadPackedOp> loads;
  function.walk([&](tile::DotOp dot) {
    auto load = dot.getB().getDefiningOp<tile::LoadPackedOp>();
    if (dot.getArith() == tile::DotArith::BF16_EO32 && load && tile::isQuantized(cast<tile::PackedType>(load.getType()).getFormat()))
      loads.insert(load);
  });
  if (loads.empty())
    return success();
  function.walk([](LoopLikeOpInterface loop) { moveLoopInvariantCode(loop); }); // panels' numbers among it
  SmallVector<Panel> panels;
  DominanceInfo dominance(function);
  for (tile::LoadPackedOp load : loads) {
    auto place = load.getIndices().drop_back(2);
    Panel *panel = llvm::find_if(panels, [&](const Panel &p) { return p.memref == load.getMemref() && llvm::equal(p.place, place); });
    if (panel == panels.end()) {
      if (!llvm::all_of(place, [&](Value index) { return dominance.dominates(index, outermostInUnit(load)); }))
        return load.emitOpError("expected a panel that all tokens of a unit share");
      panels.push_back(unpack(load, machine));
      panel = &panels.back();
    }
    OpBuilder b(load);
    Location loc = load.getLoc();
    auto type = cast<tile::PackedType>(load.getType());
    int64_t pairs = tile::recordK(type.getFormat()) / 2, part = static_cast<int64_t>(load.getFirst()) / 2;
    auto number = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
    Value row = arith::MulIOp::create(b, loc, load.getIndices().drop_back(1).back(), number(pairs));
    if (part)
      row = arith::AddIOp::create(b, loc, row, number(part));
    auto dense = tile::PackedType::get(b.getContext(), type.getK(), 16, tile::Format::BF16Pairs);
    auto read = tile::LoadPackedOp::create(b, loc, dense, panel->unpacked, ValueRange{number(0), row, number(0)});
    load.replaceAllUsesWith(read.getResult());
    load.erase();
  }
  return success();
}
