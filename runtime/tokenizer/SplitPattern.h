//===- SplitPattern.h - one pre-tokeniser pattern ---------------*- C++ -*-===//
//
// The model's own regular expression (Oniguruma syntax in tokenizer.json) run by
// PCRE2. Matches and the gaps between them both become pieces (the "isolated"
// behaviour of HF tokenizers).
//
// Where the two engines differ, the pattern is rewritten before compilation:
// PCRE2's \s has U+180E, the reference's has not; ^ and $ match at line ends.
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
  /// Throws Error with PCRE2's message and the offset for a bad pattern.
  explicit SplitPattern(const std::string &pattern);
  ~SplitPattern();
  SplitPattern(SplitPattern &&) noexcept;
  SplitPattern &operator=(SplitPattern &&) noexcept;

  /// Appends the pieces of `text` (valid UTF-8), in order, none empty; they
  /// cover it. Stack use does not depend on the text. May be called from
  /// several threads. Throws Error when matching exceeds PCRE2's limits.
  void split(std::string_view text, std::vector<std::string_view> &pieces) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_SPLITPATTERN_H
