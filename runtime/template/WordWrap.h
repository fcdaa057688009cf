//===- WordWrap.h - lines of a width, as Python's textwrap ------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_WORDWRAP_H
#define LLMC_RUNTIME_TEMPLATE_WORDWRAP_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc::jinja {

struct WordWrap {
  int64_t width = 79; // characters
  bool breakLongWords = true, breakOnHyphens = true;
};

/// textwrap.wrap without expanding tabs or replacing white space.
std::vector<std::string> wrapWords(const std::string &text, const WordWrap &options);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_WORDWRAP_H
