//===- ScaledDot.cpp - tile.scaled_dot in registers -----------------------===//
//
// Integer dots of a panel's codes with broadcast activation codes, exact, then one
// f32 FMA per group (and one for the minimum). Integers are exact everywhere, so the
// bits are equal on every instruction set.
//
//   int8 codes   AVX2: vpmaddubsw, with 4-bit codes summed in int16 (8 * 2 * 15 * 127
//                < 2^15) and widened once per group. AVX-512: vpdpbusd.
//   int16 codes  vpmaddwd on AVX2, vpdpwssd on AVX-512: the codes' bytes are spread to
//                words by masks, which is why activations come in pair order. The sum
//                of a group stays below 32 * 128 * 32767 < 2^31.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

/// One group of 32 k of a record, unpacked: codes[i][piece] holds the bytes of 4 k (int8 activations) or the
/// words of 2 k (int16), to be multiplied with the activations' i-th 32-bit word.
struct Group {
  SmallVector<Values> codes;
  Values scale, minimum;
};

struct Kernel {
  Emitter &e;
  tile::Format format;
  bool wide; ///< int16 activations
  int64_t lanes = e.machine.lanes, pieces = 16 / e.machine.lanes;

  Value and_(Value x, Value y) { return arith::AndIOp::create(e.b, e.loc, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(e.b, e.loc, x, y); }

  Group unpack(Value record, int64_t group) {
    Group g;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      g.scale.push_back(e.loadF16(lanes, record, group * 32 + piece * lanes * 2));
      if (format == tile::Format::Q4_1)
        g.minimum.push_back(e.loadF16(lanes, record, 32 + piece * lanes * 2));
      if (format == tile::Format::Q4_0)
        g.minimum.push_back(arith::MulFOp::create(e.b, e.loc, g.scale.back(), e.splatF32(e.f32s(), -8.0f)));
    }
    if (wide) {
      unpackWords(g, record, group);
      return g;
    }
    if (format == tile::Format::Q8_0) {
      for (int64_t chunk = 0; chunk < 8; ++chunk) {
        g.codes.emplace_back();
        for (int64_t piece = 0; piece < pieces; ++piece)
          g.codes.back().push_back(e.load(e.bytes(), record, 64 + group * 512 + chunk * 64 + piece * lanes * 4));
      }
      return g;
    }
    g.codes.resize(8);
    Value mask = e.splatInt(e.bytes(), 15), four = e.splatInt(e.halves(), 4);
    for (int64_t chunk = 0; chunk < 4; ++chunk)
      for (int64_t piece = 0; piece < pieces; ++piece) {
        Value q = e.load(e.bytes(), record, 64 + group * 256 + chunk * 64 + piece * lanes * 4);
        Value shifted = e.bitcast(e.bytes(), arith::ShRUIOp::create(e.b, e.loc, e.bitcast(e.halves(), q), four));
        g.codes[2 * chunk].push_back(and_(q, mask));
        g.codes[2 * chunk + 1].push_back(and_(shifted, mask));
      }
    return g;
  }

  /// Words (k, k + 2) and (k + 1, k + 3) of each 32-bit lane of packed bytes.
  void unpackWords(Group &g, Value record, int64_t group) {
    bool bytes = format == tile::Format::Q8_0;
    g.codes.resize(16);
    auto shifted = [&](Value v, int64_t bits) -> Value {
      return bits ? Value(arith::ShRUIOp::create(e.b, e.loc, v, e.splatInt(e.halves(), bits))) : v;
    };
    for (int64_t chunk = 0; chunk < (bytes ? 8 : 4); ++chunk)
      for (int64_t piece = 0; piece < pieces; ++piece) {
        Value v = e.load(e.halves(), record, 64 + group * (bytes ? 512 : 256) + chunk * 64 + piece * lanes * 4);
        if (bytes) { // stored + 128
          Value zero = e.splatInt(e.halves(), 128);
          Value low = and_(v, e.splatInt(e.halves(), 255));
          g.codes[2 * chunk].push_back(arith::SubIOp::create(e.b, e.loc, low, zero));
          g.codes[2 * chunk + 1].push_back(arith::SubIOp::create(e.b, e.loc, shifted(v, 8), zero));
          continue;
        }
        Value mask = e.splatInt(e.halves(), 15);
        constexpr int64_t shifts[] = {0, 8, 4, 12}; // k 0, 1, 4, 5 of the chunk's eight
        for (int64_t i = 0; i < 4; ++i)
          g.codes[4 * chunk + i].push_back(i == 3 ? shifted(v, 12) : and_(shifted(v, shifts[i]), mask));
      }
  }

  /// Integer dots [row][piece] of a group with rows whose codes are at the addresses.
  Values dots(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows) {
    if (wide)
      return dotsWords(g, rows);
    if (e.machine.vnni)
      return dotsVNNI(g, rows);
    return format == tile::Format::Q8_0 ? dotsByteAVX2(g, rows) : dotsNibbleAVX2(g, rows);
  }

  /// The same for several rows, as a loop over the words with the sums carried. Straight-line code would be
  /// reordered row by row, which loads every weight register again for each row; a loop keeps the register tile:
  /// 2 (AVX2) weight registers and a broadcast serve `rows` multiply-adds each. Unpacked codes go through `scratch`.
  Values dotsInLoop(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows, Value scratch) {
    bool nibblesAVX2 = !wide && !e.machine.vnni;
    // Carried as 32-bit lanes: the type conversion would split a loop's vectors of 16-bit ones.
    Values zeros(rows.size() * pieces, e.splatInt(e.i32s(), 0));
    auto retype = [&](Values &values, Type type) {
      for (Value &value : values)
        value = e.bitcast(type, value);
    };
    Values sums = e.loop(g.codes.size(), 2, zeros, [&](Value index, ValueRange state) {
      Values next(state);
      if (nibblesAVX2)
        retype(next, e.halves());
      Value i = e.toI64(index);
      auto times = [&](Value x, int64_t y) -> Value { return arith::MulIOp::create(e.b, e.loc, x, e.i64(y)); };
      Value codes = e.offset(scratch, times(i, pieces * registerBytes()));
      Value words = times(i, 4);
      for (int64_t step = 0; step < 2; ++step) {
        Values w;
        for (int64_t piece = 0; piece < pieces; ++piece)
          w.push_back(e.load(wide ? e.halves() : e.bytes(), codes, (step * pieces + piece) * registerBytes()));
        for (auto [r, row] : llvm::enumerate(rows)) {
          Value x = activation({e.offset(row.first, words), row.second}, step);
          for (int64_t piece = 0; piece < pieces; ++piece)
            multiplyAdd(next[r * pieces + piece], w[piece], x);
        }
      }
      retype(next, e.i32s());
      return next;
    });
    if (nibblesAVX2)
      for (Value &sum : sums)
        sum = widen(e.bitcast(e.halves(), sum));
    return sums;
  }

  int64_t registerBytes() const { return lanes * 4; }

  /// Stores a group's unpacked codes to scratch, register by register.
  void spill(const Group &g, Value scratch) {
    for (auto [i, codes] : llvm::enumerate(g.codes))
      for (auto [piece, code] : llvm::enumerate(codes))
        e.store(code, scratch, (i * pieces + piece) * registerBytes());
  }

  /// sum += codes . x, by the instruction of the machine and the width of x.
  void multiplyAdd(Value &sum, Value codes, Value x) {
    if (wide)
      x = e.bitcast(e.halves(), x);
    if (e.machine.vnni) {
      sum = e.intrinsic(wide ? "llvm.x86.avx512.vpdpwssd.512" : "llvm.x86.avx512.vpdpbusd.512", e.i32s(), {sum, codes, x});
      return;
    }
    Value product = wide ? e.intrinsic("llvm.x86.avx2.pmadd.wd", e.i32s(), {codes, x})
                         : e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", e.halves(), {codes, x});
    sum = add(sum, product);
  }

  Value activation(const std::pair<Value, int64_t> &row, int64_t chunk) {
    Value word = e.load(e.b.getI32Type(), row.first, row.second + chunk * 4);
    return e.bitcast(e.bytes(), e.broadcast(e.i32s(), word));
  }

  Values dotsNibbleAVX2(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows) {
    Values sums(rows.size() * pieces);
    for (int64_t chunk = 0; chunk < 8; ++chunk)
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, chunk);
        for (int64_t piece = 0; piece < pieces; ++piece) {
          Value p = e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", e.halves(), {g.codes[chunk][piece], x});
          Value &sum = sums[r * pieces + piece];
          sum = sum ? add(sum, p) : p;
        }
      }
    for (Value &sum : sums)
      sum = widen(sum);
    return sums;
  }

  Value widen(Value halves) { return e.intrinsic("llvm.x86.avx2.pmadd.wd", e.i32s(), {halves, e.splatInt(e.halves(), 1)}); }

  /// Signed bytes: |w| as the unsigned operand, sign(w) moved to the activation; 2 * 128 * 127 < 2^15.
  Values dotsByteAVX2(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows) {
    Values sums(rows.size() * pieces);
    Value flip = e.splatInt(e.bytes(), 0x80);
    for (int64_t chunk = 0; chunk < 8; ++chunk) {
      Values signedCodes, magnitudes;
      for (Value code : g.codes[chunk]) {
        Value w = arith::XOrIOp::create(e.b, e.loc, code, flip);
        signedCodes.push_back(w);
        magnitudes.push_back(LLVM::AbsOp::create(e.b, e.loc, w.getType(), w, /*is_int_min_poison=*/false));
      }
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, chunk);
        for (int64_t piece = 0; piece < pieces; ++piece) {
          Value s = e.intrinsic("llvm.x86.avx2.psign.b", e.bytes(), {x, signedCodes[piece]});
          Value p = widen(e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", e.halves(), {magnitudes[piece], s}));
          Value &sum = sums[r * pieces + piece];
          sum = sum ? add(sum, p) : p;
        }
      }
    }
    return sums;
  }

  Values dotsWords(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows) {
    Values sums(rows.size() * pieces);
    for (auto [i, codes] : llvm::enumerate(g.codes))
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = e.bitcast(e.halves(), activation(row, i));
        for (int64_t piece = 0; piece < pieces; ++piece) {
          Value &sum = sums[r * pieces + piece];
          if (e.machine.vnni) {
            Value acc = sum ? sum : e.splatInt(e.i32s(), 0);
            sum = e.intrinsic("llvm.x86.avx512.vpdpwssd.512", e.i32s(), {acc, codes[piece], x});
            continue;
          }
          Value p = e.intrinsic("llvm.x86.avx2.pmadd.wd", e.i32s(), {codes[piece], x});
          sum = sum ? add(sum, p) : p;
        }
      }
    return sums;
  }

  Values dotsVNNI(const Group &g, ArrayRef<std::pair<Value, int64_t>> rows) {
    Value zero = e.splatInt(e.i32s(), 0);
    Values sums(rows.size(), zero), offsets(rows.size(), zero);
    auto dot = [&](Value acc, Value codes, Value x) {
      return e.intrinsic("llvm.x86.avx512.vpdpbusd.512", e.i32s(), {acc, codes, x});
    };
    for (int64_t chunk = 0; chunk < 8; ++chunk)
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, chunk);
        sums[r] = dot(sums[r], g.codes[chunk][0], x);
        if (format == tile::Format::Q8_0) // codes are stored + 128
          offsets[r] = dot(offsets[r], e.splatInt(e.bytes(), 0x80), x);
      }
    if (format == tile::Format::Q8_0)
      for (auto [sum, offset] : llvm::zip(sums, offsets))
        sum = arith::SubIOp::create(e.b, e.loc, sum, offset);
    return sums;
  }
};

struct LowerScaledDot : OpConversionPattern<tile::ScaledDotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(tile::ScaledDotOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    auto type = cast<tile::PackedType>(op.getB().getType());
    int64_t codeBytes = getElementTypeOrSelf(op.getCodes().getType()).getIntOrFloatBitWidth() / 8;
    Kernel kernel{e, type.getFormat(), codeBytes == 2};
    int64_t rows = cast<VectorType>(op.getAcc().getType()).getDimSize(0), pieces = kernel.pieces;
    LeftOperand codes = leftOperand(e, rewriter, *getTypeConverter(), op.getCodes(), adaptor.getCodes());
    Values acc(adaptor.getAcc());
    // Scales are [rows, groups, 2]: row offsets of the load run over rows and groups.
    LeftOperand scales = leftOperand(e, rewriter, *getTypeConverter(), op.getScales(), adaptor.getScales());
    int64_t groups = type.getK() / 32;
    // Bytes under int8 activations need a sign or an offset per product: they stay straight-line.
    bool loops = rows >= machine.rowBlock && (kernel.wide || type.getFormat() != tile::Format::Q8_0);
    Value scratch = loops ? e.stack(16 * pieces * kernel.registerBytes()) : Value();
    for (int64_t group = 0; group < groups; ++group) {
      Group g = kernel.unpack(adaptor.getB().front(), group);
      if (loops)
        kernel.spill(g, scratch);
      for (int64_t first = 0; first < rows; first += machine.rowBlock) {
        SmallVector<std::pair<Value, int64_t>> addresses;
        for (int64_t row = first; row < std::min(rows, first + machine.rowBlock); ++row)
          addresses.push_back({codes.pointer, codes.rowOffsets[row] + group * 32 * codeBytes});
        Values dots = loops ? kernel.dotsInLoop(g, addresses, scratch) : kernel.dots(g, addresses);
        for (size_t i = 0; i < dots.size(); ++i) {
          int64_t row = first + i / pieces, piece = i % pieces;
          int64_t at = scales.rowOffsets[row * groups + group];
          auto scale = [&](int64_t which) {
            return e.broadcast(e.f32s(), e.load(rewriter.getF32Type(), scales.pointer, at + which * 4));
          };
          Value dot = arith::SIToFPOp::create(rewriter, op.getLoc(), e.f32s(), dots[i]);
          Value factor = arith::MulFOp::create(rewriter, op.getLoc(), g.scale[piece], scale(0));
          Value &sum = acc[row * pieces + piece];
          sum = e.fma(dot, factor, sum);
          if (!g.minimum.empty())
            sum = e.fma(g.minimum[piece], scale(1), sum);
        }
      }
    }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }
};

} // namespace

void cpu::populateScaledDotPatterns(const Converter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerScaledDot>(converter, patterns.getContext(), /*benefit=*/2);
}
