//===- Lexer.h - template source to tokens ----------------------*- C++ -*-===//
//
// Follows jinja2's lexer with the settings of transformers: trim_blocks,
// lstrip_blocks, and one newline at the end of the source dropped.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_LEXER_H
#define LLMC_RUNTIME_TEMPLATE_LEXER_H

#include "llmc/Support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::jinja {

/// 1-based line and column (in characters) of the template source.
struct Position {
  uint32_t line = 1, column = 1;
};

[[noreturn]] void failAt(Position at, const std::string &message);

struct Token {
  enum class Kind { Text, BlockBegin, BlockEnd, VariableBegin, VariableEnd, Name, Integer, Float, String, Operator, End };
  Kind kind;
  std::string text; // decoded string, name, operator, or number without underscores
  Position at;
};

/// Throws Error with line and column.
std::vector<Token> tokenize(std::string_view source);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_LEXER_H
