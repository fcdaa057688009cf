//===- ExpandMath.cpp - exp, tanh, sin, cos, bf16 rounding as arithmetic --===//
//
// Generated code calls no libm: elementary functions become polynomials on tile
// values of any shape, before they are split into registers. The assumption that
// makes it deterministic: every step is one IEEE operation or FMA.
//
//   exp, exp2  Cephes expf's polynomial on [-ln2/2, ln2/2]; about 1 ulp; exact 0 below
//              the normal range, inf above; NaN stays NaN
//   tanh       Cephes tanhf: a polynomial below 0.625, else 1 - 2 / (exp(2 |x|) + 1); about 1 ulp, odd; NaN stays NaN
//   sin, cos   in f64: Cody-Waite reduction by pi/2 in two parts, Taylor-like polynomials
//              of fdlibm; correctly rounded to f32 but for rare ties, |x| < 2^26
//   f32->bf16  round to nearest even on the bits; NaN becomes 0x7fc0
//
//===----------------------------------------------------------------------===//

#include "llmc/Conversion/TileToCPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace llmc;

namespace {

/// Arithmetic on values of one shape (scalar or vector).
struct Formula {
  OpBuilder &b;
  Location loc;
  Type shape; // of the value expanded

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
  }
  Value constant(Type type, Attribute element) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, element));
    return arith::ConstantOp::create(b, loc, cast<TypedAttr>(element));
  }
  Value f(Value like, double value) {
    Type element = getElementTypeOrSelf(like);
    return constant(like.getType(), b.getFloatAttr(element, value));
  }
  Value i(Value like, int64_t value) {
    return constant(like.getType(), b.getIntegerAttr(getElementTypeOrSelf(like), value));
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
  Value less(Value x, Value y) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y); }
  Value select(Value c, Value x, Value y) { return arith::SelectOp::create(b, loc, c, x, y); }
  /// c[0] x^n + ... + c[n]
  Value horner(Value x, ArrayRef<double> c) {
    Value y = f(x, c[0]);
    for (double term : c.drop_front())
      y = fma(y, x, f(x, term));
    return y;
  }
};

/// e^r 2^n for r in [-ln2/2, ln2/2] and integral n in [-126, 127], as f32.
Value scaledExp(Formula &m, Value r, Value n) {
  Value p = m.horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  Value y = m.add(m.fma(p, m.mul(r, r), r), m.f(r, 1.0));
  Type i32 = m.like(m.b.getI32Type());
  Value exponent = arith::FPToSIOp::create(m.b, m.loc, i32, n);
  Value bits = arith::ShLIOp::create(m.b, m.loc, arith::AddIOp::create(m.b, m.loc, exponent, m.i(exponent, 127)), m.i(exponent, 23));
  return m.mul(y, arith::BitcastOp::create(m.b, m.loc, n.getType(), bits));
}

/// Clamps to [low, high] but keeps NaN, and gives 0 below and inf above in the result.
Value guarded(Formula &m, Value x, double low, double high, llvm::function_ref<Value(Value)> inside) {
  Value below = m.less(x, m.f(x, low)), above = m.less(m.f(x, high), x);
  Value clamped = m.select(above, m.f(x, high), m.select(below, m.f(x, low), x));
  Value y = inside(clamped);
  y = m.select(below, m.f(x, 0.0), y);
  return m.select(above, m.f(x, std::numeric_limits<double>::infinity()), y);
}

struct ExpandExp2 : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Formula m{rewriter, op.getLoc(), op.getType()};
    rewriter.replaceOp(op, guarded(m, op.getOperand(), -126.0, 127.0, [&](Value x) {
      Value n = math::RoundEvenOp::create(rewriter, op.getLoc(), x);
      Value fraction = arith::SubFOp::create(rewriter, op.getLoc(), x, n); // exact
      return scaledExp(m, m.mul(fraction, m.f(x, 0.6931471805599453)), n);
    }));
    return success();
  }
};

/// exp(x), f32.
Value expOf(Formula &m, Value x) {
  return guarded(m, x, -87.0, 88.0, [&](Value x) {
    Value n = math::RoundEvenOp::create(m.b, m.loc, m.mul(x, m.f(x, 1.4426950408889634)));
    // ln2 in two parts, the first with trailing zeros: n * part is exact.
    Value r = m.fma(n, m.f(x, -0.693359375), x);
    return scaledExp(m, m.fma(n, m.f(x, 2.12194440e-4), r), n);
  });
}

struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Formula m{rewriter, op.getLoc(), op.getType()};
    rewriter.replaceOp(op, expOf(m, op.getOperand()));
    return success();
  }
};

struct ExpandTanh : OpRewritePattern<math::TanhOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Location loc = op.getLoc();
    Formula m{rewriter, loc, op.getType()};
    Value x = op.getOperand(), z = m.mul(x, x);
    Value p = m.horner(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
    Value near = m.fma(m.mul(x, z), p, x);
    Value size = math::AbsFOp::create(rewriter, loc, x), power = expOf(m, m.add(size, size));
    Value rest = arith::DivFOp::create(rewriter, loc, m.f(x, 2.0), m.add(power, m.f(x, 1.0)));
    Value far = arith::SubFOp::create(rewriter, loc, m.f(x, 1.0), rest);
    far = m.select(m.less(x, m.f(x, 0.0)), arith::NegFOp::create(rewriter, loc, far), far);
    rewriter.replaceOp(op, m.select(m.less(size, m.f(x, 0.625)), near, far));
    return success();
  }
};

/// sin and cos of the reduced argument, then the quadrant's choice.
template <typename OpTy, int64_t kQuadrant>
struct ExpandSinCos : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Location loc = op.getLoc();
    Formula m{rewriter, loc, op.getType()};
    Value x = arith::ExtFOp::create(rewriter, loc, m.like(rewriter.getF64Type()), op.getOperand());
    Value n = math::RoundEvenOp::create(rewriter, loc, m.mul(x, m.f(x, 0.63661977236758134308)));
    Value r = m.fma(n, m.f(x, -1.57079632673412561417e+00), x); // 33 bits of pi/2
    r = m.fma(n, m.f(x, -6.07710050650619224932e-11), r);
    Value z = m.mul(r, r);
    Value sine = m.horner(z, {1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                              -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01});
    sine = m.fma(m.mul(sine, z), r, r);
    Value cosine = m.horner(z, {-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                                2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02});
    cosine = m.fma(m.fma(cosine, z, m.f(z, -0.5)), z, m.f(z, 1.0));
    Value quadrant = arith::FPToSIOp::create(rewriter, loc, m.like(rewriter.getI32Type()), n);
    quadrant = arith::AddIOp::create(rewriter, loc, quadrant, m.i(quadrant, kQuadrant));
    auto bit = [&](int64_t mask) -> Value {
      Value masked = arith::AndIOp::create(rewriter, loc, quadrant, m.i(quadrant, mask));
      return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, masked, m.i(quadrant, 0));
    };
    Value y = m.select(bit(1), cosine, sine);
    y = m.select(bit(2), arith::NegFOp::create(rewriter, loc, y), y);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), y);
    return success();
  }
};

struct ExpandBF16Rounding : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isBF16() || !getElementTypeOrSelf(op.getIn().getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32 to bf16");
    Location loc = op.getLoc();
    Formula m{rewriter, loc, op.getType()};
    Value bits = arith::BitcastOp::create(rewriter, loc, m.like(rewriter.getI32Type()), op.getIn());
    auto shift = [&](Value x) -> Value { return arith::ShRUIOp::create(rewriter, loc, x, m.i(bits, 16)); };
    Value odd = arith::AndIOp::create(rewriter, loc, shift(bits), m.i(bits, 1));
    Value rounded = arith::AddIOp::create(rewriter, loc, bits, arith::AddIOp::create(rewriter, loc, odd, m.i(bits, 0x7fff)));
    Value nan = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    Value half = m.select(nan, m.i(bits, 0x7fc0), shift(rounded));
    Value narrow = arith::TruncIOp::create(rewriter, loc, m.like(rewriter.getI16Type()), half);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), narrow);
    return success();
  }
};

struct TileExpandMathPass : PassWrapper<TileExpandMathPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileExpandMathPass)
  TileExpandMathPass() = default;
  TileExpandMathPass(const TileExpandMathPass &other) : PassWrapper(other) {}
  explicit TileExpandMathPass(bool only) { onlyTrigonometry = only; }

  Option<bool> onlyTrigonometry{*this, "only-trigonometry", llvm::cl::desc("leave exp, exp2 and bf16 rounding to the target"),
                                llvm::cl::init(false)};

  StringRef getArgument() const override { return "tile-expand-math"; }
  StringRef getDescription() const override { return "elementary functions and bf16 rounding as plain arithmetic"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect, math::MathDialect>(); }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateTileExpandMathPatterns(patterns, onlyTrigonometry);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void llmc::populateTileExpandMathPatterns(RewritePatternSet &patterns, bool onlyTrigonometry) {
  patterns.add<ExpandSinCos<math::SinOp, 0>, ExpandSinCos<math::CosOp, 1>>(patterns.getContext());
  if (!onlyTrigonometry)
    patterns.add<ExpandExp, ExpandExp2, ExpandTanh, ExpandBF16Rounding>(patterns.getContext());
}

std::unique_ptr<Pass> llmc::createTileExpandMathPass(bool onlyTrigonometry) {
  return std::make_unique<TileExpandMathPass>(onlyTrigonometry);
}
