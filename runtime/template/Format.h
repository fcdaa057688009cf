//===- Format.h - numbers as % and format() write them ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_FORMAT_H
#define LLMC_RUNTIME_TEMPLATE_FORMAT_H

#include "runtime/template/Filters.h"

namespace llmc::jinja {

/// Digits of a float without its sign, for the types e f g and their capitals;
/// `alternate` keeps the point and, for g, zeros.
std::string floatDigits(Runtime &runtime, double value, char type, int64_t precision, bool alternate);
/// `text` by characters to `width`, by the alignment '<', '>', '^' or '='; '='
/// fills after the sign and prefix, which `head` holds.
std::string padded(Runtime &runtime, const std::string &head, const std::string &text, const std::string &fill, char align,
                   int64_t width);
/// Python's repr() in ASCII.
std::string asciiRepr(Runtime &runtime, const Value &value);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_FORMAT_H
