//===- Sampler.h - one token from one row of logits -------------*- C++ -*-===//
//
// Order, which llama.cpp, vLLM and transformers agree on most (docs/sampling.md):
//   bias, token mask, penalties; greedy if temperature <= 1e-6, else
//   temperature, top-k, typical-p, top-p, min-p, one draw.
// Each filter sees what the one before left, as a distribution of its own. Edge values (all defined):
//   temperature <= 1e-6, NaN   the highest logit, lowest id on ties, whatever the seed
//   top_k <= 0 or >= vocabulary   off
//   top_p <= 0           only the most probable token;  top_p >= 1: off
//   typical_p <= 0       only the most typical token;  typical_p >= 1: off
//   min_p <= 0           off;  min_p >= 1: only tokens as probable as the best
// At least one candidate always survives. Two tokens of equal logit rank by id.
// The draw is a function of (seed, position) only: Philox4x32-10 (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011), key = seed, counter = position.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_SAMPLER_H
#define LLMC_RUNTIME_ENGINE_SAMPLER_H

#include "llmc/abi.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace llmc {

/// The block function: ten rounds.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
/// The uniform number in [0, 1) of a sampled token.
double philoxUniform(uint64_t seed, uint64_t position);

/// Everything off: greedy over all tokens.
llmc_sampler_v1 defaultSampler();

// What settings come to; the same question on every device.
bool isGreedy(const llmc_sampler_v1 &sampler);
/// Penalties or a bias change the row.
bool shiftsLogits(const llmc_sampler_v1 &sampler);
/// These or a mask do.
bool changesLogits(const llmc_sampler_v1 &sampler);

/// Natural logarithm, of the softmax of the logits as the model computed them.
struct TokenProbability {
  int32_t id;
  float logProbability; // finite
};

class Sampler {
public:
  static constexpr int32_t kBadLogits = -1; // the row holds NaN or +-Inf, or allows nothing

  /// The token id, or kBadLogits. `logits` [vocab] is changed (bias, mask, penalties). If `probabilities` is not null it
  /// gets what sampler.logprobs asks for: the chosen token first, then the likeliest; fewer where the vocabulary is smaller.
  int32_t sample(std::span<float> logits, const llmc_sampler_v1 &sampler, std::vector<TokenProbability> *probabilities = nullptr);

  /// What sample() draws from: (id, probability), in no order; one token of probability 1 if greedy; empty for bad rows.
  /// `logits` is changed.
  std::vector<std::pair<int32_t, double>> distribution(std::span<float> logits, const llmc_sampler_v1 &sampler);

private:
  struct Candidate {
    float logit, weight; // weight: probability over that of the best token
    int32_t id;
    float atypicality; // |surprise - entropy|, of typical-p
  };
  static constexpr size_t kBlock = 512; // of a row, whose weights are added up apart
  bool change(std::span<float> logits, const llmc_sampler_v1 &sampler, float &best);
  void weigh(std::span<const float> logits, float best, float temperature);
  void collect(std::span<const float> logits, const llmc_sampler_v1 &sampler);
  void filter(std::span<const float> logits, const llmc_sampler_v1 &sampler, float best);
  int32_t draw(uint64_t seed, uint64_t position) const;
  int32_t drawOfAll(uint64_t seed, uint64_t position) const;
  void keepTop(size_t count);
  void keepTypical(float share, float best, float temperature);
  void keepAsProbable(float share);
  template <typename Before> void keepFirst(double weight, Before before);
  double totalWeight() const;

  std::vector<float> weights_;    // of the whole row
  std::vector<double> blockSums_; // of theirs
  double sum_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<float> raw_; // the row before it was changed, if log-probabilities are wanted
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SAMPLER_H
