//===- StopMatcher.h - cuts a stream of text at a stop string ---*- C++ -*-===//
//
// Text comes in pieces and goes out as soon as it cannot be part of a stop string
// any more: held back is only the longest end of the text that some stop string
// starts with. The result depends on the text alone, not on its pieces. The stop
// string that is complete first wins; of several that are complete with the same
// byte, the longest. Neither it nor what follows is put out.
//
// One automaton for each stop string (Knuth, Morris, Pratt 1977): time is linear
// in the text.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_STOPMATCHER_H
#define LLMC_RUNTIME_ENGINE_STOPMATCHER_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class StopMatcher {
public:
  StopMatcher() = default;
  /// Throws Error for an empty stop string.
  explicit StopMatcher(const std::vector<std::string> &stops);

  /// What `text` makes certain. After a match: nothing.
  std::string feed(std::string_view text);
  /// Ends the text: what was held back.
  std::string flush();

  bool matched() const { return match_ >= 0; }
  /// The stop string that ended the text; empty before.
  std::string_view match() const { return matched() ? patterns_[size_t(match_)].text : std::string_view(); }

private:
  struct Pattern {
    std::string text;
    std::vector<uint32_t> fallback; // [i]: longest proper prefix of text[0, i) that it also ends with
    uint32_t length = 0;            // of the prefix that the text so far ends with

    void advance(char c);
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  int match_ = -1;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_STOPMATCHER_H
