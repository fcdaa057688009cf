//===- Regex.h - regular expressions as grammars ----------------*- C++ -*-===//
//
// What Perl's, Python's and ECMAScript's expressions have in common: literals, ., classes,
// \d \w \s and their opposites, groups, |, * + ? {m} {m,} {m,n} (lazy ones, too: the
// texts are the same), ^ and $ at the ends. The rest (back references, look-around,
// \b, \p, flags) is refused by name. Where they differ, what all of them match counts.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_REGEX_H
#define LLMC_RUNTIME_GRAMMAR_REGEX_H

#include "runtime/grammar/GrammarBuilder.h"

#include <functional>

namespace llmc {

struct RegexOptions {
  /// Text may be around what matches, where no ^ or $ says otherwise: a JSON schema's `pattern`.
  bool search = false;
  /// How one character of a set is spelled; empty: in UTF-8.
  std::function<Expression(const CharacterSet &)> spell;
};

/// Throws GrammarError with the byte in the expression ("regex, byte 3: expected ..., got ...").
Expression addRegex(GrammarBuilder &builder, std::string_view pattern, const RegexOptions &options = {});

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_REGEX_H
