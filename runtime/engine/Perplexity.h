//===- Perplexity.h - negative log-probabilities of a text ------*- C++ -*-===//
//
// A text longer than the context is scored in windows. Which tokens of a window
// count is what the definitions of perplexity differ in.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_PERPLEXITY_H
#define LLMC_RUNTIME_ENGINE_PERPLEXITY_H

#include "runtime/device/Device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc {

/// Tokens [begin, end) of the text are read; tokens [scored, end) are scored, each given those before it in the window.
struct PerplexityWindow {
  size_t begin, scored, end; // begin < scored < end
};

/// As transformers' documentation, "Perplexity of fixed-length models": windows of `length` start every `stride` tokens
/// and score what no window before has scored; a window's first token is never scored. Empty for fewer than two tokens.
/// 2 <= length, 1 <= stride <= length.
std::vector<PerplexityWindow> stridedWindows(size_t tokens, size_t length, size_t stride);
/// As llama-perplexity: whole windows side by side; scored is what lies behind token length / 2. 3 <= length.
std::vector<PerplexityWindow> halvedWindows(size_t tokens, size_t length);

/// Sums in f64.
struct PerplexityTally {
  uint64_t count = 0;
  double sum = 0, squares = 0; // of negative log-probabilities, in nats

  void add(const PerplexityTally &other);
  double mean() const;
  double perplexity() const; // exp(mean)
  double standardError() const; // of perplexity(); 0 for fewer than two tokens
};

/// `firstId` >= 0 stands for the window's first token. Throws Error if a logit is not finite.
PerplexityTally scoreWindow(Device &device, std::span<const int32_t> ids, const PerplexityWindow &window, int32_t firstId = -1);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_PERPLEXITY_H
