//===- Lowering.cpp - what the tile to CPU patterns share -----------------===//

#include "Lowering.h"

#include "llmc/Support/Float.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

SmallVector<Type> cpu::pieceTypes(VectorType type, int64_t lanes) {
  int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
  SmallVector<Type> row;
  for (int64_t column = 0; column < columns; column += lanes)
    row.push_back(VectorType::get({std::min(lanes, columns - column)}, type.getElementType()));
  SmallVector<Type> pieces;
  for (int64_t r = 0; r < rows; ++r)
    llvm::append_range(pieces, row);
  return pieces;
}

Converter::Converter(MLIRContext *context, const Machine &machine) : machine(machine) {
  auto pointer = LLVM::LLVMPointerType::get(context);
  addConversion([](Type type) { return type; });
  addConversion([pointer](MemRefType) -> Type { return pointer; });
  addConversion([pointer](tile::PackedType) -> Type { return pointer; });
  addConversion([lanes = machine.lanes](VectorType type, SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
    llvm::append_range(results, pieceTypes(type, lanes));
    return success();
  });
  auto cast = [](OpBuilder &b, auto result, ValueRange inputs, Location loc) {
    return UnrealizedConversionCastOp::create(b, loc, result, inputs);
  };
  addSourceMaterialization([=](OpBuilder &b, Type result, ValueRange inputs, Location loc) -> Value {
    return cast(b, TypeRange{result}, inputs, loc).getResult(0);
  });
  addTargetMaterialization([=](OpBuilder &b, TypeRange results, ValueRange inputs, Location loc) -> SmallVector<Value> {
    return SmallVector<Value>(cast(b, results, inputs, loc).getResults());
  });
}

//===----------------------------------------------------------------------===//
// Emitter
//===----------------------------------------------------------------------===//

Value Emitter::splatInt(VectorType type, int64_t value) {
  return constant(DenseElementsAttr::get(
      type, APInt(type.getElementTypeBitWidth(), static_cast<uint64_t>(value), /*isSigned=*/false, /*implicitTrunc=*/true)));
}
Value Emitter::splatF32(VectorType type, float value) { return constant(DenseElementsAttr::get(type, value)); }
Value Emitter::toI64(Value index) {
  return index.getType().isIndex() ? Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), index)) : index;
}
Value Emitter::stack(int64_t bytes) {
  Operation *parent = b.getInsertionBlock()->getParentOp();
  auto function = isa<LLVM::LLVMFuncOp>(parent) ? cast<LLVM::LLVMFuncOp>(parent) : parent->getParentOfType<LLVM::LLVMFuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  return LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI8Type(), i64(bytes), 64);
}
Value Emitter::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}
Value Emitter::offset(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ValueRange{toI64(bytes)});
}
/// Natural alignment of the element: registers may be loaded from anywhere.
static unsigned elementAlignment(Type type) {
  return std::max(1u, getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8);
}
Value Emitter::load(Type type, Value pointer, int64_t bytes) {
  return LLVM::LoadOp::create(b, loc, type, offset(pointer, bytes), elementAlignment(type));
}
void Emitter::store(Value value, Value pointer, int64_t bytes) {
  LLVM::StoreOp::create(b, loc, value, offset(pointer, bytes), elementAlignment(value.getType()));
}
void Emitter::prefetch(Value pointer, int64_t bytes) {
  // read, to L1, data
  LLVM::Prefetch::create(b, loc, offset(pointer, bytes), b.getI32IntegerAttr(0), b.getI32IntegerAttr(3), b.getI32IntegerAttr(1));
}
Value Emitter::bitcast(Type type, Value value) {
  return value.getType() == type ? value : Value(LLVM::BitcastOp::create(b, loc, type, value));
}
Value Emitter::broadcast(VectorType type, Value scalar) { return vector::BroadcastOp::create(b, loc, type, scalar); }
Value Emitter::shuffle(Value x, Value y, ArrayRef<int32_t> mask) {
  return LLVM::ShuffleVectorOp::create(b, loc, x, y, mask);
}
Value Emitter::extract(Value vector, int64_t lane) { return LLVM::ExtractElementOp::create(b, loc, vector, i64(lane)); }
Value Emitter::fma(Value x, Value y, Value z) { return LLVM::FMAOp::create(b, loc, x, y, z); }
Value Emitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands).getResult(0);
}
Value Emitter::inParts(StringRef name, VectorType result, ValueRange operands) {
  constexpr int64_t parts = 2;
  assert(result.getNumElements() * result.getElementTypeBitWidth() == 128 * parts && "registers are pairs");
  VectorType partType = vec(result.getNumElements() / parts, result.getElementType());
  Values results;
  for (int64_t part = 0; part < parts; ++part) {
    Values inputs;
    for (Value operand : operands) {
      SmallVector<int32_t> mask(cast<VectorType>(operand.getType()).getNumElements() / parts);
      std::iota(mask.begin(), mask.end(), static_cast<int32_t>(part * mask.size()));
      inputs.push_back(shuffle(operand, operand, mask));
    }
    results.push_back(intrinsic(name, partType, inputs));
  }
  SmallVector<int32_t> mask(result.getNumElements());
  std::iota(mask.begin(), mask.end(), 0);
  return shuffle(results[0], results[1], mask);
}
Value Emitter::lookUp(ArrayRef<int8_t> table, Value places) {
  SmallVector<int8_t> values;
  for (int64_t i = 0; i < machine.lanes * 4; ++i) // the instructions look up within 16 bytes
    values.push_back(table[i % 16]);
  Value tables = constant(DenseElementsAttr::get(bytes(), ArrayRef<int8_t>(values)));
  if (machine.neon)
    return inParts("llvm.aarch64.neon.tbl1", bytes(), {tables, places});
  return intrinsic(machine.lanes == 16 ? "llvm.x86.avx512.pshuf.b.512" : "llvm.x86.avx2.pshuf.b", bytes(), {tables, places});
}
Value Emitter::loadF16(int64_t count, Value pointer, int64_t bytes) {
  Value half = load(vec(count, b.getF16Type()), pointer, bytes);
  return arith::ExtFOp::create(b, loc, vec(count, b.getF32Type()), half);
}
Value Emitter::evenBF16(Value pairs) {
  auto type = cast<VectorType>(pairs.getType());
  Value shifted = arith::ShLIOp::create(b, loc, pairs, splatInt(type, 16));
  return bitcast(VectorType::get(type.getShape(), b.getF32Type()), shifted);
}
Value Emitter::oddBF16(Value pairs) {
  auto type = cast<VectorType>(pairs.getType());
  Value masked = arith::AndIOp::create(b, loc, pairs, splatInt(type, 0xffff0000));
  return bitcast(VectorType::get(type.getShape(), b.getF32Type()), masked);
}

/// From 2^-6 on exponent and mantissa move over; the eight magnitudes below it come from a table: their low bytes, then their high ones.
Value Emitter::widenE4M3(Value pairs) {
  auto splat = [&](int64_t value) { return splatInt(halves(), value); };
  auto both = [&](Value x, int64_t mask) -> Value { return arith::AndIOp::create(b, loc, x, splat(mask)); };
  auto up = [&](Value x, int64_t by) -> Value { return arith::ShLIOp::create(b, loc, x, splat(by)); };
  auto add = [&](Value x, int64_t y) -> Value { return arith::AddIOp::create(b, loc, x, splat(y)); };
  SmallVector<int8_t> table;
  for (int64_t i = 0; i < 16; ++i)
    table.push_back(static_cast<int8_t>(f32ToBf16(e4m3ToF32(i % 8)) >> (i < 8 ? 0 : 8)));
  Value code = arith::ExtUIOp::create(b, loc, halves(), pairs), magnitude = both(code, 0x7f);
  Value normal = add(up(magnitude, 4), 120 << 7);
  Value places = bitcast(bytes(), arith::OrIOp::create(b, loc, magnitude, up(add(magnitude, 8), 8)).getResult());
  Value found = lookUp(table, places);
  Value small = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, magnitude, splat(8));
  Value value = arith::SelectOp::create(b, loc, small, bitcast(halves(), found), normal);
  return bitcast(i32s(), arith::OrIOp::create(b, loc, value, up(both(code, 0x80), 8)).getResult());
}

Values Emitter::loop(int64_t upper, int64_t step, ValueRange inits, llvm::function_ref<Values(Value, ValueRange)> body) {
  if (upper <= step) // one trip
    return body(index(0), inits);
  auto loopOp = scf::ForOp::create(b, loc, index(0), index(upper), index(step), inits);
  OpBuilder::InsertionGuard guard(b);
  if (inits.empty()) { // it has its terminator
    b.setInsertionPoint(loopOp.getBody()->getTerminator());
    body(loopOp.getInductionVar(), {});
    return {};
  }
  b.setInsertionPointToEnd(loopOp.getBody());
  Values next = body(loopOp.getInductionVar(), loopOp.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return Values(loopOp.getResults());
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

Address cpu::addressOf(Emitter &e, Value pointer, MemRefType memref, ValueRange indices) {
  Address address;
  int64_t offset, bytes = memref.getElementTypeBitWidth() / 8;
  [[maybe_unused]] LogicalResult known = memref.getStridesAndOffset(address.strides, offset);
  assert(succeeded(known) && "kernel buffers have static strides");
  Value sum;
  for (auto [stride, index] : llvm::zip_equal(address.strides, indices)) {
    stride *= bytes;
    if (matchPattern(index, m_Zero()))
      continue;
    Value term = arith::MulIOp::create(e.b, e.loc, e.toI64(index), e.i64(stride));
    sum = sum ? Value(arith::AddIOp::create(e.b, e.loc, sum, term)) : term;
  }
  address.pointer = sum ? e.offset(pointer, sum) : pointer;
  return address;
}

int64_t Address::rowOffset(VectorType type, int64_t row) const {
  int64_t bytes = 0;
  int64_t skipped = strides.size() - type.getRank();
  for (int64_t dim = type.getRank() - 2; dim >= 0; --dim) {
    bytes += row % type.getDimSize(dim) * strides[skipped + dim];
    row /= type.getDimSize(dim);
  }
  return bytes;
}

LeftOperand cpu::leftOperand(Emitter &e, ConversionPatternRewriter &rewriter, const TypeConverter &converter, Value original,
                             ValueRange pieces) {
  auto type = cast<VectorType>(original.getType());
  int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
  LeftOperand left;
  Value source = original;
  while (auto reshape = source.getDefiningOp<vector::ShapeCastOp>())
    source = reshape.getSource();
  auto load = source.getDefiningOp<tile::LoadOp>();
  // The columns of a row must be those of the load.
  if (load && cast<VectorType>(source.getType()).getShape().back() == columns) {
    Value pointer = converter.isLegal(load.getMemref().getType()) ? load.getMemref() : rewriter.getRemappedValue(load.getMemref());
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(rewriter.getRemappedValue(index));
    Address address = addressOf(e, pointer, cast<MemRefType>(load.getMemref().getType()), indices);
    left.pointer = address.pointer;
    for (int64_t row = 0; row < rows; ++row)
      left.rowOffsets.push_back(address.rowOffset(cast<VectorType>(source.getType()), row));
    return left;
  }
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  left.pointer = e.stack(rows * columns * bytes);
  int64_t position = 0;
  for (Value piece : pieces) {
    auto pieceType = cast<VectorType>(piece.getType());
    if (pieceType.getElementType().isBF16()) // plain 16-bit stores, whatever the target has for bf16
      piece = e.bitcast(VectorType::get(pieceType.getShape(), rewriter.getI16Type()), piece);
    e.store(piece, left.pointer, position * bytes);
    position += pieceType.getNumElements();
  }
  for (int64_t row = 0; row < rows; ++row)
    left.rowOffsets.push_back(row * columns * bytes);
  return left;
}
