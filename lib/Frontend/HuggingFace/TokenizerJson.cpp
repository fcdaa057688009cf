//===- TokenizerJson.cpp - tokenizer.json to TokenizerData ----------------===//
//
// The serialisation of the `tokenizers` library: added_tokens, normalizer,
// pre_tokenizer, model, post_processor, decoder. This file reads the vocabulary
// (model and added tokens); PreTokenizer.cpp and TokenizerDecoder.cpp the rest.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

#include <cmath>
#include <limits>
#include <unordered_map>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

using Model = TokenizerData::Model;

class TokenizerReader {
public:
  TokenizerReader(const JsonView &json, int64_t vocab, std::vector<std::string> &warnings)
      : json(json), vocab(vocab), warnings(warnings) {}

  TokenizerData run() {
    JsonView model = json.get("model");
    readModel(model);
    const size_t modelTokens = out.tokens.size();
    if (auto added = json.find("added_tokens"))
      for (size_t i = 0; i < added->array().size(); ++i)
        readAdded(added->at(i));
    if (out.model == Model::Unigram)
      markPieces(modelTokens);
    if (auto normalizer = json.find("normalizer"))
      readNormalizer(*normalizer, out);
    if (auto preTokenizer = json.find("pre_tokenizer"))
      readPreTokenizer(*preTokenizer, out);
    if (auto decoder = json.find("decoder"))
      readDecoder(*decoder, out);
    else if (!out.byteLevel()) // the library then joins tokens with spaces: none starts with this prefix
      out.decoders.push_back({.kind = DecoderStep::Kind::WordPiece, .text = noPrefix});
    auto idOfToken = [&](const std::string &spelling) { return idOf(spelling); };
    if (auto processor = json.find("post_processor"))
      readPostProcessor(*processor, idOfToken, out);
    return std::move(out);
  }

private:
  /// Fails if the key holds anything but null, "", 0 or false.
  static void expectUnset(const JsonView &model, std::string_view key) {
    auto view = model.find(key);
    if (!view)
      return;
    const double *real = std::get_if<double>(&view->node().value);
    const int64_t *integer = std::get_if<int64_t>(&view->node().value);
    if ((real && *real == 0) || (integer && *integer == 0))
      return;
    throw view->expected("null");
  }

  /// Files of old `tokenizers` versions have no type: what the model has tells.
  static std::string typeOf(const JsonView &model) {
    if (auto type = model.find("type"))
      return type->string();
    if (model.find("merges"))
      return "BPE";
    if (model.get("vocab").isArray())
      return "Unigram";
    return model.find("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
  }

  void readModel(const JsonView &model) {
    std::string type = typeOf(model);
    if (type == "BPE")
      readBPE(model);
    else if (type == "Unigram")
      readUnigram(model);
    else if (type == "WordPiece" || type == "WordLevel")
      readWords(model, type == "WordPiece");
    else
      throw model.get("type").expected("a model of type BPE, Unigram, WordLevel or WordPiece");
  }

  void readBPE(const JsonView &model) {
    out.model = Model::BPE;
    expectUnset(model, "dropout"); // drops merges at random, in the library even when it encodes
    auto text = [&](const char *key) {
      auto view = model.find(key);
      return view ? view->string() : std::string();
    };
    out.continuingPrefix = text("continuing_subword_prefix");
    out.endOfWordSuffix = text("end_of_word_suffix");
    out.ignoreMerges = flagOf(model, "ignore_merges", false);
    out.byteFallback = flagOf(model, "byte_fallback", false);
    out.fuseUnk = flagOf(model, "fuse_unk", false);
    readVocabulary(model.get("vocab"));
    readMerges(model.get("merges"));
    out.unkId = idOf(text("unk_token"));
  }

  void readUnigram(const JsonView &model) {
    out.model = Model::Unigram;
    out.byteFallback = flagOf(model, "byte_fallback", false);
    JsonView entries = model.get("vocab");
    checkCount(entries, entries.array().size());
    for (size_t i = 0; i < entries.array().size(); ++i) {
      JsonView entry = entries.at(i);
      if (entry.array().size() != 2)
        throw entry.error("expected a piece and its score, got " + std::to_string(entry.array().size()) + " values");
      double score = entry.at(1).number();
      if (!std::isfinite(score))
        throw entry.at(1).expected("a finite score");
      out.tokens.push_back(entry.at(0).string());
      out.scores.push_back(score);
      ids.emplace(out.tokens.back(), static_cast<int32_t>(i));
    }
    JsonView unknown = model.get("unk_id"); // null in the library, which then fails on what is not in the vocabulary
    out.unkId = readId(unknown);
    if (static_cast<size_t>(out.unkId) >= out.tokens.size())
      throw unknown.expected("an id below " + std::to_string(out.tokens.size()) + ", the pieces of the vocabulary");
  }

  /// A WordLevel takes whole words: as a WordPiece without continuations.
  void readWords(const JsonView &model, bool pieces) {
    out.model = Model::WordPiece;
    readVocabulary(model.get("vocab"));
    JsonView unknown = model.get("unk_token");
    out.unkId = idOf(unknown.string());
    if (out.unkId < 0)
      throw unknown.expected("a token of the vocabulary");
    out.continuingPrefix = noPrefix;
    out.maxWordChars = std::numeric_limits<uint32_t>::max();
    if (!pieces)
      return;
    auto prefix = model.find("continuing_subword_prefix");
    out.continuingPrefix = prefix ? prefix->string() : "##";
    out.maxWordChars = 100;
    if (auto limit = model.find("max_input_chars_per_word")) {
      if (limit->integer() < 1 || limit->integer() > std::numeric_limits<uint32_t>::max())
        throw limit->expected("a count from 1 to 4294967295");
      out.maxWordChars = static_cast<uint32_t>(limit->integer());
    }
  }

  void checkCount(const JsonView &view, size_t count) const {
    if (static_cast<int64_t>(count) > vocab)
      throw view.error("expected at most " + std::to_string(vocab) + " tokens (the vocabulary size), got " +
                       std::to_string(count));
  }

  /// An id must be a row of the embedding, whose size is checked against the weights:
  /// so no claimed id drives the size of the table.
  int32_t readId(const JsonView &view) const {
    int64_t id = view.integer();
    if (id < 0 || id >= vocab)
      throw view.expected("a token id below the vocabulary size " + std::to_string(vocab));
    return static_cast<int32_t>(id);
  }

  bool place(int32_t id, const std::string &spelling) {
    size_t index = static_cast<size_t>(id);
    if (out.tokens.size() <= index)
      out.tokens.resize(index + 1);
    if (!out.tokens[index].empty() && out.tokens[index] != spelling)
      return false;
    out.tokens[index] = spelling;
    return true;
  }

  void readVocabulary(const JsonView &view) {
    for (const JsonMember &member : view.object()) {
      JsonView entry = view.at(member);
      if (!place(readId(entry), member.key))
        throw entry.error("expected an id of its own, got that of " +
                          quote(out.tokens[static_cast<size_t>(readId(entry))]));
      ids.emplace(member.key, readId(entry));
    }
  }

  /// "a b" (old) or ["a", "b"] (new).
  void readMerges(const JsonView &view) {
    out.merges.reserve(view.array().size());
    for (size_t i = 0; i < view.array().size(); ++i) {
      const JsonNode &node = view.array()[i];
      if (const std::string *text = node.string()) {
        size_t space = text->find(' ');
        if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos)
          throw view.at(i).expected("two parts with one space between");
        // \r: from a merges.txt with CRLF that was pasted in.
        if (text->back() == '\r')
          throw view.at(i).error("expected a merge, got one that ends in a carriage return");
        out.merges.emplace_back(text->substr(0, space), text->substr(space + 1));
        continue;
      }
      const JsonNode::Array *pair = node.array();
      if (!pair || pair->size() != 2)
        throw view.at(i).expected("a string or a pair of strings");
      out.merges.emplace_back(view.at(i).at(0).string(), view.at(i).at(1).string());
    }
  }

  void readAdded(const JsonView &view) {
    JsonView content = view.get("content"), idView = view.get("id");
    if (content.string().empty())
      throw content.expected("text");
    if (int64_t id = idView.integer(); id >= vocab) {
      warnings.push_back(idView
                             .error("added token " + quote(content.string()) +
                                    " is beyond the vocabulary size " + std::to_string(vocab) + ", not used")
                             .what());
      return;
    }
    AddedToken token;
    token.id = readId(idView);
    token.content = content.string();
    token.special = flagOf(view, "special", false);
    token.lstrip = flagOf(view, "lstrip", false);
    token.rstrip = flagOf(view, "rstrip", false);
    token.singleWord = flagOf(view, "single_word", false);
    token.normalized = flagOf(view, "normalized", !token.special);
    if (!place(token.id, token.content))
      throw content.error("expected " + quote(out.tokens[static_cast<size_t>(token.id)]) + ", which has id " +
                          std::to_string(token.id) + " in the vocabulary, got " + quote(token.content));
    ids.emplace(token.content, token.id);
    out.added.push_back(std::move(token));
  }

  /// What text cannot spell: the unknown piece, special tokens and byte pieces. (The library lets it
  /// when a Unigram model gets such text, so that user text could become a control token.)
  void markPieces(size_t modelTokens) {
    out.scores.resize(out.tokens.size());
    out.kinds.assign(out.tokens.size(), PieceKind::Normal);
    // Added tokens that are no pieces are cut out before the model sees them, or stay text.
    for (size_t i = modelTokens; i < out.tokens.size(); ++i)
      out.kinds[i] = PieceKind::Control;
    for (const AddedToken &token : out.added)
      if (token.special)
        out.kinds[static_cast<size_t>(token.id)] = PieceKind::Control;
    for (size_t i = 0; out.byteFallback && i < modelTokens; ++i)
      if (byteOf(out.tokens[i]) >= 0)
        out.kinds[i] = PieceKind::Byte;
    out.kinds[static_cast<size_t>(out.unkId)] = PieceKind::Unknown;
  }

  int32_t idOf(const std::string &spelling) const {
    auto found = ids.find(spelling);
    return found == ids.end() ? -1 : found->second;
  }

  /// No token starts with it, since JSON is UTF-8.
  static constexpr const char *noPrefix = "\xff";

  const JsonView &json;
  int64_t vocab;
  std::vector<std::string> &warnings;
  TokenizerData out;
  std::unordered_map<std::string, int32_t> ids;
};

} // namespace

int huggingface::byteOf(std::string_view piece) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>')
    return -1;
  size_t high = digits.find(piece[3]), low = digits.find(piece[4]);
  return high == digits.npos || low == digits.npos ? -1 : static_cast<int>(high * 16 + low);
}

TokenizerData huggingface::readTokenizer(const JsonView &json, int64_t vocab,
                                         std::vector<std::string> &warnings) {
  return TokenizerReader(json, vocab, warnings).run();
}
