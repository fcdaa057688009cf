//===- Dot.cpp - tile.dot in registers ------------------------------------===//
//
// Outer products: a register tile of up to `rowBlock` rows and 16 columns stays in
// registers while k runs; the left operand is broadcast from memory, the right one
// is loaded and widened. Per result this is one chain over ascending k (f32), or
// the pairwise chains of bf16_eo32, for every tile shape. bf16 is one chain too, of the pairs' odd k and then their even
// ones: what vdpbf16ps computes (Intel's manual, vol. 2C; AMD's cores give the same bits), and what others multiply and add.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

/// The right operand's columns [16 block, 16 block + 16) for k and, in pairs, k + 1; one vector per piece.
struct RightOperand {
  tile::PackedType type;
  Value pointer;
  int64_t block;

  /// Columns of a register tile: 16, in pieces of `lanes`.
  static int64_t pieces(const Emitter &e) { return 16 / e.machine.lanes; }

  bool e4m3() const { return type.getFormat() == tile::Format::E4M3Pairs; }
  bool pairs() const { return type.getFormat() == tile::Format::BF16Pairs || e4m3(); }

  /// The pairs (k, k + 1) of a piece's columns, in bf16; k is even.
  Value loadPairs(Emitter &e, Value k, int64_t piece = 0) const {
    int64_t bytes = e4m3() ? 2 : 4; // of a pair
    Value row = e.offset(pointer, arith::MulIOp::create(e.b, e.loc, e.toI64(k), e.i64(type.getN() * bytes / 2)));
    int64_t column = (block * 16 + piece * e.machine.lanes) * bytes;
    if (e4m3())
      return e.widenE4M3(e.load(e.vec(2 * e.machine.lanes, e.b.getI8Type()), row, column));
    return e.load(e.i32s(), row, column);
  }

  /// Dense formats: w[k][piece] for k = base + step, step < 2; `base` is a dynamic even k.
  SmallVector<Values> load2(Emitter &e, Value base) const {
    SmallVector<Values> w(2);
    for (int64_t piece = 0; pairs() && piece < pieces(e); ++piece) {
      Value both = loadPairs(e, base, piece);
      w[0].push_back(e.evenBF16(both));
      w[1].push_back(e.oddBF16(both));
    }
    if (pairs())
      return w;
    int64_t bytes = type.getFormat() == tile::Format::F16 ? 2 : 4;
    int64_t rowBytes = type.getN() * bytes; // of one k
    Value scaled = arith::MulIOp::create(e.b, e.loc, e.toI64(base), e.i64(rowBytes));
    Value row = e.offset(pointer, scaled);
    for (int64_t piece = 0; piece < pieces(e); ++piece) {
      int64_t column = (block * 16 + piece * e.machine.lanes) * bytes;
      for (int64_t step = 0; step < 2; ++step)
        w[step].push_back(type.getFormat() == tile::Format::F16 ? e.loadF16(e.machine.lanes, row, column + step * rowBytes)
                                                                : e.load(e.f32s(), row, column + step * rowBytes));
    }
    return w;
  }
};

struct LowerDot : OpConversionPattern<tile::DotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(tile::DotOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = cast<tile::PackedType>(op.getB().getType());
    bool pairs = op.getArith() == tile::DotArith::BF16 &&
                 (type.getFormat() == tile::Format::BF16Pairs || type.getFormat() == tile::Format::E4M3Pairs);
    if (op.getArith() != tile::DotArith::F32 && op.getArith() != tile::DotArith::BF16_EO32 && !pairs)
      return op.emitOpError("expected arithmetic f32, bf16_eo32, or bf16 with pairs, on a CPU, got ")
             << tile::stringifyDotArith(op.getArith()) << " and " << type;
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    int64_t rows = cast<VectorType>(op.getAcc().getType()).getDimSize(0);
    LeftOperand left = leftOperand(e, rewriter, *getTypeConverter(), op.getA(), adaptor.getA());
    Values acc(adaptor.getAcc());
    int64_t perBlock = RightOperand::pieces(e), perRow = type.getN() / machine.lanes;
    for (int64_t block = 0; block < type.getN() / 16; ++block) {
      RightOperand right{type, adaptor.getB().front(), block};
      int64_t rowBlock = pairs && machine.bf16 ? kPairRows : machine.rowBlock;
      for (int64_t first = 0; first < rows; first += rowBlock) {
        int64_t count = std::min(rowBlock, rows - first);
        Values tile;
        for (int64_t row = first; row < first + count; ++row)
          for (int64_t piece = 0; piece < perBlock; ++piece)
            tile.push_back(acc[row * perRow + block * perBlock + piece]);
        if (pairs)
          tile = pairTile(e, left, right, first, count, tile);
        else if (op.getArith() == tile::DotArith::BF16_EO32)
          tile = pairwiseTile(e, left, right, first, count, tile);
        else if (tile::isQuantized(type.getFormat()))
          tile = codedTile(e, left, CodedRecord(e, op.getB(), right.pointer), type.getK() / 32, first, count, tile);
        else
          tile = denseTile(e, left, right, first, count, tile);
        for (int64_t row = first, i = 0; row < first + count; ++row)
          for (int64_t piece = 0; piece < perBlock; ++piece)
            acc[row * perRow + block * perBlock + piece] = tile[i++];
      }
    }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }

  /// One f32 chain over ascending k.
  static Values denseTile(Emitter &e, const LeftOperand &left, const RightOperand &right, int64_t first, int64_t count,
                          Values tile) {
    return e.loop(right.type.getK(), 2, tile, [&](Value k, ValueRange state) {
      Values next(state);
      SmallVector<Values> w = right.load2(e, k);
      Value column = e.offset(left.pointer, arith::MulIOp::create(e.b, e.loc, e.toI64(k), e.i64(4)));
      for (int64_t step = 0; step < 2; ++step)
        multiply(e, next, w[step], [&](int64_t row) {
          return e.broadcast(e.f32s(), e.load(e.b.getF32Type(), column, left.rowOffsets[first + row] + step * 4));
        }, count);
      return next;
    });
  }

  /// tile[row][piece] = fma(w[piece], a(row), tile[row][piece])
  static void multiply(Emitter &e, Values &tile, const Values &w, llvm::function_ref<Value(int64_t)> a, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      Value x = a(row);
      for (size_t piece = 0; piece < w.size(); ++piece)
        tile[row * w.size() + piece] = e.fma(w[piece], x, tile[row * w.size() + piece]);
    }
  }

  static Values codedTile(Emitter &e, const LeftOperand &left, const CodedRecord &record, int64_t groups, int64_t first, int64_t count,
                          Values tile) {
    int64_t stride = record.stride();
    if (groups <= stride || groups % stride)
      return dequantizedTile(e, left, record, groups, first, count, tile);
    return e.loop(groups, stride, tile, [&](Value index, ValueRange state) {
      Value group = e.toI64(index);
      LeftOperand moved = left;
      moved.pointer = e.offset(left.pointer, arith::MulIOp::create(e.b, e.loc, group, e.i64(32 * 4)));
      return dequantizedTile(e, moved, record.at(group), stride, first, count, Values(state));
    });
  }

  /// Codes under f32 arithmetic: widened in registers, w = scale (code - zero) + minimum, 32 k of a panel at a time.
  static Values dequantizedTile(Emitter &e, const LeftOperand &left, CodedRecord record, int64_t groups, int64_t first, int64_t count,
                                Values tile) {
    int64_t scales = 32 / record.form.scaleGroup, pieces = record.pieces();
    for (int64_t group = 0; group < groups; ++group) {
      SmallVector<Values> quads, d(scales), m(scales);
      for (int64_t piece = 0; piece < pieces; ++piece) {
        quads.push_back(record.quads(group, piece));
        for (int64_t i = 0; i < scales; ++i) {
          d[i].push_back(record.scale(group * scales + i, piece));
          m[i].push_back(record.form.minimum ? record.minimum(group * scales + i, piece) : Value());
        }
      }
      for (int64_t k = 0; k < 32; ++k) {
        Values w;
        int64_t scale = k / record.form.scaleGroup;
        for (int64_t piece = 0; piece < pieces; ++piece)
          w.push_back(widenCode(e, quads[piece][k / 4], k % 4 * 8, record.zero(), d[scale][piece], m[scale][piece]));
        multiply(e, tile, w, [&](int64_t row) {
          return e.broadcast(e.f32s(), e.load(e.b.getF32Type(), left.pointer, left.rowOffsets[first + row] + (group * 32 + k) * 4));
        }, count);
      }
    }
    return tile;
  }

  /// Rows of a tile of vdpbf16ps: as many sums hide its latency, and a register of weights serves them all.
  static constexpr int64_t kPairRows = 16;

  /// bf16: one chain, of every pair of k the odd one first.
  static Values pairTile(Emitter &e, const LeftOperand &left, const RightOperand &right, int64_t first, int64_t count, Values tile) {
    auto bf16s = e.vec(2 * e.machine.lanes, e.b.getBF16Type());
    return e.loop(right.type.getK(), 2, tile, [&](Value k, ValueRange state) {
      Values next(state);
      Value column = e.offset(left.pointer, arith::MulIOp::create(e.b, e.loc, e.toI64(k), e.i64(2)));
      auto pair = [&](int64_t row) { return e.broadcast(e.i32s(), e.load(e.b.getI32Type(), column, left.rowOffsets[first + row])); };
      if (e.machine.bf16) {
        Value w = e.bitcast(bf16s, right.loadPairs(e, k));
        for (int64_t row = 0; row < count; ++row)
          next[row] = e.intrinsic("llvm.x86.avx512bf16.dpbf16ps.512", e.f32s(), {next[row], w, e.bitcast(bf16s, pair(row))});
        return next;
      }
      SmallVector<Values> w = right.load2(e, k);
      for (int64_t row = 0; row < count; ++row) {
        Value both = pair(row), even = e.evenBF16(both), odd = e.oddBF16(both);
        for (size_t piece = 0; piece < w[0].size(); ++piece) {
          Value &sum = next[row * w[0].size() + piece];
          sum = e.fma(w[0][piece], even, e.fma(w[1][piece], odd, sum));
        }
      }
      return next;
    });
  }

  /// bf16_eo32: per 32 k an even and an odd chain from zero, then acc + (even + odd).
  static Values pairwiseTile(Emitter &e, const LeftOperand &left, const RightOperand &right, int64_t first, int64_t count,
                             Values tile) {
    size_t size = tile.size();
    Values chains(2 * size, e.splatF32(e.f32s(), 0.0f));
    int64_t groups = right.type.getK() / 32;
    assert(groups == 1 && "the outer loop runs over groups");
    (void)groups;
    chains = e.loop(32, 2, chains, [&](Value k, ValueRange state) {
      Values next(state);
      SmallVector<Values> w = right.load2(e, k);
      Value column = e.offset(left.pointer, arith::MulIOp::create(e.b, e.loc, e.toI64(k), e.i64(2)));
      for (int64_t row = 0; row < count; ++row) {
        Value pair = e.broadcast(e.i32s(), e.load(e.b.getI32Type(), column, left.rowOffsets[first + row]));
        Value even = e.evenBF16(pair), odd = e.oddBF16(pair);
        for (size_t piece = 0; piece < w[0].size(); ++piece) {
          size_t i = row * w[0].size() + piece;
          next[i] = e.fma(w[0][piece], even, next[i]);
          next[size + i] = e.fma(w[1][piece], odd, next[size + i]);
        }
      }
      return next;
    });
    for (size_t i = 0; i < size; ++i) {
      Value sum = arith::AddFOp::create(e.b, e.loc, chains[i], chains[size + i]);
      tile[i] = arith::AddFOp::create(e.b, e.loc, tile[i], sum);
    }
    return tile;
  }
};

} // namespace

void cpu::populateDotPatterns(const Converter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerDot>(converter, patterns.getContext(), /*benefit=*/2);
}
