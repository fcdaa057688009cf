// Filters and penalties against transformers' logits processors: scripts/make-sampling-goldens.py.
#include "runtime/engine/Sampler.h"
#include "runtime/engine/SamplingParams.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace llmc;

namespace {

TEST(SamplerGolden, DistributionsEqualTransformers) {
  std::ifstream file(LLMC_SOURCE_DIR "/test/runtime/engine/sampling-goldens.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 100u);
  for (size_t c = 0; c < cases.size(); ++c) {
    const nlohmann::json &item = cases[c];
    SamplingParams params;
    params.temperature = item["temperature"];
    params.topK = item["top_k"];
    params.typicalP = item["typical_p"];
    params.topP = item["top_p"];
    params.minP = item["min_p"];
    params.repetitionPenalty = item["repetition_penalty"];
    params.presencePenalty = item["presence_penalty"];
    params.frequencyPenalty = item["frequency_penalty"];
    llmc_sampler_v1 s = samplerOf(params);
    std::vector<int32_t> history = item["prompt"], generated = item["generated"], biasIds;
    std::vector<float> biases, logits = item["logits"];
    s.prompt_length = uint32_t(history.size());
    history.insert(history.end(), generated.begin(), generated.end());
    s.history = history.data();
    s.history_length = uint32_t(history.size());
    for (const nlohmann::json &bias : item["bias"]) {
      biasIds.push_back(bias[0]);
      biases.push_back(bias[1]);
    }
    s.bias_count = uint32_t(biasIds.size());
    s.bias_ids = biasIds.data();
    s.bias_values = biases.data();
    Sampler sampler;
    std::map<int32_t, double> got, want;
    for (auto [id, probability] : sampler.distribution(logits, s))
      got[id] = probability;
    for (const auto &[id, probability] : item["distribution"].items())
      want[std::stoi(id)] = probability;
    for (auto [id, probability] : want)
      EXPECT_NEAR(got[id], probability, 1e-5) << "case " << c << " token " << id;
    for (auto [id, probability] : got)
      if (!want.contains(id))
        EXPECT_LT(probability, 1e-6) << "case " << c << " token " << id;
  }
}

} // namespace
