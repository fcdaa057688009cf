//===- Format.h - numbers for people ----------------------------*- C++ -*-===//
#ifndef LLMC_LIB_EXPLAIN_FORMAT_H
#define LLMC_LIB_EXPLAIN_FORMAT_H

#include "llmc/Explain/Explanation.h"

#include <cstdarg>
#include <cstdio>
#include <string>

namespace llmc {

/// std::printf into a string.
[[gnu::format(printf, 1, 2)]] inline std::string text(const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string result(size_t(std::vsnprintf(nullptr, 0, format, arguments)), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(arguments);
  va_end(again);
  return result;
}

/// Three digits and a unit of thousands: "4.80 TB/s", "989 TFLOP/s".
inline std::string scaled(double value, const char *unit) {
  static constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(prefixes))
    value /= 1000, ++prefix;
  const int digits = value >= 99.5 || value == 0 ? 0 : value >= 9.95 ? 1 : 2;
  return text("%.*f %s%s", digits, value, prefixes[prefix], unit);
}

inline std::string timeText(double seconds) {
  return seconds >= 1 ? text("%.2f s", seconds) : seconds >= 1e-3 ? text("%.3f ms", seconds * 1e3) : text("%.2f us", seconds * 1e6);
}

/// "memory", "bf16"
inline std::string boundName(const KernelRow &row) { return row.memoryBound() ? "memory" : arithmeticName(row.arithmetic); }

/// "memory, 20.0 GB/s", "bf16, 989 TFLOP/s"
inline std::string ceilingText(const KernelRow &row, const Hardware &hardware) {
  return boundName(row) + ", " +
         (row.memoryBound() ? scaled(hardware.bandwidth, "B/s") : scaled(hardware.peak(row.arithmetic), "FLOP/s"));
}

/// What the step waits for, in a sentence or two.
std::string summary(const Explanation &explanation);

/// The picture: log-log, every kernel a point; for a page that sets the colours (Html.cpp).
std::string rooflineSvg(const Explanation &explanation);
/// Text inside HTML and SVG.
std::string escaped(const std::string &text);

} // namespace llmc

#endif // LLMC_LIB_EXPLAIN_FORMAT_H
