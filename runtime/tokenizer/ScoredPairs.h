//===- ScoredPairs.h - SentencePiece's byte pair encoding -------*- C++ -*-===//
//
// Any two neighbours whose join is a piece may be joined; the piece of the highest
// score first, the leftmost on ties (Kudo and Richardson 2018, arXiv:1808.06226).
// User-defined pieces are cut out beforehand and stay whole; unused ones are made
// on the way to longer pieces and, where they remain, taken apart again.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_SCOREDPAIRS_H
#define LLMC_RUNTIME_TOKENIZER_SCOREDPAIRS_H

#include "runtime/tokenizer/PrefixTable.h"
#include "runtime/tokenizer/TokenModel.h"

namespace llmc {

class ScoredPairs final : public TokenModel {
public:
  /// Throws Error without an unknown token or byte tokens for what the vocabulary lacks.
  ScoredPairs(const TokenizerData &data, const Vocabulary &vocabulary);

  void encode(std::string_view piece, std::vector<int32_t> &ids) const override;
  size_t independentPrefix(std::string_view piece) const override { return joinable.stretch(piece); }
  int32_t fusedUnknown() const override { return unkId; }

private:
  struct Symbol;
  struct Run;
  int32_t pieceId(std::string_view text) const; // -1: no piece that text may spell
  void segment(std::string_view piece, std::vector<Symbol> &symbols) const;
  void merge(Run &run) const;
  void emit(std::string_view text, const Run &run, std::vector<int32_t> &ids) const;
  void emitUnknown(std::string_view text, std::vector<int32_t> &ids) const;

  const Vocabulary &vocabulary;
  std::vector<float> scores;
  std::vector<bool> unused;
  bool anyUnused = false;
  PrefixTable userDefined;
  ByteTokens byteTokens;
  JoinablePairs joinable;
  int32_t unkId;
  bool byteFallback;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_SCOREDPAIRS_H
