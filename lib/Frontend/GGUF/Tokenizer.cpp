//===- Tokenizer.cpp - tokenizer.ggml.* to TokenizerData ------------------===//
//
// GGUF keeps less than tokenizer.json: the pre-tokeniser is a name, the flags of
// added tokens (strip, single word) are gone, and the ids that end a turn are
// partly implied by their spelling. The rules for what is implied are llama.cpp's
// (src/llama-vocab.cpp), which wrote the files.
//
// tokenizer.ggml.model says which kind: gpt2 (BPE by merges, in the byte-level
// alphabet), gemma4 (the same over characters), llama (SentencePiece BPE), t5
// (SentencePiece unigram), bert (WordPiece).
//
//===----------------------------------------------------------------------===//
#include "../HuggingFace/SentencePieceModel.h"
#include "../HuggingFace/TokenizerSteps.h"
#include "GGUF.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

using namespace llmc;
using namespace llmc::gguf;
using huggingface::SentencePieceModel;

namespace {

/// Spellings that end a turn whatever the file's eos key says.
bool endsTurn(const std::string &spelling) {
  static const std::unordered_set<std::string> known = {
      "<|eot_id|>",   "<|im_end|>", "<|end|>",   "<end_of_turn>",   "<|endoftext|>",     "<|eom_id|>",
      "<EOT>",        "_<EOT>",     "[EOT]",     "<|end_of_text|>", "<end_of_utterance>", "</s>",
      "<|return|>",   "<|call|>",   "<|calls|>", "<|flush|>",       "<eos>",             "<turn|>",
      "<|tool_response>", "<｜end▁of▁sentence｜>", "[EOS]", "[e~["};
  return known.count(spelling) > 0;
}

class TokenizerReader {
public:
  explicit TokenizerReader(const Metadata &metadata) : metadata(metadata) {}

  TokenizerData run() {
    const std::string known = "\"gpt2\", \"llama\", \"t5\", \"bert\" or \"gemma4\"";
    const std::string *model = metadata.string("tokenizer.ggml.model");
    if (!model)
      metadata.fail("tokenizer.ggml.model", "expected " + known + ", got no such key");
    readTokens();
    readKinds();
    if (*model == "gpt2")
      readByteLevel();
    else if (*model == "gemma4")
      readGemma4();
    else if (*model == "llama" || *model == "t5")
      readSentencePieces(*model == "t5");
    else if (*model == "bert")
      readWordPiece();
    else
      metadata.fail("tokenizer.ggml.model", "expected " + known + ", got " + quote(*model));
    readSpecialIds();
    return std::move(out);
  }

private:
  bool flag(const char *key, bool fallback) const { return metadata.boolean(key).value_or(fallback); }

  void readTokens() {
    const auto *tokens = metadata.strings("tokenizer.ggml.tokens");
    if (!tokens || tokens->empty())
      metadata.fail("tokenizer.ggml.tokens", "expected an array of strings, got none");
    for (size_t i = 0; i < tokens->size(); ++i)
      if (!isValidUtf8((*tokens)[i]))
        metadata.fail("tokenizer.ggml.tokens",
                      "token " + std::to_string(i) + ": expected UTF-8, got " + quote((*tokens)[i]));
    out.tokens = *tokens;
    metadata.checkArray("tokenizer.ggml.scores", ValueType::F32);
  }

  /// The type of each token, the values being SentencePiece's.
  void readKinds() {
    auto types = metadata.integers32("tokenizer.ggml.token_type");
    kinds.assign(out.tokens.size(), PieceKind::Normal);
    if (!types)
      return;
    if (types->size() != out.tokens.size())
      metadata.fail("tokenizer.ggml.token_type", "expected " + std::to_string(out.tokens.size()) +
                                                     " entries (one a token), got " +
                                                     std::to_string(types->size()));
    for (size_t i = 0; i < types->size(); ++i) {
      int64_t type = (*types)[i];
      if (type < 0 || type > 6) // 0: undefined, in files of old converters
        metadata.fail("tokenizer.ggml.token_type", "token " + std::to_string(i) +
                                                       ": expected a type from 0 to 6, got " +
                                                       std::to_string(type));
      if (type > 0)
        kinds[i] = static_cast<PieceKind>(type);
    }
  }

  void readMerges() {
    const auto *merges = metadata.strings("tokenizer.ggml.merges");
    if (!merges)
      metadata.fail("tokenizer.ggml.merges", "expected an array of strings, got no such key");
    out.merges.reserve(merges->size());
    for (size_t i = 0; i < merges->size(); ++i) {
      const std::string &merge = (*merges)[i];
      size_t space = merge.find(' ');
      if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos)
        metadata.fail("tokenizer.ggml.merges", "merge " + std::to_string(i) +
                                                   ": expected two parts with one space between, got " +
                                                   quote(merge));
      out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
  }

  /// Control tokens, which only a template writes, and user-defined ones, which are cut out of any text.
  void addTokens() {
    for (size_t i = 0; i < kinds.size(); ++i) {
      bool special = kinds[i] == PieceKind::Control || kinds[i] == PieceKind::Unknown;
      if ((special || kinds[i] == PieceKind::UserDefined) && !out.tokens[i].empty())
        out.added.push_back({.id = static_cast<int32_t>(i), .content = out.tokens[i], .special = special});
    }
  }

  void readByteLevel() {
    readMerges();
    addTokens();
    const std::string *pre = metadata.string("tokenizer.ggml.pre");
    if (!pre)
      metadata.fail("tokenizer.ggml.pre", "expected the name of a pre-tokenizer, got no such key");
    try {
      applyPreTokenizerForGGUF(*pre, out);
    } catch (const Error &error) {
      metadata.fail("tokenizer.ggml.pre", error.what());
    }
    // What these names imply for files without the key.
    static const std::unordered_set<std::string> addsBos = {"llama3", "llama-v3", "llama-bpe", "falcon3",
                                                            "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                                                            "jina-v5-nano", "tekken", "chameleon"};
    out.addBos = addsBos.count(*pre) > 0;
    out.addPrefixSpace = flag("tokenizer.ggml.add_space_prefix", false);
    // tokenizer.ggml.unknown_token_id is not the BPE model's own unknown token (SmolLM2 has <|endoftext|> there): bytes
    // that no token spells are dropped, as the reference does.
  }

  /// Gemma's tokenizer.json: BPE over characters, U+2581 for a space, bytes for unknown characters.
  void readGemma4() {
    readMerges();
    addTokens();
    out.byteFallback = out.fuseUnk = out.addBos = true;
    out.unkId = tokenId("tokenizer.ggml.unknown_token_id");
    if (flag("tokenizer.ggml.add_space_prefix", false))
      out.normalizers.push_back({.kind = NormalizerStep::Kind::Prepend, .text = " "});
    out.normalizers.push_back({.kind = NormalizerStep::Kind::Replace, .text = " ", .content = kMetaspace});
    out.decoders = {{.kind = DecoderStep::Kind::Replace, .text = kMetaspace, .content = " "},
                    {.kind = DecoderStep::Kind::ByteFallback},
                    {.kind = DecoderStep::Kind::Fuse}};
  }

  std::vector<float> readScores() {
    const Value *value = metadata.find("tokenizer.ggml.scores");
    if (!value)
      metadata.fail("tokenizer.ggml.scores", "expected an array of f32, got no such key");
    if (value->count != out.tokens.size())
      metadata.fail("tokenizer.ggml.scores", "expected " + std::to_string(out.tokens.size()) +
                                                 " entries (one a token), got " + std::to_string(value->count));
    std::vector<float> scores(out.tokens.size());
    std::memcpy(scores.data(), std::get<std::vector<unsigned char>>(value->data).data(), 4 * scores.size());
    for (size_t i = 0; i < scores.size(); ++i)
      if (!std::isfinite(scores[i]))
        metadata.fail("tokenizer.ggml.scores", "token " + std::to_string(i) + ": expected a finite score, got " +
                                                   std::to_string(scores[i]));
    return scores;
  }

  std::string readCharsmap() {
    const Value *value = metadata.find("tokenizer.ggml.precompiled_charsmap");
    if (!value)
      return "";
    if (value->type != ValueType::Array ||
        (value->elementType != ValueType::U8 && value->elementType != ValueType::I8))
      metadata.failType("tokenizer.ggml.precompiled_charsmap", *value, "an array of u8 or i8");
    const auto &bytes = std::get<std::vector<unsigned char>>(value->data);
    return std::string(bytes.begin(), bytes.end());
  }

  /// The same rules as for a tokenizer.model, from which these keys come.
  void readSentencePieces(bool unigram) {
    SentencePieceModel model;
    model.type = unigram ? SentencePieceModel::Type::Unigram : SentencePieceModel::Type::BPE;
    model.normalizer.charsmap = readCharsmap();
    model.normalizer.addDummyPrefix = flag("tokenizer.ggml.add_space_prefix", !unigram);
    model.normalizer.removeExtraWhitespaces = flag("tokenizer.ggml.remove_extra_whitespaces", false);
    std::vector<float> scores = readScores();
    std::unordered_set<std::string> bytes;
    for (size_t i = 0; i < out.tokens.size(); ++i) {
      model.pieces.push_back({out.tokens[i], scores[i], kinds[i]});
      if (kinds[i] == PieceKind::Byte && huggingface::byteOf(out.tokens[i]) >= 0)
        bytes.insert(out.tokens[i]);
    }
    model.byteFallback = bytes.size() == 256;
    model.unkId = metadata.find("tokenizer.ggml.unknown_token_id") ? tokenId("tokenizer.ggml.unknown_token_id")
                                                                   : firstUnknown();
    if (model.unkId < 0)
      metadata.fail("tokenizer.ggml.unknown_token_id", "expected the id of the unknown token, got none");
    model.bosId = model.eosId = -1; // readSpecialIds
    out = huggingface::readSentencePiece(model, /*legacy=*/true, "tokenizer.ggml.model");
    // A piece with a space cannot be found after spaces were replaced: it is an added token of the model.
    for (size_t i = 0; i < kinds.size(); ++i)
      if (kinds[i] == PieceKind::UserDefined && out.tokens[i].find(' ') != std::string::npos)
        out.added.push_back({.id = static_cast<int32_t>(i), .content = out.tokens[i]});
    out.addBos = !unigram;
    out.addEos = unigram;
  }

  int32_t firstUnknown() const {
    auto found = std::find(kinds.begin(), kinds.end(), PieceKind::Unknown);
    return found == kinds.end() ? -1 : static_cast<int32_t>(found - kinds.begin());
  }

  /// Starts of words are marked in GGUF, by U+2581, in tokenizer.json the other parts, by "##".
  void readWordPiece() {
    addTokens();
    out.model = TokenizerData::Model::WordPiece;
    out.continuingPrefix = "##";
    for (size_t i = 0; i < out.tokens.size(); ++i) {
      std::string &token = out.tokens[i];
      if (token.starts_with(kMetaspace))
        token.erase(0, std::strlen(kMetaspace));
      else if (kinds[i] != PieceKind::Control && kinds[i] != PieceKind::Unknown && !token.empty())
        token.insert(0, "##");
    }
    bool lowercase = flag("tokenizer.ggml.normalizer.lowercase", true);
    out.normalizers = {{.kind = NormalizerStep::Kind::Bert,
                        .cleanText = true,
                        .chineseChars = true,
                        .stripAccents = flag("tokenizer.ggml.normalizer.strip_accents", lowercase),
                        .lowercase = lowercase}};
    out.preTokenizers = {{.kind = PreTokenizerStep::Kind::Bert}};
    out.decoders = {{.kind = DecoderStep::Kind::WordPiece, .text = "##", .cleanUp = true}};
    out.unkId = tokenId("tokenizer.ggml.unknown_token_id");
    if (out.unkId < 0)
      metadata.fail("tokenizer.ggml.unknown_token_id", "expected the id of the unknown token, got none");
    out.addBos = out.addEos = true;
    readEnds("tokenizer.ggml.cls_token_id", "tokenizer.ggml.seperator_token_id"); // spelt so in the files
  }

  void readEnds(const char *first, const char *last) {
    out.bosId = tokenId(first);
    if (int32_t id = tokenId(last); id >= 0) {
      out.eosIds.push_back(id);
      out.suffixIds.push_back(id);
    }
  }

  int32_t tokenId(const std::string &key) const {
    auto id = metadata.integer(key);
    if (!id || *id == -1 || *id == 0xffffffff) // both mean none
      return -1;
    if (*id < 0 || static_cast<uint64_t>(*id) >= out.tokens.size())
      metadata.fail(key, "expected a token id below " + std::to_string(out.tokens.size()) + ", got " +
                             std::to_string(*id));
    return static_cast<int32_t>(*id);
  }

  void readSpecialIds() {
    if (int32_t id = tokenId("tokenizer.ggml.bos_token_id"); id >= 0)
      out.bosId = id;
    if (int32_t id = tokenId("tokenizer.ggml.padding_token_id"); id >= 0)
      out.padId = id;
    auto add = [&](int32_t id) {
      if (id >= 0 && std::find(out.eosIds.begin(), out.eosIds.end(), id) == out.eosIds.end())
        out.eosIds.push_back(id);
    };
    const int32_t eos = tokenId("tokenizer.ggml.eos_token_id");
    add(eos);
    add(tokenId("tokenizer.ggml.eot_token_id"));
    add(tokenId("tokenizer.ggml.eom_token_id"));
    std::unordered_set<std::string> seen;
    for (const AddedToken &token : out.added)
      if (endsTurn(token.content))
        seen.insert(token.content);
    // Where these two end a turn (gpt-oss), <|end|> ends one message of it only.
    if (seen.count("<|call|>") + seen.count("<|return|>") == 2 || seen.count("<|calls|>") + seen.count("<|flush|>") == 2)
      seen.erase("<|end|>");
    for (const AddedToken &token : out.added)
      if (seen.count(token.content))
        add(token.id);
    out.addBos = flag("tokenizer.ggml.add_bos_token", out.addBos);
    out.addEos = flag("tokenizer.ggml.add_eos_token", out.addEos);
    if (out.addEos && out.suffixIds.empty() && eos >= 0)
      out.suffixIds = {eos};
    // Files without a bos token exist whose converter left the flag at its default.
    if (out.bosId < 0 && !metadata.find("tokenizer.ggml.add_bos_token"))
      out.addBos = false;
    if (out.suffixIds.empty() && !metadata.find("tokenizer.ggml.add_eos_token"))
      out.addEos = false;
  }

  const Metadata &metadata;
  std::vector<PieceKind> kinds; // by id
  TokenizerData out;
};

} // namespace

TokenizerData gguf::readTokenizer(const Metadata &metadata) { return TokenizerReader(metadata).run(); }
