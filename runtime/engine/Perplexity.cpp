//===- Perplexity.cpp -----------------------------------------------------===//
#include "runtime/engine/Perplexity.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/Score.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace llmc {

std::vector<PerplexityWindow> stridedWindows(size_t tokens, size_t length, size_t stride) {
  std::vector<PerplexityWindow> windows;
  for (size_t begin = 0, end = 0; end < tokens; begin += stride) {
    const size_t scored = std::max(begin + 1, end);
    end = std::min(begin + length, tokens);
    if (scored < end)
      windows.push_back({begin, scored, end});
  }
  return windows;
}

std::vector<PerplexityWindow> halvedWindows(size_t tokens, size_t length) {
  std::vector<PerplexityWindow> windows;
  for (size_t begin = 0; begin + length <= tokens; begin += length)
    windows.push_back({begin, begin + length / 2 + 1, begin + length});
  return windows;
}

void PerplexityTally::add(const PerplexityTally &other) {
  count += other.count;
  sum += other.sum;
  squares += other.squares;
}

double PerplexityTally::mean() const { return count ? sum / double(count) : 0; }

double PerplexityTally::perplexity() const { return std::exp(mean()); }

double PerplexityTally::standardError() const {
  if (count < 2)
    return 0;
  const double variance = std::max(0.0, squares / double(count) - mean() * mean());
  return std::sqrt(variance / double(count - 1)) * perplexity();
}

// Exponentials over the vocabulary for every token: worth the threads of the device, which rests meanwhile.
static void scoreRows(std::vector<double> &scores, unsigned threads, const float *rows, size_t vocab, std::span<const int32_t> targets) {
  scores.resize(targets.size());
  auto part = [&](unsigned index) {
    for (size_t i = index; i < targets.size(); i += threads)
      scores[i] = -logProbability({rows + i * vocab, vocab}, targets[i]);
  };
  std::vector<std::thread> others;
  for (unsigned index = 1; index < threads; ++index)
    others.emplace_back(part, index);
  part(0);
  for (std::thread &thread : others)
    thread.join();
}

PerplexityTally scoreWindow(Device &device, std::span<const int32_t> ids, const PerplexityWindow &window, int32_t firstId) {
  std::vector<int32_t> text(ids.begin() + ptrdiff_t(window.begin), ids.begin() + ptrdiff_t(window.end));
  if (firstId >= 0)
    text[0] = firstId;
  const llmc_module_v1 &m = device.module();
  PerplexityTally tally;
  std::vector<double> scores;
  // The last token's logits are about nothing in the window.
  const std::span<const int32_t> read = std::span(text).first(text.size() - 1);
  auto sink = [&](uint32_t first, uint32_t count, const float *rows) {
    scoreRows(scores, std::min(device.threads(), count), rows, m.vocab, std::span(text).subspan(first + 1, count));
    for (uint32_t i = 0; i < count; ++i) {
      if (!std::isfinite(scores[i]))
        throw Error("the model computed logits that are not finite after token " + std::to_string(window.begin + first + i));
      tally.add({1, scores[i], scores[i] * scores[i]});
    }
  };
  scoreTokens(device, read, std::min(m.max_logits, m.max_tokens), sink, uint32_t(window.scored - 1 - window.begin));
  return tally;
}

} // namespace llmc
