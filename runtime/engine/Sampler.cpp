//===- Sampler.cpp --------------------------------------------------------===//
#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace llmc {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> x, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * x[0], b = 0xCD9E8D57ull * x[2];
    x = {uint32_t(b >> 32) ^ x[1] ^ key[0], uint32_t(b), uint32_t(a >> 32) ^ x[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x;
}

double philoxUniform(uint64_t seed, uint64_t position) {
  auto x = philox4x32({uint32_t(position), uint32_t(position >> 32), 0, 0}, {uint32_t(seed), uint32_t(seed >> 32)});
  const uint64_t bits = (uint64_t(x[1]) << 32 | x[0]) >> 11;
  return double(bits) * 0x1p-53;
}

llmc_sampler_v1 defaultSampler() {
  llmc_sampler_v1 s{};
  s.top_p = 1;
  s.typical_p = 1;
  s.repetition_penalty = 1;
  return s;
}

namespace {

void penalize(std::span<float> logits, const llmc_sampler_v1 &s) {
  const bool repetition = s.repetition_penalty > 0 && s.repetition_penalty != 1;
  if (s.history && (repetition || s.presence_penalty != 0 || s.frequency_penalty != 0)) {
    std::unordered_map<int32_t, uint32_t> counts;
    for (uint32_t i = 0; i < s.history_length; ++i)
      if (uint32_t(s.history[i]) < logits.size())
        ++counts[s.history[i]];
    for (auto [id, count] : counts) {
      float &logit = logits[size_t(id)];
      if (repetition) // CTRL (Keskar et al. 2019), sec. 4.1
        logit = logit > 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
      logit -= s.presence_penalty + s.frequency_penalty * float(count);
    }
  }
  for (uint32_t i = 0; i < s.bias_count; ++i)
    if (uint32_t(s.bias_ids[i]) < logits.size())
      logits[size_t(s.bias_ids[i])] += s.bias_values[i];
}

void mask(std::span<float> logits, const uint32_t *allowed) {
  for (size_t t = 0; t < logits.size(); ++t)
    if (!(allowed[t / 32] >> (t % 32) & 1))
      logits[t] = -std::numeric_limits<float>::infinity();
}

// Both loops run over the whole vocabulary for every token; without early exits they vectorise.
bool finiteRow(std::span<const float> logits) {
  uint32_t bad = 0;
  for (float x : logits)
    bad |= uint32_t((std::bit_cast<uint32_t>(x) & 0x7f800000u) == 0x7f800000u);
  return !bad;
}

// No NaN among them.
float largest(std::span<const float> logits) {
  int32_t best = INT32_MIN; // of the bits, made to order like the numbers
  for (float x : logits) {
    const int32_t bits = std::bit_cast<int32_t>(x);
    best = std::max(best, bits ^ (bits >> 31 & 0x7fffffff));
  }
  return std::bit_cast<float>(best ^ (best >> 31 & 0x7fffffff));
}

void fillLogProbabilities(std::span<const float> logits, int32_t chosen, uint32_t wanted,
                          std::vector<std::pair<int32_t, float>> &out) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits)
    sum += std::exp(double(x) - best);
  const double base = best + std::log(sum);
  // Never -Inf: it is no JSON number.
  auto value = [&](int32_t id) {
    return std::max(float(logits[size_t(id)] - base), std::numeric_limits<float>::lowest());
  };
  out.assign(1, {chosen, value(chosen)});
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = int32_t(i);
  wanted = std::min<uint32_t>(wanted, uint32_t(ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + wanted, ids.end(), [&](int32_t a, int32_t b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  });
  for (uint32_t i = 0; i < wanted; ++i)
    out.push_back({ids[i], value(ids[i])});
}

} // namespace

int32_t Sampler::sample(std::span<float> logits, const llmc_sampler_v1 &s,
                        std::vector<std::pair<int32_t, float>> *logProbabilities) {
  // What the model computed must be finite: a NaN would otherwise choose some low id, silently.
  if (logits.empty() || !finiteRow(logits))
    return kBadLogits;
  penalize(logits, s);
  if (s.token_mask)
    mask(logits, s.token_mask);
  for (uint32_t i = 0; i < s.bias_count; ++i)
    if (std::isnan(s.bias_values[i]))
      return kBadLogits;
  const float best = largest(logits);
  if (!std::isfinite(best)) // an infinite bias, or a mask that allows nothing
    return kBadLogits;
  const bool greedy = !(s.temperature > 1e-6f) || s.top_k == 1;
  const int32_t id = greedy ? int32_t(std::find(logits.begin(), logits.end(), best) - logits.begin())
                            : draw(logits, s, best);
  if (logProbabilities)
    fillLogProbabilities(logits, id, s.logprobs, *logProbabilities);
  return id;
}

int32_t Sampler::draw(std::span<const float> logits, const llmc_sampler_v1 &s, float best) {
  auto before = [](const Candidate &a, const Candidate &b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  candidates_.clear();
  for (size_t t = 0; t < logits.size(); ++t) {
    const float weight = std::exp((logits[t] - best) / s.temperature); // 1 for the best
    if (weight > 0)
      candidates_.push_back({logits[t], weight, int32_t(t)});
  }
  if (s.top_k > 0 && size_t(s.top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + s.top_k - 1, candidates_.end(), before);
    candidates_.resize(size_t(s.top_k));
    std::sort(candidates_.begin(), candidates_.end(), before);
  }
  if (s.top_p < 1)
    keepNucleus(s.top_p, before);
  if (s.min_p > 0) {
    const float least = std::min(s.min_p, 1.0f);
    std::erase_if(candidates_, [&](const Candidate &c) { return c.weight < least; });
  }
  double sum = 0;
  for (const Candidate &c : candidates_)
    sum += c.weight;
  double left = philoxUniform(s.seed, s.position) * sum;
  for (const Candidate &c : candidates_) {
    left -= c.weight;
    if (left < 0)
      return c.id;
  }
  return candidates_.back().id;
}

// Keeps the fewest of the likeliest candidates that have `share` of the probability (Holtzman et al. 2020). A heap gives
// them in order; sorting the whole vocabulary would take milliseconds.
template <typename Before> void Sampler::keepNucleus(float share, Before before) {
  double sum = 0, covered = 0;
  for (const Candidate &c : candidates_)
    sum += c.weight;
  auto after = [&](const Candidate &a, const Candidate &b) { return before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  auto end = candidates_.end();
  do {
    std::pop_heap(candidates_.begin(), end, after); // to the back
    --end;
    covered += end->weight;
  } while (end != candidates_.begin() && covered < double(share) * sum);
  candidates_.erase(candidates_.begin(), end);
  std::reverse(candidates_.begin(), candidates_.end());
}

} // namespace llmc
