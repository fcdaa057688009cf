//===- KernelBuilder.cpp - writes tile kernels ----------------------------===//

#include "KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc;

KernelBuilder::KernelBuilder(ModuleOp module, Location loc, StringRef name, ArrayRef<Type> buffers)
    : b(OpBuilder::atBlockEnd(module.getBody())), loc(loc) {
  kernel = tile::KernelOp::create(b, loc, name);
  Block *body = new Block();
  kernel.getBody().push_back(body);
  for (Type type : buffers)
    body->addArgument(type, loc);
  body->addArguments({b.getIndexType(), b.getIndexType()}, {loc, loc});
  b.setInsertionPointToEnd(body);
  tile::ReturnOp::create(b, loc);
  b.setInsertionPoint(body->getTerminator());
}

Value KernelBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value KernelBuilder::i32(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
Value KernelBuilder::number(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}
Value KernelBuilder::splat(ArrayRef<int64_t> shape, double value) {
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vec(shape), static_cast<float>(value)));
}
Value KernelBuilder::ints(ArrayRef<int64_t> shape, ArrayRef<int32_t> values) {
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vecOf(shape, b.getI32Type()), values));
}
Value KernelBuilder::addIndex(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value KernelBuilder::mulIndex(Value x, int64_t y) { return arith::MulIOp::create(b, loc, x, index(y)); }
Value KernelBuilder::divIndex(Value x, int64_t y) { return arith::DivUIOp::create(b, loc, x, index(y)); }
Value KernelBuilder::remIndex(Value x, int64_t y) { return arith::RemUIOp::create(b, loc, x, index(y)); }
Value KernelBuilder::minIndex(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
Value KernelBuilder::toIndex(Value i32) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), i32); }
Value KernelBuilder::toI32(Value index) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), index); }

Value KernelBuilder::load(Type type, Value memref, ValueRange indices) {
  return tile::LoadOp::create(b, loc, type, memref, indices);
}
void KernelBuilder::store(Value value, Value memref, ValueRange indices, Value limit) {
  tile::StoreOp::create(b, loc, value, memref, indices, limit);
}
Value KernelBuilder::loadPacked(tile::PackedType type, Value memref, ValueRange indices, int64_t prefetch, int64_t first) {
  return tile::LoadPackedOp::create(b, loc, type, memref, indices, prefetch, first);
}

static bool isInteger(Value value) { return getElementTypeOrSelf(value).isInteger(); }

Value KernelBuilder::add(Value x, Value y) {
  return isInteger(x) ? Value(arith::AddIOp::create(b, loc, x, y)) : Value(arith::AddFOp::create(b, loc, x, y));
}
Value KernelBuilder::sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value KernelBuilder::mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value KernelBuilder::div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
Value KernelBuilder::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
Value KernelBuilder::tanh(Value x, bool roughly) {
  auto flags = roughly ? arith::FastMathFlags::afn : arith::FastMathFlags::none;
  return math::TanhOp::create(b, loc, x, flags);
}
Value KernelBuilder::greater(Value x, Value y) {
  return isInteger(x) ? Value(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, x, y))
                      : Value(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y));
}
Value KernelBuilder::max(Value x, Value y) { return select(greater(x, y), x, y); }
Value KernelBuilder::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}
Value KernelBuilder::spread(Value scalar, ArrayRef<int64_t> shape) {
  Type element = getElementTypeOrSelf(scalar);
  return vector::BroadcastOp::create(b, loc, VectorType::get(shape, element), scalar);
}
Value KernelBuilder::expand(Value vector, int64_t columns) {
  auto type = cast<VectorType>(vector.getType());
  return tile::ExpandOp::create(b, loc, VectorType::get({type.getDimSize(0), columns}, type.getElementType()), vector);
}
Value KernelBuilder::reduce(tile::Reduction kind, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Type result = type.getElementType();
  if (type.getRank() == 2)
    result = VectorType::get({type.getDimSize(0)}, result);
  return tile::ReduceOp::create(b, loc, result, kind, vector);
}
Value KernelBuilder::reshape(Value vector, ArrayRef<int64_t> shape) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getShape() == shape)
    return vector;
  return vector::ShapeCastOp::create(b, loc, VectorType::get(shape, type.getElementType()), vector);
}

KernelBuilder::Values KernelBuilder::loop(Value lower, Value upper, int64_t step, ValueRange inits, LoopBody body) {
  auto loopOp = scf::ForOp::create(b, loc, lower, upper, index(step), inits);
  OpBuilder::InsertionGuard guard(b);
  // scf.for without state comes with its terminator, with state it does not.
  if (inits.empty())
    b.setInsertionPoint(loopOp.getBody()->getTerminator());
  else
    b.setInsertionPointToEnd(loopOp.getBody());
  Values next = body(loopOp.getInductionVar(), loopOp.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(loopOp.getResults());
}

void KernelBuilder::loop(Value lower, Value upper, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(lower, upper, step, {}, [&](Value iv, ValueRange) -> Values {
    body(iv);
    return {};
  });
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

MemRefType llmc::rowsType(MLIRContext *context, int64_t columns, Type element) {
  return MemRefType::get({ShapedType::kDynamic, pad32(columns)}, element);
}

MemRefType llmc::headsType(MLIRContext *context, int64_t heads, int64_t headDim, Type element) {
  auto layout = StridedLayoutAttr::get(context, 0, {pad32(heads * headDim), headDim, 1});
  return MemRefType::get({ShapedType::kDynamic, heads, headDim}, element, layout);
}

MemRefType llmc::scalesType(MLIRContext *context, int64_t columns) {
  return MemRefType::get({ShapedType::kDynamic, pad32(columns) / 32, 2}, Float32Type::get(context));
}
