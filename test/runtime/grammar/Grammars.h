// What the tests of grammars share.
#ifndef LLMC_TEST_RUNTIME_GRAMMAR_GRAMMARS_H
#define LLMC_TEST_RUNTIME_GRAMMAR_GRAMMARS_H

#include "runtime/grammar/Constraint.h"
#include "runtime/grammar/Gbnf.h"
#include "runtime/grammar/Regex.h"

#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace llmc::grammars {

inline std::shared_ptr<const Grammar> regex(const std::string &pattern, const RegexOptions &options = {}) {
  GrammarBuilder g;
  return g.build(addRegex(g, pattern, options));
}
inline std::shared_ptr<const Grammar> gbnf(const std::string &text) {
  GrammarBuilder g;
  return g.build(addGbnf(g, text));
}

/// Of this thread's processor: a busy machine does not count.
inline double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

enum class Match { No, Begins, Whole };
/// Whether the text is one of the grammar's, or the beginning of one.
inline Match match(const Grammar &grammar, std::string_view text) {
  Machine machine(grammar);
  uint32_t set = machine.start();
  for (char c : text)
    set = machine.step(set, uint8_t(c));
  return set == Machine::kDead ? Match::No : machine.accepting(set) ? Match::Whole : Match::Begins;
}
inline bool matches(const Grammar &grammar, std::string_view text) { return match(grammar, text) == Match::Whole; }

/// Every byte, then pieces of them as a byte-level vocabulary has: runs of letters, of JSON's marks, of UTF-8.
inline std::vector<std::string> vocabulary() {
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b)
    tokens.emplace_back(1, char(b));
  for (const char *piece : {"\"", "\":", "\": ", "\": \"", "\",", "\", \"", "\"}", "\"]", "{\"", "[{\"", "}}", "]]", "},", "[[", "[[[[[[[[", ", ", ",\n", "\n  ", "    ",
                            "                        ", "true", "false", "null", "tru", "alse", "name", "\"name", "\"name\": ", "12", "123", "00", "-1", "0.5", ".5", "e1", "E+",
                            "\\n", "\\u", "\\u00", "\\\"", "\\\\", "é", "ü", "\xE6\x97", "\xA5", "\xE6\x97\xA5", "\xF0\x9F", "\x98\x80", "\xF0\x9F\x98\x80", "the", " the", "ing",
                            "abababababababababab", "aaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "----------------------------------------", "<tool", "_call>", "</"})
    tokens.push_back(piece);
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    std::string token;
    for (uint32_t n = 2 + random() % 4; n; --n)
      token += "abcdefgz0129 \",:[]{}.-"[random() % 22];
    tokens.push_back(token);
  }
  tokens.push_back(""); // a special one
  return tokens;
}

} // namespace llmc::grammars

#endif // LLMC_TEST_RUNTIME_GRAMMAR_GRAMMARS_H
