//===- Sampler.h - one token from one row of logits -------------*- C++ -*-===//
//
// Order: penalties and bias, token mask, then greedy if temperature <= 1e-6, else
// temperature, top-k, top-p, min-p, and one draw. Edge values (all defined):
//   temperature <= 1e-6  the highest logit, lowest id on ties, whatever the seed
//   top_k <= 0 or >= vocabulary   off
//   top_p <= 0           only the most probable token;  top_p >= 1: off
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

class Sampler {
public:
  static constexpr int32_t kBadLogits = -1; // the row holds NaN or +Inf, or allows nothing

  /// The token id, or kBadLogits. `logits` [vocab] is changed (penalties). If `logProbabilities` is not null it gets
  /// (id, log-probability) of the chosen token and then of the `sampler.logprobs` best, after penalties and before
  /// temperature; what is missing is not filled.
  int32_t sample(std::span<float> logits, const llmc_sampler_v1 &sampler,
                 std::vector<std::pair<int32_t, float>> *logProbabilities = nullptr);

private:
  struct Candidate {
    float logit, weight; // weight: probability over that of the best
    int32_t id;
  };
  int32_t draw(std::span<const float> logits, const llmc_sampler_v1 &sampler, float best);

  template <typename Before> void keepNucleus(float share, Before before);

  std::vector<Candidate> candidates_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SAMPLER_H
