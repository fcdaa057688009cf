//===- CodesDot.cpp - tile.dot with arithmetic bf16_g32 -------------------===//
//
// Codes are whole numbers that bf16 holds exactly, so the instruction takes them without their scale, which meets the sum over
// 32 k, in f32, instead of each weight. That is less work where tokens are few (a byte permutation and a subtraction for two
// weights) and a smaller error. A minimum is the same for 32 k: its factor is the sum of the token's values, a product with
// ones. Scales of 16 k do not fit, since an instruction's k are every other four of 32 (Fragments.cpp).
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// Codes less their zero, as words of two bf16 in the order of `words` in WeightWords.
void Emitter::wholeNumbers(const RowCodes &codes, const CodedForm &form, Value words[4]) {
  auto both = VectorType::get({2}, b.getBF16Type());
  auto and_ = [&](Value x, int64_t mask) -> Value { return arith::AndIOp::create(b, loc, x, i32(mask)); };
  // 0x43 over a byte c below 128 is the bf16 128 + c.
  auto withExponent = [&](Value bytes, int64_t upper) -> Value {
    Value selector = i32(upper ? 0x4342 : 0x4140);
    Value bits = intrinsic("llvm.nvvm.prmt", b.getI32Type(), {bytes, i32(0x43434343), selector});
    return LLVM::BitcastOp::create(b, loc, both, bits);
  };
  bool biased = form.table || form.zero == 128; // bytes are values + 128
  for (int64_t i = 0; i < 4; ++i) {
    Value bytes = i < 2 ? codes.first : codes.second, low = bytes, less;
    if (biased) { // seven bits, less 128 where the eighth is not set: 256 less 128 has the exponent's last bit there
      low = and_(bytes, 0x7F7F7F7F);
      less = withExponent(and_(arith::XOrIOp::create(b, loc, bytes, i32(-1)), int32_t(0x80808080)), i % 2);
    } else {
      float offset = 128.0f + form.zero;
      less = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(both, APFloat(APFloat::BFloat(), std::to_string(offset))));
    }
    Value difference = LLVM::FSubOp::create(b, loc, withExponent(low, i % 2), less);
    words[i] = LLVM::BitcastOp::create(b, loc, b.getI32Type(), difference);
  }
}

void Emitter::dotCodes(const PackedRef &ref, const Values &x, int64_t tokenTiles, int64_t panelTiles, int64_t groups, Values &acc) {
  CodedForm form = tile::codedForm(ref.type.getFormat());
  Value zero = constantF32(0), one = i32(0x3F803F80);
  auto product = [&](const Value low[4], const Value high[4], const Value *token) {
    SmallVector<Value> sums(4, zero);
    mma({low[0], high[0], low[1], high[1]}, pair(token[0], token[1]), pair(token[2], token[3]), sums.data());
    mma({low[2], high[2], low[3], high[3]}, pair(token[4], token[5]), pair(token[6], token[7]), sums.data());
    return sums;
  };
  for (int64_t g = 0; g < groups; ++g) {
    auto tokensAt = [&](int64_t tokens) { return &x[(tokens * groups + g) * 8]; };
    SmallVector<SmallVector<Value>> ofTokens; // sums of their values
    const Value ones[4] = {one, one, one, one};
    for (int64_t tokens = 0; form.minimum && tokens < tokenTiles; ++tokens)
      ofTokens.push_back(product(ones, ones, tokensAt(tokens)));
    for (int64_t tile = 0; tile < panelTiles; ++tile) {
      Value panel = panelOf(ref, tile), low[4], high[4];
      RowCodes rows[2] = {rowCodes(ref, panel, g, 0), rowCodes(ref, panel, g, 8)};
      wholeNumbers(rows[0], form, low);
      wholeNumbers(rows[1], form, high);
      for (int64_t tokens = 0; tokens < tokenTiles; ++tokens) {
        SmallVector<Value> sums = product(low, high, tokensAt(tokens));
        for (int64_t i = 0; i < 4; ++i) { // 0 and 1 are the lower row's
          Value &total = acc[(tile * tokenTiles + tokens) * 4 + i];
          total = LLVM::FMAOp::create(b, loc, rows[i / 2].scale, sums[i], total);
          if (form.minimum)
            total = LLVM::FMAOp::create(b, loc, rows[i / 2].minimum, ofTokens[tokens][i], total);
        }
      }
    }
  }
}
