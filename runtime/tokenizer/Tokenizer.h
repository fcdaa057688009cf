//===- Tokenizer.h - text to token ids and back -----------------*- C++ -*-===//
//
// Added tokens are cut out, the rest is normalised (NFC where the model has it),
// split by the model's own patterns and encoded piece by piece. Immutable after
// create(): encode and decode may be called from several threads.
//
//   Tokenizer tokenizer = Tokenizer::load(bytes); // of TokenizerData::serialize
//   std::vector<int32_t> ids = tokenizer.encode(text, /*parseSpecial=*/false, tokenizer.addsBos());
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_TOKENIZER_H
#define LLMC_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/BytePairs.h"
#include "runtime/tokenizer/SplitPattern.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <span>

namespace llmc {

class Tokenizer {
public:
  /// Throws Error for inconsistent data (a merge of unknown tokens, a bad pattern).
  static Tokenizer create(const TokenizerData &data);
  /// create(TokenizerData::deserialize(bytes)), twice as fast.
  static Tokenizer load(std::string_view bytes);

  /// Ids of `text`. parseSpecial: spellings of special tokens become those tokens
  /// (a rendered chat template); otherwise they stay text (user input). addBos
  /// puts the beginning-of-sequence id in front, if the model has one. Malformed
  /// UTF-8 counts as U+FFFD, one per maximal subpart. Time is near linear in the
  /// text, stack use constant. Throws Error when a pattern exceeds its limits.
  std::vector<int32_t> encode(std::string_view text, bool parseSpecial, bool addBos) const;

  /// Text of `ids`, always valid UTF-8 (malformed bytes give U+FFFD); equal to
  /// what Utf8Stream returns for the same tokens. Unknown ids give nothing.
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const;

  /// What a token adds to the text, possibly part of a character.
  std::string_view tokenBytes(int32_t id) const { return pairs.bytesOf(id); }
  bool isSpecial(int32_t id) const;
  /// By content of an added token or spelling in the byte-level alphabet; -1: none.
  int32_t idOf(std::string_view spelling) const;
  bool isEos(int32_t id) const;

  size_t size() const { return pairs.size(); }
  int32_t bosId() const { return bos; }
  int32_t padId() const { return pad; }
  const std::vector<int32_t> &eosIds() const { return eos; }
  /// Whether plain text (not a rendered chat) starts with bosId by default.
  bool addsBos() const { return bosByDefault; }

private:
  static Tokenizer create(const TokenizerData &data, BytePairs pairs);
  void encodeText(std::string_view text, std::vector<int32_t> &ids) const;

  BytePairs pairs;
  AddedTokens rawAdded, normalizedAdded;
  std::vector<SplitPattern> patterns;
  std::vector<AddedToken> added;
  std::vector<bool> special; // by id
  std::vector<int32_t> eos;
  int32_t bos = -1, pad = -1;
  bool bosByDefault = false, nfc = false, addPrefixSpace = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_TOKENIZER_H
