//===- ExpandMath.cpp - exp, tanh, sin and cos without libm ---------------===//
//
// exp: x = n ln 2 + r with |r| <= ln(2) / 2; 2^n goes into the exponent bits, e^r is its Taylor polynomial of degree 7
// (remainder below 1e-8). tanh: near 0 Cephes tanhf's polynomial, else
// 1 - 2 / (exp(2 |x|) + 1) with the sign of x. sin, cos: x = n pi/2 + r, then the polynomials of fdlibm (k_sin.c, k_cos.c) on |r| <= pi/4.
// n comes from adding 1.5 * 2^mantissa bits: the sum's low bits hold the rounded integer, and no conversion
// is undefined for any input. The products n * c_hi are exact: c_hi has trailing zeros.
//
//===----------------------------------------------------------------------===//
#include "llmc/Conversion/LMToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace llmc {
#define GEN_PASS_DEF_REFERENCEEXPANDMATHPASS
#include "lib/Conversion/LMToLinalg/Passes.h.inc"
} // namespace llmc

using namespace mlir;

namespace {

/// Arithmetic on one float type and the integers of its width.
struct Emitter {
  OpBuilder &b;
  Location loc;
  FloatType type;
  IntegerType bits;

  Emitter(OpBuilder &b, Location loc, FloatType type) : b(b), loc(loc), type(type), bits(b.getIntegerType(type.getWidth())) {}

  Value f(double value) { return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value)); }
  Value i(int64_t value) { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(bits, value)); }
  Value add(Value a, Value c) { return arith::AddFOp::create(b, loc, a, c); }
  Value sub(Value a, Value c) { return arith::SubFOp::create(b, loc, a, c); }
  Value mul(Value a, Value c) { return arith::MulFOp::create(b, loc, a, c); }
  Value toBits(Value a) { return arith::BitcastOp::create(b, loc, bits, a); }
  Value fromBits(Value a) { return arith::BitcastOp::create(b, loc, type, a); }
  Value select(Value c, Value a, Value d) { return arith::SelectOp::create(b, loc, c, a, d); }

  /// c[0] + x (c[1] + x (c[2] + ...)).
  Value polynomial(Value x, ArrayRef<double> c) {
    Value y = f(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      y = add(mul(y, x), f(coefficient));
    return y;
  }

  struct Reduced {
    Value remainder;
    Value integer; // low bits of n
  };
  /// x - n / inverse, n the nearest integer to x * inverse, with 1 / inverse = high + low.
  Reduced reduce(Value x, double inverse, double high, double low) {
    Value magic = f(type.isF32() ? 12582912.0 : 6755399441055744.0);
    Value shifted = add(mul(x, f(inverse)), magic);
    Value n = sub(shifted, magic);
    Value r = sub(sub(x, mul(n, f(high))), mul(n, f(low)));
    return {r, toBits(shifted)};
  }
};

struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Emitter e(rewriter, op.getLoc(), rewriter.getF32Type());
    Value x = op.getOperand();
    // Both bounds keep 2^n a normal number. Comparisons are false for NaN, which stays.
    auto clamp = [&](arith::CmpFPredicate predicate, double bound) {
      Value beyond = arith::CmpFOp::create(rewriter, op.getLoc(), predicate, x, e.f(bound));
      x = e.select(beyond, e.f(bound), x);
    };
    clamp(arith::CmpFPredicate::OGT, 88.72283);
    clamp(arith::CmpFPredicate::OLT, -87.33654);
    auto [r, n] = e.reduce(x, 1.44269504088896341, 0.693359375, -2.12194440e-4);
    Value y = e.polynomial(r, {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040});
    Value exponent = arith::ShLIOp::create(rewriter, op.getLoc(), n, e.i(23));
    Value scaled = arith::AddIOp::create(rewriter, op.getLoc(), e.toBits(y), exponent);
    rewriter.replaceOp(op, e.fromBits(scaled));
    return success();
  }
};

struct ExpandTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Emitter e(rewriter, op.getLoc(), rewriter.getF32Type());
    Value x = op.getOperand(), z = e.mul(x, x);
    Value p = e.polynomial(z, {-3.33332819422e-1, 1.33314422036e-1, -5.37397155531e-2, 2.06390887954e-2, -5.70498872745e-3});
    Value near = e.add(x, e.mul(e.mul(x, z), p));
    Value size = math::AbsFOp::create(rewriter, op.getLoc(), x);
    Value power = math::ExpOp::create(rewriter, op.getLoc(), e.add(size, size));
    Value far = e.sub(e.f(1), arith::DivFOp::create(rewriter, op.getLoc(), e.f(2), e.add(power, e.f(1))));
    Value isNear = arith::CmpFOp::create(rewriter, op.getLoc(), arith::CmpFPredicate::OLT, size, e.f(0.625));
    rewriter.replaceOp(op, e.select(isNear, near, math::CopySignOp::create(rewriter, op.getLoc(), far, x)));
    return success();
  }
};

/// sin(x) for quarter = 0, cos(x) = sin(x + pi/2) for quarter = 1.
Value expandSine(PatternRewriter &rewriter, Location loc, Value x, int64_t quarter) {
  Emitter e(rewriter, loc, rewriter.getF64Type());
  auto [r, n] = e.reduce(x, 0.63661977236758134308, 1.57079632673412561417e+00, 6.07710050650619224932e-11);
  Value z = e.mul(r, r);
  Value s = e.polynomial(z, {-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
                             2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10});
  Value sine = e.add(r, e.mul(e.mul(z, r), s));
  Value c = e.polynomial(z, {4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                             -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11});
  Value cosine = e.add(e.sub(e.f(1), e.mul(e.f(0.5), z)), e.mul(e.mul(z, z), c));
  Value q = arith::AddIOp::create(rewriter, loc, n, e.i(quarter));
  auto bit = [&](int64_t mask) -> Value {
    Value masked = arith::AndIOp::create(rewriter, loc, q, e.i(mask));
    return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, masked, e.i(0));
  };
  Value y = e.select(bit(1), cosine, sine);
  return e.select(bit(2), arith::NegFOp::create(rewriter, loc, y), y);
}

template <typename OpTy, int64_t quarter>
struct ExpandSine : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return rewriter.notifyMatchFailure(op, "expected f64");
    rewriter.replaceOp(op, expandSine(rewriter, op.getLoc(), op.getOperand(), quarter));
    return success();
  }
};

struct ReferenceExpandMathPass : llmc::impl::ReferenceExpandMathPassBase<ReferenceExpandMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandExp, ExpandTanh, ExpandSine<math::SinOp, 0>, ExpandSine<math::CosOp, 1>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
