//===- ScaledDot.cpp - tile.scaled_dot in registers -----------------------===//
//
// Integer dots of a panel's codes with broadcast activation codes, exact, then one
// f32 FMA per scale (and one for the minimum). Integers are exact everywhere, so the
// bits are equal on every instruction set.
//
//   int8 codes   AVX2: vpmaddubsw, with small codes summed in int16 while they fit
//                (8 * 2 * 15 * 127 < 2^15) and then widened. AVX-512: vpdpbusd.
//   int16 codes  vpmaddwd on AVX2, vpdpwssd on AVX-512: the codes' bytes are spread to
//                words by masks, which is why activations come in pair order. The sum
//                of 32 k stays below 32 * 128 * 32767 < 2^31.
//
// AArch64: sdot of signed bytes; words are multiplied (smull) and pairs of products added (addp).
//
// A zero that is not 0 becomes a minimum of -zero * scale where a scale holds for 32 k, the
// activations' own group; elsewhere it is subtracted from the codes or from the dot.
//
//===----------------------------------------------------------------------===//

#include "Codes.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

namespace {

/// 32 k of a record, unpacked: codes[i][piece] holds the bytes of 4 k (int8 activations) or the words of 2 k (int16), to
/// be multiplied with the activations' i-th 32-bit word; scale[s][piece] and minimum[s][piece] hold for the s-th part.
struct Group {
  SmallVector<Values> codes;
  SmallVector<Values> scale, minimum;
};

/// Codes [first, first + count) of a group, which share scales.
struct Part {
  int64_t first, count;
};

/// Pointer and byte offset.
using Place = std::pair<Value, int64_t>;
/// Where rows' activation codes are.
using Rows = ArrayRef<Place>;

struct Kernel {
  Emitter &e;
  CodedRecord record;
  bool wide; ///< int16 activations
  int64_t lanes = e.machine.lanes, pieces = 16 / e.machine.lanes;
  int64_t parts = 32 / record.form.scaleGroup;

  Value and_(Value x, Value y) { return arith::AndIOp::create(e.b, e.loc, x, y); }
  Value add(Value x, Value y) { return x ? Value(arith::AddIOp::create(e.b, e.loc, x, y)) : y; }
  Value subtract(Value x, Value y) { return arith::SubIOp::create(e.b, e.loc, x, y); }

  /// Whether codes are signed once their zero is taken away (and it is not a minimum).
  bool isSigned() const { return record.zero() && !zeroIsMinimum(); }
  bool zeroIsMinimum() const { return record.form.zero && record.form.scaleGroup == 32 && record.form.lowBits < 8; }
  /// Whether codes lose their zero while they are unpacked: the machine multiplies signed ones.
  bool signedCodes() const { return wide || e.machine.neon; }
  /// Whether a multiplyAdd goes to sums of 32 bits.
  bool sums32() const { return wide || e.machine.vnni || e.machine.neon; }
  /// Minimums of 16 k need sums of the activations that their group does not have.
  bool needsSums() const { return record.form.minimum && parts > 1; }
  int64_t words() const { return wide ? 16 : 8; }
  Part part(int64_t i) const { return {i * words() / parts, words() / parts}; }

  Group unpack(int64_t group) {
    Group g;
    g.codes.resize(words());
    for (int64_t piece = 0; piece < pieces; ++piece)
      for (auto [i, quad] : llvm::enumerate(record.quads(group, piece))) {
        if (!wide) {
          bool subtracts = isSigned() && signedCodes();
          g.codes[i].push_back(subtracts ? subtract(quad, e.splatInt(e.bytes(), record.zero())) : quad);
          continue;
        }
        // Words (k, k + 2) and (k + 1, k + 3) of each 32-bit lane.
        Value halves = e.bitcast(e.halves(), quad), zero = e.splatInt(e.halves(), record.zero());
        Value even = and_(halves, e.splatInt(e.halves(), 255));
        Value odd = arith::ShRUIOp::create(e.b, e.loc, halves, e.splatInt(e.halves(), 8));
        g.codes[2 * i].push_back(isSigned() ? subtract(even, zero) : even);
        g.codes[2 * i + 1].push_back(isSigned() ? subtract(odd, zero) : odd);
      }
    for (int64_t i = 0; i < parts; ++i) {
      g.scale.emplace_back();
      g.minimum.emplace_back();
      for (int64_t piece = 0; piece < pieces; ++piece) {
        g.scale.back().push_back(record.scale(group * parts + i, piece));
        if (record.form.minimum)
          g.minimum.back().push_back(record.minimum(group * parts + i, piece));
        else if (zeroIsMinimum())
          g.minimum.back().push_back(arith::MulFOp::create(e.b, e.loc, g.scale.back().back(), e.splatF32(e.f32s(), -float(record.zero()))));
      }
    }
    return g;
  }

  //===--------------------------------------------------------------------===//
  // Dots of a part with rows: [row][piece] of 32-bit integers
  //===--------------------------------------------------------------------===//

  Values dots(const Group &g, Part part, Rows rows) {
    if (signedCodes())
      return dotsSigned(g, part, rows);
    if (e.machine.vnni)
      return dotsVNNI(g, part, rows);
    return isSigned() ? dotsSignedAVX2(g, part, rows) : dotsUnsignedAVX2(g, part, rows);
  }

  /// Whether several rows are a loop over the words with the sums carried. Straight-line code would be
  /// reordered row by row, which loads every weight register again for each row; a loop keeps the register tile:
  /// 2 (AVX2) weight registers and a broadcast serve the rows' multiply-adds each. Signed bytes under int8 activations
  /// need a sign or an offset per product, larger ones overflow int16: they stay straight-line.
  bool loops(int64_t rows) const {
    return rows >= e.machine.rowBlock && (signedCodes() || (!isSigned() && (e.machine.vnni || record.form.maxCode() < 16) && parts == 1));
  }

  /// dots() as that loop, with unpacked codes in `scratch`.
  Values dotsInLoop(Part part, Rows rows, Value scratch) {
    bool halves = !sums32();
    // Carried as 32-bit lanes: the type conversion would split a loop's vectors of 16-bit ones.
    Values zeros(rows.size() * pieces, e.splatInt(e.i32s(), 0));
    auto retype = [&](Values &values, Type type) {
      for (Value &value : values)
        value = e.bitcast(type, value);
    };
    Value start = e.offset(scratch, part.first * pieces * registerBytes());
    Values sums = e.loop(part.count, 2, zeros, [&](Value index, ValueRange state) {
      Values next(state);
      if (halves)
        retype(next, e.halves());
      Value i = e.toI64(index);
      auto times = [&](int64_t y) -> Value { return arith::MulIOp::create(e.b, e.loc, i, e.i64(y)); };
      Value codes = e.offset(start, times(pieces * registerBytes())), words = times(4);
      for (int64_t step = 0; step < 2; ++step) {
        Values w;
        for (int64_t piece = 0; piece < pieces; ++piece)
          w.push_back(e.load(wide ? e.halves() : e.bytes(), codes, (step * pieces + piece) * registerBytes()));
        for (auto [r, row] : llvm::enumerate(rows)) {
          Value x = activation({e.offset(row.first, words), row.second + part.first * 4}, step);
          for (int64_t piece = 0; piece < pieces; ++piece)
            multiplyAdd(next[r * pieces + piece], w[piece], x);
        }
      }
      retype(next, e.i32s());
      return next;
    });
    if (halves)
      for (Value &sum : sums)
        sum = widen(e.bitcast(e.halves(), sum));
    return sums;
  }

  int64_t registerBytes() const { return lanes * 4; }
  int64_t scratchBytes() const { return words() * pieces * registerBytes(); }

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
    if (e.machine.neon && !wide) {
      sum = e.inParts("llvm.aarch64.neon.sdot", e.i32s(), {sum ? sum : e.splatInt(e.i32s(), 0), codes, x});
      return;
    }
    if (e.machine.vnni) {
      sum = e.intrinsic(wide ? "llvm.x86.avx512.vpdpwssd.512" : "llvm.x86.avx512.vpdpbusd.512", e.i32s(),
                        {sum ? sum : e.splatInt(e.i32s(), 0), codes, x});
      return;
    }
    Value product = e.machine.neon ? pairProducts(codes, x)
                    : wide         ? e.intrinsic("llvm.x86.avx2.pmadd.wd", e.i32s(), {codes, x})
                                   : e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", e.halves(), {codes, x});
    sum = add(sum, product);
  }

  /// Of words, the sums of two neighbouring products: in each 128-bit part the products of its low and of its high half.
  Value pairProducts(Value x, Value y) {
    auto halfOfParts = [&](Value value, int32_t first) {
      SmallVector<int32_t> mask;
      for (int32_t part = 0; part < lanes / 4; ++part)
        for (int32_t i = 0; i < 4; ++i)
          mask.push_back(part * 8 + first + i);
      return e.shuffle(value, value, mask);
    };
    auto products = [&](int32_t first) {
      return e.inParts("llvm.aarch64.neon.smull", e.i32s(), {halfOfParts(x, first), halfOfParts(y, first)});
    };
    return e.inParts("llvm.aarch64.neon.addp", e.i32s(), {products(0), products(4)});
  }

  Value activation(const Place &row, int64_t word) {
    return e.bitcast(e.bytes(), e.broadcast(e.i32s(), e.load(e.b.getI32Type(), row.first, row.second + word * 4)));
  }

  Value widen(Value halves) { return e.intrinsic("llvm.x86.avx2.pmadd.wd", e.i32s(), {halves, e.splatInt(e.halves(), 1)}); }

  Values dotsSigned(const Group &g, Part part, Rows rows) {
    Values sums(rows.size() * pieces);
    for (int64_t i = part.first; i < part.first + part.count; ++i)
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, i);
        for (int64_t piece = 0; piece < pieces; ++piece)
          multiplyAdd(sums[r * pieces + piece], g.codes[i][piece], x);
      }
    return sums;
  }

  /// Unsigned bytes, summed in int16 as long as the largest codes fit.
  Values dotsUnsignedAVX2(const Group &g, Part part, Rows rows) {
    int64_t span = std::min<int64_t>(part.count, 32767 / (2 * 127 * record.form.maxCode()));
    Values sums(rows.size() * pieces);
    for (int64_t first = part.first; first < part.first + part.count; first += span) {
      Values halves(rows.size() * pieces);
      for (int64_t i = first; i < std::min(first + span, part.first + part.count); ++i)
        for (auto [r, row] : llvm::enumerate(rows)) {
          Value x = activation(row, i);
          for (int64_t piece = 0; piece < pieces; ++piece)
            multiplyAdd(halves[r * pieces + piece], g.codes[i][piece], x);
        }
      for (auto [sum, half] : llvm::zip_equal(sums, halves))
        sum = add(sum, widen(half));
    }
    return sums;
  }

  /// Signed bytes: |w| as the unsigned operand, sign(w) moved to the activation; 2 * 128 * 127 < 2^15.
  Values dotsSignedAVX2(const Group &g, Part part, Rows rows) {
    Values sums(rows.size() * pieces);
    Value zero = e.splatInt(e.bytes(), record.zero());
    for (int64_t i = part.first; i < part.first + part.count; ++i) {
      Values signedCodes, magnitudes;
      for (Value code : g.codes[i]) {
        Value w = subtract(code, zero);
        signedCodes.push_back(w);
        magnitudes.push_back(LLVM::AbsOp::create(e.b, e.loc, w.getType(), w, /*is_int_min_poison=*/false));
      }
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, i);
        for (int64_t piece = 0; piece < pieces; ++piece) {
          Value s = e.intrinsic("llvm.x86.avx2.psign.b", e.bytes(), {x, signedCodes[piece]});
          Value p = widen(e.intrinsic("llvm.x86.avx2.pmadd.ub.sw", e.halves(), {magnitudes[piece], s}));
          Value &sum = sums[r * pieces + piece];
          sum = add(sum, p);
        }
      }
    }
    return sums;
  }

  /// One register holds all 16 columns; a zero is a second dot, with it in every byte.
  Values dotsVNNI(const Group &g, Part part, Rows rows) {
    Values sums(rows.size()), offsets(rows.size());
    for (int64_t i = part.first; i < part.first + part.count; ++i)
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value x = activation(row, i);
        multiplyAdd(sums[r], g.codes[i][0], x);
        if (isSigned())
          multiplyAdd(offsets[r], e.splatInt(e.bytes(), record.zero()), x);
      }
    if (isSigned())
      for (auto [sum, offset] : llvm::zip_equal(sums, offsets))
        sum = subtract(sum, offset);
    return sums;
  }

  /// A row's codes and its (scale, scale * sum) for 32 k.
  struct Row {
    Place codes, scales;
  };

  /// acc[row][piece] += a group's share of the products.
  void accumulate(const Group &g, ArrayRef<Row> rows, Value scratch, MutableArrayRef<Value> acc) {
    SmallVector<Place> codes;
    for (const Row &row : rows)
      codes.push_back(row.codes);
    for (int64_t i = 0; i < parts; ++i) {
      Values sums = scratch ? dotsInLoop(part(i), codes, scratch) : dots(g, part(i), codes);
      for (auto [r, row] : llvm::enumerate(rows)) {
        auto [pointer, offset] = row.scales;
        auto loaded = [&, pointer = pointer, offset = offset](int64_t which) {
          return e.broadcast(e.f32s(), e.load(e.b.getF32Type(), pointer, offset + which * 4));
        };
        Value scale = loaded(0), scaledSum;
        if (needsSums())
          scaledSum = arith::MulFOp::create(e.b, e.loc, sumOf(part(i), row.codes), scale);
        else if (!g.minimum[i].empty())
          scaledSum = loaded(1);
        for (int64_t piece = 0; piece < pieces; ++piece) {
          Value dot = arith::SIToFPOp::create(e.b, e.loc, e.f32s(), sums[r * pieces + piece]);
          Value &sum = acc[r * pieces + piece];
          sum = e.fma(dot, arith::MulFOp::create(e.b, e.loc, g.scale[i][piece], scale), sum);
          if (scaledSum)
            sum = e.fma(g.minimum[i][piece], scaledSum, sum);
        }
      }
    }
  }

  /// Sum of a row's codes in a part, as f32 in every lane.
  Value sumOf(Part part, const Place &row) {
    Value sum, ones = wide ? e.splatInt(e.halves(), 1) : e.splatInt(e.bytes(), 1);
    for (int64_t i = part.first; i < part.first + part.count; ++i) {
      Value product;
      multiplyAdd(sums32() ? sum : product, ones, activation(row, i));
      if (!sums32())
        sum = add(sum, widen(product));
    }
    return arith::SIToFPOp::create(e.b, e.loc, e.f32s(), sum);
  }
};

struct LowerScaledDot : OpConversionPattern<tile::ScaledDotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(tile::ScaledDotOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Machine machine = static_cast<const Converter *>(getTypeConverter())->machine;
    Emitter e(rewriter, op.getLoc(), machine);
    auto type = cast<tile::PackedType>(op.getB().getType());
    int64_t codeBytes = getElementTypeOrSelf(op.getCodes().getType()).getIntOrFloatBitWidth() / 8;
    Kernel kernel{e, CodedRecord(e, op.getB(), adaptor.getB().front()), codeBytes == 2};
    int64_t rows = cast<VectorType>(op.getAcc().getType()).getDimSize(0);
    LeftOperand codes = leftOperand(e, rewriter, *getTypeConverter(), op.getCodes(), adaptor.getCodes());
    Values acc(adaptor.getAcc());
    // Scales are [rows, groups, 2]: row offsets of the load run over rows and groups.
    LeftOperand scales = leftOperand(e, rewriter, *getTypeConverter(), op.getScales(), adaptor.getScales());
    int64_t groups = type.getK() / 32, stride = kernel.record.stride();
    Value scratch = kernel.loops(rows) ? e.stack(kernel.scratchBytes()) : Value();
    auto multiply = [&](Kernel kernel, Value codesAt, Value scalesAt, int64_t count, Values &acc) {
      for (int64_t group = 0; group < count; ++group) {
        Group g = kernel.unpack(group);
        if (scratch)
          kernel.spill(g, scratch);
        for (int64_t first = 0; first < rows; first += machine.rowBlock) {
          SmallVector<Kernel::Row> block;
          for (int64_t row = first; row < std::min(rows, first + machine.rowBlock); ++row)
            block.push_back({{codesAt, codes.rowOffsets[row] + group * 32 * codeBytes},
                             {scalesAt, scales.rowOffsets[row * groups] + group * 8}});
          kernel.accumulate(g, block, scratch, MutableArrayRef(acc).slice(first * kernel.pieces, block.size() * kernel.pieces));
        }
      }
    };
    if (groups <= stride || groups % stride) {
      multiply(kernel, codes.pointer, scales.pointer, groups, acc);
    } else { // unrolled records of many k would be slow to compile and leave the instruction cache
      acc = e.loop(groups, stride, acc, [&](Value index, ValueRange state) {
        Values next(state);
        Value group = e.toI64(index);
        auto times = [&](int64_t bytes) -> Value { return arith::MulIOp::create(rewriter, op.getLoc(), group, e.i64(bytes)); };
        multiply({e, kernel.record.at(group), kernel.wide}, e.offset(codes.pointer, times(32 * codeBytes)),
                 e.offset(scales.pointer, times(8)), stride, next);
        return next;
      });
    }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }
};

} // namespace

void cpu::populateScaledDotPatterns(const Converter &converter, RewritePatternSet &patterns) {
  patterns.add<LowerScaledDot>(converter, patterns.getContext(), /*benefit=*/2);
}
