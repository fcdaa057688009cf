//===- Sampler.cpp --------------------------------------------------------===//
#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
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

bool isGreedy(const llmc_sampler_v1 &s) { return !(s.temperature > 1e-6f) || s.top_k == 1; }

static bool penalizesRepetition(const llmc_sampler_v1 &s) { return s.repetition_penalty > 0 && s.repetition_penalty != 1; }

static bool penalizes(const llmc_sampler_v1 &s) {
  return s.history && s.history_length && (penalizesRepetition(s) || s.presence_penalty != 0 || s.frequency_penalty != 0);
}

bool shiftsLogits(const llmc_sampler_v1 &s) { return s.bias_count || penalizes(s); }
bool changesLogits(const llmc_sampler_v1 &s) { return s.token_mask || shiftsLogits(s); }

namespace {

void addBias(std::span<float> logits, const llmc_sampler_v1 &s) {
  for (uint32_t i = 0; i < s.bias_count; ++i)
    if (uint32_t(s.bias_ids[i]) < logits.size())
      logits[size_t(s.bias_ids[i])] += s.bias_values[i];
}

void penalize(std::span<float> logits, const llmc_sampler_v1 &s) {
  std::unordered_map<int32_t, uint32_t> counts; // occurrences behind the prompt
  for (uint32_t i = 0; i < s.history_length; ++i)
    if (uint32_t(s.history[i]) < logits.size())
      counts[s.history[i]] += i >= s.prompt_length;
  for (auto [id, generated] : counts) {
    float &logit = logits[size_t(id)];
    if (penalizesRepetition(s)) // CTRL (Keskar et al. 2019), sec. 4.1
      logit = logit > 0 ? logit / s.repetition_penalty : logit * s.repetition_penalty;
    if (generated)
      logit -= s.presence_penalty + s.frequency_penalty * float(generated);
  }
}

// It runs for every token of a held answer, by one thread: a word's tokens at a time, without branches.
void mask(std::span<float> logits, const uint32_t *allowed) {
  constexpr uint32_t kBanned = std::bit_cast<uint32_t>(-std::numeric_limits<float>::infinity());
  const auto apply = [&](size_t t, uint32_t bits) {
    const uint32_t banned = uint32_t(bits == 0) * ~0u;
    logits[t] = std::bit_cast<float>((std::bit_cast<uint32_t>(logits[t]) & ~banned) | (kBanned & banned));
  };
  size_t t = 0;
  for (; t + 32 <= logits.size(); t += 32)
    for (uint32_t bit = 0; bit < 32; ++bit)
      apply(t + bit, allowed[t / 32] & 1u << bit);
  for (; t < logits.size(); ++t)
    apply(t, allowed[t / 32] & 1u << (t % 32));
}

// The loops over a whole row run for every token; without early exits and calls they vectorise.
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

// e^x for x <= 0, within 2e-7 of it; 0 below -87. The C library's gives other bits on other machines, and one number at a time.
// Method and polynomial: Cephes (Moshier 1992).
float exponential(float x) {
  constexpr float kRound = 0x1.8p23f; // added and taken away it rounds to whole numbers
  const float clamped = std::max(x, -87.0f), shifted = clamped * 1.44269504f + kRound, n = shifted - kRound;
  const float r = clamped - n * 0.693359375f - n * -2.12194440e-4f;
  float y = 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    y = y * r + c;
  y = y * r * r + r + 1;
  const float power = std::bit_cast<float>((std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound) + 127) << 23);
  return x < -87 ? 0 : y * power;
}

// In eight lanes, which always add up in the same order.
double sumOf(std::span<const float> values) {
  double lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    for (size_t lane = 0; lane < 8; ++lane)
      lanes[lane] += values[i + lane];
  for (; i < values.size(); ++i)
    lanes[i % 8] += values[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

void fillProbabilities(std::span<const float> logits, int32_t chosen, uint32_t wanted, std::vector<TokenProbability> &out) {
  const float best = largest(logits);
  double sum = 0;
  for (float x : logits)
    sum += std::exp(double(x) - best);
  const double base = best + std::log(sum);
  auto add = [&](int32_t id) { out.push_back({id, float(logits[size_t(id)] - base)}); };
  out.clear();
  if (wanted == 0)
    return;
  add(chosen);
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto likeliest = ptrdiff_t(std::min<size_t>(wanted - 1, ids.size()));
  std::partial_sort(ids.begin(), ids.begin() + likeliest, ids.end(), [&](int32_t a, int32_t b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  });
  std::for_each(ids.begin(), ids.begin() + likeliest, add);
}

} // namespace

// Bias, mask and penalties. `best` becomes the largest logit. False if there is none to choose.
bool Sampler::change(std::span<float> logits, const llmc_sampler_v1 &s, float &best) {
  addBias(logits, s);
  if (s.token_mask)
    mask(logits, s.token_mask);
  if (penalizes(s))
    penalize(logits, s);
  for (uint32_t i = 0; i < s.bias_count; ++i)
    if (std::isnan(s.bias_values[i]))
      return false;
  best = largest(logits);
  return std::isfinite(best); // not for an infinite bias, or a mask that allows nothing
}

static int32_t firstOf(std::span<const float> logits, float best) {
  return int32_t(std::find(logits.begin(), logits.end(), best) - logits.begin());
}

static bool filters(const llmc_sampler_v1 &s) { return s.top_k > 0 || s.typical_p < 1 || s.top_p < 1 || s.min_p > 0; }

int32_t Sampler::sample(std::span<float> logits, const llmc_sampler_v1 &s, std::vector<TokenProbability> *probabilities) {
  // What the model computed must be finite: a NaN would otherwise choose some low id, silently.
  if (logits.empty() || !finiteRow(logits))
    return kBadLogits;
  const bool keepRaw = probabilities && s.logprobs && changesLogits(s);
  if (keepRaw)
    raw_.assign(logits.begin(), logits.end());
  float best = 0;
  if (!change(logits, s, best))
    return kBadLogits;
  int32_t id;
  if (isGreedy(s)) {
    id = firstOf(logits, best);
  } else if (filters(s)) {
    filter(logits, s, best);
    id = draw(s.seed, s.position);
  } else {
    weigh(logits, best, s.temperature);
    id = drawOfAll(s.seed, s.position);
  }
  if (probabilities)
    fillProbabilities(keepRaw ? std::span<const float>(raw_) : logits, id, s.logprobs, *probabilities);
  return id;
}

std::vector<std::pair<int32_t, double>> Sampler::distribution(std::span<float> logits, const llmc_sampler_v1 &s) {
  float best = 0;
  if (logits.empty() || !finiteRow(logits) || !change(logits, s, best))
    return {};
  if (isGreedy(s))
    return {{firstOf(logits, best), 1.0}};
  filter(logits, s, best);
  std::vector<std::pair<int32_t, double>> result;
  for (const Candidate &c : candidates_)
    result.emplace_back(c.id, c.weight / totalWeight());
  return result;
}

namespace {
constexpr auto likelier = [](const auto &a, const auto &b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
} // namespace

// The weight of every token: its probability over that of the best.
void Sampler::weigh(std::span<const float> logits, float best, float temperature) {
  weights_.resize(logits.size());
  for (size_t t = 0; t < logits.size(); ++t)
    weights_[t] = exponential((logits[t] - best) / temperature);
  blockSums_.clear();
  for (size_t t = 0; t < weights_.size(); t += kBlock)
    blockSums_.push_back(sumOf(std::span(weights_).subspan(t, std::min(kBlock, weights_.size() - t))));
  sum_ = std::accumulate(blockSums_.begin(), blockSums_.end(), 0.0);
}

// At least `count` logits of the row are as large as this: as many parts of it have one that is.
static float amongLargest(std::span<const float> logits, size_t count) {
  constexpr size_t kPart = 64;
  std::vector<float> parts;
  for (size_t t = 0; t < logits.size(); t += kPart)
    parts.push_back(largest(logits.subspan(t, std::min(kPart, logits.size() - t))));
  if (count > parts.size())
    return -std::numeric_limits<float>::infinity();
  std::nth_element(parts.begin(), parts.begin() + ptrdiff_t(count) - 1, parts.end(), std::greater<>());
  return parts[count - 1];
}

// The tokens that the filters may leave. What none of them can keep is not looked at: fewer than a thousand of a hundred thousand.
void Sampler::collect(std::span<const float> logits, const llmc_sampler_v1 &s) {
  float least = std::numeric_limits<float>::min(), leastLogit = -std::numeric_limits<float>::infinity();
  if (s.top_k > 0)
    leastLogit = amongLargest(logits, size_t(s.top_k));
  else if (!(s.typical_p < 1) && s.top_p < 1) // all below it together weigh less than what top-p leaves out
    least = std::max(least, float((1 - double(s.top_p)) * sum_ / double(logits.size()) * (1 - 1e-6)));
  else if (!(s.typical_p < 1) && s.min_p > 0)
    least = std::max(least, std::min(s.min_p, 1.0f));
  candidates_.clear();
  for (size_t t = 0; t < logits.size(); ++t)
    if (weights_[t] >= least && logits[t] >= leastLogit)
      candidates_.push_back({logits[t], weights_[t], int32_t(t), 0});
}

void Sampler::filter(std::span<const float> logits, const llmc_sampler_v1 &s, float best) {
  weigh(logits, best, s.temperature);
  collect(logits, s);
  double sum = sum_; // of what the filters before have left
  if (s.top_k > 0) {
    keepTop(size_t(s.top_k));
    sum = totalWeight();
  }
  if (s.typical_p < 1) {
    keepTypical(s.typical_p, best, s.temperature);
    sum = totalWeight();
  }
  if (s.top_p < 1)
    keepFirst(double(s.top_p) * sum, likelier);
  if (s.min_p > 0)
    keepAsProbable(std::min(s.min_p, 1.0f));
}

int32_t Sampler::draw(uint64_t seed, uint64_t position) const {
  double left = philoxUniform(seed, position) * totalWeight();
  for (const Candidate &c : candidates_) {
    left -= c.weight;
    if (left < 0)
      return c.id;
  }
  return candidates_.back().id;
}

// Of the whole row, without candidates.
int32_t Sampler::drawOfAll(uint64_t seed, uint64_t position) const {
  double left = philoxUniform(seed, position) * sum_;
  size_t block = 0;
  for (; block + 1 < blockSums_.size() && left >= blockSums_[block]; ++block)
    left -= blockSums_[block];
  for (size_t t = block * kBlock; t < weights_.size(); ++t)
    if (weights_[t] > 0 && (left -= weights_[t]) < 0)
      return int32_t(t);
  size_t t = weights_.size(); // rounding has left a rest: the last one that can be drawn
  while (!(weights_[--t] > 0))
    ;
  return int32_t(t);
}

double Sampler::totalWeight() const {
  double sum = 0;
  for (const Candidate &c : candidates_)
    sum += c.weight;
  return sum;
}

void Sampler::keepTop(size_t count) {
  if (count >= candidates_.size())
    return;
  std::nth_element(candidates_.begin(), candidates_.begin() + ptrdiff_t(count) - 1, candidates_.end(), likelier);
  candidates_.resize(count);
  std::sort(candidates_.begin(), candidates_.end(), likelier);
}

// Locally typical sampling (Meister et al. 2023, sec. 3): the tokens whose surprise is nearest to the entropy.
void Sampler::keepTypical(float share, float best, float temperature) {
  const double logSum = std::log(totalWeight());
  auto surprise = [&](const Candidate &c) { return logSum - double(c.logit - best) / temperature; };
  double entropy = 0;
  for (const Candidate &c : candidates_)
    entropy += c.weight * std::exp(-logSum) * surprise(c);
  for (Candidate &c : candidates_)
    c.atypicality = float(std::fabs(surprise(c) - entropy));
  keepFirst(double(share) * totalWeight(), [](const Candidate &a, const Candidate &b) {
    return a.atypicality != b.atypicality ? a.atypicality < b.atypicality : likelier(a, b);
  });
}

void Sampler::keepAsProbable(float share) {
  float most = 0; // typical-p may have taken the likeliest token away
  for (const Candidate &c : candidates_)
    most = std::max(most, c.weight);
  std::erase_if(candidates_, [&](const Candidate &c) { return c.weight < share * most; });
}

// Keeps the first candidates in the order `before`, the fewest that weigh so much: of the likeliest
// the nucleus (Holtzman et al. 2020). A heap gives them in order; sorting the whole vocabulary would take milliseconds.
template <typename Before> void Sampler::keepFirst(double weight, Before before) {
  double covered = 0;
  auto after = [&](const Candidate &a, const Candidate &b) { return before(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), after);
  auto end = candidates_.end();
  do {
    std::pop_heap(candidates_.begin(), end, after); // to the back
    --end;
    covered += end->weight;
  } while (end != candidates_.begin() && covered < weight);
  candidates_.erase(candidates_.begin(), end);
  std::reverse(candidates_.begin(), candidates_.end());
}

} // namespace llmc
