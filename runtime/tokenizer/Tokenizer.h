//===- Tokenizer.h - text to token ids and back -----------------*- C++ -*-===//
//
// Added tokens are cut out, the rest is normalised, split into pieces and encoded
// piece by piece (TokenizerData.h has the steps). Immutable after create(): encode
// and decode may be called from several threads.
//
//   Tokenizer tokenizer = Tokenizer::load(bytes); // of TokenizerData::serialize
//   std::vector<int32_t> ids = tokenizer.encode(text, /*parseSpecial=*/false, tokenizer.addsBos(), tokenizer.addsEos());
//
// A spelling of a special token in user text stays text: encode with parseSpecial
// false never gives a special token of more than one character, whatever the model.
// A rendered conversation has both kinds of text:
//
//   tokenizer.encode(std::vector<TextPart>{{"<|user|>", true}, {input, false}, {"<|end|>", true}}, false);
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_TOKENIZER_H
#define LLMC_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/Decoder.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/tokenizer/TokenModel.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <span>
#include <unordered_map>

namespace llmc {

/// A stretch of a longer text; parseSpecial: spellings of special tokens are those tokens.
struct TextPart {
  std::string_view text;
  bool parseSpecial;
};

class Tokenizer {
public:
  /// Throws Error for inconsistent data (a merge of unknown tokens, a bad pattern).
  static Tokenizer create(const TokenizerData &data);
  /// create(TokenizerData::deserialize(bytes)), twice as fast.
  static Tokenizer load(std::string_view bytes);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// Ids of `text`. parseSpecial: spellings of special tokens become those tokens
  /// (a rendered chat template); otherwise they stay text (user input). addBos
  /// puts the beginning-of-sequence id in front, if the model has one (or the several
  /// ids that its post-processor puts there); addEos puts the ids behind it that end a text (of a
  /// post-processor, or the end-of-sequence id), if the model has any. Malformed
  /// UTF-8 counts as U+FFFD, one per maximal subpart. Time is near linear in the
  /// text, stack use constant. Throws Error when a pattern exceeds its limits.
  std::vector<int32_t> encode(std::string_view text, bool parseSpecial, bool addBos, bool addEos = false) const;

  /// Ids of the parts as one text: normalisation, splitting and tokens that are not special
  /// reach across their borders. A special token counts only where it lies within neighbouring
  /// parts with parseSpecial. Malformed UTF-8 is replaced within each part.
  std::vector<int32_t> encode(std::span<const TextPart> parts, bool addBos) const;

  /// Text of `ids`, always valid UTF-8 (malformed bytes give U+FFFD); equal to the chunks of
  /// a DecodeStream for the same tokens. Unknown ids give nothing.
  std::string decode(std::span<const int32_t> ids, bool skipSpecial) const;

  /// Spelling of a token: bytes of a byte-level one, possibly part of a character, else UTF-8
  /// as in the vocabulary. What a token adds to the text is for decode and DecodeStream to say.
  std::string_view tokenBytes(int32_t id) const;
  /// decode joins the tokenBytes of tokens that are not left out, and then mends malformed UTF-8.
  bool decodesBytes() const { return decoder.wantsBytes(); }
  bool isSpecial(int32_t id) const;
  /// By content of an added token or spelling as in TokenizerData::tokens; -1: none.
  int32_t idOf(std::string_view spelling) const;
  bool isEos(int32_t id) const;

  size_t size() const;
  int32_t bosId() const { return bos; }
  int32_t padId() const { return pad; }
  const std::vector<int32_t> &eosIds() const { return eos; }
  /// Whether plain text (not a rendered chat) starts with bosId by default.
  bool addsBos() const { return bosByDefault; }
  /// Whether plain text ends with more ids by default, as a whole text of an encoder (BERT, T5); a prompt that is to
  /// be continued does not want them.
  bool addsEos() const { return eosByDefault; }

private:
  friend class DecodeStream;
  struct Scratch;
  struct Pool;
  class Encoder;
  Tokenizer();
  static Tokenizer create(const TokenizerData &data, std::vector<MergeIds> merges,
                          std::unique_ptr<Vocabulary> vocabulary);
  void build(const TokenizerData &data, std::vector<MergeIds> merges, std::unique_ptr<Vocabulary> vocabulary);
  void readAdded(const TokenizerData &data);
  std::vector<int32_t> encode(std::string_view text, std::span<const TextRange> special, bool addBos) const;
  std::vector<TextRange> rangesAfterNormalising(std::string_view text, std::string_view normalized,
                                                std::span<const TextRange> special) const;

  std::unique_ptr<Vocabulary> vocabulary; // at a fixed place: the model refers to it
  std::unique_ptr<TokenModel> model;
  PrefixTable userDefined;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  Decoder decoder;
  AddedTokens rawAdded, normalizedAdded;
  std::unique_ptr<Pool> pool; // memory of encoders, kept between calls
  std::vector<AddedToken> added;
  /// Contents of added tokens that the normaliser changes: as the reference does, decoding gives these.
  std::unordered_map<int32_t, std::string> normalizedContents;
  std::vector<bool> special; // by id
  std::vector<int32_t> eos, prefix, suffix; // what addBos puts in front and addEos behind
  int32_t bos = -1, pad = -1;
  bool bosByDefault = false, eosByDefault = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_TOKENIZER_H
