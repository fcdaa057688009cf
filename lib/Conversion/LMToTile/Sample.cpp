//===- Sample.cpp - lm.sample to tile -------------------------------------===//
//
// A unit is one row of logits x. With y = (x - max x) / temperature the kept tokens are those with y at or above a
// threshold: top-k bisects it (tokens above it; every pass reads the row again, from a cache), min-p gives it at once. The
// draw is exact and needs no sorted order: the token with the largest y + g is chosen, g independent Gumbel noise (Gumbel-max;
// Yellott 1977), made by Philox4x32-10 (Salmon et al. 2011) from the seed, the sampled token's index in its sequence and the
// token's id.
//
// Top-p needs no threshold: the token drawn from all is the one drawn from the nucleus, if it is in it, that is if the tokens
// above it weigh less than top-p. If not, all of the nucleus is above it, and the next draw, with the same noise, is among
// those. (FlashInfer's sampling without sorting draws anew instead.) A round is accepted with a probability of about top-p.
//
// Greedy rows have noise 0 and draw nothing: theirs is the largest logit, the lowest id on ties, which the first pass finds.
// Padding columns never win, and a row with a number that is not finite chooses no token.
//
// A pass goes over the row in steps of many columns, so that enough loads are in flight; the last step ends with the row, and
// does not count again what the one before has seen.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/bit.h"

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
  Sampling(KernelBuilder &k, int64_t columns) : k(k), columns(columns) {}

  void run() {
    widen(kSearchStep);
    Value greedy = findLargest();
    widen(kStep);
    noise = real(offsetof(llmc_row_sampler, noise));
    draws = k.greater(noise, k.number(0.0));
    Value id = k.select(draws, drawFromNucleus(keepTopK(k.number(kLowest)), greedy), greedy);
    k.store(k.select(bad, k.i32(-1), id), k.buffer(2), {k.unit()});
  }

private:
  // A thread's share of the later passes stays small: every element takes some hundred instructions.
  static constexpr int64_t kSearchStep = 4096, kStep = 1024;
  static constexpr int64_t kTogether = 2; // steps of the search: one row has one multiprocessor, which waits for memory
  void widen(int64_t wanted) { step = std::min(wanted, static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(pad32(columns))))); }

  Type i32s(Type element) { return k.vecOf({step}, element); }
  Value ints(int32_t value) {
    return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(cast<ShapedType>(i32s(k.b.getI32Type())), value));
  }
  Value word(size_t bytes) {
    return k.load(k.b.getI32Type(), k.buffer(1), {k.unit(), k.index(static_cast<int64_t>(bytes / 4))});
  }
  Value real(size_t bytes) { return arith::BitcastOp::create(k.b, k.loc, k.f32(), word(bytes)); }
  Value atLeast(Value x, Value y) { return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGE, x, y); }

  /// Columns [column, column + step), of which those from `fresh` on have not been seen.
  struct Step {
    Value column, fresh;
  };
  /// Ids of a step's columns, and whether they are tokens that have not been seen.
  std::pair<Value, Value> tokens(Step at) {
    SmallVector<int32_t> iota(step);
    std::iota(iota.begin(), iota.end(), 0);
    Value id = k.add(k.ints({step}, iota), k.spread(k.toI32(at.column), {step}));
    Value fresh = k.greater(id, k.spread(k.toI32(k.addIndex(at.fresh, -1)), {step}));
    return {id, arith::AndIOp::create(k.b, k.loc, k.greater(ints(static_cast<int32_t>(columns)), id), fresh)};
  }
  /// y of one token.
  Value oneScaled(Value id) {
    return k.mul(k.sub(k.load(k.f32(), k.buffer(0), {k.unit(), k.toIndex(id)}), largest), inverse);
  }
  Value logits(Step at) { return k.load(k.vec({step}), k.buffer(0), {k.unit(), at.column}); }
  /// y of a step's columns, -inf where there is no token.
  Value scaled(Step at) {
    Value y = k.mul(k.sub(logits(at), k.spread(largest, {step})), k.spread(inverse, {step}));
    return k.select(tokens(at).second, y, k.splat({step}, kNone));
  }
  int64_t steps() const { return (pad32(columns) + step - 1) / step; }
  KernelBuilder::Values overColumns(Value count, ValueRange inits, llvm::function_ref<KernelBuilder::Values(Step, ValueRange)> body) {
    return k.loop(k.index(0), count, 1, inits, [&](Value number, ValueRange carried) {
      return body(stepAt(number), carried);
    });
  }
  Step stepAt(Value number) {
    Value first = k.mulIndex(number, step);
    return {k.minIndex(first, k.index(pad32(columns) - step)), first};
  }

  /// Id of the largest of `values`, the lowest on ties; and that value.
  std::pair<Value, Value> best(Value values, Value ids) {
    Value top = k.reduce(tile::Reduction::Max, values);
    Value has = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, values, k.spread(top, {step}));
    // The lowest id is the largest of kTop - id.
    Value distance = arith::SubIOp::create(k.b, k.loc, ints(kTop), ids);
    Value furthest = k.reduce(tile::Reduction::Max, k.select(has, distance, ints(0)));
    return {arith::SubIOp::create(k.b, k.loc, k.i32(kTop), furthest), top};
  }

  /// The largest logit so far of each column of a step, its id, and whether one was not finite; `x` are those of the step `at`.
  KernelBuilder::Values larger(Step at, Value x, ValueRange carried) {
    auto [id, token] = tokens(at);
    Value finite = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, k.sub(x, x), k.splat({step}, 0.0));
    Value worse = k.select(token, k.select(finite, carried[2], ints(1)), carried[2]);
    x = k.select(token, x, k.splat({step}, kNone));
    Value better = k.greater(x, carried[0]);
    return {k.select(better, x, carried[0]), k.select(better, id, carried[1]), worse};
  }

  /// The largest logit's id.
  Value findLargest() {
    KernelBuilder::Values inits{k.splat({step}, kNone), ints(0), ints(0)};
    int64_t together = steps() > kTogether ? kTogether : 1, rounds = (steps() + together - 1) / together;
    auto state = k.loop(k.index(0), k.index(rounds), 1, inits, [&](Value round, ValueRange carried) {
      SmallVector<Step> places;
      SmallVector<Value> xs; // all asked for before the first is looked at
      for (int64_t i = 0; i < together; ++i) {
        places.push_back(stepAt(k.addIndex(k.mulIndex(round, together), i)));
        xs.push_back(logits(places.back()));
      }
      KernelBuilder::Values best(carried);
      for (auto [at, x] : llvm::zip_equal(places, xs))
        best = larger(at, x, best);
      return best;
    });
    auto [id, top] = best(state[0], state[1]);
    largest = top;
    bad = k.greater(k.reduce(tile::Reduction::Max, state[2]), k.i32(0));
    inverse = real(offsetof(llmc_row_sampler, inverse_temperature));
    return id;
  }

  /// The sum of weight(y) over the tokens whose y `has` the wanted place; zero where no row is read (`count` steps).
  Value sumOf(Value count, llvm::function_ref<Value(Value)> has, llvm::function_ref<Value(Value)> weight) {
    Value zero = k.splat({step}, 0.0);
    return k.reduce(tile::Reduction::Add, overColumns(count, zero, [&](Step at, ValueRange sum) -> KernelBuilder::Values {
      Value y = scaled(at);
      return {k.add(sum[0], k.select(has(y), weight(y), k.splat({step}, 0.0)))};
    })[0]);
  }
  Value spread(Value x) { return k.spread(x, {step}); }

  /// The largest threshold from `low` on that keeps at least top-k tokens, to 2^-rounds of the range; no rounds: `low`.
  Value keepTopK(Value low) {
    Value wanted = arith::SIToFPOp::create(k.b, k.loc, k.f32(), word(offsetof(llmc_row_sampler, top_k)));
    Value rounds = word(offsetof(llmc_row_sampler, top_k_rounds)), high = k.number(1.0); // above every y
    return k.loop(k.index(0), k.toIndex(rounds), 1, {low, high}, [&](Value, ValueRange range) -> KernelBuilder::Values {
      Value middle = k.mul(k.add(range[0], range[1]), k.number(0.5));
      Value kept = sumOf(k.index(steps()), [&](Value y) { return atLeast(y, spread(middle)); }, [&](Value) { return k.splat({step}, 1.0); });
      Value enough = atLeast(kept, wanted);
      return {k.select(enough, middle, range[0]), k.select(enough, range[1], middle)};
    })[0];
  }

  /// Of the tokens with y from `low` on. `likeliest` is in every nucleus: the one if all rounds end without (less than once in
  /// 2^40, since what is left weighs half as much after each in the mean).
  Value drawFromNucleus(Value low, Value likeliest) {
    Value rounds = word(offsetof(llmc_row_sampler, top_p_rounds));
    Value limited = k.greater(rounds, k.i32(0));
    Value count = k.select(limited, k.index(steps()), k.index(0)); // of the passes that only top-p needs
    auto weight = [&](Value y) -> Value { return math::ExpOp::create(k.b, k.loc, y); };
    Value total = sumOf(count, [&](Value y) { return atLeast(y, spread(low)); }, weight);
    Value wanted = k.mul(real(offsetof(llmc_row_sampler, top_p)), total);
    Value least = k.max(low, real(offsetof(llmc_row_sampler, log_min_p)));
    Value attempts = k.toIndex(arith::MaxSIOp::create(k.b, k.loc, rounds, k.i32(1)));
    // Carried: the id, what the next token must be above, whether to go on.
    return k.loop(k.index(0), attempts, 1, {likeliest, k.number(kNone), k.i32(1)}, [&](Value, ValueRange carried) -> KernelBuilder::Values {
      return k.loop(k.index(0), k.toIndex(carried[2]), 1, carried, [&](Value, ValueRange before) -> KernelBuilder::Values {
        Value id = draw(least, before[1]);
        Value y = oneScaled(id);
        Value higher = sumOf(count, [&](Value other) { return k.greater(other, spread(y)); }, weight);
        Value outside = arith::AndIOp::create(k.b, k.loc, atLeast(higher, wanted), k.greater(higher, k.number(0.0)));
        return {k.select(outside, before[0], id), y, k.select(outside, k.i32(1), k.i32(0))};
      });
    })[0];
  }

  /// Philox4x32-10 with counter (position, id, 0) and the seed as key; its first word.
  Value philox(Value id) {
    auto constant = [&](uint32_t value) { return ints(static_cast<int32_t>(value)); };
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

  /// Among the tokens with y from `least` on that are above `bound`.
  Value draw(Value least, Value bound) {
    Value count = k.select(draws, k.index(steps()), k.index(0));
    KernelBuilder::Values inits{k.splat({step}, kNone), ints(0)};
    auto state = overColumns(count, inits, [&](Step at, ValueRange carried) -> KernelBuilder::Values {
      Value id = tokens(at).first, y = scaled(at);
      Value score = k.fma(k.spread(noise, {step}), gumbel(philox(id)), y);
      Value kept = arith::AndIOp::create(k.b, k.loc, atLeast(y, spread(least)), k.greater(y, spread(bound)));
      score = k.select(kept, score, k.splat({step}, kNone));
      Value better = k.greater(score, carried[0]); // ties keep the lower id
      return {k.select(better, score, carried[0]), k.select(better, id, carried[1])};
    });
    // No token among numbers that are not finite: any will do.
    return arith::MinSIOp::create(k.b, k.loc, best(state[0], state[1]).first, k.i32(static_cast<int32_t>(columns) - 1));
  }

  KernelBuilder &k;
  int64_t columns, step = 0;
  Value largest, inverse, bad, noise, draws;
};

struct LowerSample : OpRewritePattern<lm::SampleOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::SampleOp op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op.getInput());
    Dispatch dispatch(op, rowsOf(op.getInput()));
    dispatch.inputs.push_back(op.getInput());
    dispatch.field(rt::Field::Samplers);
    Type i32 = rewriter.getI32Type();
    SmallVector<Type> buffers{rowsType(op.getContext(), columns, rewriter.getF32Type()),
                              MemRefType::get({ShapedType::kDynamic, sizeof(llmc_row_sampler) / 4}, i32),
                              MemRefType::get({ShapedType::kDynamic}, i32)};
    dispatch.variant(kAllRows, 1, 1, "sample_" + std::to_string(columns), buffers,
                     [&](KernelBuilder &k) { Sampling(k, columns).run(); });
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateSamplePatterns(RewritePatternSet &patterns) { patterns.add<LowerSample>(patterns.getContext()); }
