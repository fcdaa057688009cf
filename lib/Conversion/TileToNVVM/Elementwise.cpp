//===- Elementwise.cpp - arith and math on the registers of a thread ------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static Type scalarOf(Type type) { return getElementTypeOrSelf(type); }

Value Emitter::uniform(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    return isa<VectorType>(broadcast.getSource().getType()) ? uniform(broadcast.getSource()) : scalar(broadcast.getSource());
  if (auto expand = value.getDefiningOp<tile::ExpandOp>())
    return uniform(expand.getSource());
  DenseElementsAttr constant;
  matchPattern(value, m_Constant(&constant));
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(constant.getSplatValue<Attribute>()));
}

namespace {

/// A constant whose elements follow from their number: integers first + i / every, or a mask of the first elements.
struct Progression {
  int64_t first = 0, every = 0; ///< every 0: none
  int64_t prefix = -1;          ///< masks: how many are true
};

Progression patternOf(DenseElementsAttr constant) {
  Progression pattern;
  if (constant.getElementType().isInteger(1)) {
    SmallVector<bool> values(constant.getValues<bool>());
    int64_t count = llvm::count(values, true);
    if (llvm::all_of(ArrayRef(values).take_front(count), [](bool value) { return value; }))
      pattern.prefix = count;
    return pattern;
  }
  if (!constant.getElementType().isInteger(32))
    return pattern;
  SmallVector<int32_t> values(constant.getValues<int32_t>());
  pattern.first = values.front();
  for (int64_t every = 1; every <= static_cast<int64_t>(values.size()); ++every) {
    bool fits = true;
    for (auto [i, value] : llvm::enumerate(values))
      fits &= value == pattern.first + static_cast<int64_t>(i) / every;
    if (!fits)
      continue;
    pattern.every = every;
    break;
  }
  return pattern;
}

} // namespace

Values Emitter::regsIn(Value value, const Layout &layout) {
  if (isUniform(value))
    return Values(layout.size(), uniform(value));
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return regs(value);
  // Other constants count (positions of rows, columns of a block) or mask: they are computed from the coordinate.
  Progression pattern = patternOf(constant);
  Values result;
  for (auto [row, col] : layout.regs) {
    Value at = layout.kind == Layout::Rows ? coordinate(layout.row, row) : coordinate(layout.col, col);
    if (pattern.prefix >= 0) {
      result.push_back(less(at, index(pattern.prefix)));
      continue;
    }
    if (pattern.every > 1)
      at = arith::DivUIOp::create(b, loc, at, index(pattern.every));
    result.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), add(at, pattern.first)));
  }
  return result;
}

/// exp and exp2 by ex2.approx (2 ulp, PTX ISA 9.7.3.21), log by lg2.approx; tanh where it may be approximate by tanh.approx (off by
/// 2^-11 of the result, 9.7.3.23), else as 1 - 2 / (1 + exp(2 x)), off by 2^-22; in products of warpgroups, whose results a thread divides by
/// the dozen, quotients by div.approx (2 ulp, 0 where the divisor is beyond 2^126: 9.7.3.8), which has no branches for extreme
/// operands; everything else as it is, single numbers above all: a row's factor is what it is in the kernel that only normalises.
Value Emitter::emitMath(Operation *op, ValueRange operands) {
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    Value x = operands.front();
    if (isa<math::ExpOp>(op))
      x = arith::MulFOp::create(b, loc, x, constantF32(1.44269504088896340736f));
    return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", b.getF32Type(), x);
  }
  if (auto tanh = dyn_cast<math::TanhOp>(op)) {
    Type f32 = b.getF32Type();
    if (bitEnumContainsAny(tanh.getFastmath(), arith::FastMathFlags::afn))
      return LLVM::TanhOp::create(b, loc, f32, operands.front(), LLVM::FastmathFlags::afn);
    Value x = arith::MulFOp::create(b, loc, operands.front(), constantF32(2.88539008177792681472f)); // 2 / ln 2
    Value e = intrinsic("llvm.nvvm.ex2.approx.ftz.f32", f32, x);
    Value inverse = intrinsic("llvm.nvvm.rcp.approx.ftz.f", f32, arith::AddFOp::create(b, loc, e, constantF32(1)).getResult());
    return math::FmaOp::create(b, loc, inverse, constantF32(-2), constantF32(1));
  }
  if (isa<math::LogOp>(op)) {
    Value two = intrinsic("llvm.nvvm.lg2.approx.f", b.getF32Type(), operands.front());
    return arith::MulFOp::create(b, loc, two, constantF32(0.693147180559945309417f));
  }
  bool many = isa<VectorType>(op->getResult(0).getType());
  if (isa<arith::DivFOp>(op) && many && operands.front().getType().isF32() && cta.persistent && cta.transposed)
    return intrinsic("llvm.nvvm.div.approx.ftz.f", b.getF32Type(), operands);
  OperationState state(loc, op->getName(), operands, scalarOf(op->getResult(0).getType()), op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

/// To the nearest even, as bytes; the instruction takes two (PTX ISA 9.7.9.21).
Values Emitter::toE4M3(const Values &floats) {
  Values codes;
  for (size_t i = 0; i < floats.size(); i += 2) {
    Value high = i + 1 < floats.size() ? floats[i + 1] : floats[i];
    Value both = assembly("cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;", "=h,f,f", b.getI16Type(), {high, floats[i]});
    codes.push_back(arith::TruncIOp::create(b, loc, b.getI8Type(), both));
    if (i + 1 < floats.size())
      codes.push_back(arith::TruncIOp::create(b, loc, b.getI8Type(),
                                              arith::ShRUIOp::create(b, loc, both, arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(8)))));
  }
  return codes;
}

LogicalResult Emitter::emitElementwise(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (!isa<VectorType>(constant.getType()))
      mapping.map(constant.getResult(), b.clone(*op)->getResult(0));
    else if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
             !dense || (!dense.isSplat() && (dense.getType().getRank() != 1 || (!patternOf(dense).every && patternOf(dense).prefix < 0))))
      return op->emitOpError("expected a constant vector that is uniform, counts or masks its end, got ") << constant.getValue();
    return success();
  }
  if (op->getNumResults() != 1 || op->getNumRegions() ||
      (!op->hasTrait<OpTrait::Elementwise>() && !isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)))
    return op->emitOpError("expected an op with a lowering for GPUs");
  Value result = op->getResult(0);
  if (!isa<VectorType>(result.getType())) {
    Values operands;
    for (Value operand : op->getOperands())
      operands.push_back(scalar(operand));
    mapping.map(result, emitMath(op, operands));
    return success();
  }
  const Layout &layout = layouts.of(result);
  if (isa<arith::TruncFOp>(op) && isa<Float8E4M3FNType>(scalarOf(result.getType()))) {
    set(result, toE4M3(regsIn(op->getOperand(0), layout)));
    return success();
  }
  if (isa<arith::BitcastOp>(op) && isa<Float8E4M3FNType>(scalarOf(op->getOperand(0).getType()))) { // bytes already
    set(result, regs(op->getOperand(0)));
    return success();
  }
  SmallVector<Values> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isa<VectorType>(operand.getType()) ? regsIn(operand, layout) : Values(layout.size(), scalar(operand)));
  Values results;
  for (size_t i = 0; i < layout.size(); ++i) {
    Values parts;
    for (Values &operand : operands)
      parts.push_back(operand[i]);
    // Neighbours often are the same value (a row's maximum in all its columns): compute once.
    bool repeated = i && llvm::all_of(operands, [&](Values &operand) { return operand[i] == operand[i - 1]; });
    results.push_back(repeated ? results.back() : emitMath(op, parts));
  }
  set(result, results);
  return success();
}

LogicalResult Emitter::emitBroadcast(Operation *op, Value source) {
  Value result = op->getResult(0);
  if (isUniform(result))
    return success();
  const Layout &layout = layouts.of(result);
  bool alongRows = isa<tile::ExpandOp>(op); // result[r, c] = source[r]; else source[c]
  Layout vector = alongRows ? rowsOf(layout) : columnsOf(layout);
  Values parts = regsIn(source, vector), results;
  for (auto [row, col] : layout.regs) {
    std::pair<int32_t, int32_t> wanted = alongRows ? std::pair(row, 0) : std::pair(0, col);
    results.push_back(parts[llvm::find(vector.regs, wanted) - vector.regs.begin()]);
  }
  set(result, results);
  return success();
}

/// Of each four columns the middle two change places: with one column per thread (or one row) that is a shuffle.
LogicalResult Emitter::emitPairOrder(tile::PairOrderOp op) {
  const Layout &layout = layouts.of(op.getResult());
  if (layout.kind != Layout::Spread || layout.col.scale != 1)
    return op.emitOpError("expected a value with one column per thread on a GPU");
  Value low = arith::AndIOp::create(b, loc, thread, index(3));
  auto is = [&](int64_t n) -> Value { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, low, index(n)); };
  Value middle = arith::OrIOp::create(b, loc, is(1), is(2));
  Values results;
  for (Value x : regsIn(op.getSource(), layout)) {
    Value wide = arith::ExtSIOp::create(b, loc, b.getI32Type(), x);
    Value other = arith::TruncIOp::create(b, loc, x.getType(), shuffleXor(wide, 3));
    results.push_back(arith::SelectOp::create(b, loc, middle, other, x));
  }
  set(op.getResult(), results);
  return success();
}
