//===- Packed.cpp - packed operands in memory -----------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static SmallVector<int64_t> byteStrides(MemRefType memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)memref.getStridesAndOffset(strides, offset);
  for (int64_t &stride : strides)
    stride *= memref.getElementTypeBitWidth() / 8;
  return strides;
}

LogicalResult Emitter::emitLoadPacked(tile::LoadPackedOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides = byteStrides(memref);
  if (strides.size() < 3)
    return op.emitOpError("expected a memref of panels, records (or columns) and elements on a GPU, got ") << memref;
  Value offset = index(0);
  for (auto [i, stride] : llvm::zip_equal(op.getIndices(), strides))
    offset = add(offset, mul(scalar(i), stride));
  PackedRef ref;
  ref.type = cast<tile::PackedType>(op.getType());
  ref.base = at(scalar(op.getMemref()), offset);
  ref.panelBytes = strides.front();
  ref.recordBytes = strides[strides.size() - 2];
  packed[op.getResult()] = ref;
  return success();
}

LogicalResult Emitter::emitGatherPacked(tile::GatherPackedOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides = byteStrides(memref);
  Value offset = index(0);
  for (auto [i, stride] : llvm::zip_equal(op.getIndices(), ArrayRef(strides).drop_front()))
    offset = add(offset, mul(scalar(i), stride));
  PackedRef ref;
  ref.type = cast<tile::PackedType>(op.getType());
  ref.base = at(scalar(op.getMemref()), offset);
  ref.recordBytes = strides[strides.size() - 2];
  for (Value page : regsIn(op.getPages(), layouts.of(op.getPages())))
    ref.pages.push_back(at(ref.base, mul(arith::IndexCastOp::create(b, loc, b.getIndexType(), page), strides.front())));
  int64_t tokens = ref.type.getFormat() == tile::Format::BF16NK ? ref.type.getN() : ref.type.getK();
  ref.pageTokens = tokens / static_cast<int64_t>(ref.pages.size());
  if (ref.pageTokens % 16)
    return op.emitOpError("expected pages of a multiple of 16 tokens on a GPU, got ") << ref.pageTokens;
  packed[op.getResult()] = ref;
  return success();
}

// Both forms have the token's elements side by side: [token][k] and [token][n].
LogicalResult Emitter::emitStoreSlice(tile::StoreSliceOp op) {
  auto type = cast<tile::PackedType>(op.getPacked());
  bool nk = type.getFormat() == tile::Format::BF16NK && op.getAxis() == tile::Axis::K;
  bool kn = type.getFormat() == tile::Format::BF16KN && op.getAxis() == tile::Axis::N;
  if (!nk && !kn)
    return op.emitOpError("expected a whole token of bf16_nk along k or of bf16_kn along n on a GPU, got ") << type;
  SmallVector<int64_t> strides = byteStrides(cast<MemRefType>(op.getMemref().getType()));
  Value offset = mul(scalar(op.getAt()), strides[strides.size() - 2]);
  for (auto [i, stride] : llvm::zip_equal(op.getIndices(), strides))
    offset = add(offset, mul(scalar(i), stride));
  const Layout layout = isFree(op.getValue()) ? spread(cta, cast<VectorType>(op.getValue().getType()).getNumElements())
                                              : layouts.of(op.getValue());
  Value start = at(at(scalar(op.getMemref()), offset), int64_t(op.getFirst()) * 2);
  Values values = regsIn(op.getValue(), layout);
  base(layout.col);
  when(holdsAlone(layout), [&] {
    for (auto [i, place] : llvm::enumerate(layout.regs)) {
      Value column = coordinate(layout.col, place.second);
      when(layout.colsPadded ? less(column, index(layout.cols)) : Value(), [&] {
        Value rounded = arith::TruncFOp::create(b, loc, b.getBF16Type(), values[i]);
        LLVM::StoreOp::create(b, loc, rounded, at(start, mul(column, 2)), 2);
      });
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// One row of a table
//===----------------------------------------------------------------------===//

namespace {

/// Element (n, k) of a packed operand, for a thread's own k.
struct Element {
  Emitter &e;
  OpBuilder &b;
  Location loc;
  const PackedRef &ref;

  Value div(Value x, int64_t y) { return arith::DivUIOp::create(b, loc, x, e.index(y)); }
  Value rem(Value x, int64_t y) { return arith::RemUIOp::create(b, loc, x, e.index(y)); }
  Value widen(Value x) { return arith::ExtFOp::create(b, loc, b.getF32Type(), x); }
  Value half(Value record, Value n, Value bytes) {
    return widen(e.load(b.getF16Type(), e.at(record, e.add(e.mul(n, 2), bytes)), 2));
  }

  Value operator()(Value n, Value k) {
    tile::Format format = ref.type.getFormat();
    if (format == tile::Format::BF16NK)
      return widen(e.load(b.getBF16Type(), e.at(ref.base, e.add(e.mul(n, ref.recordBytes), e.mul(k, 2))), 2));
    int64_t recordK = tile::recordK(format);
    Value record = e.at(ref.base, e.mul(div(k, recordK), ref.recordBytes));
    Value group = div(rem(k, recordK), 32), inner = rem(k, 32);
    bool wide = format == tile::Format::Q8_0;
    Value chunk = div(inner, wide ? 4 : 8);
    Value byte = e.add(e.add(e.mul(chunk, 64), e.mul(n, 4)), e.add(rem(inner, 4), e.mul(group, wide ? 512 : 256)));
    Value code = arith::ExtUIOp::create(b, loc, b.getI32Type(), e.load(b.getI8Type(), e.at(e.at(record, byte), 64), 1));
    Value d = half(record, n, e.mul(group, 32)); // q4_1 has one group
    if (!wide) {
      Value high = arith::IndexCastOp::create(b, loc, b.getI32Type(), e.mul(div(rem(inner, 8), 4), 4));
      code = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, code, high), e.i32(15));
    }
    Value q = arith::SIToFPOp::create(b, loc, b.getF32Type(), code);
    if (format == tile::Format::Q4_1)
      return LLVM::FMAOp::create(b, loc, q, d, half(record, n, e.index(32)));
    return arith::MulFOp::create(b, loc, arith::SubFOp::create(b, loc, q, e.constantF32(wide ? 128.0f : 8.0f)), d);
  }
};

} // namespace

LogicalResult Emitter::emitUnpackRow(tile::UnpackRowOp op) {
  const PackedRef &ref = packed.find(op.getSource())->second;
  tile::Format format = ref.type.getFormat();
  if (format != tile::Format::BF16NK && !tile::isQuantized(format))
    return op.emitOpError("expected bf16_nk or a quantised form on a GPU, got ") << ref.type;
  const Layout &layout = layouts.of(op.getResult());
  Element element{*this, b, loc, ref};
  Values results;
  for (auto [row, col] : layout.regs) {
    Value column = coordinate(layout.col, col);
    if (layout.colsPadded)
      column = arith::MinUIOp::create(b, loc, column, index(layout.cols - 1));
    results.push_back(element(scalar(op.getColumn()), add(column, int64_t(op.getFirst()))));
  }
  set(op.getResult(), results);
  return success();
}
