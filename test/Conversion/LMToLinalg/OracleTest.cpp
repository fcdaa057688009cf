//===- OracleTest.cpp - the oracle's kernels against plain loops ----------===//
//
// Inputs come from lm.embedding of ids 0, 1, ..., so that the input of the op under test is a weight table. Shapes are no
// multiples of the vector width, the row block or the padding.
//
//===----------------------------------------------------------------------===//
#include "Oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

using namespace llmc::test;

namespace {

std::string weight(const std::string &name, int64_t rows, int64_t cols, int64_t interleave = 0) {
  int64_t parts = interleave ? 2 : 1;
  std::string text = "lm.weight @" + name + " [" + std::to_string(rows) + (cols ? ", " + std::to_string(cols) : "") + "] f32 {";
  if (interleave)
    text += "interleave = " + std::to_string(interleave) + ", ";
  text += "sources = [";
  for (int64_t i = 0; i < parts; ++i)
    text += std::string(i ? ", " : "") + "#lm.span<file = 0, offset = 0, bytes = " +
            std::to_string(rows / parts * (cols ? cols : 1) * 4) + ", rows = " + std::to_string(rows / parts) + ">";
  return text + "]}\n";
}

std::string tensor(int64_t cols) { return "tensor<?x" + std::to_string(cols) + "xf32>"; }

std::string embedding(const std::string &name, int64_t cols) {
  return "%" + name + " = lm.embedding %ids, @" + name + " : tensor<?xi32> -> " + tensor(cols) + " loc(\"" + name + "\")\n";
}

std::string module(const std::string &weights, const std::string &body, const std::string &result, int64_t cols,
                   const std::string &kv = "") {
  return "module {\n" + weights + "func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>" +
         (kv.empty() ? "" : ", %kv: " + kv) + ") -> " + tensor(cols) + " {\n" + body + "return %" + result + " : " + tensor(cols) +
         "\n}\n}\n";
}

/// `tokens` tokens with ids and positions 0, 1, ...; logits of every third one.
Step makeStep(int64_t tokens) {
  Step step;
  step.ids.resize(tokens);
  std::iota(step.ids.begin(), step.ids.end(), 0);
  step.positions = step.ids;
  for (int32_t i = 1; i < tokens; i += 3)
    step.logitsRows.push_back(i);
  return step;
}

/// Largest difference relative to the largest expected magnitude.
void expectNear(const Matrix &got, int64_t rows, int64_t cols, const std::function<double(int64_t, int64_t)> &expected,
                double tolerance = 1e-6) {
  ASSERT_EQ(got.rows, rows);
  ASSERT_EQ(got.cols, cols);
  double magnitude = 0, difference = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      double e = expected(r, c), d = std::abs(got.at(r, c) - e);
      ASSERT_TRUE(std::isfinite(got.at(r, c))) << "row " << r << " column " << c;
      magnitude = std::max(magnitude, std::abs(e));
      difference = std::max(difference, d);
    }
  EXPECT_LE(difference, tolerance * magnitude);
}

double dot(const Matrix &a, int64_t row, const Matrix &b, int64_t other) {
  double sum = 0;
  for (int64_t k = 0; k < a.cols; ++k)
    sum += double(a.at(row, k)) * b.at(other, k);
  return sum;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST(Oracle, EmbeddingPicksRows) {
  Oracle oracle(module(weight("x", 7, 100), embedding("x", 100), "x", 100));
  Matrix x = randomMatrix(7, 100, 1);
  Step step{{6, 0, 3, 3, 6}, {0, 1, 2, 3, 4}, {}};
  expectNear(oracle.run(step, {{"x", x}})["x"], 5, 100, [&](int64_t t, int64_t c) { return x.at(step.ids[t], c); }, 0);
}

TEST(Oracle, RMSNorm) {
  Oracle oracle(module(weight("x", 11, 100) + weight("w", 100, 0),
                       embedding("x", 100) + "%y = lm.rms_norm %x, @w {eps = 1.0e-2} : (tensor<?x100xf32>) -> tensor<?x100xf32> loc(\"y\")\n", "y", 100));
  Matrix x = randomMatrix(11, 100, 2, 0.1f), w = randomMatrix(1, 100, 3);
  expectNear(oracle.run(makeStep(11), {{"x", x}, {"w", w}})["y"], 11, 100, [&](int64_t t, int64_t c) {
    return x.at(t, c) / std::sqrt(dot(x, t, x, t) / 100 + 1e-2) * w.at(0, c);
  });
}

TEST(Oracle, LinearWithBiasAndResidual) {
  Oracle oracle(module(weight("x", 21, 100) + weight("r", 21, 50) + weight("w", 50, 100) + weight("b", 50, 0),
                       embedding("x", 100) + embedding("r", 50) +
                           "%y = lm.linear %x, @w : (tensor<?x100xf32>) -> tensor<?x50xf32> loc(\"y\")\n"
                           "%z = lm.linear %x residual %r, @w bias @b : (tensor<?x100xf32>, tensor<?x50xf32>) -> tensor<?x50xf32> loc(\"z\")\n", "z", 50));
  Matrix x = randomMatrix(21, 100, 4), r = randomMatrix(21, 50, 5), w = randomMatrix(50, 100, 6), b = randomMatrix(1, 50, 7);
  auto values = oracle.run(makeStep(21), {{"x", x}, {"r", r}, {"w", w}, {"b", b}}, /*unitsPerCall=*/1);
  expectNear(values["y"], 21, 50, [&](int64_t t, int64_t n) { return dot(x, t, w, n); });
  expectNear(values["z"], 21, 50, [&](int64_t t, int64_t n) { return dot(x, t, w, n) + b.at(0, n) + r.at(t, n); });
}

TEST(Oracle, LinearRowsDoNotDependOnTheirBlock) {
  Oracle oracle(module(weight("x", 21, 100) + weight("w", 50, 100),
                       embedding("x", 100) + "%y = lm.linear %x, @w : (tensor<?x100xf32>) -> tensor<?x50xf32> loc(\"y\")\n", "y", 50));
  Matrix x = randomMatrix(21, 100, 4), w = randomMatrix(50, 100, 6);
  Matrix whole = oracle.run(makeStep(21), {{"x", x}, {"w", w}})["y"];
  Matrix prefix = oracle.run(makeStep(10), {{"x", x}, {"w", w}})["y"];
  for (size_t i = 0; i < prefix.data.size(); ++i)
    ASSERT_EQ(prefix.data[i], whole.data[i]);
}

TEST(Oracle, GatedLinearInterleavedBySixteen) {
  Oracle oracle(module(weight("x", 13, 100) + weight("w", 96, 100, 16),
                       embedding("x", 100) + "%y = lm.gated_linear silu %x, @w : (tensor<?x100xf32>) -> tensor<?x48xf32> loc(\"y\")\n", "y", 48));
  Matrix x = randomMatrix(13, 100, 8), w = randomMatrix(96, 100, 9, 0.3f);
  expectNear(oracle.run(makeStep(13), {{"x", x}, {"w", w}})["y"], 13, 48, [&](int64_t t, int64_t n) {
    int64_t gate = n / 16 * 32 + n % 16;
    return silu(dot(x, t, w, gate)) * dot(x, t, w, gate + 16);
  });
}

TEST(Oracle, GatedActivationOverTheWholeRange) {
  Oracle oracle(module(weight("g", 9, 100) + weight("u", 9, 100),
                       embedding("g", 100) + embedding("u", 100) + "%y = lm.gated_activation silu %g, %u : tensor<?x100xf32> loc(\"y\")\n", "y", 100));
  Matrix g = randomMatrix(9, 100, 10, 40.0f), u(9, 100);
  for (float &value : u.data)
    value = 1;
  Matrix y = oracle.run(makeStep(9), {{"g", g}, {"u", u}})["y"];
  for (size_t i = 0; i < y.data.size(); ++i)
    ASSERT_NEAR(y.data[i], silu(g.data[i]), 4e-7 * std::abs(silu(g.data[i])) + 1e-36) << g.data[i];
}

TEST(Oracle, AddOfOneValueToItself) {
  Oracle oracle(module(weight("x", 5, 33), embedding("x", 33) + "%y = lm.add %x, %x : tensor<?x33xf32> loc(\"y\")\n", "y", 33));
  Matrix x = randomMatrix(5, 33, 11);
  expectNear(oracle.run(makeStep(5), {{"x", x}})["y"], 5, 33, [&](int64_t t, int64_t c) { return 2 * x.at(t, c); }, 0);
}

TEST(Oracle, GatherRows) {
  Oracle oracle(module(weight("x", 10, 100), embedding("x", 100) + "%y = lm.gather_rows %x, %rows : tensor<?x100xf32>, tensor<?xi32> -> tensor<?x100xf32> loc(\"y\")\n", "y", 100));
  Matrix x = randomMatrix(10, 100, 12);
  Step step = makeStep(10);
  expectNear(oracle.run(step, {{"x", x}})["y"], step.logitsRows.size(), 100,
             [&](int64_t i, int64_t c) { return x.at(step.logitsRows[i], c); }, 0);
}

const std::string table = "%t = lm.rope_table %positions, @f : tensor<?xi32> -> tensor<?x24xf32> loc(\"t\")\n";

Matrix frequencies(int64_t pairs) {
  Matrix f(1, pairs);
  for (int64_t i = 0; i < pairs; ++i)
    f.at(0, i) = std::pow(10000.0f, -float(i) / pairs);
  return f;
}

double angle(int32_t position, const Matrix &f, int64_t i) { return float(position) * f.at(0, i); }

TEST(Oracle, RopeTableIsAccurateAtLongPositions) {
  Oracle oracle(module(weight("f", 1, 12), table, "t", 24));
  Matrix f = frequencies(12);
  Step step{{0, 0, 0, 0, 0, 0}, {0, 1, 1000, 8191, 65535, 1000003}, {}};
  Matrix t = oracle.run(step, {{"f", f}})["t"];
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t i = 0; i < 12; ++i) { // correctly rounded up to a unit in the last place
      ASSERT_NEAR(t.at(r, i), std::cos(angle(step.positions[r], f, i)), 6e-8) << step.positions[r];
      ASSERT_NEAR(t.at(r, 12 + i), std::sin(angle(step.positions[r], f, i)), 6e-8) << step.positions[r];
    }
}

/// Column c of `x` after rotation by `position`, heads of `headDim` columns starting at `first`.
double rotated(const Matrix &x, int64_t t, int64_t c, int64_t first, int64_t headDim, const Matrix &f, int32_t position) {
  int64_t i = c % headDim, head = first + c - i, pairs = f.cols;
  if (i >= 2 * pairs)
    return x.at(t, head + i);
  double a = angle(position, f, i % pairs);
  return i < pairs ? x.at(t, head + i) * std::cos(a) - x.at(t, head + pairs + i) * std::sin(a)
                   : x.at(t, head + i) * std::cos(a) + x.at(t, head + i - pairs) * std::sin(a);
}

TEST(Oracle, RopeLeavesTheRestOfAHead) {
  Oracle oracle(module(weight("f", 1, 12) + weight("x", 9, 96),
                       table + embedding("x", 96) + "%y = lm.rope %x, %t {head_dim = 32} : tensor<?x96xf32>, tensor<?x24xf32> loc(\"y\")\n", "y", 96));
  Matrix f = frequencies(12), x = randomMatrix(9, 96, 13);
  Step step = makeStep(9);
  step.positions.back() = 4321;
  expectNear(oracle.run(step, {{"f", f}, {"x", x}})["y"], 9, 96,
             [&](int64_t t, int64_t c) { return rotated(x, t, c, 0, 32, f, step.positions[t]); });
}

/// Attention of q row t, column c over rows of k and v, in f64.
double attend(const Matrix &q, const Matrix &k, const Matrix &v, int64_t t, int64_t c, int64_t headDim, double scale, int64_t window) {
  int64_t head = c / headDim, kvHead = head / (q.cols / k.cols);
  std::vector<double> scores;
  int64_t begin = window ? std::max<int64_t>(0, t + 1 - window) : 0;
  for (int64_t j = begin; j <= t; ++j) {
    double s = 0;
    for (int64_t d = 0; d < headDim; ++d)
      s += double(q.at(t, head * headDim + d)) * k.at(j, kvHead * headDim + d);
    scores.push_back(s * scale);
  }
  double maximum = *std::max_element(scores.begin(), scores.end()), sum = 0, result = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    double p = std::exp(scores[j] - maximum);
    sum += p;
    result += p * v.at(begin + j, kvHead * headDim + c % headDim);
  }
  return result / sum;
}

const std::string kv = "!lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>";

class OracleAttention : public testing::TestWithParam<int64_t> {};

TEST_P(OracleAttention, GroupedQueriesOverManyTiles) {
  std::string body = embedding("q", 128) + embedding("k", 64) + embedding("v", 64) + "%c = lm.kv_append %kv, %k, %v : " + kv +
                     ", tensor<?x64xf32>, tensor<?x64xf32> loc(\"kv\")\n%y = lm.attention %q, %c {head_dim = 32, scale = 0.2, window = " +
                     std::to_string(GetParam()) + "} : (tensor<?x128xf32>, " + kv + ") -> tensor<?x128xf32> loc(\"y\")\n";
  Oracle oracle(module(weight("q", 150, 128) + weight("k", 150, 64) + weight("v", 150, 64), body, "y", 128, kv));
  // Scores up to about 100: the running maximum moves often.
  Matrix q = randomMatrix(150, 128, 14, 6.0f), k = randomMatrix(150, 64, 15, 3.0f), v = randomMatrix(150, 64, 16);
  expectNear(oracle.run(makeStep(150), {{"q", q}, {"k", k}, {"v", v}})["y"], 150, 128,
             [&](int64_t t, int64_t c) { return attend(q, k, v, t, c, 32, 0.2, GetParam()); }, 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Windows, OracleAttention, testing::Values(0, 1, 5, 70));

TEST(Oracle, RopeAppendSplitsTheJointProjection) {
  std::string body = table + embedding("x", 256) + "%q, %c = lm.rope_append %x, %t, %kv {head_dim = 32} : (tensor<?x256xf32>, tensor<?x24xf32>, " +
                     kv + ") -> (tensor<?x128xf32>, " + kv + ") loc(\"qr\")\n%y = lm.attention %q, %c {head_dim = 32, scale = 0.2} : (tensor<?x128xf32>, " +
                     kv + ") -> tensor<?x128xf32> loc(\"y\")\n";
  Oracle oracle(module(weight("f", 1, 12) + weight("x", 20, 256), body, "y", 128, kv));
  Matrix f = frequencies(12), x = randomMatrix(20, 256, 17);
  auto values = oracle.run(makeStep(20), {{"f", f}, {"x", x}});
  expectNear(values["qr"], 20, 128, [&](int64_t t, int64_t c) { return rotated(x, t, c, 0, 32, f, t); });
  expectNear(values["qr.k"], 20, 64, [&](int64_t t, int64_t c) { return rotated(x, t, c, 128, 32, f, t); });
  expectNear(values["qr.v"], 20, 64, [&](int64_t t, int64_t c) { return x.at(t, 192 + c); }, 0);
  expectNear(values["y"], 20, 128,
             [&](int64_t t, int64_t c) { return attend(values["qr"], values["qr.k"], values["qr.v"], t, c, 32, 0.2, 0); }, 1e-5);
}

} // namespace
