//===- Fragments.cpp - operands of mma as 32-bit registers ----------------===//
//
// A register holds two bf16 that are neighbours in k. Which k a thread takes is free as
// long as both operands agree: of each 32, thread t of four takes the eight from 8t on,
// so that dense rows come by 16-byte loads and one word of 4-bit codes (8 codes) is
// exactly a thread's share of a row.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// The vector and lane that a scalar was taken from.
static std::pair<Value, int64_t> extracted(Value x) {
  auto op = x.getDefiningOp<LLVM::ExtractElementOp>();
  auto lane = op ? op.getPosition().getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  return lane ? std::pair(op.getVector(), cast<IntegerAttr>(lane.getValue()).getInt()) : std::pair(Value(), int64_t(0));
}

Value Emitter::pair(Value low, Value high) {
  auto bits = [&](Value both) -> Value { return LLVM::BitcastOp::create(b, loc, b.getI32Type(), both); };
  auto type = VectorType::get({2}, b.getBF16Type());
  auto lowRounding = low.getDefiningOp<arith::TruncFOp>(), highRounding = high.getDefiningOp<arith::TruncFOp>();
  if (low.getType().isF32() || (lowRounding && highRounding)) { // one instruction rounds both
    Value x = lowRounding ? lowRounding.getIn() : low, y = highRounding ? highRounding.getIn() : high;
    return bits(intrinsic("llvm.nvvm.ff2bf16x2.rn", type, {y, x}));
  }
  auto [vector, lane] = extracted(low);
  auto [next, nextLane] = extracted(high);
  if (vector && vector == next && lane % 2 == 0 && nextLane == lane + 1) {
    auto words = VectorType::get({cast<VectorType>(vector.getType()).getDimSize(0) / 2}, b.getI32Type());
    return extract(LLVM::BitcastOp::create(b, loc, words, vector), lane / 2);
  }
  Value both = LLVM::PoisonOp::create(b, loc, type);
  both = LLVM::InsertElementOp::create(b, loc, both, low, i32(0));
  both = LLVM::InsertElementOp::create(b, loc, both, high, i32(1));
  return bits(both);
}

//===----------------------------------------------------------------------===//
// Weights: rows of the instruction's left operand
//===----------------------------------------------------------------------===//

/// Codes dequantised in f32 and rounded to bf16.
void Emitter::dequantize(const PackedRef &ref, Value panel, int64_t groupOfK, int64_t offset, Value words[4]) {
  RowCodes codes = rowCodes(ref, panel, groupOfK, offset);
  CodedForm form = tile::codedForm(ref.type.getFormat());
  Value bytes[2] = {codes.first, codes.second};
  // A byte c under 0x4B0000 is the f32 2^23 + c: a permutation and a subtraction, where a conversion takes as long as four of them.
  Value offsetOfZero = constantF32(8388608.0f + (form.table ? 128.0f : form.zero));
  auto value = [&](Value word, int64_t byte) -> Value {
    Value bits = intrinsic("llvm.nvvm.prmt", b.getI32Type(), {word, i32(0x4B000000), i32(0x7440 + byte)});
    Value q = arith::SubFOp::create(b, loc, LLVM::BitcastOp::create(b, loc, b.getF32Type(), bits), offsetOfZero);
    if (codes.minimum)
      return LLVM::FMAOp::create(b, loc, q, codes.scale, codes.minimum);
    return arith::MulFOp::create(b, loc, q, codes.scale);
  };
  for (int64_t i = 0; i < 4; ++i)
    words[i] = pair(value(bytes[i / 2], i % 2 * 2), value(bytes[i / 2], i % 2 * 2 + 1));
}

FailureOr<Emitter::WeightWords> Emitter::weightWords(const PackedRef &ref, int64_t tile, int64_t groupOfK) {
  tile::Format format = ref.type.getFormat();
  WeightWords words;
  Value panel = panelOf(ref, tile);
  if (format == tile::Format::BF16NK) {
    auto type = VectorType::get({4}, b.getI32Type());
    Value row = at(at(panel, add(mul(group, ref.recordBytes), mul(quad, 16))), groupOfK * 64);
    Value low = load(type, row, 16), high = load(type, at(row, 8 * ref.recordBytes), 16);
    for (int64_t i = 0; i < 4; ++i) {
      words.low[i] = extract(low, i);
      words.high[i] = extract(high, i);
    }
    return words;
  }
  if (!tile::isQuantized(format))
    return failure();
  dequantize(ref, panel, groupOfK, 0, words.low);
  dequantize(ref, panel, groupOfK, 8, words.high);
  return words;
}

//===----------------------------------------------------------------------===//
// Columns of the instruction's right operand
//===----------------------------------------------------------------------===//

/// Address of row `g` of column tile `tile` (8 columns n) of a bf16_nk operand, at k.
Value Emitter::wordsOfRow(const PackedRef &ref, int64_t tile, int64_t k) {
  int64_t first = 8 * tile, perPanel = ref.pages.empty() ? 16 : ref.pageTokens;
  Value panel = ref.pages.empty() ? at(ref.base, first / 16 * ref.panelBytes) : ref.pages[first / perPanel];
  Value row = at(panel, mul(add(group, first % perPanel), ref.recordBytes));
  return at(row, 2 * k);
}

/// Of row `row` (k) of a bf16_kn operand: this thread's `block` columns of column block `columnBlock`, as words of two.
Values Emitter::pairsOfRows(const PackedRef &ref, int64_t columnBlock, int64_t block, Value row, int64_t page) {
  Value start = ref.pages.empty() ? ref.base : ref.pages[page];
  Value pointer = at(start, add(mul(row, ref.recordBytes), mul(group, 2 * block)));
  pointer = at(pointer, columnBlock * 16 * block);
  Values words;
  if (block == 2)
    return {load(b.getI32Type(), pointer, 4)};
  Value many = load(VectorType::get({block / 2}, b.getI32Type()), pointer, 2 * block);
  for (int64_t i = 0; i < block / 2; ++i)
    words.push_back(extract(many, i));
  return words;
}
