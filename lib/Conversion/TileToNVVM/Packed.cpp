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
  ref.firstGroup = static_cast<int64_t>(op.getFirst()) / 32;
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

/// Element (n, k) of a packed operand, for a thread's own k: n and k are index values, fields and codes i32.
struct Element {
  Emitter &e;
  OpBuilder &b;
  Location loc;
  const PackedRef &ref;
  CodedForm form = tile::codedForm(ref.type.getFormat());

  Value div(Value x, int64_t y) { return arith::DivUIOp::create(b, loc, x, e.index(y)); }
  Value rem(Value x, int64_t y) { return arith::RemUIOp::create(b, loc, x, e.index(y)); }
  Value widen(Value x) { return arith::ExtFOp::create(b, loc, b.getF32Type(), x); }
  Value real(Value x) { return arith::SIToFPOp::create(b, loc, b.getF32Type(), x); }
  Value and_(Value x, int64_t mask) { return arith::AndIOp::create(b, loc, x, e.i32(mask)); }
  Value half(Value record, Value n, Value bytes) {
    return widen(e.load(b.getF16Type(), e.at(record, e.add(e.mul(n, 2), bytes)), 2));
  }
  /// `bits` bits from bit `shift` on of the byte at an address.
  Value bits(Value address, Value shift, int64_t bits) {
    Value byte = arith::ExtUIOp::create(b, loc, b.getI32Type(), e.load(b.getI8Type(), address, 1));
    return and_(arith::ShRUIOp::create(b, loc, byte, arith::IndexCastOp::create(b, loc, b.getI32Type(), shift)), (1 << bits) - 1);
  }

  /// Field `index` of the record.
  Value field(Value record, Value n, Value index) {
    if (form.scaleBits == 8) {
      Value place = e.at(e.at(record, e.add(e.mul(index, 16), n)), form.fieldOffset());
      return arith::ExtSIOp::create(b, loc, b.getI32Type(), e.load(b.getI8Type(), place, 1));
    }
    Value low = bits(e.at(e.at(record, e.add(e.mul(div(index, 2), 16), n)), form.fieldOffset()), e.mul(rem(index, 2), 4), 4);
    if (form.scaleBits == 4)
      return low;
    Value high = bits(e.at(e.at(record, e.add(e.mul(div(index, 4), 16), n)), form.highFieldOffset()), e.mul(rem(index, 4), 2), 2);
    return arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, e.i32(4)));
  }

  /// The code's bits of a plane at `plane`, for k `inner` of its 32.
  Value planeBits(Value plane, Value n, Value inner, int64_t count) {
    Value quad = div(inner, 4);
    Value place = e.add(e.add(e.mul(div(quad, 8 / count), 64), e.mul(n, 4)), rem(inner, 4));
    return bits(e.at(plane, place), e.mul(rem(quad, 8 / count), count), count);
  }

  /// The value that a code stands for, as f32.
  Value signedCode(Value code) {
    if (!form.table)
      return arith::SubFOp::create(b, loc, real(code), e.constantF32(form.zero));
    auto eight = [&](int64_t first) -> Value {
      uint64_t bytes = 0;
      for (int64_t i = 0; i < 8; ++i)
        bytes |= static_cast<uint64_t>(static_cast<uint8_t>(kIQ4Values[first + i])) << (8 * i);
      return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(bytes)));
    };
    Value upper = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, code, e.i32(7));
    Value bytes = arith::SelectOp::create(b, loc, upper, eight(8), eight(0));
    Value shift = arith::ExtUIOp::create(b, loc, b.getI64Type(), arith::ShLIOp::create(b, loc, and_(code, 7), e.i32(3)));
    return real(arith::TruncIOp::create(b, loc, b.getI8Type(), arith::ShRUIOp::create(b, loc, bytes, shift)));
  }

  Value operator()(Value n, Value k) {
    if (!form)
      return widen(e.load(b.getBF16Type(), e.at(ref.base, e.add(e.mul(n, ref.recordBytes), e.mul(k, 2))), 2));
    k = e.add(k, ref.firstGroup * 32);
    Value record = e.at(ref.base, e.mul(div(k, form.recordK), ref.recordBytes)), inside = rem(k, form.recordK), inner = rem(inside, 32);
    Value codes = e.at(e.at(record, e.mul(div(inside, 32), form.groupBytes())), form.codeOffset());
    Value code = planeBits(codes, n, inner, form.lowBits);
    if (form.highBits) {
      Value high = planeBits(e.at(codes, form.highPlaneOffset()), n, inner, form.highBits);
      code = arith::OrIOp::create(b, loc, code, arith::ShLIOp::create(b, loc, high, e.i32(form.lowBits)));
    }
    Value index = div(inside, form.scaleGroup), offset = e.mul(index, 32), d, m;
    if (!form.scaleBits) {
      d = half(record, n, offset);
      m = form.minimum ? half(record, n, e.add(offset, form.minimumOffset())) : Value();
    } else {
      Value integer = field(record, n, form.minimum ? e.mul(index, 2) : index);
      d = product(half(record, n, e.index(0)), real(arith::SubIOp::create(b, loc, integer, e.i32(form.scaleZero))));
      if (form.minimum) {
        Value fields = field(record, n, e.add(e.mul(index, 2), 1));
        m = arith::NegFOp::create(b, loc, product(half(record, n, e.index(form.minimumOffset())), real(fields)));
      }
    }
    return m ? Value(LLVM::FMAOp::create(b, loc, real(code), d, m)) : product(signedCode(code), d);
  }
  Value product(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
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
