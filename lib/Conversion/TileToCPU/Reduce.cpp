//===- Reduce.cpp - tile.reduce in registers ------------------------------===//
//
// Eight rows are reduced at once by a transposing tree: each level combines
// neighbouring lanes of two rows, so that eight rows cost seven operations and
// fourteen shuffles, and the results come out as one register. The tree of a row is
// ((0 1)(2 3))((4 5)(6 7)) wherever the row stands, as the op's definition says.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

struct LowerReduce : OpConversionPattern<tile::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  static Value combine(Emitter &e, tile::Reduction kind, Value x, Value y) {
    bool integer = getElementTypeOrSelf(x).isInteger();
    if (kind == tile::Reduction::Add)
      return integer ? Value(arith::AddIOp::create(e.b, e.loc, x, y)) : Value(arith::AddFOp::create(e.b, e.loc, x, y));
    Value greater = integer ? Value(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::sgt, x, y))
                            : Value(arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OGT, x, y));
    return arith::SelectOp::create(e.b, e.loc, greater, x, y);
  }

  /// One row's pieces folded to 8 lanes: elements i and i + C/2 while C > 8.
  static Value foldRow(Emitter &e, tile::Reduction kind, ValueRange row) {
    Values pieces(row);
    while (pieces.size() > 1) {
      size_t half = pieces.size() / 2;
      for (size_t i = 0; i < half; ++i)
        pieces[i] = combine(e, kind, pieces[i], pieces[i + half]);
      pieces.resize(half);
    }
    Value folded = pieces[0];
    if (cast<VectorType>(folded.getType()).getNumElements() == 16)
      folded = combine(e, kind, e.shuffle(folded, folded, {0, 1, 2, 3, 4, 5, 6, 7}),
                       e.shuffle(folded, folded, {8, 9, 10, 11, 12, 13, 14, 15}));
    return folded;
  }

  /// Lane r of the result is the reduction of rows[r]; rows are repeated to make eight.
  static Value transposingTree(Emitter &e, tile::Reduction kind, Values rows) {
    size_t count = rows.size();
    while (rows.size() < 8)
      rows.push_back(rows[rows.size() % count]);
    constexpr int32_t even[] = {0, 2, 8, 10, 4, 6, 12, 14}, odd[] = {1, 3, 9, 11, 5, 7, 13, 15};
    constexpr int32_t low[] = {0, 1, 2, 3, 8, 9, 10, 11}, high[] = {4, 5, 6, 7, 12, 13, 14, 15};
    auto level = [&](ArrayRef<int32_t> first, ArrayRef<int32_t> second) {
      Values next;
      for (size_t i = 0; i < rows.size(); i += 2)
        next.push_back(combine(e, kind, e.shuffle(rows[i], rows[i + 1], first), e.shuffle(rows[i], rows[i + 1], second)));
      rows = next;
    };
    level(even, odd);
    level(even, odd);
    level(low, high);
    return rows[0];
  }

  LogicalResult matchAndRewrite(tile::ReduceOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    auto type = cast<VectorType>(op.getSource().getType());
    if (!llvm::isPowerOf2_64(type.getShape().back()))
      return op.emitOpError("expected a power of two columns on a CPU, got ") << type.getShape().back();
    int64_t rows = type.getRank() == 2 ? type.getDimSize(0) : 1;
    ValueRange pieces = adaptor.getSource();
    int64_t perRow = pieces.size() / rows;
    Values batches;
    for (int64_t first = 0; first < rows; first += 8) {
      Values folded;
      for (int64_t row = first; row < std::min(rows, first + 8); ++row)
        folded.push_back(foldRow(e, op.getKind(), pieces.slice(row * perRow, perRow)));
      batches.push_back(transposingTree(e, op.getKind(), folded));
    }
    if (type.getRank() == 1) {
      rewriter.replaceOp(op, e.extract(batches[0], 0));
      return success();
    }
    Values results;
    for (Type piece : pieceTypes(cast<VectorType>(op.getResult().getType()), machine.lanes)) {
      int64_t size = cast<VectorType>(piece).getNumElements();
      size_t batch = results.size() * machine.lanes / 8;
      if (size == 8) {
        results.push_back(batches[batch]);
        continue;
      }
      SmallVector<int32_t> mask(size);
      std::iota(mask.begin(), mask.end(), 0);
      results.push_back(e.shuffle(batches[batch], batches[std::min(batch + 1, batches.size() - 1)], mask));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

} // namespace

void cpu::populateReductionPatterns(const Converter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerReduce>(converter, patterns.getContext(), /*benefit=*/2);
}
