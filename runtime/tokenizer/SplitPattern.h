//===- SplitPattern.h - one pre-tokeniser pattern ---------------*- C++ -*-===//
//
// The model's own regular expression (Oniguruma syntax in tokenizer.json) run by PCRE2.
//
// Where the two engines differ, the pattern is rewritten before compilation:
// PCRE2's \s has U+180E, the reference's has not; its \w lacks marks; ^ and $ match at line ends.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_SPLITPATTERN_H
#define LLMC_RUNTIME_TOKENIZER_SPLITPATTERN_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class SplitPattern {
public:
  /// PCRE2's memory for one search at a time. Frames of the interpreter live on the
  /// heap; the JIT starts on 32 KiB of the machine stack and, when that does not
  /// suffice, goes on with a mapped stack that grows on demand.
  class Matcher;
  struct MatcherDelete {
    void operator()(Matcher *matcher) const;
  };
  using MatcherPointer = std::unique_ptr<Matcher, MatcherDelete>;

  /// Throws Error with PCRE2's message and the offset for a bad pattern.
  explicit SplitPattern(const std::string &pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern &&) noexcept;
  SplitPattern &operator=(SplitPattern &&) noexcept;

  MatcherPointer matcher() const;

  /// Calls each(begin, end, isMatch) for the matches in `text` (valid UTF-8) and the gaps
  /// between them, in order; together they cover it. Only matches may be empty. Stack use
  /// does not depend on the text. Throws Error when matching exceeds PCRE2's limits.
  template <typename Each> void segments(Matcher &matcher, std::string_view text, Each &&each) const {
    size_t done = 0;
    for (size_t from = 0; from < text.size();) {
      size_t begin, end;
      if (!find(matcher, text, from, done, begin, end))
        break;
      if (begin > done)
        each(done, begin, false);
      each(begin, end, true);
      done = end;
      from = begin == end ? nextCharacter(text, end) : end; // an empty match moves on by a character
    }
    if (done < text.size())
      each(done, text.size(), false);
  }

  /// Appends the pieces of `text`, matches and gaps, none empty. May be called from several threads.
  void split(std::string_view text, std::vector<std::string_view> &pieces) const;
  /// `text` with every match replaced.
  std::string replace(std::string_view text, std::string_view content) const;

private:
  /// The next match at or after `from`; it starts at or after `done`.
  bool find(Matcher &matcher, std::string_view text, size_t from, size_t done, size_t &begin, size_t &end) const;
  static size_t nextCharacter(std::string_view text, size_t at);

  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_SPLITPATTERN_H
