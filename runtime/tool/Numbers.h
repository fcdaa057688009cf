//===- Numbers.h - numbers that people write --------------------*- C++ -*-===//
//
// Read strictly: the whole text is the number, in decimal; no white space, no "nan".
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOOL_NUMBERS_H
#define LLMC_RUNTIME_TOOL_NUMBERS_H

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace llmc {

/// More than 64 bits hold becomes UINT64_MAX: more than any limit, so clipped like any large number.
inline bool parseCount(const std::string &text, uint64_t &value) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end && text[0] != '-') {
    value = UINT64_MAX;
    return true;
  }
  return error == std::errc() && stop == end;
}

/// Beyond 64 bits the nearest that there is.
inline bool parseInteger(const std::string &text, int64_t &value) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end)
    value = text[0] == '-' ? INT64_MIN : INT64_MAX;
  else if (error != std::errc() || stop != end)
    return false;
  return true;
}

/// Finite; what is too small to tell from 0 is 0.
inline bool parseReal(const std::string &text, double &value) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string::npos)
    return false;
  char *stop = nullptr;
  value = std::strtod(text.c_str(), &stop);
  return *stop == '\0' && stop != text.c_str() && std::isfinite(value);
}

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_NUMBERS_H
