#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <numeric>
#include <random>

using namespace llmc;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

int32_t sample(std::vector<float> logits, const llmc_sampler_v1 &s) {
  Sampler sampler;
  return sampler.sample(logits, s);
}

llmc_sampler_v1 random(float temperature = 1) {
  llmc_sampler_v1 s = defaultSampler();
  s.temperature = temperature;
  return s;
}

std::map<int32_t, int> histogram(const std::vector<float> &logits, llmc_sampler_v1 s, int draws = 4000) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    s.position = uint64_t(i);
    ++counts[sample(logits, s)];
  }
  return counts;
}

// Known answers of Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using A = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (A{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (A{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (A{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsInRangeAndEven) {
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double u = philoxUniform(3, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

TEST(Sampler, GreedyTakesTheLowestIdOnTiesWhateverTheSeed) {
  for (float temperature : {0.0f, 1e-9f, 1e-45f, -0.5f, 1e-6f, std::nanf("")})
    for (uint64_t seed : {0ull, 1ull, 99ull}) {
      llmc_sampler_v1 s = random(temperature);
      s.seed = seed;
      EXPECT_EQ(sample({1, 5, 2, 5}, s), 1);
      EXPECT_EQ(sample({-kInf < 0 ? -3.f : 0, -3, -3}, s), 0);
    }
}

TEST(Sampler, EdgeValuesOfTopK) {
  const std::vector<float> logits = {1, 1, 1, 1};
  for (int32_t k : {-1, 0, 4, 1000000000}) {
    llmc_sampler_v1 s = random();
    s.top_k = k;
    EXPECT_EQ(histogram(logits, s).size(), 4u) << k;
  }
  llmc_sampler_v1 s = random();
  s.top_k = 1;
  EXPECT_EQ(histogram(logits, s).size(), 1u);
  s.top_k = 2;
  EXPECT_EQ(histogram(logits, s), (std::map<int32_t, int>{{0, histogram(logits, s)[0]}, {1, histogram(logits, s)[1]}})) << "ties by id";
}

TEST(Sampler, EdgeValuesOfTopP) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto kept = [&](float p) {
    llmc_sampler_v1 s = random();
    s.top_p = p;
    return histogram(logits, s).size();
  };
  EXPECT_EQ(kept(0), 1u);
  EXPECT_EQ(kept(-0.1f), 1u);
  EXPECT_EQ(kept(0.49f), 1u);
  EXPECT_EQ(kept(0.6f), 2u);
  EXPECT_EQ(kept(1), 3u);
  EXPECT_EQ(kept(1.5f), 3u);
}

TEST(Sampler, EdgeValuesOfMinP) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  auto kept = [&](float p) {
    llmc_sampler_v1 s = random();
    s.min_p = p;
    return histogram(logits, s).size();
  };
  EXPECT_EQ(kept(0), 3u);
  EXPECT_EQ(kept(0.5f), 2u);
  EXPECT_EQ(kept(1), 1u);
  EXPECT_EQ(kept(2), 1u) << "the best survives";
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  auto counts = histogram({std::log(0.5f), std::log(0.3f), std::log(0.2f)}, random(), 20000);
  EXPECT_NEAR(counts[0] / 20000.0, 0.5, 0.015);
  EXPECT_NEAR(counts[1] / 20000.0, 0.3, 0.015);
  EXPECT_NEAR(counts[2] / 20000.0, 0.2, 0.015);
  counts = histogram({0, std::log(2.f)}, random(0.5f), 20000); // probabilities 1 : 4
  EXPECT_NEAR(counts[1] / 20000.0, 0.8, 0.015);
}

TEST(Sampler, HugeTemperatureIsUniformNotNan) {
  auto counts = histogram({-50, 50, 0}, random(1e6f), 9000);
  for (int32_t id : {0, 1, 2})
    EXPECT_NEAR(counts[id] / 9000.0, 1 / 3.0, 0.03);
}

TEST(Sampler, SameSeedSameToken) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = std::sin(float(i));
  llmc_sampler_v1 s = random();
  s.seed = 7;
  s.position = 3;
  const int32_t first = sample(logits, s);
  EXPECT_EQ(sample(logits, s), first);
  int same = 0;
  for (uint64_t seed = 100; seed < 120; ++seed) {
    s.seed = seed;
    same += sample(logits, s) == first;
  }
  EXPECT_LT(same, 3);
}

TEST(Sampler, BadRowsAreRecognised) {
  const float nan = std::nanf("");
  for (float temperature : {0.0f, 1.0f})
    for (const std::vector<float> &row : {std::vector<float>{1, nan, 2}, {nan, nan}, {1, kInf}, {-kInf, -kInf}, {0, -kInf}, {}})
      EXPECT_EQ(sample(row, random(temperature)), Sampler::kBadLogits);
}

TEST(Sampler, MaskAndBias) {
  const uint32_t mask = 0b1010;
  for (float temperature : {0.0f, 1.0f}) {
    llmc_sampler_v1 s = random(temperature);
    s.token_mask = &mask;
    for (auto [id, count] : histogram({9, 1, 9, 2}, s, 200))
      EXPECT_TRUE(id == 1 || id == 3);
    const uint32_t none = 0;
    s.token_mask = &none;
    EXPECT_EQ(sample({1, 2}, s), Sampler::kBadLogits);
  }
  llmc_sampler_v1 s = defaultSampler();
  const int32_t ids[] = {0, 77, -5};
  const float values[] = {10, 1, 1};
  s.bias_count = 3;
  s.bias_ids = ids;
  s.bias_values = values;
  EXPECT_EQ(sample({1, 2, 3}, s), 0) << "ids outside the vocabulary are ignored";
}

TEST(Sampler, Penalties) {
  const int32_t history[] = {2, 2, 1, 400};
  llmc_sampler_v1 s = defaultSampler();
  s.history = history;
  s.history_length = 4;
  s.repetition_penalty = 2;
  EXPECT_EQ(sample({1.6f, -1, 3}, s), 0) << "3 / 2 < 1.6";
  s.repetition_penalty = 1;
  s.frequency_penalty = 0.5f;
  EXPECT_EQ(sample({1.9f, 2, 2.95f}, s), 2) << "2.95 - 1 > 1.9";
  s.frequency_penalty = 0.6f;
  EXPECT_EQ(sample({1.9f, 2, 2.95f}, s), 0);
  s.frequency_penalty = 0;
  s.presence_penalty = 1;
  EXPECT_EQ(sample({1.5f, 2.6f, 2.7f}, s), 2);
}

TEST(Sampler, LogProbabilitiesAreFinite) {
  Sampler sampler;
  std::vector<float> logits = {200, 0, 100};
  llmc_sampler_v1 s = defaultSampler();
  s.logprobs = 1 + 5;
  std::vector<TokenProbability> got;
  EXPECT_EQ(sampler.sample(logits, s, &got), 0);
  ASSERT_EQ(got.size(), 4u) << "the chosen one and the whole vocabulary";
  EXPECT_EQ(got[1].id, 0);
  EXPECT_EQ(got[2].id, 2);
  EXPECT_NEAR(got[2].logProbability, -100, 1e-4);
  for (const TokenProbability &p : got)
    EXPECT_TRUE(std::isfinite(p.logProbability));
}

TEST(Sampler, LogProbabilitiesAreOfTheModelsOwnDistribution) {
  const std::vector<float> logits = {3, 1, 2, 0};
  double sum = 0;
  for (float x : logits)
    sum += std::exp(x);
  const uint32_t mask = 0b1010;
  const int32_t ids[] = {3};
  const float values[] = {50};
  for (float temperature : {0.0f, 0.01f, 2.0f})
    for (int change = 0; change < 3; ++change) {
      llmc_sampler_v1 s = random(temperature);
      s.logprobs = 1 + 2;
      if (change == 1)
        s.token_mask = &mask;
      if (change == 2)
        s.bias_count = 1, s.bias_ids = ids, s.bias_values = values;
      std::vector<float> row = logits;
      std::vector<TokenProbability> got;
      Sampler sampler;
      const int32_t id = sampler.sample(row, s, &got);
      ASSERT_EQ(got.size(), 3u);
      EXPECT_EQ(got[0].id, id) << "the chosen one is always there";
      EXPECT_EQ(got[1].id, 0);
      EXPECT_EQ(got[2].id, 2);
      for (const TokenProbability &p : got)
        EXPECT_NEAR(p.logProbability, logits[size_t(p.id)] - std::log(sum), 1e-5);
    }
}

// Words of a mask that allow all, nothing and some, and a last one that is not full.
TEST(Sampler, MasksOfManyWords) {
  std::mt19937 rng(3);
  for (size_t size : {31u, 32u, 33u, 96u, 103u, 1000u})
    for (int round = 0; round < 50; ++round) {
      std::vector<uint32_t> mask((size + 31) / 32);
      for (uint32_t &word : mask)
        word = rng() % 3 == 0 ? 0 : rng() % 2 ? ~0u : uint32_t(rng());
      std::vector<float> logits(size);
      for (float &x : logits)
        x = float(rng() % 1000);
      int32_t want = Sampler::kBadLogits;
      for (size_t t = 0; t < size; ++t)
        if (mask[t / 32] >> (t % 32) & 1 && (want < 0 || logits[t] > logits[size_t(want)]))
          want = int32_t(t);
      llmc_sampler_v1 s = defaultSampler();
      s.token_mask = mask.data();
      EXPECT_EQ(sample(logits, s), want) << size << ", round " << round;
    }
}

TEST(Sampler, ProbabilitiesSumToAtMostOne) {
  std::vector<float> logits(500);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = 3 * std::sin(float(i * i));
  llmc_sampler_v1 s = random(0.01f);
  s.logprobs = 1 + 500;
  std::vector<TokenProbability> got;
  Sampler sampler;
  sampler.sample(logits, s, &got);
  double sum = 0;
  for (size_t i = 1; i < got.size(); ++i)
    sum += std::exp(double(got[i].logProbability));
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(Sampler, EdgeValuesOfTypicalP) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)}; // surprise 0.69, 1.20, 1.61; entropy 1.03
  auto kept = [&](float p) {
    llmc_sampler_v1 s = random();
    s.typical_p = p;
    std::map<int32_t, int> counts = histogram(logits, s);
    std::vector<int32_t> ids;
    for (auto [id, count] : counts)
      ids.push_back(id);
    return ids;
  };
  for (float p : {-1.0f, 0.0f, 0.29f})
    EXPECT_EQ(kept(p), std::vector<int32_t>{1}) << "the most typical one, not the likeliest";
  EXPECT_EQ(kept(0.31f), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept(0.81f).size(), 3u);
  for (float p : {1.0f, 1.5f, std::nanf("")})
    EXPECT_EQ(kept(p).size(), 3u);
  llmc_sampler_v1 s = random(0);
  s.typical_p = 0;
  EXPECT_EQ(sample(logits, s), 0) << "greedy comes first";
}

// min-p after typical-p is relative to the likeliest token that is left.
TEST(Sampler, EveryCombinationLeavesAToken) {
  const std::vector<float> logits = {9, 1, 1, 0.5f, -3, -40};
  for (int32_t k : {0, 1, 3})
    for (float typical : {0.0f, 0.001f, 0.5f, 1.0f})
      for (float p : {0.0f, 0.5f, 1.0f})
        for (float minP : {0.0f, 1.0f, 2.0f})
          for (float temperature : {1e-5f, 1.0f, 1e6f}) {
            llmc_sampler_v1 s = random(temperature);
            s.top_k = k, s.typical_p = typical, s.top_p = p, s.min_p = minP;
            const int32_t id = sample(logits, s);
            ASSERT_TRUE(id >= 0 && id < 6) << k << typical << p << minP << temperature;
          }
}

// top-k, top-p and min-p by their definitions: everything in order, in double.
std::map<int32_t, double> byDefinition(const std::vector<float> &logits, const llmc_sampler_v1 &s) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  });
  if (s.top_k > 0)
    ids.resize(std::min(ids.size(), size_t(s.top_k)));
  auto weight = [&](int32_t id) { return std::exp((double(logits[size_t(id)]) - logits[size_t(ids[0])]) / s.temperature); };
  auto sum = [&] {
    double all = 0;
    for (int32_t id : ids)
      all += weight(id);
    return all;
  };
  const double wanted = s.top_p * sum();
  double covered = 0;
  for (size_t i = 0; i < ids.size() && s.top_p < 1; ++i)
    if ((covered += weight(ids[i])) >= wanted)
      ids.resize(i + 1);
  while (weight(ids.back()) < s.min_p)
    ids.pop_back();
  const double all = sum();
  std::map<int32_t, double> result;
  for (int32_t id : ids)
    result[id] = weight(id) / all;
  return result;
}

// Large rows, of which most tokens are never looked at; many ties, some rows flat, some steep.
TEST(Sampler, FiltersKeepWhatTheirDefinitionsKeep) {
  std::mt19937 numbers(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(1 + numbers() % 6000);
    const float scale = std::array{0.0f, 0.1f, 1.0f, 5.0f}[numbers() % 4];
    for (float &x : logits)
      x = scale * std::round(float(int(numbers() % 2001) - 1000) / 50) / 4;
    llmc_sampler_v1 s = random(std::array{0.2f, 0.7f, 1.0f, 3.0f}[numbers() % 4]);
    s.top_k = std::array{0, 0, 1, 3, 50, 1000, 100000}[numbers() % 7];
    s.top_p = std::array{1.0f, 0.999f, 0.9f, 0.3f, 0.0f}[numbers() % 5];
    s.min_p = std::array{0.0f, 0.0f, 0.05f, 0.5f}[numbers() % 4];
    const std::map<int32_t, double> want = byDefinition(logits, s);
    Sampler sampler;
    std::map<int32_t, double> got;
    for (auto [id, probability] : sampler.distribution(logits, s))
      got[id] = probability;
    // Where the last of many equals is cut, rounding may decide by one; what is kept agrees.
    ASSERT_LE(got.size() > want.size() ? got.size() - want.size() : want.size() - got.size(), 1u) << "round " << round;
    for (auto [id, probability] : want)
      if (got.contains(id))
        ASSERT_NEAR(got[id] / probability, 1, got.size() == want.size() ? 1e-5 : 1.1 / double(std::min(got.size(), want.size()))) << "round " << round << " token " << id;
    for (s.position = 0; s.position < 20; ++s.position)
      ASSERT_TRUE(want.contains(sample(logits, s)) || got.contains(sample(logits, s))) << "round " << round;
  }
}

// Without filters the row itself is drawn from: the token at which the weights up to it exceed the draw.
TEST(Sampler, DrawsOfAllAreDrawsOfTheRow) {
  std::mt19937 numbers(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<float> logits(1 + numbers() % 3000);
    for (float &x : logits)
      x = float(numbers() % 1000) / 100;
    logits[numbers() % logits.size()] = -1e30f; // has no weight
    llmc_sampler_v1 s = random(std::array{0.3f, 1.0f, 2.0f}[numbers() % 3]);
    s.seed = numbers();
    const float best = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (float x : logits)
      sum += std::exp((double(x) - best) / s.temperature);
    for (s.position = 0; s.position < 50; ++s.position) {
      const auto id = size_t(sample(logits, s));
      double before = 0;
      for (size_t t = 0; t < id; ++t)
        before += std::exp((double(logits[t]) - best) / s.temperature);
      const double at = philoxUniform(s.seed, s.position) * sum, own = std::exp((double(logits[id]) - best) / s.temperature);
      ASSERT_GT(own, 0);
      ASSERT_TRUE(at > before - 1e-5 * sum && at < before + own + 1e-5 * sum) << "round " << round << ": " << before / sum << " " << at / sum;
    }
  }
}

// Repetition: prompt and answer; presence and frequency: the answer.
TEST(Sampler, WhichTokensPenaltiesCount) {
  const int32_t history[] = {0, 0, 1};
  llmc_sampler_v1 s = defaultSampler();
  s.history = history;
  s.history_length = 3;
  s.prompt_length = 2;
  s.frequency_penalty = 1;
  EXPECT_EQ(sample({5, 4.9f, 1}, s), 0) << "token 0 is of the prompt";
  s.prompt_length = 0;
  EXPECT_EQ(sample({5, 4.9f, 1}, s), 1) << "5 - 2 < 4.9 - 1";
  s.prompt_length = 2;
  s.frequency_penalty = 0;
  s.presence_penalty = 1;
  EXPECT_EQ(sample({4.8f, 5, 1}, s), 0) << "5 - 1 < 4.8";
  s.presence_penalty = 0;
  s.repetition_penalty = 5;
  EXPECT_EQ(sample({5, 4.9f, 1.1f}, s), 2) << "both are divided";
}

TEST(Sampler, BiasComesBeforePenalties) {
  const int32_t history[] = {0}, ids[] = {0};
  const float values[] = {10};
  llmc_sampler_v1 s = defaultSampler();
  s.history = history, s.history_length = 1, s.repetition_penalty = 2;
  s.bias_ids = ids, s.bias_values = values, s.bias_count = 1;
  EXPECT_EQ(sample({0, 5.5f}, s), 1) << "(0 + 10) / 2 < 5.5";
}

TEST(Sampler, InfiniteBiasBans) {
  const int32_t ids[] = {1};
  const float values[] = {-kInf};
  for (float temperature : {0.0f, 1.0f}) {
    llmc_sampler_v1 s = random(temperature);
    s.bias_ids = ids, s.bias_values = values, s.bias_count = 1;
    EXPECT_EQ(histogram({0, 50, 0}, s, 200).count(1), 0u);
    EXPECT_EQ(sample({-kInf, 50}, s), Sampler::kBadLogits);
  }
}

} // namespace
