//===- Memory.cpp - tile loads and stores to LLVM -------------------------===//

#include "Codes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

static const Machine &machineOf(const TypeConverter *converter) { return static_cast<const Converter *>(converter)->machine; }

namespace {

struct LowerView : OpConversionPattern<tile::ViewOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::ViewOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    rewriter.replaceOp(op, e.offset(adaptor.getSource(), static_cast<int64_t>(op.getOffset())));
    return success();
  }
};

struct LowerLoad : OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    auto memref = cast<MemRefType>(op.getMemref().getType());
    Address address = addressOf(e, adaptor.getMemref().front(), memref, op.getIndices());
    auto type = dyn_cast<VectorType>(op.getResult().getType());
    if (!type) {
      rewriter.replaceOp(op, e.load(op.getResult().getType(), address.pointer));
      return success();
    }
    Values pieces;
    forEachPiece(type, e.machine.lanes, address, [&](VectorType piece, int64_t, int64_t bytes) {
      pieces.push_back(e.load(piece, address.pointer, bytes));
    });
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }

  static void forEachPiece(VectorType type, int64_t lanes, const Address &address,
                           llvm::function_ref<void(VectorType, int64_t row, int64_t bytes)> body) {
    int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
    int64_t element = type.getElementTypeBitWidth() / 8;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; column += lanes)
        body(VectorType::get({std::min(lanes, columns - column)}, type.getElementType()), row,
             address.rowOffset(type, row) + column * element);
  }
};

struct LowerStore : OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    auto memref = cast<MemRefType>(op.getMemref().getType());
    Address address = addressOf(e, adaptor.getMemref().front(), memref, op.getIndices());
    auto type = dyn_cast<VectorType>(op.getValue().getType());
    if (!type) {
      e.store(adaptor.getValue().front(), address.pointer);
      rewriter.eraseOp(op);
      return success();
    }
    ValueRange pieces = adaptor.getValue();
    int64_t outer = type.getRank() == 1 ? 1 : type.getDimSize(0);
    int64_t rowsPerOuter = type.getNumElements() / type.getShape().back() / outer;
    size_t next = 0;
    std::optional<int64_t> open; // the outermost row whose condition is open
    OpBuilder::InsertPoint after;
    LowerLoad::forEachPiece(type, e.machine.lanes, address, [&](VectorType piece, int64_t row, int64_t bytes) {
      if (op.getLimit() && open != row / rowsPerOuter) {
        if (open)
          rewriter.restoreInsertionPoint(after);
        open = row / rowsPerOuter;
        Value index = op.getIndices()[memref.getRank() - type.getRank()];
        Value position = arith::AddIOp::create(rewriter, op.getLoc(), index, e.index(*open));
        Value inside = arith::CmpIOp::create(rewriter, op.getLoc(), arith::CmpIPredicate::slt, position, op.getLimit());
        auto branch = scf::IfOp::create(rewriter, op.getLoc(), inside, /*withElseRegion=*/false);
        after = rewriter.saveInsertionPoint();
        rewriter.setInsertionPoint(branch.thenBlock()->getTerminator());
      }
      Value value = pieces[next++];
      if (piece.getElementType().isBF16()) // plain 16-bit stores, whatever the target has for bf16
        value = e.bitcast(VectorType::get(piece.getShape(), rewriter.getI16Type()), value);
      e.store(value, address.pointer, bytes);
    });
    if (open)
      rewriter.restoreInsertionPoint(after);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerLoadPacked : OpConversionPattern<tile::LoadPackedOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::LoadPackedOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    Address address = addressOf(e, adaptor.getMemref(), cast<MemRefType>(op.getMemref().getType()), op.getIndices());
    auto type = cast<tile::PackedType>(op.getType());
    if (tile::isQuantized(type.getFormat()) && (type.getN() != 16 || type.getK() > tile::recordK(type.getFormat())))
      return op.emitOpError("expected one record of one panel of 16 columns on a CPU, got ") << type;
    if (type.getFormat() == tile::Format::BF16NK || type.getFormat() == tile::Format::BF16KN || type.getFormat() == tile::Format::E4M3NK)
      return op.emitOpError("expected a form that CPUs read, got ") << type;
    if (int64_t ahead = op.getPrefetch()) {
      int64_t records = std::max<int64_t>(1, type.getK() / tile::recordK(type.getFormat()));
      int64_t bytes = records * tile::recordBytes(type.getFormat()) * (type.getN() / 16);
      for (int64_t line = 0; line < bytes; line += 64)
        e.prefetch(address.pointer, ahead + line);
    }
    rewriter.replaceOp(op, address.pointer);
    return success();
  }
};

struct LowerStoreSlice : OpConversionPattern<tile::StoreSliceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::StoreSliceOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    Address address = addressOf(e, adaptor.getMemref().front(), cast<MemRefType>(op.getMemref().getType()), op.getIndices());
    auto packed = cast<tile::PackedType>(op.getPacked());
    bool pairs = packed.getFormat() == tile::Format::BF16Pairs, alongK = op.getAxis() == tile::Axis::K;
    int64_t n = packed.getN(), position = op.getFirst();
    Value at = e.toI64(op.getAt());
    Value base = address.pointer;
    if (alongK) // column `at`
      base = e.offset(base, arith::MulIOp::create(rewriter, op.getLoc(), at, e.i64(4)));
    else if (!pairs) // row `at`
      base = e.offset(base, arith::MulIOp::create(rewriter, op.getLoc(), at, e.i64(n * 4)));
    else // row at / 2, member at % 2
      base = e.offset(base, pairedRow(e, at, n));
    for (Value piece : adaptor.getValue()) {
      int64_t count = cast<VectorType>(piece.getType()).getNumElements();
      if (!pairs && !alongK) {
        e.store(piece, base, position * 4);
      } else if (!pairs) {
        for (int64_t lane = 0; lane < count; ++lane)
          e.store(e.extract(piece, lane), base, (position + lane) * n * 4);
      } else {
        Value rounded = arith::TruncFOp::create(rewriter, op.getLoc(), e.vec(count, rewriter.getBF16Type()), piece);
        if (alongK) { // two members of a pair are neighbours
          Value both = e.bitcast(e.vec(count / 2, rewriter.getI32Type()), rounded);
          for (int64_t lane = 0; lane < count / 2; ++lane)
            e.store(e.extract(both, lane), base, (position / 2 + lane) * n * 4);
        } else {
          Value bits = e.bitcast(e.vec(count, rewriter.getI16Type()), rounded);
          for (int64_t lane = 0; lane < count; ++lane)
            e.store(e.extract(bits, lane), base, (position + lane) * 4);
        }
      }
      position += count;
    }
    rewriter.eraseOp(op);
    return success();
  }

  /// (at / 2) * n * 4 + (at % 2) * 2
  static Value pairedRow(Emitter &e, Value at, int64_t n) {
    Value row = arith::MulIOp::create(e.b, e.loc, arith::ShRUIOp::create(e.b, e.loc, at, e.i64(1)), e.i64(n * 4));
    Value member = arith::MulIOp::create(e.b, e.loc, arith::AndIOp::create(e.b, e.loc, at, e.i64(1)), e.i64(2));
    return arith::AddIOp::create(e.b, e.loc, row, member);
  }
};

/// 32 values of one column of a panel (n = 16), as f32.
struct LowerUnpackRow : OpConversionPattern<tile::UnpackRowOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(tile::UnpackRowOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Emitter e(rewriter, op.getLoc(), machineOf(getTypeConverter()));
    auto packed = cast<tile::PackedType>(op.getSource().getType());
    int64_t first = op.getFirst();
    Value source = adaptor.getSource();
    Value column = e.toI64(op.getColumn());
    Values pieces;
    if (tile::isQuantized(packed.getFormat()))
      pieces = CodedRecord(e, op.getSource(), source).column(first / 32, column);
    else if (packed.getFormat() != tile::Format::F32 && packed.getFormat() != tile::Format::F16 &&
             packed.getFormat() != tile::Format::BF16Pairs)
      return rewriter.notifyMatchFailure(op, "a form for GPUs, or one that tables do not have");
    else
      pieces = gather(e, packed.getFormat(), source, column, first);
    // Both make groups of 8 lanes.
    if (e.machine.lanes == 16)
      for (size_t i = 0; i < pieces.size() / 2; ++i)
        pieces[i] = e.shuffle(pieces[2 * i], pieces[2 * i + 1], {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    pieces.resize(32 / e.machine.lanes);
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }

  static Values gather(Emitter &e, tile::Format format, Value source, Value column, int64_t first) {
    Values pieces;
    int64_t bytes = format == tile::Format::F16 ? 2 : 4;
    Value base = e.offset(source, arith::MulIOp::create(e.b, e.loc, column, e.i64(bytes)));
    for (int64_t group = 0; group < 4; ++group) {
      Value piece = LLVM::UndefOp::create(e.b, e.loc, e.vec(8, e.b.getF32Type()));
      for (int64_t lane = 0; lane < 8; ++lane) {
        int64_t k = first + group * 8 + lane;
        Value x;
        if (format == tile::Format::F32) {
          x = e.load(e.b.getF32Type(), base, k * 64);
        } else if (format == tile::Format::F16) {
          x = arith::ExtFOp::create(e.b, e.loc, e.b.getF32Type(), e.load(e.b.getF16Type(), base, k * 32));
        } else {
          Value bits = arith::ExtUIOp::create(e.b, e.loc, e.b.getI32Type(), e.load(e.b.getI16Type(), base, k / 2 * 64 + k % 2 * 2));
          x = e.bitcast(e.b.getF32Type(), arith::ShLIOp::create(e.b, e.loc, bits, e.constant(e.b.getI32IntegerAttr(16))));
        }
        piece = LLVM::InsertElementOp::create(e.b, e.loc, piece, x, e.i64(lane));
      }
      pieces.push_back(piece);
    }
    return pieces;
  }
};

} // namespace

void cpu::populateMemoryPatterns(const Converter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerView, LowerLoad, LowerStore, LowerLoadPacked, LowerStoreSlice, LowerUnpackRow>(
      converter, patterns.getContext(), /*benefit=*/2);
}
