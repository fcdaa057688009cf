//===- SentencePieceModel.h - a tokenizer.model file ------------*- C++ -*-===//
//
// SentencePiece's ModelProto (google/sentencepiece, src/sentencepiece_model.proto),
// a protobuf message, as plain structs. Only the fields that decide what text becomes
// are kept; unknown ones are skipped, as protobuf prescribes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_FRONTEND_HUGGINGFACE_SENTENCEPIECEMODEL_H
#define LLMC_LIB_FRONTEND_HUGGINGFACE_SENTENCEPIECEMODEL_H

#include "runtime/tokenizer/TokenizerData.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::huggingface {

struct SentencePieceModel {
  enum class Type : uint32_t { Unigram = 1, BPE = 2, Word = 3, Char = 4 };
  struct Piece {
    std::string text; // UTF-8, not empty
    float score = 0;  // finite
    PieceKind kind = PieceKind::Normal;
  };
  /// How text is normalised (normalizer_spec) or denormalised after decoding.
  struct Normalizer {
    std::string charsmap; // precompiled_charsmap
    bool addDummyPrefix = true, removeExtraWhitespaces = true, escapeWhitespaces = true;
  };

  std::vector<Piece> pieces;
  Type type = Type::Unigram;
  bool treatWhitespaceAsSuffix = false, byteFallback = false;
  // -1: none. The unknown piece is the one of kind Unknown, whatever unk_id says.
  int32_t unkId = 0, bosId = 1, eosId = 2, padId = -1;
  Normalizer normalizer, denormalizer;

  /// Throws Error naming `file`, the field and its byte, for bytes that are no ModelProto or
  /// whose pieces SentencePiece itself refuses: empty or repeated ones, no unknown piece
  /// (unless bytes spell everything) or two, byte_fallback without 256 byte pieces. Extents in the bytes never drive an allocation.
  static SentencePieceModel parse(std::string_view bytes, const std::string &file);
};

/// The same as a tokenizer (SentencePiece.cpp). legacy: every stretch between added tokens
/// gets the space in front, not only the first (the flag of tokenizer_config.json).
TokenizerData readSentencePiece(const SentencePieceModel &model, bool legacy, const std::string &file);

} // namespace llmc::huggingface

#endif // LLMC_LIB_FRONTEND_HUGGINGFACE_SENTENCEPIECEMODEL_H
