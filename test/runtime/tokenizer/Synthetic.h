// Tiny vocabularies for tests.
#ifndef LLMC_TEST_RUNTIME_TOKENIZER_SYNTHETIC_H
#define LLMC_TEST_RUNTIME_TOKENIZER_SYNTHETIC_H

#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <ctime>

namespace llmc::test {

/// Of this thread: wall time says little on a shared machine.
inline double cpuSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Ids 0-255 are the bytes; then one token a merge; then the added tokens.
inline TokenizerData byteVocabulary(const std::vector<std::string> &patterns) {
  TokenizerData data;
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    data.tokens.push_back(toAlphabet({&c, 1}));
  }
  data.splitPatterns = patterns;
  return data;
}

inline int32_t addMerge(TokenizerData &data, std::string_view left, std::string_view right) {
  data.merges.emplace_back(toAlphabet(left), toAlphabet(right));
  data.tokens.push_back(toAlphabet(left) + toAlphabet(right));
  return static_cast<int32_t>(data.tokens.size() - 1);
}

inline int32_t addToken(TokenizerData &data, AddedToken token) {
  token.id = static_cast<int32_t>(data.tokens.size());
  data.tokens.push_back(token.content);
  data.added.push_back(token);
  return token.id;
}

/// Bytes of each token of `text`, e.g. {"p", "<|turn|>"}.
inline std::vector<std::string> spellings(const Tokenizer &tokenizer, std::string_view text, bool parseSpecial = true) {
  std::vector<std::string> out;
  for (int32_t id : tokenizer.encode(text, parseSpecial, false))
    out.emplace_back(tokenizer.tokenBytes(id));
  return out;
}

/// Pieces of `text` after all patterns of a GGUF pre-tokeniser, joined by "|".
inline std::string splitAs(const std::string &pre, std::string_view text) {
  std::vector<std::string_view> pieces{text}, next;
  for (const std::string &pattern : splitPatternsForGGUF(pre)) {
    next.clear();
    SplitPattern split(pattern);
    for (std::string_view piece : pieces)
      split.split(piece, next);
    pieces.swap(next);
  }
  std::string out;
  for (std::string_view piece : pieces)
    (out += out.empty() ? "" : "|").append(piece);
  return out;
}

} // namespace llmc::test

#endif // LLMC_TEST_RUNTIME_TOKENIZER_SYNTHETIC_H
