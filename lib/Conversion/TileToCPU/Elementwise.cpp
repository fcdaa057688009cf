//===- Elementwise.cpp - values without memory, piece by piece ------------===//

#include "Lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

/// Any elementwise op on vectors: the op on each piece.
struct SplitElementwise : ConversionPattern {
  SplitElementwise(const Converter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands, ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1 || op->getNumRegions() != 0)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    auto type = dyn_cast<VectorType>(op->getResult(0).getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "no vector result");
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(type, types)))
      return failure();
    SmallVector<Value> pieces;
    for (auto [i, pieceType] : llvm::enumerate(types)) {
      SmallVector<Value> arguments;
      for (ValueRange operand : operands)
        arguments.push_back(operand.size() == 1 && types.size() != 1 ? operand.front() : operand[i]);
      OperationState state(op->getLoc(), op->getName(), arguments, pieceType, op->getAttrs());
      pieces.push_back(rewriter.create(state)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor, ConversionPatternRewriter &rewriter) const override {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    auto type = dyn_cast<VectorType>(op.getType());
    if (!dense || !type)
      return rewriter.notifyMatchFailure(op, "no vector");
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(type, types)))
      return failure();
    SmallVector<Value> pieces;
    auto values = dense.getValues<Attribute>();
    int64_t position = 0;
    for (Type piece : types) {
      auto pieceType = cast<VectorType>(piece);
      DenseElementsAttr part;
      if (dense.isSplat()) {
        part = DenseElementsAttr::get(pieceType, dense.getSplatValue<Attribute>());
      } else {
        SmallVector<Attribute> elements;
        for (int64_t i = 0; i < pieceType.getNumElements(); ++i)
          elements.push_back(values[position + i]);
        part = DenseElementsAttr::get(pieceType, elements);
      }
      position += pieceType.getNumElements();
      pieces.push_back(arith::ConstantOp::create(rewriter, op.getLoc(), part));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

/// scalar or row -> pieces
struct SplitBroadcast : OpConversionPattern<vector::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(vector::BroadcastOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return failure();
    ValueRange source = adaptor.getSource();
    SmallVector<Value> pieces;
    if (!isa<VectorType>(op.getSourceType())) {
      DenseMap<Type, Value> made;
      for (Type type : types) {
        Value &piece = made[type];
        if (!piece)
          piece = vector::BroadcastOp::create(rewriter, op.getLoc(), type, source.front());
        pieces.push_back(piece);
      }
    } else {
      auto sourceType = cast<VectorType>(op.getSourceType());
      if (sourceType.getRank() != 1 || sourceType.getShape().back() != op.getType().getShape().back())
        return rewriter.notifyMatchFailure(op, "expected a scalar or a row");
      for (size_t i = 0; i < types.size(); ++i)
        pieces.push_back(source[i % source.size()]);
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitShapeCast : OpConversionPattern<vector::ShapeCastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(vector::ShapeCastOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertType(op.getType(), types)))
      return failure();
    ValueRange source = adaptor.getSource();
    if (llvm::equal(types, source.getTypes())) { // row-major order of pieces is the same
      rewriter.replaceOpWithMultiple(op, {source});
      return success();
    }
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    SmallVector<Value> elements, pieces;
    for (Value piece : source)
      for (int64_t lane = 0; lane < cast<VectorType>(piece.getType()).getNumElements(); ++lane)
        elements.push_back(e.extract(piece, lane));
    int64_t position = 0;
    for (Type type : types) {
      Value piece = LLVM::UndefOp::create(rewriter, op.getLoc(), type);
      for (int64_t lane = 0; lane < cast<VectorType>(type).getNumElements(); ++lane)
        piece = LLVM::InsertElementOp::create(rewriter, op.getLoc(), piece, elements[position++], e.i64(lane));
      pieces.push_back(piece);
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct LowerExpand : OpConversionPattern<tile::ExpandOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::ExpandOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    auto type = cast<VectorType>(op.getResult().getType());
    SmallVector<Type> types = pieceTypes(type, machine.lanes);
    size_t perRow = types.size() / type.getDimSize(0);
    SmallVector<Value> pieces;
    for (int64_t row = 0; row < type.getDimSize(0); ++row) {
      Value scalar = e.extract(adaptor.getSource()[row / machine.lanes], row % machine.lanes);
      for (size_t i = 0; i < perRow; ++i)
        pieces.push_back(e.broadcast(cast<VectorType>(types[row * perRow + i]), scalar));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

/// Swaps elements 1 and 2 of each four; registers hold whole fours.
struct LowerPairOrder : OpConversionPattern<tile::PairOrderOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::PairOrderOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    SmallVector<Value> pieces;
    for (Value piece : adaptor.getSource()) {
      SmallVector<int32_t> mask(cast<VectorType>(piece.getType()).getNumElements());
      for (auto [i, from] : llvm::enumerate(mask))
        from = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;
      pieces.push_back(e.shuffle(piece, piece, mask));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

} // namespace

void cpu::populateElementwisePatterns(const Converter &converter, RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<SplitElementwise>(converter, context);
  patterns.add<SplitConstant, SplitBroadcast, SplitShapeCast, LowerExpand, LowerPairOrder>(converter, context, /*benefit=*/2);
}
