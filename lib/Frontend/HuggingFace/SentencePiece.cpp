//===- SentencePiece.cpp - tokenizer.model to TokenizerData ---------------===//
//
// SentencePiece (Kudo and Richardson 2018, arXiv:1808.06226) as steps: its charsmap,
// spaces, and one of its models. Its decoder drops the space that encoding put in
// front and turns byte pieces into text.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "SentencePieceModel.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

using namespace llmc;
using namespace llmc::huggingface;

using Normalizer = NormalizerStep::Kind;
using Decoder = DecoderStep::Kind;

static void addNormalizers(const SentencePieceModel &model, bool legacy, TokenizerData &out) {
  const SentencePieceModel::Normalizer &rules = model.normalizer;
  const std::string space = rules.escapeWhitespaces ? kMetaspace : " ";
  if (!rules.charsmap.empty())
    out.normalizers.push_back({.kind = Normalizer::Precompiled, .text = rules.charsmap});
  if (rules.removeExtraWhitespaces)
    out.normalizers.push_back({.kind = Normalizer::CollapseSpaces});
  if (rules.escapeWhitespaces)
    out.normalizers.push_back({.kind = Normalizer::Replace, .text = " ", .content = space});
  if (!rules.addDummyPrefix)
    return;
  if (model.treatWhitespaceAsSuffix)
    out.normalizers.push_back({.kind = Normalizer::ReplaceRegex, .text = "(?<=(?s:.))\\z", .content = space});
  else if (legacy)
    out.normalizers.push_back({.kind = Normalizer::Prepend, .text = space});
  else
    out.preTokenizers.push_back({.kind = PreTokenizerStep::Kind::Metaspace,
                                 .replacement = space,
                                 .prepend = PrependScheme::First,
                                 .split = false});
}

static void addDecoders(const SentencePieceModel &model, TokenizerData &out) {
  const SentencePieceModel::Normalizer &rules = model.normalizer;
  if (rules.escapeWhitespaces)
    out.decoders.push_back({.kind = Decoder::Replace, .text = kMetaspace, .content = " "});
  if (model.byteFallback)
    out.decoders.push_back({.kind = Decoder::ByteFallback});
  out.decoders.push_back({.kind = Decoder::Fuse});
  // Encoding puts one space in front, or, where extra ones go, none of the text's own is left there.
  if (rules.removeExtraWhitespaces)
    out.decoders.push_back({.kind = Decoder::Strip, .text = " ", .start = 1u << 30});
  else if (rules.addDummyPrefix && !model.treatWhitespaceAsSuffix)
    out.decoders.push_back({.kind = Decoder::Strip, .text = " ", .start = 1});
}

TokenizerData huggingface::readSentencePiece(const SentencePieceModel &model, bool legacy, const std::string &file) {
  if (model.type == SentencePieceModel::Type::Word)
    throw Error(file + ": trainer_spec.model_type: expected unigram, BPE or char, got word");
  if (!model.denormalizer.charsmap.empty())
    throw Error(file + ": denormalizer_spec.precompiled_charsmap: expected none, got " +
                std::to_string(model.denormalizer.charsmap.size()) + " bytes");
  TokenizerData out;
  // A char model has no piece of several characters, so that nothing joins.
  bool unigram = model.type == SentencePieceModel::Type::Unigram;
  out.model = unigram ? TokenizerData::Model::Unigram : TokenizerData::Model::ScoredBPE;
  out.singlePrecision = true;
  out.byteFallback = model.byteFallback;
  out.fuseUnk = true;
  out.unkId = model.unkId;
  for (const SentencePieceModel::Piece &piece : model.pieces) {
    // Control tokens are never what text spells, but a rendered chat template may name them.
    if (piece.kind == PieceKind::Control || piece.kind == PieceKind::Unknown)
      out.added.push_back(
          {.id = static_cast<int32_t>(out.tokens.size()), .content = piece.text, .special = true});
    out.tokens.push_back(piece.text);
    out.scores.push_back(piece.score);
    out.kinds.push_back(piece.kind);
  }
  addNormalizers(model, legacy, out);
  addDecoders(model, out);
  out.bosId = model.bosId;
  out.padId = model.padId;
  if (model.eosId >= 0)
    out.eosIds.push_back(model.eosId);
  out.addBos = out.bosId >= 0; // unless tokenizer_config.json says otherwise
  return out;
}
