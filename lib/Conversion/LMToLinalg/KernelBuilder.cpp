//===- KernelBuilder.cpp - writes one kernel of the oracle ----------------===//
#include "KernelBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace llmc::oracle;

KernelBuilder::KernelBuilder(OpBuilder &builder, Location loc, StringRef name, ArrayRef<MemRefType> arguments)
    : b(builder), loc(loc), buffers(arguments.size()) {
  SmallVector<Type> types(arguments.begin(), arguments.end());
  types.append(3, builder.getIndexType());
  func = func::FuncOp::create(builder, loc, name, builder.getFunctionType(types, {}));
  func->setAttr("llmc.kernel", builder.getUnitAttr());
  builder.setInsertionPointToStart(func.addEntryBlock());
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(&func.front());
}

void KernelBuilder::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

void KernelBuilder::forEachUnit(llvm::function_ref<void(Value)> body) {
  loop(func.getArgument(buffers + 1), func.getArgument(buffers + 2), 1, body);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value KernelBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

Value KernelBuilder::f32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}

Value KernelBuilder::add(Value a, Value c) {
  if (a.getType().isIndex())
    return b.createOrFold<arith::AddIOp>(loc, a, c);
  return arith::AddFOp::create(b, loc, a, c);
}

Value KernelBuilder::sub(Value a, Value c) {
  if (a.getType().isIndex())
    return b.createOrFold<arith::SubIOp>(loc, a, c);
  return arith::SubFOp::create(b, loc, a, c);
}

Value KernelBuilder::mul(Value a, Value c) {
  if (a.getType().isIndex())
    return b.createOrFold<arith::MulIOp>(loc, a, c);
  return arith::MulFOp::create(b, loc, a, c);
}

Value KernelBuilder::min(Value a, Value c) { return b.createOrFold<arith::MinSIOp>(loc, a, c); }

Value KernelBuilder::loadId(Value field, Value position, Value limit) {
  Value id = memref::LoadOp::create(b, loc, field, position);
  // Unsigned, so that a negative id also stays inside.
  id = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), id);
  return arith::MinUIOp::create(b, loc, id, sub(limit, index(1)));
}

Value KernelBuilder::silu(Value x) {
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x).getResult());
  return arith::DivFOp::create(b, loc, x, add(f32(1), e));
}

Value KernelBuilder::tanh(Value x) { return math::TanhOp::create(b, loc, x); }

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Value KernelBuilder::view(Value buffer, Value offset, ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> strides) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  auto type = MemRefType::get(shape, cast<MemRefType>(buffer.getType()).getElementType(), layout);
  SmallVector<OpFoldResult> strideAttrs;
  for (int64_t stride : strides)
    strideAttrs.push_back(b.getIndexAttr(stride));
  return memref::ReinterpretCastOp::create(b, loc, type, buffer, OpFoldResult(offset), sizes, strideAttrs);
}

Value KernelBuilder::row(Value buffer, Value row, int64_t count, int64_t column) {
  int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
  Value offset = mul(row, stride);
  if (column != 0)
    offset = add(offset, column);
  return view(buffer, offset, {b.getIndexAttr(count)}, {1});
}

Value KernelBuilder::scratch(ArrayRef<int64_t> shape) {
  // In the entry block: an alloca in a loop would grow the stack.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&func.front());
  return memref::AllocaOp::create(b, loc, MemRefType::get(shape, b.getF32Type()), b.getI64IntegerAttr(64));
}

//===----------------------------------------------------------------------===//
// linalg
//===----------------------------------------------------------------------===//

void KernelBuilder::fill(Value buffer, double value) {
  linalg::FillOp::create(b, loc, ValueRange{f32(value)}, ValueRange{buffer});
}

void KernelBuilder::zeroPadding(Value buffer, Value row, OpFoldResult count, int64_t columns) {
  int64_t stride = cast<MemRefType>(buffer.getType()).getDimSize(1);
  if (stride == columns)
    return;
  Value offset = add(mul(row, stride), columns);
  fill(view(buffer, offset, {count, b.getIndexAttr(stride - columns)}, {stride, 1}), 0);
}

void KernelBuilder::generic(ValueRange inputs, Value output, StringRef iterators,
                            ArrayRef<SmallVector<unsigned>> maps, Body body) {
  SmallVector<AffineMap> affine;
  for (const SmallVector<unsigned> &dims : maps) {
    SmallVector<AffineExpr> results;
    for (unsigned dim : dims)
      results.push_back(b.getAffineDimExpr(dim));
    affine.push_back(AffineMap::get(iterators.size(), 0, results, b.getContext()));
  }
  SmallVector<utils::IteratorType> kinds;
  for (char letter : iterators)
    kinds.push_back(letter == 'r' ? utils::IteratorType::reduction : utils::IteratorType::parallel);
  linalg::GenericOp::create(b, loc, inputs, ValueRange{output}, affine, kinds,
                            [&](OpBuilder &nested, Location, ValueRange values) {
                              OpBuilder::InsertionGuard guard(b);
                              b.restoreInsertionPoint(nested.saveInsertionPoint());
                              linalg::YieldOp::create(b, loc, body(values));
                            });
}

void KernelBuilder::elementwise(ValueRange inputs, Value output, Body body) {
  int64_t rank = cast<MemRefType>(output.getType()).getRank();
  SmallVector<unsigned> identity = llvm::to_vector(llvm::seq<unsigned>(0, rank));
  SmallVector<SmallVector<unsigned>> maps(inputs.size() + 1, identity);
  generic(inputs, output, std::string(rank, 'p'), maps, body);
}

void KernelBuilder::contract(Value lhs, Value rhs, Value output, StringRef iterators,
                             ArrayRef<SmallVector<unsigned>> maps) {
  generic({lhs, rhs}, output, iterators, maps, [&](ValueRange v) {
    // The sum may be split over vector lanes.
    auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(b, loc, v[0], v[1], flags);
    return Value(arith::AddFOp::create(b, loc, v[2], product, flags));
  });
}
