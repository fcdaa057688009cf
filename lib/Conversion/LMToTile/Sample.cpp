//===- Sample.cpp - lm.sample to tile -------------------------------------===//
//
// A unit is one row of logits x. With y = (x - max x) / temperature the kept tokens are those with y at or above a
// threshold: top-k and top-p bisect it (count, mass of exp(y) above it; every pass reads the row again, from a cache),
// min-p gives it at once. The draw is exact and needs no sorted order: the token with the largest y + g is chosen, g
// independent Gumbel noise (Gumbel-max; Yellott 1977), made by Philox4x32-10 (Salmon et al. 2011) from the seed, the
// sampled token's index in its sequence and the token's id. Greedy rows have noise 0: the largest logit, the lowest id
// on ties. Padding columns never win, and a row with a number that is not finite chooses no token.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cstddef>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace llmc;

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr double kLowest = -104.0; // exp(y) is 0 in f32 below it
constexpr int32_t kTop = std::numeric_limits<int32_t>::max();

/// One row's sampling.
class Sampling {
public:
  Sampling(KernelBuilder &k, int64_t columns, int64_t step) : k(k), columns(columns), step(step) {}

  void run() {
    findLargest();
    Value least = keepNucleus(keepTopK(k.number(kLowest)));
    Value minP = real(offsetof(llmc_row_sampler, log_min_p));
    Value id = draw(k.max(least, minP));
    k.store(k.select(bad, k.i32(-1), id), k.buffer(2), {k.unit()});
  }

private:
  Type i32s(Type element) { return k.vecOf({step}, element); }
  Value ints(int32_t value) {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(cast<ShapedType>(i32s(k.b.getI32Type())), value));
  }
  Value word(size_t bytes) {
    return k.load(k.b.getI32Type(), k.buffer(1), {k.unit(), k.index(static_cast<int64_t>(bytes / 4))});
  }
  Value real(size_t bytes) { return arith::BitcastOp::create(k.b, k.loc, k.f32(), word(bytes)); }
  Value atLeast(Value x, Value y) { return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGE, x, y); }

  /// Ids of a step's columns, and whether they are tokens.
  std::pair<Value, Value> tokens(Value column) {
    SmallVector<int32_t> iota(step);
    std::iota(iota.begin(), iota.end(), 0);
    Value id = k.add(k.ints({step}, iota), k.spread(k.toI32(column), {step}));
    return {id, k.greater(ints(static_cast<int32_t>(columns)), id)};
  }
  Value logits(Value column) { return k.load(k.vec({step}), k.buffer(0), {k.unit(), column}); }
  /// y of a step's columns, -inf where there is no token.
  Value scaled(Value column) {
    Value y = k.mul(k.sub(logits(column), k.spread(largest, {step})), k.spread(inverse, {step}));
    return k.select(tokens(column).second, y, k.splat({step}, kNone));
  }
  KernelBuilder::Values overColumns(ValueRange inits, KernelBuilder::LoopBody body) {
    return k.loop(k.index(0), k.index(pad32(columns)), step, inits, body);
  }

  void findLargest() {
    auto state = overColumns({k.splat({step}, kNone), ints(0)}, [&](Value column, ValueRange carried) -> KernelBuilder::Values {
      Value x = logits(column), token = tokens(column).second;
      Value finite = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, k.sub(x, x), k.splat({step}, 0.0));
      Value worse = k.select(token, k.select(finite, carried[1], ints(1)), carried[1]);
      return {k.max(k.select(token, x, k.splat({step}, kNone)), carried[0]), worse};
    });
    largest = k.reduce(tile::Reduction::Max, state[0]);
    bad = k.greater(k.reduce(tile::Reduction::Max, state[1]), k.i32(0));
    inverse = real(offsetof(llmc_row_sampler, inverse_temperature));
  }

  /// The sum of weight(y) over the tokens with y at or above a threshold.
  Value above(Value threshold, llvm::function_ref<Value(Value)> weight) {
    return k.reduce(tile::Reduction::Add, overColumns({k.splat({step}, 0.0)}, [&](Value column, ValueRange sum) -> KernelBuilder::Values {
      Value y = scaled(column);
      Value kept = k.select(atLeast(y, k.spread(threshold, {step})), weight(y), k.splat({step}, 0.0));
      return {k.add(sum[0], kept)};
    })[0]);
  }

  /// The largest threshold from `low` on whose tokens weigh at least `wanted`, to 2^-40 of the range; no rounds: `low`.
  Value bisect(Value rounds, Value low, Value wanted, llvm::function_ref<Value(Value)> weight) {
    Value high = k.number(1.0); // above every y
    return k.loop(k.index(0), k.toIndex(rounds), 1, {low, high}, [&](Value, ValueRange range) -> KernelBuilder::Values {
      Value middle = k.mul(k.add(range[0], range[1]), k.number(0.5));
      Value enough = atLeast(above(middle, weight), wanted);
      return {k.select(enough, middle, range[0]), k.select(enough, range[1], middle)};
    })[0];
  }

  Value keepTopK(Value low) {
    Value wanted = arith::SIToFPOp::create(k.b, k.loc, k.f32(), word(offsetof(llmc_row_sampler, top_k)));
    return bisect(word(offsetof(llmc_row_sampler, top_k_rounds)), low, wanted, [&](Value) { return k.splat({step}, 1.0); });
  }

  Value keepNucleus(Value low) {
    auto weight = [&](Value y) -> Value { return math::ExpOp::create(k.b, k.loc, y); };
    Value rounds = word(offsetof(llmc_row_sampler, top_p_rounds));
    // The mass that is left after top-k; not needed without rounds, and then not computed.
    Value once = arith::MinSIOp::create(k.b, k.loc, rounds, k.i32(1));
    Value total = k.loop(k.index(0), k.toIndex(once), 1, {k.number(0.0)}, [&](Value, ValueRange) -> KernelBuilder::Values {
      return {above(low, weight)};
    })[0];
    return bisect(rounds, low, k.mul(real(offsetof(llmc_row_sampler, top_p)), total), weight);
  }

  /// Philox4x32-10 with counter (position, id, 0) and the seed as key; its first word.
  Value philox(Value id) {
    auto constant = [&](uint32_t value) { return ints(static_cast<int32_t>(value)); };
    auto spread = [&](Value x) { return k.spread(x, {step}); };
    Type wideType = i32s(k.b.getI64Type());
    Value shift = arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(cast<ShapedType>(wideType), int64_t(32)));
    auto multiply = [&](Value x, uint32_t factor) -> std::pair<Value, Value> { // high and low word
      Value product = arith::MulIOp::create(k.b, k.loc, arith::ExtUIOp::create(k.b, k.loc, wideType, x),
                                            arith::ExtUIOp::create(k.b, k.loc, wideType, constant(factor)));
      Type narrow = i32s(k.b.getI32Type());
      return {arith::TruncIOp::create(k.b, k.loc, narrow, arith::ShRUIOp::create(k.b, k.loc, product, shift)),
              arith::TruncIOp::create(k.b, k.loc, narrow, product)};
    };
    auto exclusiveOr = [&](Value x, Value y, Value z) -> Value {
      return arith::XOrIOp::create(k.b, k.loc, arith::XOrIOp::create(k.b, k.loc, x, y), z);
    };
    Value c0 = spread(word(offsetof(llmc_row_sampler, position))), c1 = spread(word(offsetof(llmc_row_sampler, position) + 4));
    Value c2 = id, c3 = ints(0);
    Value key0 = spread(word(offsetof(llmc_row_sampler, seed))), key1 = spread(word(offsetof(llmc_row_sampler, seed) + 4));
    for (int round = 0; round < 10; ++round) {
      auto [high0, low0] = multiply(c0, 0xD2511F53);
      auto [high1, low1] = multiply(c2, 0xCD9E8D57);
      Value next0 = exclusiveOr(high1, c1, key0), next2 = exclusiveOr(high0, c3, key1);
      c0 = next0, c1 = low1, c2 = next2, c3 = low0;
      key0 = k.add(key0, constant(0x9E3779B9)), key1 = k.add(key1, constant(0xBB67AE85));
    }
    return c0;
  }

  /// Standard Gumbel noise -ln(-ln(1 - v)), v uniform in (0, 1). -ln(1 - v) decides the large ones, where v is small: a series.
  Value gumbel(Value bits) {
    auto number = [&](double value) { return k.splat({step}, value); };
    auto log = [&](Value x) -> Value { return math::LogOp::create(k.b, k.loc, x); };
    Value v = k.mul(k.add(arith::UIToFPOp::create(k.b, k.loc, k.vec({step}), bits), number(0.5)), number(0x1p-32));
    v = k.select(k.greater(v, number(1.0 - 0x1p-24)), number(1.0 - 0x1p-24), v); // what rounds to 1
    Value series = k.fma(v, k.fma(v, k.fma(v, k.fma(v, number(0.2), number(0.25)), number(1.0 / 3)), number(0.5)), number(1.0));
    Value direct = k.sub(number(0.0), log(k.sub(number(1.0), v)));
    Value exponential = k.select(k.greater(number(0.03), v), k.mul(v, series), direct);
    return k.sub(number(0.0), log(exponential));
  }

  Value draw(Value least) {
    Value noise = k.spread(real(offsetof(llmc_row_sampler, noise)), {step});
    auto best = overColumns({k.splat({step}, kNone), ints(0)}, [&](Value column, ValueRange carried) -> KernelBuilder::Values {
      Value id = tokens(column).first, y = scaled(column);
      Value score = k.fma(noise, gumbel(philox(id)), y);
      score = k.select(atLeast(y, k.spread(least, {step})), score, k.splat({step}, kNone));
      Value better = k.greater(score, carried[0]); // ties keep the lower id
      return {k.select(better, score, carried[0]), k.select(better, id, carried[1])};
    });
    Value top = k.reduce(tile::Reduction::Max, best[0]);
    Value has = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, best[0], k.spread(top, {step}));
    // The lowest id is the largest of kTop - id.
    Value distance = arith::SubIOp::create(k.b, k.loc, ints(kTop), best[1]);
    Value furthest = k.reduce(tile::Reduction::Max, k.select(has, distance, ints(0)));
    return arith::SubIOp::create(k.b, k.loc, k.i32(kTop), furthest);
  }

  KernelBuilder &k;
  int64_t columns, step;
  Value largest, inverse, bad;
};

struct LowerSample : OpRewritePattern<lm::SampleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::SampleOp op, PatternRewriter &rewriter) const override {
    // A thread's share stays small: every element takes some hundred instructions.
    int64_t columns = columnsOf(op.getInput()), step = std::min<int64_t>(stepColumns(op, columns), 512);
    Dispatch dispatch(op, rowsOf(op.getInput()));
    dispatch.inputs.push_back(op.getInput());
    dispatch.field(rt::Field::Samplers);
    Type i32 = rewriter.getI32Type();
    SmallVector<Type> buffers{rowsType(op.getContext(), columns, rewriter.getF32Type()),
                              MemRefType::get({ShapedType::kDynamic, sizeof(llmc_row_sampler) / 4}, i32),
                              MemRefType::get({ShapedType::kDynamic}, i32)};
    dispatch.variant(kAllRows, 1, 1, "sample_" + std::to_string(columns), buffers,
                     [&](KernelBuilder &k) { Sampling(k, columns, step).run(); });
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateSamplePatterns(RewritePatternSet &patterns) { patterns.add<LowerSample>(patterns.getContext()); }
