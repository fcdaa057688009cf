//===- FastSplit.h - the common split patterns by hand ----------*- C++ -*-===//
//
// The patterns of GPT-2, Llama 3 and Qwen 2 as loops over characters, several
// times faster than a regular expression. Each gives exactly what its pattern
// does (test/runtime/tokenizer/FastSplitTest.cpp compares them with PCRE2).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_FASTSPLIT_H
#define LLMC_RUNTIME_TOKENIZER_FASTSPLIT_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace llmc {

enum class FastPattern : uint8_t {
  None,
  GPT2,
  Llama3, // up to three digits, no limit on letters
  Qwen2,  // single digits
};

/// Which of them `pattern` is; None: another.
FastPattern recognisePattern(std::string_view pattern);

extern const char *const kGPT2Pattern;

/// The end of the match at `at`, below text.size(); these patterns match everywhere. `text` is
/// valid UTF-8 and `at` a character's start.
size_t endOfPiece(FastPattern pattern, std::string_view text, size_t at);

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_FASTSPLIT_H
