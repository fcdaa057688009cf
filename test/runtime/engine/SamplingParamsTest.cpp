#include "runtime/engine/Sampler.h"
#include "runtime/engine/SamplingParams.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace llmc;

namespace {

/// "FIELD: expected EXPECTED, got GOT", or "" if all is well.
template <typename Change> std::string problem(Change change, uint64_t vocab = 100) {
  SamplingParams p;
  change(p);
  const auto bad = check(p, vocab);
  return bad ? bad->field + ": expected " + bad->expected + ", got " + bad->got : "";
}

TEST(SamplingParams, DefaultsAreGood) { EXPECT_EQ(problem([](SamplingParams &) {}), ""); }

TEST(SamplingParams, Temperature) {
  for (double t : {0.0, 1e-9, 1e-45, 5.0})
    EXPECT_EQ(problem([&](SamplingParams &p) { p.temperature = t; }), "");
  EXPECT_EQ(problem([](SamplingParams &p) { p.temperature = -0.5; }), "temperature: expected a number from 0 to 1e+06, got -0.5");
  EXPECT_EQ(problem([](SamplingParams &p) { p.temperature = std::nan(""); }), "temperature: expected a number from 0 to 1e+06, got nan");
}

TEST(SamplingParams, Probabilities) {
  for (auto [name, field] : {std::pair("top_p", &SamplingParams::topP), {"min_p", &SamplingParams::minP}, {"typical_p", &SamplingParams::typicalP}}) {
    for (double good : {0.0, 0.5, 1.0})
      EXPECT_EQ(problem([&](SamplingParams &p) { p.*field = good; }), "") << name;
    for (auto [value, text] : {std::pair(-0.1, "-0.1"), {1.5, "1.5"}, {2.0, "2"}, {std::nan(""), "nan"}})
      EXPECT_EQ(problem([&, v = value](SamplingParams &p) { p.*field = v; }), std::string(name) + ": expected a number from 0 to 1, got " + text);
  }
}

TEST(SamplingParams, TopKTakesAnything) {
  for (int64_t k : {INT64_MIN, int64_t(-1), int64_t(0), int64_t(1000000000), INT64_MAX})
    EXPECT_EQ(problem([&](SamplingParams &p) { p.topK = k; }), "");
  SamplingParams p;
  p.topK = INT64_MIN;
  EXPECT_EQ(samplerOf(p).top_k, 0);
  p.topK = INT64_MAX;
  EXPECT_EQ(samplerOf(p).top_k, INT32_MAX);
}

TEST(SamplingParams, Penalties) {
  EXPECT_EQ(problem([](SamplingParams &p) { p.repetitionPenalty = 0; }), "repetition_penalty: expected a number from 0.001 to 1000, got 0");
  EXPECT_NE(problem([](SamplingParams &p) { p.presencePenalty = 101; }), "");
  EXPECT_NE(problem([](SamplingParams &p) { p.frequencyPenalty = -101; }), "");
}

TEST(SamplingParams, Logprobs) {
  for (int64_t n : {-1, 0, 5, 20})
    EXPECT_EQ(problem([&](SamplingParams &p) { p.logprobs = n; }), "");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logprobs = 21; }), "logprobs: expected a whole number from 0 to 20, got 21");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logprobs = -2; }), "logprobs: expected a whole number from 0 to 20, got -2");
}

TEST(SamplingParams, LogitBias) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(problem([&](SamplingParams &p) { p.logitBias = {{0, -100}, {99, 100}, {5, -inf}}; }), "");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logitBias = {{100, 1}}; }), "logit_bias: expected token ids below 100, got 100");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logitBias = {{-1, 1}}; }), "logit_bias: expected token ids below 100, got -1");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logitBias = {{INT64_MAX, 1}}; }, 0), "logit_bias: expected token ids, got 9223372036854775807");
  EXPECT_EQ(problem([](SamplingParams &p) { p.logitBias = {{1, 1}, {1, 2}}; }), "logit_bias: expected each token once, got token 1 twice");
  for (double value : {100.5, -101.0, inf, std::nan("")})
    EXPECT_NE(problem([&](SamplingParams &p) { p.logitBias = {{1, value}}; }).find("logit_bias: expected numbers from -100 to 100, or -inf"), std::string::npos);
  EXPECT_NE(problem([](SamplingParams &p) {
              for (int i = 0; i < 1025; ++i)
                p.logitBias.emplace_back(i, 0);
            }, 5000),
            "");
}

TEST(SamplingParams, Stops) {
  EXPECT_EQ(problem([](SamplingParams &p) { p.stop.assign(16, "x"); }), "");
  EXPECT_EQ(problem([](SamplingParams &p) { p.stop.assign(17, "x"); }), "stop: expected at most 16 strings, got 17");
  EXPECT_EQ(problem([](SamplingParams &p) { p.stop = {"a", ""}; }), "stop: expected strings of 1 to 1024 bytes, got an empty string");
  EXPECT_EQ(problem([](SamplingParams &p) { p.stop = {std::string(1025, 'a')}; }), "stop: expected strings of 1 to 1024 bytes, got one of 1025");
  EXPECT_EQ(problem([](SamplingParams &p) { p.stopIds = {7, 100}; }), "stop_token_ids: expected token ids below 100, got 100");
}

TEST(SamplingParams, Lengths) {
  for (uint64_t n : {uint64_t(0), uint64_t(1), uint64_t(1) << 31, uint64_t(1) << 63})
    EXPECT_EQ(problem([&](SamplingParams &p) { p.maxTokens = n; }), "");
  EXPECT_EQ(problem([](SamplingParams &p) { p.maxTokens = 3, p.minTokens = 4; }), "min_tokens: expected at most max_tokens, 3, got 4");
}

TEST(SamplingParams, SamplerSaysTheSame) {
  SamplingParams p;
  p.temperature = 1e-45;
  EXPECT_TRUE(isGreedy(samplerOf(p)));
  EXPECT_EQ(samplerOf(p).logprobs, 0u);
  p.logprobs = 0;
  EXPECT_EQ(samplerOf(p).logprobs, 1u);
}

} // namespace
