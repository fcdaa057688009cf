//===- StopMatcher.cpp ----------------------------------------------------===//
#include "runtime/engine/StopMatcher.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <utility>

namespace llmc {

void StopMatcher::Pattern::advance(char c) {
  while (length && (length == text.size() || text[length] != c))
    length = fallback[length];
  length += text[length] == c;
}

StopMatcher::StopMatcher(const std::vector<std::string> &stops) {
  for (const std::string &stop : stops) {
    if (stop.empty())
      throw Error("stop: expected strings of at least one byte, got an empty one");
    Pattern pattern{stop, std::vector<uint32_t>(stop.size() + 1), 0};
    for (size_t i = 1; i < stop.size(); ++i) {
      pattern.advance(stop[i]); // the pattern run over itself
      pattern.fallback[i + 1] = pattern.length;
    }
    pattern.length = 0;
    patterns_.push_back(std::move(pattern));
  }
}

std::string StopMatcher::feed(std::string_view text) {
  if (matched())
    return {};
  if (patterns_.empty())
    return std::string(text);
  for (char c : text) {
    held_ += c;
    size_t longest = 0;
    for (size_t p = 0; p < patterns_.size(); ++p) {
      Pattern &pattern = patterns_[p];
      pattern.advance(c);
      if (pattern.length == pattern.text.size() && pattern.length > longest) {
        longest = pattern.length;
        match_ = int(p);
      }
    }
    if (matched()) {
      held_.resize(held_.size() - longest);
      return std::exchange(held_, {});
    }
  }
  size_t open = 0;
  for (const Pattern &pattern : patterns_)
    open = std::max<size_t>(open, pattern.length);
  std::string certain = held_.substr(0, held_.size() - open);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopMatcher::flush() {
  for (Pattern &pattern : patterns_)
    pattern.length = 0;
  return std::exchange(held_, {});
}

} // namespace llmc
