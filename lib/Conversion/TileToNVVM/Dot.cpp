//===- Dot.cpp - tile.dot on mma.sync -------------------------------------===//
//
// One m16n8k16 step after the other, operands straight from global memory to the
// registers that the instruction wants (Fragments.cpp). Correct for every shape; the
// schedules for large shapes are on the level tile.async.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// acc[0..4) += a b for one m16n8k16 (PTX ISA 9.7.14.5.14).
void Emitter::mma(ArrayRef<Value> a, Value b0, Value b1, Value *acc) {
  Type f32 = b.getF32Type();
  auto four = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  Value result = intrinsic("llvm.nvvm.mma.m16n8k16.row.col.bf16", four,
                           {a[0], a[1], a[2], a[3], b0, b1, acc[0], acc[1], acc[2], acc[3]});
  for (int64_t i = 0; i < 4; ++i)
    acc[i] = LLVM::ExtractValueOp::create(b, loc, result, i);
}

LogicalResult Emitter::emitDot(tile::DotOp op) {
  if (op.getArith() != tile::DotArith::BF16 && op.getArith() != tile::DotArith::BF16_G32)
    return op.emitOpError("expected arithmetic bf16 or bf16_g32 on a GPU, got ") << tile::stringifyDotArith(op.getArith());
  if (isFree(op.getA()))
    return op.emitOpError("expected a left operand that is no constant on a GPU");
  if (op.getArith() == tile::DotArith::BF16_G32 && !cta.transposed)
    return op.emitOpError("expected arithmetic bf16 where rows are reduced on a GPU, got bf16_g32");
  return cta.transposed ? dotTransposed(op) : dotRows(op);
}

LogicalResult Emitter::dotTransposed(tile::DotOp op) {
  const PackedRef &ref = packed.find(op.getB())->second;
  const Layout &layout = layouts.of(op.getResult()), &left = layouts.of(op.getA());
  if (left.kind != Layout::Left || left.cols % 32 || layout.colsPadded)
    return op.emitOpError("expected k a multiple of 32 and columns that fill the warps' panels on a GPU, got ") << op.getA().getType();
  Values acc = regsIn(op.getAcc(), layout);
  const Values &a = regs(op.getA());
  int64_t groups = left.cols / 32, tokenTiles = (layout.rows + 7) / 8, panelTiles = acc.size() / 4 / tokenTiles;
  if (op.getArith() == tile::DotArith::BF16_G32) {
    dotCodes(ref, a, tokenTiles, panelTiles, groups, acc);
    set(op.getResult(), acc);
    return success();
  }
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t tile = 0; tile < panelTiles; ++tile) {
      FailureOr<WeightWords> w = weightWords(ref, tile, g);
      if (failed(w))
        return op.emitOpError("expected bf16_nk or a quantised right operand on a GPU, got ") << ref.type;
      for (int64_t tokens = 0; tokens < tokenTiles; ++tokens) {
        const Value *x = &a[(tokens * groups + g) * 8];
        Value *sums = &acc[(tile * tokenTiles + tokens) * 4];
        mma({w->low[0], w->high[0], w->low[1], w->high[1]}, pair(x[0], x[1]), pair(x[2], x[3]), sums);
        mma({w->low[2], w->high[2], w->low[3], w->high[3]}, pair(x[4], x[5]), pair(x[6], x[7]), sums);
      }
    }
  set(op.getResult(), acc);
  return success();
}

namespace {

/// One k16 step of a product: the left operand's four registers, and where its k are.
struct Step {
  SmallVector<Value> a;
  int64_t k;       ///< constant part
  int64_t perQuad; ///< k of thread t: k + perQuad * t
  int64_t second;  ///< distance of the second register's k
};

} // namespace

LogicalResult Emitter::dotRows(tile::DotOp op) {
  const PackedRef &ref = packed.find(op.getB())->second;
  const Layout &layout = layouts.of(op.getResult()), &left = layouts.of(op.getA());
  Values acc = regsIn(op.getAcc(), layout);
  const Values &a = regs(op.getA());
  bool fromProduct = left.kind == Layout::Accumulator, nk = ref.type.getFormat() == tile::Format::BF16NK;
  int64_t rowStride = 16 * cta.warps(), rowTiles = (layout.rows + rowStride - 1) / rowStride;
  int64_t columnTiles = acc.size() / 4 / rowTiles, block = 1;
  if (!nk && ref.type.getFormat() != tile::Format::BF16KN)
    return op.emitOpError("expected bf16_nk or bf16_kn where rows are reduced on a GPU, got ") << ref.type;
  if (!nk) {
    block = layout.col.scale / 2; // as Assignment chose it from the columns
    if (block == 1)
      return op.emitOpError("expected a bf16_kn product whose result is no left operand on a GPU");
  }
  if (layout.colsPadded || (!fromProduct && left.cols % 32 && !nk))
    return op.emitOpError("expected whole column tiles on a GPU, got ") << layout.cols << " columns";

  int64_t groups = (left.cols + (fromProduct ? 15 : 31)) / (fromProduct ? 16 : 32);
  for (int64_t tile = 0; tile < rowTiles; ++tile) {
    SmallVector<Step> steps;
    for (int64_t g = 0; g < groups; ++g) {
      if (fromProduct) { // columns 16g .. 16g + 15 of an accumulator are exactly this operand
        const Value *x = &a[(tile * (left.cols / 8) + 2 * g) * 4];
        steps.push_back({{pair(x[0], x[1]), pair(x[2], x[3]), pair(x[4], x[5]), pair(x[6], x[7])}, 16 * g, 2, 8});
        continue;
      }
      const Value *low = &a[(tile * groups + g) * 16], *high = low + 8;
      for (int64_t i : {0, 4})
        steps.push_back({{pair(low[i], low[i + 1]), pair(high[i], high[i + 1]), pair(low[i + 2], low[i + 3]), pair(high[i + 2], high[i + 3])},
                         32 * g + i, 8, 2});
    }
    Value *sums = &acc[tile * columnTiles * 4];
    for (Step &step : steps) {
      if (nk) {
        for (int64_t column = 0; column < columnTiles; ++column) {
          Value row = at(wordsOfRow(ref, column, step.k), mul(quad, 2 * step.perQuad));
          Value b0, b1;
          if (fromProduct) {
            b0 = load(b.getI32Type(), row, 4), b1 = load(b.getI32Type(), at(row, 2 * step.second), 4);
          } else { // four neighbours in k
            Value both = load(VectorType::get({2}, b.getI32Type()), row, 8);
            b0 = extract(both, 0), b1 = extract(both, 1);
          }
          mma(step.a, b0, b1, sums + column * 4);
        }
        continue;
      }
      int64_t page = ref.pages.empty() ? 0 : step.k / ref.pageTokens, first = ref.pages.empty() ? step.k : step.k % ref.pageTokens;
      Value row = add(mul(quad, step.perQuad), first);
      for (int64_t columns = 0; columns < columnTiles / block; ++columns) {
        Values k[4];
        for (int64_t i = 0; i < 4; ++i)
          k[i] = pairsOfRows(ref, columns, block, add(row, i / 2 * step.second + i % 2), page);
        for (int64_t e = 0; e < block; ++e) { // one half of each word, of two neighbouring k
          Value select = i32(e % 2 ? 0x7632 : 0x5410);
          auto merged = [&](Value x, Value y) { return intrinsic("llvm.nvvm.prmt", b.getI32Type(), {x, y, select}); };
          mma(step.a, merged(k[0][e / 2], k[1][e / 2]), merged(k[2][e / 2], k[3][e / 2]), sums + (columns * block + e) * 4);
        }
      }
    }
  }
  set(op.getResult(), acc);
  return success();
}
