//===- MarkMatcher.h - a mark that has to come now --------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_CHAT_MARKMATCHER_H
#define LLMC_RUNTIME_CHAT_MARKMATCHER_H

#include "runtime/chat/JsonScanner.h"

#include <string_view>

namespace llmc {

/// White space may be in front of a mark, and more or less of it where the mark has some.
class MarkMatcher {
public:
  enum class Result { More, Done, Bad };

  /// An empty mark is Bad with the first byte that is no space. `mark` outlives it.
  explicit MarkMatcher(std::string_view mark = {}) : mark_(mark) { skip(); }

  /// Not after Done.
  Result feed(char c) {
    if (bad_ || (gap_ && isJsonSpace(c)))
      return bad_ ? Result::Bad : Result::More;
    if (at_ == mark_.size() || c != mark_[at_]) {
      bad_ = true;
      return Result::Bad;
    }
    ++at_;
    gap_ = false;
    skip();
    return at_ == mark_.size() ? Result::Done : Result::More;
  }

private:
  void skip() {
    for (; at_ < mark_.size() && isJsonSpace(mark_[at_]); ++at_)
      gap_ = true;
  }

  std::string_view mark_;
  size_t at_ = 0;
  bool gap_ = true, bad_ = false; // gap: white space may come
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_MARKMATCHER_H
