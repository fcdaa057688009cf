//===- Unigram.h - the most likely segmentation -----------------*- C++ -*-===//
//
// A unigram language model over pieces (Kudo 2018, arXiv:1804.10959): of all ways
// to cut a text into pieces the one whose scores, logarithms of probabilities,
// have the largest sum; one pass from left to right (Viterbi).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_UNIGRAM_H
#define LLMC_RUNTIME_TOKENIZER_UNIGRAM_H

#include "runtime/tokenizer/PrefixTable.h"
#include "runtime/tokenizer/TokenModel.h"

namespace llmc {

class Unigram final : public TokenModel {
public:
  Unigram(const TokenizerData &data, const Vocabulary &vocabulary);

  /// Throws Error for an unknown character without an unknown token or byte tokens.
  void encode(std::string_view piece, std::vector<int32_t> &ids) const override;

private:
  template <typename Score> struct Node;
  template <typename Score> void viterbi(std::string_view piece, std::vector<int32_t> &ids) const;
  void emit(std::string_view text, int32_t id, std::vector<int32_t> &ids) const;
  double scoreOf(int32_t id, size_t characters) const;

  const Vocabulary &vocabulary;
  PrefixTable table;
  std::vector<double> scores;
  std::vector<bool> userDefined; // empty: none
  ByteTokens byteTokens;
  double unkScore = 0;
  int32_t unkId;
  bool byteFallback, singlePrecision;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_UNIGRAM_H
