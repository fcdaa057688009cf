//===- RowsTest.cpp - kernels that work row by row ------------------------===//
//
// Bit for bit against the scalar model where the ops' definitions fix every rounding; elementary functions also against
// double precision, with the bounds stated here.
//
//===----------------------------------------------------------------------===//
#include "Cache.h"
#include "Kernels.h"
#include "Models.h"

#include <functional>
#include <numbers>
#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr int64_t kRows = 33;

/// |got - expected| in units of the last place of expected.
double ulps(float got, double expected) {
  int exponent = std::max(std::ilogb(expected == 0 ? 1e-300 : expected), -126); // denormals are flushed
  return std::fabs(double(got) - expected) / std::ldexp(1.0, exponent - 23);
}

/// Rows with a row of zeros, of tiny and of large values, and with outliers.
Rows<float> inputRows(int64_t cols, unsigned seed) {
  Rows<float> x = randomRows(kRows, cols, seed, 2.0f);
  for (int64_t c = 0; c < cols; ++c) {
    x.at(1, c) = 0;
    x.at(2, c) *= 0x1p-110f;
    x.at(3, c) *= 0x1p60f;
    x.at(4, c) = c % 32 == 5 ? -1e4f : x.at(4, c);
    x.at(5, c) = c % 2 ? -0.0f : 127.5f;
  }
  return x;
}

template <typename T> Rows<T> run(const Dispatch &dispatch, std::vector<void *> arguments, int64_t rows, int64_t cols) {
  Rows<T> y = resultRows<T>(rows, cols);
  arguments.push_back(y.data());
  EXPECT_EQ(dispatch.variants.size(), 1u);
  dispatch.variants[0].launch(arguments, rows);
  return y;
}

/// lm.quantize's results, or those of an op whose plain result is `values`.
template <typename T> void expectCodes(const Dispatch &dispatch, std::vector<void *> arguments, const Rows<float> &values) {
  CodedRows<T> got = CodedRows<T>::result(values.rows, values.cols), expected = modelQuantize<T>(values);
  arguments.insert(arguments.end(), {got.codes.data(), got.scales.data()});
  dispatch.variants[0].launch(arguments, values.rows);
  expectBits(got.codes, expected.codes, dispatch.op + " codes");
  expectBits(got.scales, expected.scales, dispatch.op + " scales");
}

TEST(Rows, QuantizeAndRound) {
  ModuleText text;
  for (int64_t cols : {32, 96, 100, 576}) {
    std::string c = std::to_string(cols), x = text.argument(tensorType(cols));
    for (std::string element : {"i8", "i16"})
      text.op("%c" + c + element + ", %s" + c + element,
              "lm.quantize " + x + " : " + tensorType(cols) + " -> " + codedTypes(cols, element), element + c);
    text.op("%r" + c, "lm.round " + x + " : " + tensorType(cols) + " -> " + tensorType(cols, "bf16"), "r" + c);
  }
  Kernels kernels(text.str());
  FlushDenormals flush;
  for (int64_t cols : {32, 96, 100, 576}) {
    Rows<float> x = inputRows(cols, 1);
    std::string c = std::to_string(cols);
    expectCodes<int8_t>(kernels["i8" + c], {x.data()}, x);
    expectCodes<int16_t>(kernels["i16" + c], {x.data()}, x);
    expectBits(run<uint16_t>(kernels["r" + c], {x.data()}, kRows, cols), modelRound(x), "round " + c);
  }
}

/// x / sqrt(mean + eps) * w in the op's order: 32 FMA chains over columns, tile.reduce, one factor.
Rows<float> modelNorm(const Rows<float> &x, const Weight &w, float eps) {
  Rows<float> y(x.rows, x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    std::array<float, 32> squares{};
    for (int64_t c = 0; c < x.stride; ++c)
      squares[c % 32] = std::fma(x.at(r, c), x.at(r, c), squares[c % 32]);
    float mean = modelSum32(squares) / float(x.cols);
    float shifted = mean + eps;
    float factor = 1.0f / std::sqrt(shifted);
    for (int64_t c = 0; c < x.cols; ++c) {
      float scaled = x.at(r, c) * factor;
      y.at(r, c) = scaled * w.values[c];
    }
  }
  return y;
}

TEST(Rows, RMSNormInEveryFormat) {
  ModuleText text;
  std::vector<Weight> weights;
  const double epsilons[] = {1e-5, 1e-6};
  for (int64_t cols : {64, 100, 576}) {
    std::string c = std::to_string(cols), x = text.argument(tensorType(cols));
    weights.emplace_back("w" + c, cols == 64 ? DType::BF16 : DType::F32, 0, cols, 7);
    text.weights += weights.back().declaration();
    for (int e = 0; e < 2; ++e)
      for (std::string format : {"f32", "bf16", "q8", "q16"}) {
        std::string id = format + c + std::to_string(e);
        text.op(format[0] == 'q' ? "%c" + id + ", %s" + id : "%" + id,
                "lm.rms_norm " + x + ", @w" + c + " {eps = " + (e ? "1.0e-6" : "1.0e-5") + ", format = #lm.format<" + format +
                    ">} : (" + tensorType(cols) + ") -> " +
                    resultTypes(cols, format), format + "_" + c + "_" + std::to_string(e));
      }
  }
  Kernels kernels(text.str());
  FlushDenormals flush;
  for (const Weight &w : weights)
    for (int e = 0; e < 2; ++e) {
      Rows<float> x = inputRows(w.cols, 2), y = modelNorm(x, w, float(epsilons[e]));
      std::string end = "_" + std::to_string(w.cols) + "_" + std::to_string(e);
      std::vector<void *> arguments{x.data(), w.packed.data()};
      expectBits(run<float>(kernels["f32" + end], arguments, kRows, w.cols), y, "f32" + end);
      expectBits(run<uint16_t>(kernels["bf16" + end], arguments, kRows, w.cols), modelRound(y), "bf16" + end);
      expectCodes<int8_t>(kernels["q8" + end], arguments, y);
      expectCodes<int16_t>(kernels["q16" + end], arguments, y);
      for (int64_t c = 0; c < w.cols; ++c) { // and the formula itself
        double sum = 0;
        for (int64_t i = 0; i < w.cols; ++i)
          sum += double(x.at(7, i)) * x.at(7, i);
        double expected = x.at(7, c) / std::sqrt(sum / w.cols + epsilons[e]) * w.values[c];
        ASSERT_NEAR(y.at(7, c), expected, 1e-5 * std::fabs(expected));
      }
    }
}

TEST(Rows, EmbeddingOfEveryStorage) {
  constexpr int64_t vocabulary = 53;
  ModuleText text;
  std::vector<Weight> weights;
  std::string ids = text.argument("tensor<?xi32>");
  for (DType type : kDTypes)
    for (int64_t cols : blockSize(type) == 256 ? std::vector<int64_t>{256, 512}
                        : blockSize(type) == 32 ? std::vector<int64_t>{96, 64} : std::vector<int64_t>{96, 50}) {
      std::string name = storageName(type) + "_" + std::to_string(cols);
      weights.emplace_back(name, type, vocabulary, cols, 40 + cols);
      text.weights += weights.back().declaration();
      text.op("%" + name, "lm.embedding " + ids + ", @" + name + " : tensor<?xi32> -> " + tensorType(cols), name);
    }
  Kernels kernels(text.str());
  FlushDenormals flush;
  std::vector<int32_t> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  order.push_back(order[0]);
  Array<int32_t> tokens(order);
  for (const Weight &w : weights) {
    Rows<float> expected(order.size(), w.cols);
    for (size_t r = 0; r < order.size(); ++r)
      std::memcpy(expected.row(r), &w.values[order[r] * w.cols], w.cols * sizeof(float));
    expectBits(run<float>(kernels[w.name], {w.packed.data(), tokens.data()}, order.size(), w.cols), expected, w.name);
  }
}

TEST(Rows, GatherAddAndActivation) {
  ModuleText text;
  std::string x = text.argument(tensorType(100)), y = text.argument(tensorType(100)), rows = text.argument("tensor<?xi32>");
  text.op("%g", "lm.gather_rows " + x + ", " + rows + " : tensor<?x100xf32>, tensor<?xi32> -> tensor<?x100xf32>", "gather");
  text.op("%a", "lm.add " + x + ", " + y + " : tensor<?x100xf32>", "add");
  text.op("%h", "lm.gated_activation silu " + x + ", " + y + " : tensor<?x100xf32>", "silu");
  Kernels kernels(text.str());
  FlushDenormals flush;
  Rows<float> a = randomRows(kRows, 100, 5, 8.0f), b = randomRows(kRows, 100, 6);
  Array<int32_t> wanted({32, 0, 7, 7, 31});
  Rows<float> picked(5, 100), sum(kRows, 100), gated(kRows, 100);
  for (int64_t r = 0; r < 5; ++r)
    std::memcpy(picked.row(r), a.row(wanted[r]), 100 * sizeof(float));
  const float edges[] = {0.0f, -0.0f, 86.9f, 87.1f, 88.1f, 200.0f, -86.9f, -87.1f, -88.1f, -200.0f, 1e-30f, -1e-30f};
  std::copy(std::begin(edges), std::end(edges), a.row(9));
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < 100; ++c) {
      sum.at(r, c) = a.at(r, c) + b.at(r, c);
      gated.at(r, c) = modelGated(a.at(r, c), b.at(r, c));
      // About 1 ulp of exp, then an addition, a division and a product; below -87 exp(-gate) saturates.
      double expected = a.at(r, c) / (1 + std::exp(-double(a.at(r, c)))) * b.at(r, c);
      ASSERT_TRUE(ulps(gated.at(r, c), expected) <= 4 || std::fabs(expected) < 1e-34)
          << "silu(" << a.at(r, c) << ") * " << b.at(r, c) << ": got " << gated.at(r, c) << ", expected " << expected;
    }
  expectBits(run<float>(kernels["gather"], {a.data(), wanted.data()}, 5, 100), picked, "gather");
  expectBits(run<float>(kernels["add"], {a.data(), b.data()}, kRows, 100), sum, "add");
  expectBits(run<float>(kernels["silu"], {a.data(), b.data()}, kRows, 100), gated, "silu");
}

TEST(Rows, ScaleSoftCapAndGELU) {
  ModuleText text;
  std::string x = text.argument(tensorType(100)), y = text.argument(tensorType(100)), ids = text.argument("tensor<?xi32>");
  Weight table("table", DType::F32, 7, 100, 4);
  text.weights += table.declaration();
  text.op("%s", "lm.scale " + x + " {factor = 0.22} : tensor<?x100xf32>", "scale");
  text.op("%c", "lm.soft_cap " + x + " {cap = 30.0} : tensor<?x100xf32>", "cap");
  text.op("%h", "lm.gated_activation gelu_tanh " + x + ", " + y + " : tensor<?x100xf32>", "gelu");
  text.op("%e", "lm.embedding " + ids + ", @table {scale = 9.8} : tensor<?xi32> -> tensor<?x100xf32>", "embedding");
  Kernels kernels(text.str());
  FlushDenormals flush;
  Rows<float> a = randomRows(kRows, 100, 5, 30.0f), b = randomRows(kRows, 100, 6), scaled(kRows, 100), rows(7, 100);
  const float edges[] = {0.0f, -0.0f, 18.74f, 18.76f, -18.74f, -18.76f, 1e-6f, -1e-6f, 400.0f, -400.0f, 1e30f, -1e30f, INFINITY, -INFINITY};
  std::copy(std::begin(edges), std::end(edges), a.row(9));
  for (int64_t c = 0; c < 100; ++c)
    a.at(10, c) = float(c - 50) / 8;
  Array<int32_t> order({6, 0, 3, 3, 1, 2, 5});
  for (int64_t r = 0; r < 7; ++r)
    for (int64_t c = 0; c < 100; ++c)
      rows.at(r, c) = table.value(order[r], c) * 9.8f;
  Rows<float> capped = run<float>(kernels["cap"], {a.data()}, kRows, 100), gelu = run<float>(kernels["gelu"], {a.data(), b.data()}, kRows, 100);
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < 100; ++c) {
      double v = a.at(r, c);
      scaled.at(r, c) = a.at(r, c) * 0.22f;
      // The product with 1 / 30, tanh to about 1 ulp, a product.
      ASSERT_LE(ulps(capped.at(r, c), 30 * std::tanh(v / 30)), 4) << "cap of " << v << ": got " << capped.at(r, c);
      if (!std::isfinite(v))
        continue; // inf * up is what it is; -inf * 0 is NaN in every formula
      // The exponent's error counts: 2^-24 of up to 90; far below 0 the quotient vanishes (its divisor saturates).
      double expected = v / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))) * b.at(r, c);
      ASSERT_TRUE(ulps(gelu.at(r, c), expected) <= 128 || std::fabs(expected) < 1e-33)
          << "gelu(" << v << ") * " << b.at(r, c) << ": got " << gelu.at(r, c) << ", expected " << expected;
    }
  expectBits(run<float>(kernels["scale"], {a.data()}, kRows, 100), scaled, "scale");
  expectBits(run<float>(kernels["embedding"], {table.packed.data(), order.data()}, 7, 100), rows, "embedding");
}

//===----------------------------------------------------------------------===//
// Rotary embedding and cache writes
//===----------------------------------------------------------------------===//

TEST(Rope, TableWithinOneUlp) {
  for (int64_t pairs : {8, 32, 64}) {
    ModuleText text;
    std::vector<float> values(alignUp(pairs, 32)); // packed as one row
    for (int64_t i = 0; i < pairs; ++i)
      values[i] = float(std::pow(i % 2 ? 10000.0 : 500000.0, -double(i) / pairs));
    Array<float> frequencies(values);
    std::string count = std::to_string(pairs);
    text.weights = "lm.weight @f [1, " + count + "] f32 {value = dense<1.0> : tensor<1x" + count +
                   "xf32>, layout = #lm.layout<rows_f32>, offset = 0 : i64}\n";
    text.op("%t", "lm.rope_table " + text.argument("tensor<?xi32>") + ", @f : tensor<?xi32> -> " + tensorType(2 * pairs), "t");
    Kernels kernels(text.str());
    FlushDenormals flush;
    std::vector<int32_t> list{0, 1, 2, 131071, 131070, 65536, 99991};
    std::mt19937 random(9);
    while (list.size() < 300)
      list.push_back(random() % 131072);
    Array<int32_t> positions(list);
    Rows<float> table = run<float>(kernels["t"], {frequencies.data(), positions.data()}, list.size(), 2 * pairs);
    for (size_t r = 0; r < list.size(); ++r) {
      for (int64_t i = 0; i < pairs; ++i) {
        float angle = float(list[r]) * values[i];
        ASSERT_LE(ulps(table.at(r, i), std::cos(double(angle))), 1) << "cos " << angle << " position " << list[r];
        ASSERT_LE(ulps(table.at(r, pairs + i), std::sin(double(angle))), 1) << "sin " << angle << " position " << list[r];
      }
      for (int64_t c = 2 * pairs; c < table.stride; ++c)
        ASSERT_EQ(std::bit_cast<uint32_t>(table.at(r, c)), 0u) << "padding of row " << r << ", column " << c;
    }
  }
}

/// Rotates halves of a head.
std::vector<float> modelRotate(const float *x, int64_t headDim, const float *table, int64_t pairs) {
  std::vector<float> y(x, x + headDim);
  for (int64_t i = 0; i < pairs; ++i) {
    float a = x[i] * table[i], b = x[pairs + i] * table[pairs + i];
    float c = x[pairs + i] * table[i], d = x[i] * table[pairs + i];
    y[i] = a - b;
    y[pairs + i] = c + d;
  }
  return y;
}

template <typename T> void testAppend(int64_t headDim, int64_t pairs, int64_t heads = 4) {
  constexpr int64_t kvHeads = 2, tokens = 7, layers = 3, blocks = 4;
  std::string element = sizeof(T) == 2 ? "bf16" : "f32", dim = std::to_string(headDim);
  std::string kv = "!lm.kv<heads = 2, k_dim = " + dim + ", v_dim = " + dim + ", element = " + element + ", block = 16>";
  ModuleText text;
  std::string caches[layers];
  for (std::string &cache : caches)
    cache = text.argument(kv);
  std::string q = tensorType(heads * headDim), k = tensorType(kvHeads * headDim), all = tensorType((heads + 2 * kvHeads) * headDim);
  std::string t = tensorType(2 * pairs), table = text.argument(t);
  text.op("%r", "lm.rope " + text.argument(q) + ", " + table + " {head_dim = " + dim + "} : " + q + ", " + t, "rope");
  text.op("%a", "lm.kv_append " + caches[1] + ", " + text.argument(k) + ", " + text.argument(k) + " : " + kv + ", " + k + ", " + k, "append");
  text.op("%q, %b", "lm.rope_append " + text.argument(all) + ", " + table + ", " + caches[2] + " {head_dim = " + dim + "} : (" + all +
                        ", " + t + ", " + kv + ") -> (" + q + ", " + kv + ")", "rope_append");
  Kernels kernels(text.str());
  FlushDenormals flush;

  Rows<float> angles = randomRows(tokens, 2 * pairs, 21), input = randomRows(tokens, (heads + 2 * kvHeads) * headDim, 22);
  Rows<float> queries(tokens, heads * headDim), keys(tokens, kvHeads * headDim), values(tokens, kvHeads * headDim);
  Rows<float> rotated(tokens, heads * headDim);
  Array<int32_t> slots({17, 18, -1, 63, 0, 33, 5});
  Cache<T> appended(blocks, layers, kvHeads, headDim), expected = Cache<T>(blocks, layers, kvHeads, headDim);
  Cache<T> plain(blocks, layers, kvHeads, headDim), plainExpected(blocks, layers, kvHeads, headDim);
  for (int64_t r = 0; r < tokens; ++r) {
    const float *x = input.row(r);
    std::copy(x, x + heads * headDim, queries.row(r));
    std::copy(x + heads * headDim, x + (heads + kvHeads) * headDim, keys.row(r));
    std::copy(x + (heads + kvHeads) * headDim, x + (heads + 2 * kvHeads) * headDim, values.row(r));
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<float> y = modelRotate(queries.row(r) + h * headDim, headDim, angles.row(r), pairs);
      std::copy(y.begin(), y.end(), rotated.row(r) + h * headDim);
    }
    for (int64_t h = 0; h < kvHeads && slots[r] >= 0; ++h) {
      const float *key = keys.row(r) + h * headDim, *value = values.row(r) + h * headDim;
      plainExpected.write(1, slots[r], h, key, value);
      expected.write(2, slots[r], h, modelRotate(key, headDim, angles.row(r), pairs).data(), value);
    }
  }
  std::string what = "head_dim " + dim + " pairs " + std::to_string(pairs) + " " + element;
  expectBits(run<float>(kernels["rope"], {queries.data(), angles.data()}, tokens, heads * headDim), rotated, "rope " + what);
  kernels["append"].variants[0].launch({plain.layer(1), keys.data(), values.data(), slots.data()}, tokens);
  ASSERT_EQ(std::memcmp(plain.memory.data(), plainExpected.memory.data(), plain.memory.size() * sizeof(T)), 0) << "kv_append " << what;
  expectBits(run<float>(kernels["rope_append"], {input.data(), angles.data(), appended.layer(2), slots.data()}, tokens, heads * headDim),
             rotated, "rope_append " + what);
  ASSERT_EQ(std::memcmp(appended.memory.data(), expected.memory.data(), expected.memory.size() * sizeof(T)), 0) << "rope_append " << what;
}

TEST(Rope, AppendBF16) {
  testAppend<uint16_t>(64, 32);
  testAppend<uint16_t>(80, 40);
  testAppend<uint16_t>(96, 16); // columns that pass through
}
TEST(Rope, AppendF32) {
  testAppend<float>(64, 32);
  testAppend<float>(16, 8, 3); // queries with padding
  testAppend<float>(128, 32);
}

} // namespace
