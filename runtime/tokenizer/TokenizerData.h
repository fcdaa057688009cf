//===- TokenizerData.h - a tokenizer as plain data --------------*- C++ -*-===//
//
// What the front ends read from tokenizer.json, tokenizer.model or GGUF metadata,
// and what the package carries (serialised by TokenizerData.cpp). The runtime
// builds its Tokenizer from it. The pipeline is that of HF tokenizers:
//
//   added tokens cut out -> normalizers -> pre-tokenizers -> model      (encode)
//   token spellings -> decoders -> text                                 (decode)
//
// Each stage is an ordered list of steps of a closed set, with the meaning that
// the step of that name has in HF tokenizers 0.23 unless a comment says otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H
#define LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

/// U+2581, what SentencePiece writes for a space.
inline constexpr const char *kMetaspace = "\xE2\x96\x81";

/// A token that is cut out of the text before the pre-tokeniser runs.
struct AddedToken {
  int32_t id = -1;
  std::string content = {}; // UTF-8
  bool special = false, lstrip = false, rstrip = false, singleWord = false, normalized = false;

  bool operator==(const AddedToken &) const = default;
};

/// Whether a Metaspace step prepends its replacement, if the piece lacks it: to the
/// piece at the start of the text, to every piece between added tokens, or to none.
enum class PrependScheme : uint32_t { First = 0, Always = 1, Never = 2 };

struct NormalizerStep {
  enum class Kind : uint32_t {
    NFC = 1,
    NFD,
    NFKC,
    NFKD,
    Lowercase,
    Strip,          // left, right: White_Space at the ends
    StripAccents,   // drops marks, as far as HF tokenizers knows them (ReferenceMarks.inc); mostly after NFD
    Prepend,        // text, unless empty
    Replace,        // every literal `text` by `content`
    ReplaceRegex,   // every match of `text` by `content` (no groups)
    Bert,           // cleanText, chineseChars, stripAccents, lowercase
    Precompiled,    // text: SentencePiece's charsmap (u32 size, darts-clone units, strings); byGrapheme
    Nmt,            // control characters dropped, odd spaces to a space
    CollapseSpaces, // SentencePiece's remove_extra_whitespaces: runs of U+0020 to one, none at the ends
    ByteLevel,      // UTF-8 bytes to the GPT-2 alphabet
  };
  Kind kind = Kind::NFC;
  std::string text = {}, content = {};
  bool left = false, right = false;
  bool cleanText = false, chineseChars = false, stripAccents = false, lowercase = false;
  /// Precompiled. false: the longest rule at each place, but none inside user-defined pieces
  /// (SentencePiece: tokenizer.model, GGUF). true: HF tokenizers (tokenizer.json), where a grapheme
  /// below 6 bytes that starts with a rule becomes what the shortest such rule says.
  bool byGrapheme = false;

  bool operator==(const NormalizerStep &) const = default;
};

struct PreTokenizerStep {
  enum class Kind : uint32_t {
    Split = 1,       // pattern (PCRE2 syntax; rewritten where Oniguruma differs), behavior, invert
    SplitLiteral,    // the same for a literal
    ByteLevel,       // addPrefixSpace, useRegex (GPT-2's pattern); the model's vocabulary is in the alphabet
    Digits,          // individualDigits; Nd, Nl and No
    Metaspace,       // replacement, prepend, split
    Whitespace,      // \w+|[^\w\s]+
    WhitespaceSplit, // removes White_Space
    Punctuation,     // behavior; ASCII punctuation and general category P
    Bert,            // WhitespaceSplit, then Punctuation isolated
    UnicodeScripts,
  };
  enum class Behavior : uint32_t { Removed = 0, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
  Kind kind = Kind::Split;
  std::string pattern = {};
  Behavior behavior = Behavior::Isolated;
  bool invert = false;
  bool addPrefixSpace = false, useRegex = false;
  bool individualDigits = false;
  std::string replacement = kMetaspace; // one character
  PrependScheme prepend = PrependScheme::Always;
  bool split = true;

  bool operator==(const PreTokenizerStep &) const = default;
};

struct DecoderStep {
  enum class Kind : uint32_t {
    ByteLevel = 1, // spellings are in the alphabet; malformed UTF-8 gives U+FFFD
    Metaspace,     // text: the replacement, to a space; prepend != Never: dropped in the first token
    Replace,       // every literal `text` by `content`
    ReplaceRegex,  // every match of `text` by `content`
    ByteFallback,  // runs of <0xHH> to bytes; one U+FFFD a byte when the run is not UTF-8
    Fuse,          // all tokens to one
    Strip,         // up to start (stop) characters `text` at the start (end) of each token
    WordPiece,     // text: the prefix of a continuation, others get a space in front; cleanUp
    BPE,           // text: end-of-word suffix, to a space except in the last token
    CleanUp,       // transformers' clean_up_tokenization_spaces, on the whole text; the last step
  };
  Kind kind = Kind::Fuse;
  std::string text = {}, content = {};
  uint32_t start = 0, stop = 0;
  PrependScheme prepend = PrependScheme::Always;
  bool cleanUp = false;

  bool operator==(const DecoderStep &) const = default;
};

/// What a piece of a SentencePiece vocabulary is (values of sentencepiece_model.proto and of
/// tokenizer.ggml.token_type).
enum class PieceKind : uint8_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

struct TokenizerData {
  enum class Model : uint32_t {
    ByteLevelBPE = 1, // BPE by merges; "byte-level" when a step is ByteLevel, else over characters
    BPE = ByteLevelBPE,
    ScoredBPE, // SentencePiece's BPE: pairs whose join is a piece, the highest score first, leftmost on ties
    Unigram,   // Viterbi path of the highest sum of scores
    WordPiece, // longest match first
  } model = Model::BPE;

  /// Token spelling by id: in the byte-level alphabet (GPT-2 bytes_to_unicode) if a step
  /// is ByteLevel, else UTF-8; added tokens in plain UTF-8. Unused ids are empty.
  std::vector<std::string> tokens;
  /// BPE: merges in rank order, as spellings.
  std::vector<std::pair<std::string, std::string>> merges;
  /// ScoredBPE, Unigram: by id, as many as tokens.
  std::vector<double> scores;
  /// By id, as many as tokens, or empty: all Normal. ScoredBPE and Unigram never give Unknown,
  /// Control and Byte pieces for what the text spells; user-defined ones are always whole
  /// and unused ones split again.
  std::vector<PieceKind> kinds;

  std::vector<NormalizerStep> normalizers;
  std::vector<PreTokenizerStep> preTokenizers;
  /// Empty: ByteLevel if an encoding step is, else spellings are joined as they are.
  std::vector<DecoderStep> decoders;

  /// Short forms for a byte-level BPE whose lists above are empty: patterns applied in
  /// order (isolated), then ByteLevel. GGUF gives them by name.
  std::vector<std::string> splitPatterns;
  bool nfc = false;
  bool addPrefixSpace = false;

  bool ignoreMerges = false; // BPE: a piece that is a token is taken whole
  std::vector<AddedToken> added;
  int32_t bosId = -1, padId = -1;
  /// The model's own unknown token (tokenizer.json: model.unk_token), for what the
  /// vocabulary lacks; -1: BPE drops such characters, as HF tokenizers does; Unigram,
  /// ScoredBPE and WordPiece need one.
  int32_t unkId = -1;
  bool fuseUnk = false;      // a run of unknown characters gives one unkId
  bool byteFallback = false; // BPE, ScoredBPE, Unigram: unknown characters as <0xHH> tokens, when all are there
  /// Unigram: sum scores as float, as SentencePiece does, not as double as HF tokenizers does.
  bool singlePrecision = false;
  /// BPE: put before every character of a piece but the first, and after the last. WordPiece:
  /// continuingPrefix before every part of a word but the first ("##").
  std::string continuingPrefix, endOfWordSuffix;
  uint32_t maxWordChars = 100; // WordPiece: longer words are unknown

  /// Whether plain text starts with bosId (or prefixIds) and ends with suffixIds.
  bool addBos = false, addEos = false;
  std::vector<int32_t> eosIds; // every id that ends a turn or the text
  /// What goes before and after plain text by the post-processor. Empty prefixIds: bosId.
  std::vector<int32_t> prefixIds, suffixIds;

  /// Whether spellings are in the byte-level alphabet.
  bool byteLevel() const;

  std::string serialize() const; // throws Error for a merge of what are no tokens
  static TokenizerData deserialize(std::string_view bytes); // throws Error
};

/// Patterns of a GGUF `tokenizer.ggml.pre` name ("smollm", "llama-bpe", "qwen2", "gpt-2", ...);
/// throws Error listing the known ones.
std::vector<std::string> splitPatternsForGGUF(const std::string &pre);

/// The same, and what else the name implies: sets splitPatterns, ignoreMerges (Llama 3) and nfc (Qwen 2).
void applyPreTokenizerForGGUF(const std::string &pre, TokenizerData &data);

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_TOKENIZERDATA_H
