//===- HexDigit.h - values of hexadecimal digits ----------------*- C++ -*-===//
#ifndef LLMC_SUPPORT_HEXDIGIT_H
#define LLMC_SUPPORT_HEXDIGIT_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace llmc {

/// 0 to 15 of a digit in either case; -1: it is none. No locale has a say.
constexpr int hexDigit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The number that `digits` (at most 8) of them from `at` on say; `at` goes behind what was read. None: one of them is none, or
/// the text ends.
constexpr std::optional<uint32_t> readHex(std::string_view text, size_t &at, unsigned digits) {
  uint32_t value = 0;
  for (unsigned i = 0; i < digits; ++i) {
    const int digit = at < text.size() ? hexDigit(text[at++]) : -1;
    if (digit < 0)
      return std::nullopt;
    value = value * 16 + uint32_t(digit);
  }
  return value;
}

} // namespace llmc

#endif // LLMC_SUPPORT_HEXDIGIT_H
