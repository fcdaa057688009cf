//===- SamplingParams.h - what a request says of sampling -------*- C++ -*-===//
//
// One plain struct and one check for everybody who takes requests: the command
// line, the conversation, later the HTTP server. docs/sampling.md tells what each
// field does. Names are those of the OpenAI and vLLM interfaces.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_SAMPLINGPARAMS_H
#define LLMC_RUNTIME_ENGINE_SAMPLINGPARAMS_H

#include "llmc/abi.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

struct SamplingParams {
  static constexpr int32_t kNoLogprobs = -1;

  double temperature = 0; // 0: greedy
  int64_t topK = 0;       // 0 or less: off
  double topP = 1, minP = 0, typicalP = 1;
  double repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0;
  std::vector<std::pair<int64_t, double>> logitBias; // (id, added to its logit; -infinity bans it)
  uint64_t seed = 0;
  int64_t logprobs = kNoLogprobs; // of the chosen token and of this many likeliest ones

  uint64_t maxTokens = UINT64_MAX; // clipped to the room that context and cache have; 0: nothing is generated
  uint64_t minTokens = 0;          // before these nothing stops the text
  bool ignoreEos = false;          // the model's own end-of-sequence ids are tokens like any other
  std::vector<int64_t> stopIds;    // more ids that end the text
  std::vector<std::string> stop;   // strings that end the text
};

// Limits, in docs/sampling.md.
inline constexpr int64_t kMaxLogprobs = 20;
inline constexpr size_t kMaxStops = 16, kMaxStopBytes = 1024, kMaxStopIds = 256, kMaxBiases = 1024;

/// A field of numbers and what it takes; for the check below and for messages of those who read text.
struct RealField {
  const char *name; // "top_p"
  double SamplingParams::*value;
  double least, most;
  std::string expected() const; // "a number from 0 to 1"
};
std::span<const RealField> realFields();

/// "FIELD: expected EXPECTED, got GOT"
struct BadParameter {
  std::string field, expected, got;
};

/// The first field that is out of range. `vocab`: ids are below it; 0: not known yet.
std::optional<BadParameter> check(const SamplingParams &params, uint64_t vocab = 0);

/// The part that decides one token; position, history and biases are the engine's.
llmc_sampler_v1 samplerOf(const SamplingParams &params);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SAMPLINGPARAMS_H
