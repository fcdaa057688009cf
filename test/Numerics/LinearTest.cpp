//===- LinearTest.cpp - every variant of the matrix products, bit for bit -===//
//
// A token's sums are one chain of operations that the op's `arith` fixes; so each variant, at each row count, must give the
// bits of the scalar model. Weights have scales of zero, subnormal and negative ones, and codes at both ends; activations
// have rows of zeros, of one sign and of int8 extremes.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Models.h"

#include <functional>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr int64_t kRowCounts[] = {1, 2, 7, 16, 33, 512};
constexpr int64_t kMaxRows = 512;

struct Shape {
  int64_t k, n;
  bool bias, residual;
};

enum class Arith { F32, EvenOdd, Pairs, Q8, Q16 };
std::string text(Arith arith) {
  static const char *names[] = {"f32", "bf16_eo32", "bf16", "q8_g32", "q16_g32"};
  return names[int(arith)];
}

/// The input of a product, in each form, all rows.
struct Inputs {
  Rows<float> plain;
  Rows<uint16_t> rounded;
  CodedRows<int8_t> bytes;
  CodedRows<int16_t> words;

  static Rows<float> values(int64_t k) {
    Rows<float> x = randomRows(kMaxRows, k, 11);
    for (int64_t c = 0; c < k; ++c) {
      x.at(1, c) = 0;
      x.at(3, c) = 3;                                 // all codes 127 or 32767
      x.at(4, c) = c % 2 ? -5.0f : 5.0f;              // and their negatives
      x.at(5, c) *= c < 32 ? 0x1p-120f : 1.0f;        // a group that quantises to zeros
      x.at(6, c) = c % 32 == 7 ? 1000.0f : x.at(6, c); // outliers
    }
    return x;
  }
  explicit Inputs(int64_t k) : plain(values(k)), rounded(modelRound(plain)), bytes(modelQuantize<int8_t>(plain)),
                                 words(modelQuantize<int16_t>(plain)) {}

  float product(Arith arith, const Weight &w, int64_t row, int64_t n) const {
    switch (arith) {
    case Arith::F32: return modelF32(w, n, plain.row(row));
    case Arith::EvenOdd: return modelEvenOdd(w, n, rounded.row(row));
    case Arith::Pairs: return modelPairs(w, n, rounded.row(row));
    case Arith::Q8: return modelCoded(w, n, bytes.codes.row(row), bytes.scales.row(row));
    case Arith::Q16: return modelCoded(w, n, words.codes.row(row), words.scales.row(row));
    }
    return 0;
  }
};

/// Operands of a product, with their types appended to `types`.
std::string inputOperands(ModuleText &text, Arith arith, int64_t k, std::string &types) {
  if (arith == Arith::F32 || arith == Arith::EvenOdd || arith == Arith::Pairs) {
    types = tensorType(k, arith == Arith::F32 ? "f32" : "bf16");
    return text.argument(types);
  }
  types = codedTypes(k, arith == Arith::Q8 ? "i8" : "i16");
  size_t comma = types.find(", ");
  std::string codes = text.argument(types.substr(0, comma));
  return codes + ", " + text.argument(types.substr(comma + 2));
}

/// Runs all variants at all row counts; launch arguments are input, residual, weights, result.
void runVariants(const Dispatch &dispatch, Arith arith, const Inputs &inputs, const Rows<float> *residual,
                 const std::vector<void *> &weights, const Rows<float> &expected) {
  for (const Variant &variant : dispatch.variants)
    for (int64_t rows : kRowCounts) {
      Rows<float> plain = firstRows(inputs.plain, rows);
      Rows<uint16_t> rounded = firstRows(inputs.rounded, rows);
      CodedRows<int8_t> bytes = inputs.bytes.first(rows);
      CodedRows<int16_t> words = inputs.words.first(rows);
      std::vector<void *> arguments;
      switch (arith) {
      case Arith::F32: arguments = {plain.data()}; break;
      case Arith::EvenOdd:
      case Arith::Pairs: arguments = {rounded.data()}; break;
      case Arith::Q8: arguments = {bytes.codes.data(), bytes.scales.data()}; break;
      case Arith::Q16: arguments = {words.codes.data(), words.scales.data()}; break;
      }
      Rows<float> added = firstRows(residual ? *residual : expected, rows);
      if (residual)
        arguments.push_back(added.data());
      arguments.insert(arguments.end(), weights.begin(), weights.end());
      Rows<float> got = resultRows<float>(rows, expected.cols);
      arguments.push_back(got.data());
      variant.launch(arguments, rows);
      expectBits(got, expected, variant.kernel);
      if (testing::Test::HasFatalFailure())
        return;
    }
}

void testLinear(Arith arith, DType storage, const std::vector<Shape> &shapes) {
  ModuleText text;
  std::vector<Weight> weights, biases;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &s = shapes[i];
    std::string id = std::to_string(i);
    weights.emplace_back("w" + id, storage, s.n, s.k, 100 + i);
    biases.emplace_back("b" + id, DType::F32, 0, s.n, 200 + i);
    text.weights += weights.back().declaration() + biases.back().declaration();
    std::string types, operands = inputOperands(text, arith, s.k, types);
    if (s.residual) {
      operands += " residual " + text.argument(tensorType(s.n));
      types += ", " + tensorType(s.n);
    }
    text.op("%y" + id, "lm.linear " + operands + ", @w" + id + (s.bias ? " bias @b" + id : "") + " {arith = #lm.arith<" +
                           ::text(arith) + ">} : (" + types + ") -> " + tensorType(s.n), "y" + id);
  }
  Kernels kernels(text.str());
  FlushDenormals flush;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &s = shapes[i];
    SCOPED_TRACE(testing::Message() << "K " << s.k << " N " << s.n << " bias " << s.bias << " residual " << s.residual);
    Inputs inputs(s.k);
    Rows<float> residual = randomRows(kMaxRows, s.n, 12), expected(kMaxRows, s.n);
    for (int64_t r = 0; r < kMaxRows; ++r)
      for (int64_t n = 0; n < s.n; ++n) {
        float y = inputs.product(arith, weights[i], r, n) * weights[i].scale(n);
        if (s.bias)
          y = y + biases[i].values[n];
        if (s.residual)
          y = y + residual.at(r, n);
        expected.at(r, n) = y;
      }
    std::vector<void *> packed{weights[i].packed.data()};
    if (s.bias)
      packed.push_back(biases[i].packed.data());
    runVariants(kernels["y" + std::to_string(i)], arith, inputs, s.residual ? &residual : nullptr, packed, expected);
  }
}

/// shapes: n is the number of result columns.
void testGated(Arith arith, DType storage, const std::vector<Shape> &shapes) {
  ModuleText text;
  std::vector<Weight> weights;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &s = shapes[i];
    std::string id = std::to_string(i);
    weights.emplace_back("w" + id, storage, 2 * s.n, s.k, 300 + i, 16);
    text.weights += weights.back().declaration();
    std::string types, operands = inputOperands(text, arith, s.k, types);
    text.op("%y" + id, "lm.gated_linear silu " + operands + ", @w" + id + " {arith = #lm.arith<" + ::text(arith) + ">} : (" +
                           types + ") -> " + tensorType(s.n), "y" + id);
  }
  Kernels kernels(text.str());
  FlushDenormals flush;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape &s = shapes[i];
    SCOPED_TRACE(testing::Message() << "K " << s.k << " N " << s.n);
    Inputs inputs(s.k);
    Rows<float> expected(kMaxRows, s.n);
    for (int64_t r = 0; r < kMaxRows; ++r)
      for (int64_t n = 0; n < s.n; ++n)
        expected.at(r, n) = modelGated(inputs.product(arith, weights[i], r, n) * weights[i].scale(n),
                                       inputs.product(arith, weights[i], r, s.n + n) * weights[i].scale(s.n + n));
    runVariants(kernels["y" + std::to_string(i)], arith, inputs, nullptr, {weights[i].packed.data()}, expected);
  }
}

// K, N, bias, residual: each value of K and N, each choice of the others.
const std::vector<Shape> kShapes = {{32, 16, false, false}, {160, 100, true, false}, {160, 48, false, true}, {96, 80, true, true}};
const std::vector<Shape> kFewShapes = {{96, 48, true, true}, {160, 16, false, false}}; // f32 on codes is for debugging

TEST(Linear, Q4_0InQ8G32) { testLinear(Arith::Q8, DType::Q4_0, kShapes); }
TEST(Linear, Q4_0InQ16G32) { testLinear(Arith::Q16, DType::Q4_0, kShapes); }
TEST(Linear, Q4_1InQ8G32) { testLinear(Arith::Q8, DType::Q4_1, kShapes); }
TEST(Linear, Q4_1InQ16G32) { testLinear(Arith::Q16, DType::Q4_1, kShapes); }
TEST(Linear, Q8_0InQ8G32) { testLinear(Arith::Q8, DType::Q8_0, kShapes); }
TEST(Linear, Q8_0InQ16G32) { testLinear(Arith::Q16, DType::Q8_0, kShapes); }
TEST(Linear, BF16InEvenOdd32) {
  forEveryIsa([] { testLinear(Arith::EvenOdd, DType::BF16, kShapes); });
}
TEST(Linear, Q4_1InEvenOdd32) {
  forEveryIsa([] { testLinear(Arith::EvenOdd, DType::Q4_1, kShapes); });
}
TEST(Linear, BF16InPairs) {
  forEveryIsa([] { testLinear(Arith::Pairs, DType::BF16, kShapes); });
}
TEST(Linear, E4M3InPairs) {
  forEveryIsa([] { testLinear(Arith::Pairs, DType::E4M3, kShapes); });
}
TEST(Linear, E4M3InF32) { testLinear(Arith::F32, DType::E4M3, kFewShapes); }
TEST(Linear, F32InF32) { testLinear(Arith::F32, DType::F32, {{40, 80, false, true}, {96, 100, true, false}}); }
TEST(Linear, F16InF32) { testLinear(Arith::F32, DType::F16, {{40, 80, true, true}, {96, 16, false, false}}); }
TEST(Linear, BF16InF32) { testLinear(Arith::F32, DType::BF16, {{40, 16, true, true}, {96, 48, false, false}}); }
TEST(Linear, Q4_0InF32) { testLinear(Arith::F32, DType::Q4_0, kFewShapes); }
TEST(Linear, Q4_1InF32) { testLinear(Arith::F32, DType::Q4_1, kFewShapes); }
TEST(Linear, Q8_0InF32) { testLinear(Arith::F32, DType::Q8_0, kFewShapes); }

// Block formats of more than the three above: the first has a residual and a bias, the second an odd number of 32 k or several blocks.
struct Blocks : testing::TestWithParam<DType> {
  int64_t k(int64_t of32, int64_t of256) const { return blockSize(GetParam()) == 32 ? of32 : of256; }
};
TEST_P(Blocks, InQ8G32) { testLinear(Arith::Q8, GetParam(), {{k(96, 256), 80, true, true}, {k(160, 512), 16, false, false}}); }
TEST_P(Blocks, InQ16G32) { testLinear(Arith::Q16, GetParam(), {{k(96, 256), 80, true, true}, {k(160, 512), 16, false, false}}); }
TEST_P(Blocks, InF32) { testLinear(Arith::F32, GetParam(), {{k(96, 256), 48, true, true}}); }
TEST_P(Blocks, InEvenOdd32) {
  forEveryIsa([&] { testLinear(Arith::EvenOdd, GetParam(), {{k(160, 256), 80, true, true}}); });
}
TEST_P(Blocks, GatedInQ16G32) { testGated(Arith::Q16, GetParam(), {{k(160, 256), 48, false, false}}); }
INSTANTIATE_TEST_SUITE_P(Formats, Blocks,
                         testing::Values(DType::Q5_0, DType::Q5_1, DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K,
                                         DType::IQ4_NL, DType::IQ4_XS),
                         [](const auto &info) { return std::string(toString(info.param)); });

// An odd number of panel pairs leaves padding in the result.
const std::vector<Shape> kGatedShapes = {{160, 48, false, false}, {32, 32, false, false}};

TEST(GatedLinear, Q4_0InQ8G32) { testGated(Arith::Q8, DType::Q4_0, {kGatedShapes[0]}); }
TEST(GatedLinear, Q4_0InQ16G32) { testGated(Arith::Q16, DType::Q4_0, kGatedShapes); }
TEST(GatedLinear, Q4_1InQ8G32) { testGated(Arith::Q8, DType::Q4_1, {kGatedShapes[0]}); }
TEST(GatedLinear, Q4_1InQ16G32) { testGated(Arith::Q16, DType::Q4_1, kGatedShapes); }
TEST(GatedLinear, Q8_0InQ8G32) { testGated(Arith::Q8, DType::Q8_0, {kGatedShapes[0]}); }
TEST(GatedLinear, Q8_0InQ16G32) { testGated(Arith::Q16, DType::Q8_0, kGatedShapes); }
TEST(GatedLinear, BF16InEvenOdd32) {
  forEveryIsa([] { testGated(Arith::EvenOdd, DType::BF16, kGatedShapes); });
}
TEST(GatedLinear, Q4_0InEvenOdd32) { // an odd number of groups in the last record
  forEveryIsa([] { testGated(Arith::EvenOdd, DType::Q4_0, kGatedShapes); });
}
TEST(GatedLinear, BF16InPairs) {
  forEveryIsa([] { testGated(Arith::Pairs, DType::BF16, kGatedShapes); });
}
TEST(GatedLinear, E4M3InPairs) {
  forEveryIsa([] { testGated(Arith::Pairs, DType::E4M3, kGatedShapes); });
}
TEST(GatedLinear, E4M3InF32) { testGated(Arith::F32, DType::E4M3, {{96, 16, false, false}}); }
TEST(GatedLinear, F32InF32) { testGated(Arith::F32, DType::F32, {{40, 16, false, false}}); }
TEST(GatedLinear, F16InF32) { testGated(Arith::F32, DType::F16, {{40, 16, false, false}}); }
TEST(GatedLinear, BF16InF32) { testGated(Arith::F32, DType::BF16, {{40, 16, false, false}}); }
TEST(GatedLinear, Q4_0InF32) { testGated(Arith::F32, DType::Q4_0, {{96, 16, false, false}}); }
TEST(GatedLinear, Q4_1InF32) { testGated(Arith::F32, DType::Q4_1, {{96, 16, false, false}}); }
TEST(GatedLinear, Q8_0InF32) { testGated(Arith::F32, DType::Q8_0, {{96, 16, false, false}}); }

} // namespace
