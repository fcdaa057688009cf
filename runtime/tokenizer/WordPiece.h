//===- WordPiece.h - longest match first ------------------------*- C++ -*-===//
//
// The longest token that starts the word, then the longest continuation, and so on
// (Schuster and Nakajima 2012; Devlin et al. 2018, arXiv:1810.04805). A word that
// cannot be covered, or is too long, is one unknown token.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_WORDPIECE_H
#define LLMC_RUNTIME_TOKENIZER_WORDPIECE_H

#include "runtime/tokenizer/PrefixTable.h"
#include "runtime/tokenizer/TokenModel.h"

namespace llmc {

class WordPiece final : public TokenModel {
public:
  /// Throws Error without an unknown token.
  WordPiece(const TokenizerData &data, const Vocabulary &vocabulary);

  void encode(std::string_view word, std::vector<int32_t> &ids) const override;

private:
  PrefixTable table;
  std::string prefix;
  uint64_t prefixHash;
  int32_t unkId;
  size_t maxChars;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_WORDPIECE_H
