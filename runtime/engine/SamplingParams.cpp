//===- SamplingParams.cpp -------------------------------------------------===//
#include "runtime/engine/SamplingParams.h"
#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_set>

namespace llmc {

namespace {

constexpr double kMaxBias = 100;

const RealField kRealFields[] = {
    {"temperature", &SamplingParams::temperature, 0, 1e6},
    {"top_p", &SamplingParams::topP, 0, 1},
    {"min_p", &SamplingParams::minP, 0, 1},
    {"typical_p", &SamplingParams::typicalP, 0, 1},
    {"repetition_penalty", &SamplingParams::repetitionPenalty, 1e-3, 1e3},
    {"presence_penalty", &SamplingParams::presencePenalty, -100, 100},
    {"frequency_penalty", &SamplingParams::frequencyPenalty, -100, 100},
};

std::string spell(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

std::optional<BadParameter> atMost(const char *field, size_t count, size_t limit, const char *what) {
  if (count <= limit)
    return std::nullopt;
  return BadParameter{field, "at most " + std::to_string(limit) + " " + what, std::to_string(count)};
}

std::optional<BadParameter> checkId(const char *field, int64_t id, uint64_t vocab) {
  if (id >= 0 && (vocab ? uint64_t(id) < vocab : id <= INT32_MAX))
    return std::nullopt;
  return BadParameter{field, vocab ? "token ids below " + std::to_string(vocab) : "token ids", std::to_string(id)};
}

std::optional<BadParameter> checkBias(const SamplingParams &p, uint64_t vocab) {
  if (auto bad = atMost("logit_bias", p.logitBias.size(), kMaxBiases, "tokens"))
    return bad;
  std::unordered_set<int64_t> seen;
  for (auto [id, value] : p.logitBias) {
    if (auto bad = checkId("logit_bias", id, vocab))
      return bad;
    if (!seen.insert(id).second)
      return BadParameter{"logit_bias", "each token once", "token " + std::to_string(id) + " twice"};
    if (!(value >= -kMaxBias && value <= kMaxBias) && !(std::isinf(value) && value < 0))
      return BadParameter{"logit_bias", "numbers from -100 to 100, or -inf", spell(value)};
  }
  return std::nullopt;
}

std::optional<BadParameter> checkStops(const SamplingParams &p, uint64_t vocab) {
  if (auto bad = atMost("stop", p.stop.size(), kMaxStops, "strings"))
    return bad;
  for (const std::string &stop : p.stop)
    if (stop.empty() || stop.size() > kMaxStopBytes)
      return BadParameter{"stop", "strings of 1 to " + std::to_string(kMaxStopBytes) + " bytes",
                          stop.empty() ? "an empty string" : "one of " + std::to_string(stop.size())};
  if (auto bad = atMost("stop_token_ids", p.stopIds.size(), kMaxStopIds, "ids"))
    return bad;
  for (int64_t id : p.stopIds)
    if (auto bad = checkId("stop_token_ids", id, vocab))
      return bad;
  return std::nullopt;
}

} // namespace

std::string RealField::expected() const { return "a number from " + spell(least) + " to " + spell(most); }

std::span<const RealField> realFields() { return kRealFields; }

std::optional<BadParameter> check(const SamplingParams &p, uint64_t vocab) {
  for (const RealField &field : kRealFields)
    if (const double value = p.*field.value; !(value >= field.least && value <= field.most)) // NaN fails too
      return BadParameter{field.name, field.expected(), spell(value)};
  if (auto bad = checkBias(p, vocab))
    return bad;
  if (p.logprobs < SamplingParams::kNoLogprobs || p.logprobs > kMaxLogprobs)
    return BadParameter{"logprobs", "a whole number from 0 to " + std::to_string(kMaxLogprobs), std::to_string(p.logprobs)};
  if (p.minTokens > p.maxTokens)
    return BadParameter{"min_tokens", "at most max_tokens, " + std::to_string(p.maxTokens), std::to_string(p.minTokens)};
  return checkStops(p, vocab);
}

llmc_sampler_v1 samplerOf(const SamplingParams &p) {
  llmc_sampler_v1 s = defaultSampler();
  s.temperature = float(p.temperature);
  s.top_k = int32_t(std::clamp<int64_t>(p.topK, 0, INT32_MAX));
  s.top_p = float(p.topP);
  s.min_p = float(p.minP);
  s.typical_p = float(p.typicalP);
  s.repetition_penalty = float(p.repetitionPenalty);
  s.presence_penalty = float(p.presencePenalty);
  s.frequency_penalty = float(p.frequencyPenalty);
  s.seed = p.seed;
  s.logprobs = uint32_t(p.logprobs + 1);
  return s;
}

} // namespace llmc
