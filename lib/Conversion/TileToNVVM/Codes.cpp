//===- Codes.cpp - a thread's share of records of codes -------------------===//
//
// Of each 32 k a thread takes quads 2t and 2t + 1 of a row (llmc/Target/CodedForm.h): one word of a 4-bit
// plane, or bits of a word that it shares with its neighbours, always at a place that depends on t alone.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

namespace {

/// Arithmetic on words.
struct Words {
  Emitter &e;
  OpBuilder &b;
  Location loc;

  Value and_(Value x, int64_t mask) { return arith::AndIOp::create(b, loc, x, e.i32(mask)); }
  Value or_(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value left(Value x, int64_t by) { return by ? Value(arith::ShLIOp::create(b, loc, x, e.i32(by))) : x; }
  Value right(Value x, int64_t by) { return by ? Value(arith::ShRUIOp::create(b, loc, x, e.i32(by))) : x; }
  Value right(Value x, Value by) { return arith::ShRUIOp::create(b, loc, x, toI32(by)); }
  Value toI32(Value index) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), index); }
  Value real(Value x) { return arith::SIToFPOp::create(b, loc, b.getF32Type(), x); }
  Value subtract(Value x, int64_t y) { return y ? Value(arith::SubIOp::create(b, loc, x, e.i32(y))) : x; }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value word(Value address) { return e.load(b.getI32Type(), address, 4); }
  Value byte(Value address) { return arith::ExtUIOp::create(b, loc, b.getI32Type(), e.load(b.getI8Type(), address, 1)); }
  Value signedByte(Value address) { return arith::ExtSIOp::create(b, loc, b.getI32Type(), e.load(b.getI8Type(), address, 1)); }
  Value half(Value address) { return arith::ExtFOp::create(b, loc, b.getF32Type(), e.load(b.getF16Type(), address, 2)); }
  /// Bytes of (x, y) by the selector's nibbles.
  Value permute(Value x, Value y, Value selector) { return e.intrinsic("llvm.nvvm.prmt", b.getI32Type(), {x, y, selector}); }

  /// Values (+ 128) of the four codes in the low half of `nibbles`, one a byte.
  Value lookUp(Value nibbles) {
    auto constant = [&](int64_t first) {
      uint32_t four = 0;
      for (int64_t i = 0; i < 4; ++i)
        four |= static_cast<uint32_t>(kIQ4Values[first + i] + 128) << (8 * i);
      return e.i32(static_cast<int32_t>(four));
    };
    Value three = and_(nibbles, 0x7777); // a fourth bit would ask for the sign
    Value low = permute(constant(0), constant(4), three), high = permute(constant(8), constant(12), three);
    return permute(low, high, or_(right(and_(nibbles, 0x8888), 1), e.i32(0x3210)));
  }
};

} // namespace

/// This thread's codes at `codes`, the row's word in the first chunk of its 32 k.
static void readCodes(Words w, const CodedForm &form, Value codes, Value quad, RowCodes &out) {
  Emitter &e = w.e;
  OpBuilder &b = w.b;
  auto half = [&](Value x) -> Value { return arith::DivUIOp::create(b, w.loc, x, e.index(2)); };
  auto odd = [&](Value x) -> Value { return arith::RemUIOp::create(b, w.loc, x, e.index(2)); };
  // A plane of one or two bits, shifted so that quad 2t is at bit 0 of each byte.
  auto narrow = [&](int64_t bits, int64_t offset) -> Value {
    Value place = e.at(codes, offset);
    if (bits == 1)
      return w.right(w.word(place), e.mul(quad, 2));
    return w.right(w.word(e.at(place, e.mul(half(quad), 64))), e.mul(odd(quad), 4));
  };
  int64_t mask = (1 << form.lowBits) - 1;
  mask |= mask << 8, mask |= mask << 16;
  switch (form.lowBits) {
  case 8:
    codes = e.at(codes, e.mul(quad, 128));
    out.first = w.word(codes);
    out.second = w.word(e.at(codes, 64));
    return;
  case 4:
    out.first = w.word(e.at(codes, e.mul(quad, 64)));
    if (form.table) { // bytes of k 0, 4, 1, 5 and 2, 6, 3, 7
      Value low = w.lookUp(out.first), high = w.lookUp(w.right(out.first, 16));
      out.first = w.permute(low, high, e.i32(0x6420));
      out.second = w.permute(low, high, e.i32(0x7531));
      return;
    }
    break;
  default:
    out.first = narrow(form.lowBits, 0);
  }
  out.second = w.and_(w.right(out.first, form.lowBits), mask);
  out.first = w.and_(out.first, mask);
  if (!form.highBits)
    return;
  Value high = narrow(form.highBits, form.highPlaneOffset());
  int64_t highMask = form.highBits == 1 ? 0x01010101 : 0x03030303;
  out.first = w.or_(out.first, w.left(w.and_(high, highMask), form.lowBits));
  out.second = w.or_(out.second, w.left(w.and_(w.right(high, form.highBits), highMask), form.lowBits));
}

/// Scale and minimum of a row for the 32 k `group` of the record; `bytes` and `halves`: the row's place in arrays of them.
static void readScales(Words w, const CodedForm &form, Value bytes, Value halves, Value quad, int64_t group, RowCodes &out) {
  Emitter &e = w.e;
  if (!form.scaleBits) {
    out.scale = w.half(e.at(halves, 32 * group));
    if (form.minimum)
      out.minimum = w.half(e.at(halves, form.minimumOffset() + 32 * group));
    return;
  }
  // Where scales hold for 16 k, t / 2 counts them: `step` fields further.
  bool two = form.scaleGroup == 16;
  Value second = two ? Value(arith::DivUIOp::create(w.b, w.loc, quad, e.index(2))) : Value();
  int64_t step = form.minimum ? 2 : 1, first = group * (two ? 2 : 1) * step;
  auto field = [&](int64_t index) -> Value { // steps of two keep the nibble, steps of one (from an even field) keep the byte
    Value place = e.at(bytes, form.fieldOffset());
    if (form.scaleBits == 8) {
      place = e.at(place, index * 16);
      return w.signedByte(second ? e.at(place, e.mul(second, 16 * step)) : place);
    }
    place = e.at(place, index / 2 * 16);
    if (second && step == 2)
      place = e.at(place, e.mul(second, 16));
    Value low = w.right(w.byte(place), index % 2 * 4);
    if (second && step == 1)
      low = w.right(low, e.mul(second, 4));
    low = w.and_(low, 15);
    if (form.scaleBits == 4)
      return low;
    Value high = w.right(w.byte(e.at(bytes, form.highFieldOffset() + index / 4 * 16)), index % 4 * 2);
    if (second)
      high = w.right(high, e.mul(second, 2));
    return w.or_(low, w.left(w.and_(high, 3), 4));
  };
  out.scale = w.multiply(w.half(halves), w.real(w.subtract(field(first), form.scaleZero)));
  if (form.minimum) {
    Value product = w.multiply(w.half(e.at(halves, form.minimumOffset())), w.real(field(first + 1)));
    out.minimum = arith::NegFOp::create(w.b, w.loc, product);
  }
}

RowCodes Emitter::rowCodes(const PackedRef &ref, Value panel, int64_t groupOfK, int64_t offset) {
  CodedForm form = tile::codedForm(ref.type.getFormat());
  int64_t groups = form.recordK / 32, position = ref.firstGroup + groupOfK, inside = position % groups;
  Value record = at(panel, position / groups * ref.recordBytes);
  auto ofRow = [&](int64_t bytes) { return at(at(record, mul(group, bytes)), offset * bytes); };
  Words words{*this, b, loc};
  RowCodes codes;
  readScales(words, form, ofRow(1), ofRow(2), quad, inside, codes);
  readCodes(words, form, at(ofRow(4), form.codeOffset() + inside * form.groupBytes()), quad, codes);
  return codes;
}
