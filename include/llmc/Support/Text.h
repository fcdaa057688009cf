//===- Text.h - text for messages -------------------------------*- C++ -*-===//
#ifndef LLMC_SUPPORT_TEXT_H
#define LLMC_SUPPORT_TEXT_H

#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// True when `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool isValidUtf8(std::string_view text);

/// `text` in double quotes, made safe for a terminal: control characters and
/// ill-formed bytes as \xNN, at most `limit` bytes followed by "...".
std::string quote(std::string_view text, size_t limit = 80);

/// quote(text, limit) without the quotes.
std::string printable(std::string_view text, size_t limit = 80);

/// "a, b, c".
std::string join(const std::vector<std::string> &parts, std::string_view separator = ", ");

/// "[2, 3]".
template <class Range> std::string shapeString(const Range &shape) {
  std::string text = "[";
  for (auto extent : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

} // namespace llmc

#endif // LLMC_SUPPORT_TEXT_H
