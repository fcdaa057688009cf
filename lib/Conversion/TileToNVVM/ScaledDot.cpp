//===- ScaledDot.cpp - tile.scaled_dot on integer mma ---------------------===//
//
// Exact integer dots per group of 32 k by one m16n8k32 (two for int16 codes: high and
// low bytes), then the contract's f32 FMAs: the same bits as on a CPU. Codes of the
// weights go to the instruction as bytes without any conversion. As in Fragments.cpp a
// thread takes the eight k from 8t on.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

namespace {

/// A weight row's share of a group as the instruction takes it: signed bytes for k 8t .. 8t + 3 and 8t + 4 .. 8t + 7, scale,
/// minimum (or null).
struct RowBytes {
  Value words[2], scale, minimum;
};

struct Group {
  Emitter &e;
  OpBuilder &b;
  Location loc;

  Value xorWord(Value x, int64_t mask) { return arith::XOrIOp::create(b, loc, x, e.i32(mask)); }
  Value andWord(Value x, int64_t mask) { return arith::AndIOp::create(b, loc, x, e.i32(mask)); }

  RowBytes signedBytes(const RowCodes &codes, const CodedForm &form) {
    if (form.table || form.zero == 128) // values with 128 added
      return {{xorWord(codes.first, 0x80808080), xorWord(codes.second, 0x80808080)}, codes.scale, {}};
    RowBytes row{{codes.first, codes.second}, codes.scale, codes.minimum};
    if (form.zero)
      row.minimum = arith::MulFOp::create(b, loc, codes.scale, e.constantF32(-float(form.zero)));
    return row;
  }

  /// Four bytes, the first the lowest.
  Value bytes(ArrayRef<Value> four) {
    Value vector = LLVM::PoisonOp::create(b, loc, VectorType::get({4}, b.getI8Type()));
    for (auto [i, x] : llvm::enumerate(four)) {
      Value byte = x.getType().isInteger(8) ? x : Value(arith::TruncIOp::create(b, loc, b.getI8Type(), x));
      vector = LLVM::InsertElementOp::create(b, loc, vector, byte, e.i32(i));
    }
    return LLVM::BitcastOp::create(b, loc, b.getI32Type(), vector);
  }

  Values integerProduct(StringRef name, const RowBytes &low, const RowBytes &high, Value b0, Value b1) {
    Type i32 = b.getI32Type();
    auto four = LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
    Value zero = e.i32(0);
    Value result = e.intrinsic(name, four, {low.words[0], high.words[0], low.words[1], high.words[1], b0, b1, zero, zero, zero, zero});
    Values sums;
    for (int64_t i = 0; i < 4; ++i)
      sums.push_back(LLVM::ExtractValueOp::create(b, loc, result, i));
    return sums;
  }

  /// The exact dots of rows g and g + 8 with tokens 2t and 2t + 1 of a column tile; `x`: this thread's eight codes.
  Values dots(const RowBytes &low, const RowBytes &high, ArrayRef<Value> x) {
    constexpr llvm::StringLiteral isSigned = "llvm.nvvm.mma.m16n8k32.row.col.s8", isUnsigned = "llvm.nvvm.mma.m16n8k32.row.col.s8.u8";
    if (x.front().getType().isInteger(8))
      return integerProduct(isSigned, low, high, bytes(x.take_front(4)), bytes(x.drop_front(4)));
    // int16 codes are in pair order (0, 2, 1, 3 of each four); a code is 256 * high + low, low without a sign.
    SmallVector<Value> highs, lows;
    for (int64_t i : {0, 2, 1, 3, 4, 6, 5, 7}) {
      lows.push_back(x[i]);
      Value eight = arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(8));
      highs.push_back(arith::ShRSIOp::create(b, loc, x[i], eight));
    }
    Values upper = integerProduct(isSigned, low, high, bytes(ArrayRef(highs).take_front(4)), bytes(ArrayRef(highs).drop_front(4)));
    Values lower = integerProduct(isUnsigned, low, high, bytes(ArrayRef(lows).take_front(4)), bytes(ArrayRef(lows).drop_front(4)));
    for (int64_t i = 0; i < 4; ++i)
      upper[i] = arith::AddIOp::create(b, loc, arith::ShLIOp::create(b, loc, upper[i], e.i32(8)), lower[i]);
    return upper;
  }
};

} // namespace

LogicalResult Emitter::emitScaledDot(tile::ScaledDotOp op) {
  const PackedRef &ref = packed.find(op.getB())->second;
  auto scales = op.getScales().getDefiningOp<tile::LoadOp>();
  const Layout &layout = layouts.of(op.getResult()), &left = layouts.of(op.getCodes());
  if (!cta.transposed || left.kind != Layout::Left || layout.colsPadded || !scales || isFree(op.getCodes()))
    return op.emitOpError("expected loaded codes and scales, and columns that fill the warps' panels, on a GPU");
  CodedForm form = tile::codedForm(ref.type.getFormat());
  if (form.scaleGroup != 32)
    return op.emitOpError("expected scales of 32 k on a GPU, got ") << ref.type;
  Values acc = regsIn(op.getAcc(), layout);
  const Values &x = regs(op.getCodes());
  // (scale, scaled sum) of a token and group: [rows, groups, 2] in memory, two neighbours.
  auto memref = cast<MemRefType>(scales.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)memref.getStridesAndOffset(strides, offset);
  Value start = scalar(scales.getMemref());
  for (auto [i, stride] : llvm::zip_equal(scales.getIndices(), strides))
    start = at(start, mul(scalar(i), stride * 4));
  auto scalesOf = [&](int64_t token, int64_t g) -> std::pair<Value, Value> {
    Value place = at(at(start, mul(add(mul(quad, 2), token), strides[0] * 4)), g * strides[1] * 4);
    Value both = load(VectorType::get({2}, b.getF32Type()), place, 8);
    return {extract(both, 0), extract(both, 1)};
  };

  Group product{*this, b, loc};
  auto rowBytes = [&](Value panel, int64_t g, int64_t offset) {
    return product.signedBytes(rowCodes(ref, panel, g, offset), form);
  };
  int64_t groups = left.cols / 32, tokenTiles = (layout.rows + 7) / 8, panelTiles = acc.size() / 4 / tokenTiles;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t tile = 0; tile < panelTiles; ++tile) {
      Value panel = panelOf(ref, tile);
      RowBytes low = rowBytes(panel, g, 0), high = rowBytes(panel, g, 8);
      for (int64_t tokens = 0; tokens < tokenTiles; ++tokens) {
        Values sums = product.dots(low, high, ArrayRef(x).slice((tokens * groups + g) * 8, 8));
        for (int64_t bit = 0; bit < 2; ++bit) {
          auto [scale, scaledSum] = scalesOf(8 * tokens + bit, g);
          for (int64_t half = 0; half < 2; ++half) {
            const RowBytes &row = half ? high : low;
            Value &c = acc[(tile * tokenTiles + tokens) * 4 + half * 2 + bit];
            Value real = arith::SIToFPOp::create(b, loc, b.getF32Type(), sums[half * 2 + bit]);
            c = LLVM::FMAOp::create(b, loc, real, arith::MulFOp::create(b, loc, row.scale, scale), c);
            if (row.minimum)
              c = LLVM::FMAOp::create(b, loc, row.minimum, scaledSum, c);
          }
        }
      }
    }
  set(op.getResult(), acc);
  return success();
}
