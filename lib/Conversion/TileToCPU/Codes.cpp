//===- Codes.cpp - records of codes in registers --------------------------===//
//
// Everything that differs between block formats is in CodedForm; what is left is to
// shift a plane's bits into place, to look codes up where they index a table, and to put
// scales together. Registers are whole chunks, so that no byte ever changes its lane.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

CodedRecord::CodedRecord(Emitter &e, Value operand, Value pointer)
    : form(tile::codedForm(cast<tile::PackedType>(operand.getType()).getFormat())), e(e), pointer(pointer), codes(pointer),
      fields(pointer), highFields(pointer) {
  auto load = operand.getDefiningOp<tile::LoadPackedOp>();
  firstGroup = load ? static_cast<int64_t>(load.getFirst()) / 32 : 0;
}

static int64_t fieldsOf32(const CodedForm &form) { return form.scaleBits ? form.fields() * 32 / form.recordK : 0; }

int64_t CodedRecord::stride() const {
  int64_t inByte = form.scaleBits == 6 ? 4 : form.scaleBits == 4 ? 2 : 1, fields = fieldsOf32(form), groups = 1;
  while (groups * fields % inByte)
    ++groups;
  return form.scaleBits ? groups : form.recordK / 32;
}

CodedRecord CodedRecord::at(Value group) const {
  assert(form.scaleBits && "f16 scales and codes are at static places");
  CodedRecord moved(*this);
  auto times = [&](int64_t bytes) -> Value { return arith::MulIOp::create(e.b, e.loc, group, e.i64(bytes)); };
  moved.codes = e.offset(codes, times(form.groupBytes()));
  moved.fields = e.offset(fields, times(fieldsOf32(form) * (form.scaleBits == 8 ? 16 : 8)));
  if (form.scaleBits == 6)
    moved.highFields = e.offset(highFields, times(fieldsOf32(form) * 4));
  return moved;
}

//===----------------------------------------------------------------------===//
// All columns
//===----------------------------------------------------------------------===//

/// A plane of `bits` bits of 32 k: per quad a register whose bytes have the bits at bit `at`.
Values CodedRecord::planeQuads(int64_t bits, int64_t offset, int64_t at) {
  Values quads;
  Value chunk;
  int64_t perChunk = 8 / bits;
  for (int64_t quad = 0; quad < 8; ++quad) {
    int64_t j = quad % perChunk, right = bits * j - at;
    if (j == 0)
      chunk = e.load(e.bytes(), codes, offset + quad / perChunk * 64);
    Value value = chunk;
    if (right) { // by 16-bit lanes: what crosses a byte is masked
      Value halves = e.bitcast(e.halves(), value), by = e.splatInt(e.halves(), std::abs(right));
      halves = right > 0 ? Value(arith::ShRUIOp::create(e.b, e.loc, halves, by)) : arith::ShLIOp::create(e.b, e.loc, halves, by);
      value = e.bitcast(e.bytes(), halves);
    }
    if (bits < 8)
      value = arith::AndIOp::create(e.b, e.loc, value, e.splatInt(e.bytes(), ((1 << bits) - 1) << at));
    quads.push_back(value);
  }
  return quads;
}

Value CodedRecord::tableOf(Value codes) {
  SmallVector<int8_t> values;
  for (int8_t value : kIQ4Values)
    values.push_back(static_cast<int8_t>(value + 128));
  return e.lookUp(values, codes);
}

Values CodedRecord::quads(int64_t group, int64_t piece) {
  int64_t offset = codesAt(group) + piece * e.machine.lanes * 4;
  Values quads = planeQuads(form.lowBits, offset, 0);
  if (form.highBits)
    for (auto [code, high] : llvm::zip_equal(quads, planeQuads(form.highBits, offset + form.highPlaneOffset(), form.lowBits)))
      code = arith::OrIOp::create(e.b, e.loc, code, high);
  if (form.table)
    for (Value &code : quads)
      code = tableOf(code);
  return quads;
}

/// An integer, or a register of it, of the type of `like`.
static Value integerAs(Emitter &e, Value like, int64_t value) {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return e.splatInt(vector, value);
  return e.constant(e.b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

/// Field `index` of the record as 32-bit integers.
Value CodedRecord::field(int64_t index, Place place) {
  auto wide = [&](Value byte) -> Type {
    auto vector = dyn_cast<VectorType>(byte.getType());
    return vector ? Type(e.vec(vector.getNumElements(), e.b.getI32Type())) : e.b.getI32Type();
  };
  auto bits = [&](Value base, int64_t offset, int64_t shift, int64_t mask) -> Value {
    Value byte = place.byte(base, offset), value = arith::ExtUIOp::create(e.b, e.loc, wide(byte), byte);
    if (shift)
      value = arith::ShRUIOp::create(e.b, e.loc, value, integerAs(e, value, shift));
    return arith::AndIOp::create(e.b, e.loc, value, integerAs(e, value, mask));
  };
  if (form.scaleBits == 8) {
    Value byte = place.byte(fields, form.fieldOffset() + index * 16);
    return arith::ExtSIOp::create(e.b, e.loc, wide(byte), byte);
  }
  Value low = bits(fields, form.fieldOffset() + index / 2 * 16, index % 2 * 4, 15);
  if (form.scaleBits == 4)
    return low;
  Value high = bits(highFields, form.highFieldOffset() + index / 4 * 16, index % 4 * 2, 3);
  return arith::OrIOp::create(e.b, e.loc, low, arith::ShLIOp::create(e.b, e.loc, high, integerAs(e, high, 4)));
}

Value CodedRecord::scaleAt(int64_t index, Place place) {
  if (!form.scaleBits)
    return place.half(index * 32);
  Value integer = field(form.minimum ? 2 * index : index, place), d = place.half(0);
  if (form.scaleZero)
    integer = arith::SubIOp::create(e.b, e.loc, integer, integerAs(e, integer, form.scaleZero));
  return arith::MulFOp::create(e.b, e.loc, d, arith::SIToFPOp::create(e.b, e.loc, d.getType(), integer));
}

Value CodedRecord::minimumAt(int64_t index, Place place) {
  if (!form.scaleBits)
    return place.half(form.minimumOffset() + index * 32);
  Value down = arith::NegFOp::create(e.b, e.loc, place.half(form.minimumOffset()));
  Value integer = field(2 * index + 1, place);
  return arith::MulFOp::create(e.b, e.loc, down, arith::SIToFPOp::create(e.b, e.loc, down.getType(), integer));
}

Value CodedRecord::atPiece(int64_t piece, llvm::function_ref<Value(Place)> read) {
  int64_t lanes = e.machine.lanes;
  auto half = [&](int64_t offset) { return e.loadF16(lanes, pointer, offset + piece * lanes * 2); };
  auto byte = [&](Value base, int64_t offset) { return e.load(e.vec(lanes, e.b.getI8Type()), base, offset + piece * lanes); };
  return read({half, byte});
}

Value CodedRecord::scale(int64_t index, int64_t piece) {
  return atPiece(piece, [&](Place place) { return scaleAt(firstScale() + index, place); });
}

Value CodedRecord::minimum(int64_t index, int64_t piece) {
  return atPiece(piece, [&](Place place) { return minimumAt(firstScale() + index, place); });
}

//===----------------------------------------------------------------------===//
// One column
//===----------------------------------------------------------------------===//

Value CodedRecord::ofColumn(Value base, Value column, int64_t bytes) {
  return e.offset(base, arith::MulIOp::create(e.b, e.loc, column, e.i64(bytes)));
}

/// Codes of quads 2 * pair and 2 * pair + 1, signed, as eight 32-bit lanes.
Value CodedRecord::columnCodes(int64_t group, int64_t pair, Value column) {
  VectorType i32 = e.vec(8, e.b.getI32Type());
  Value words = ofColumn(codes, column, 4);
  auto plane = [&](int64_t bits, int64_t offset) -> Value {
    SmallVector<int32_t> shifts;
    int64_t perChunk = 8 / bits, quad = 2 * pair;
    for (int64_t k = 0; k < 8; ++k)
      shifts.push_back(static_cast<int32_t>((quad + k / 4) % perChunk * bits + k % 4 * 8));
    Value word = e.broadcast(i32, e.load(e.b.getI32Type(), words, offset + quad / perChunk * 64));
    if (perChunk == 1) {
      Value next = e.broadcast(i32, e.load(e.b.getI32Type(), words, offset + (quad + 1) * 64));
      word = e.shuffle(word, next, {0, 1, 2, 3, 8, 9, 10, 11});
    }
    Value shift = e.constant(DenseElementsAttr::get(i32, ArrayRef<int32_t>(shifts)));
    Value mask = e.splatInt(i32, (1 << bits) - 1);
    return arith::AndIOp::create(e.b, e.loc, arith::ShRUIOp::create(e.b, e.loc, word, shift), mask);
  };
  Value code = plane(form.lowBits, codesAt(group));
  if (form.highBits) {
    Value high = plane(form.highBits, codesAt(group) + form.highPlaneOffset());
    high = arith::ShLIOp::create(e.b, e.loc, high, e.splatInt(i32, form.lowBits));
    code = arith::OrIOp::create(e.b, e.loc, code, high);
  }
  if (!form.table)
    return arith::SubIOp::create(e.b, e.loc, code, e.splatInt(i32, form.zero));
  if (e.machine.neon) { // a byte of each lane, then its sign
    Value bytes = e.bitcast(i32, e.lookUp(kIQ4Values, e.bitcast(e.bytes(), code))), up = e.splatInt(i32, 24);
    return arith::ShRSIOp::create(e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, bytes, up), up);
  }
  auto half = [&](int64_t first) -> Value { // the instruction takes three bits of an index
    SmallVector<int32_t> values(kIQ4Values + first, kIQ4Values + first + 8);
    Value table = e.constant(DenseElementsAttr::get(i32, ArrayRef<int32_t>(values)));
    return e.intrinsic("llvm.x86.avx2.permd", i32, {table, code});
  };
  Value upper = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sgt, code, e.splatInt(i32, 7));
  return arith::SelectOp::create(e.b, e.loc, upper, half(8), half(0));
}

Values CodedRecord::column(int64_t group, Value column) {
  VectorType f32 = e.vec(8, e.b.getF32Type());
  auto half = [&](int64_t offset) -> Value {
    Value x = e.load(e.b.getF16Type(), ofColumn(pointer, column, 2), offset);
    return arith::ExtFOp::create(e.b, e.loc, e.b.getF32Type(), x);
  };
  auto byte = [&](Value base, int64_t offset) { return e.load(e.b.getI8Type(), ofColumn(base, column, 1), offset); };
  Values pieces;
  for (int64_t pair = 0; pair < 4; ++pair) {
    int64_t index = firstScale() + (group * 32 + pair * 8) / form.scaleGroup;
    Value d = e.broadcast(f32, scaleAt(index, {half, byte}));
    Value q = arith::SIToFPOp::create(e.b, e.loc, f32, columnCodes(group, pair, column));
    pieces.push_back(form.minimum ? e.fma(q, d, e.broadcast(f32, minimumAt(index, {half, byte})))
                                  : Value(arith::MulFOp::create(e.b, e.loc, q, d)));
  }
  return pieces;
}

Value cpu::widenCode(Emitter &e, Value quad, int64_t shift, int64_t zero, Value d, Value m) {
  Value q = e.bitcast(e.i32s(), quad);
  if (shift)
    q = arith::ShRUIOp::create(e.b, e.loc, q, e.splatInt(e.i32s(), shift));
  q = arith::AndIOp::create(e.b, e.loc, q, e.splatInt(e.i32s(), 255));
  if (m)
    return e.fma(arith::SIToFPOp::create(e.b, e.loc, e.f32s(), q), d, m);
  q = arith::SubIOp::create(e.b, e.loc, q, e.splatInt(e.i32s(), zero));
  return arith::MulFOp::create(e.b, e.loc, arith::SIToFPOp::create(e.b, e.loc, e.f32s(), q), d);
}
