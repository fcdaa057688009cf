//===- OutputBytes.h - what a token adds to its text ------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_GRAMMAR_OUTPUTBYTES_H
#define LLMC_RUNTIME_GRAMMAR_OUTPUTBYTES_H

#include "runtime/tokenizer/Tokenizer.h"

#include <string>

namespace llmc {

/// The bytes by which decoded text grows with a token. Of a byte-level vocabulary they are its spelling; else they are found by
/// decoding, since a decoder may turn "▁" into a space, drop the first one, or read <0x41> as a byte. Empty for a token whose text depends
/// on those beside it.
class OutputBytes {
public:
  /// `tokenizer` outlives it.
  explicit OutputBytes(const Tokenizer &tokenizer);
  std::string of(int32_t id) const;
  std::string ofFirst(int32_t id) const;

private:
  const Tokenizer &tokenizer_;
  int32_t probe_ = -1;          // a token of plain text
  std::string before_, behind_; // its text in front of others and behind them
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_OUTPUTBYTES_H
