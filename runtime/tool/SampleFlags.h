//===- SampleFlags.h - sampling parameters as text --------------*- C++ -*-===//
//
// The flags of run and chat and the conversation's /set read the same fields in
// the same way; what is allowed is said in SamplingParams.h alone.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_SAMPLEFLAGS_H
#define LLMC_RUNTIME_TOOL_SAMPLEFLAGS_H

#include "runtime/engine/SamplingParams.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace llmc {

/// Sets the field "top_p" (or "top-p") from text: "0.9". `stop` and `logit_bias` ("ID=VALUE") add to what is there;
/// "none" clears them. The result is not checked as a whole (check in SamplingParams.h). Nothing is set on failure.
std::optional<BadParameter> setField(SamplingParams &params, std::string field, const std::string &text);
/// One line a field: "top_p 0.9".
std::string describe(const SamplingParams &params);

inline constexpr uint64_t kDefaultMaxTokens = 512;

/// Usage errors name the flag.
void addSampleFlags(CLI::App &app, SamplingParams &params);
/// Of these flags those that say how a token is drawn from its distribution: temperature, top-k, top-p, min-p, seed.
void addDrawFlags(CLI::App &app, SamplingParams &params);
void addLogprobsFlag(CLI::App &app, SamplingParams &params);
/// After parsing, what only several flags together or the vocabulary can tell.
void checkSampleFlags(const SamplingParams &params, uint64_t vocab);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_SAMPLEFLAGS_H
