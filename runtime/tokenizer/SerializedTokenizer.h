//===- SerializedTokenizer.h - what the binary form holds -------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOKENIZER_SERIALIZEDTOKENIZER_H
#define LLMC_RUNTIME_TOKENIZER_SERIALIZEDTOKENIZER_H

#include "runtime/tokenizer/TokenModel.h"

namespace llmc {

/// Between bytes and a Tokenizer, without the spellings of the merges.
struct SerializedTokenizer {
  TokenizerData data; // without merges
  std::vector<MergeIds> merges;

  /// Throws Error; all ids of the merges are within data.tokens.
  static SerializedTokenizer read(std::string_view bytes);
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_SERIALIZEDTOKENIZER_H
