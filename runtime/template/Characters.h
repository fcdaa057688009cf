//===- Characters.h - Python's view of characters ---------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_CHARACTERS_H
#define LLMC_RUNTIME_TEMPLATE_CHARACTERS_H

#include "runtime/tokenizer/Utf8.h"

namespace llmc::jinja {

/// str.isspace, and `\s` of Python's regular expressions.
bool isSpace(uint32_t c);
/// str.isprintable, which repr() uses.
bool isPrintable(uint32_t c);
bool isAlpha(uint32_t c);
bool isDecimal(uint32_t c);
bool isDigit(uint32_t c);
bool isNumeric(uint32_t c);
bool isAlnum(uint32_t c);
bool isUpper(uint32_t c);
bool isLower(uint32_t c);
bool isTitle(uint32_t c);
inline bool isCased(uint32_t c) { return isUpper(c) || isLower(c) || isTitle(c); }
/// Letters, digits, underscore: `\w`.
bool isWord(uint32_t c);
/// Of a decimal digit in any script.
unsigned digitValue(uint32_t c);

/// str.upper and so on, with mappings to several characters and final sigmas.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string titleCase(std::string_view text);
std::string swapCase(std::string_view text);
std::string caseFold(std::string_view text);

/// Calls f(code point, its bytes) for every character.
template <typename F> void forEachCharacter(std::string_view text, F f) {
  while (!text.empty()) {
    utf8::Decoded d = utf8::decode(text);
    f(d.codePoint, text.substr(0, d.length));
    text.remove_prefix(d.length);
  }
}

size_t countCharacters(std::string_view text);
/// Byte offset of the character with that index (text.size() beyond the end).
size_t offsetOf(std::string_view text, size_t character);

/// str.strip and its one-sided forms; a null `characters` means white space.
std::string_view strip(std::string_view text, const std::string *characters, bool left, bool right);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_CHARACTERS_H
