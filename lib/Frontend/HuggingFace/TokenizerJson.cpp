//===- TokenizerJson.cpp - tokenizer.json to TokenizerData ----------------===//
//
// The serialisation of the `tokenizers` library: added_tokens, normalizer,
// pre_tokenizer, model, post_processor, decoder. Only byte-level BPE is taken.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::huggingface;

namespace {

class TokenizerReader {
public:
  TokenizerReader(const JsonView &json, int64_t vocab, std::vector<std::string> &warnings)
      : json(json), vocab(vocab), warnings(warnings) {}

  TokenizerData run() {
    JsonView model = json.get("model");
    readModel(model);
    if (auto added = json.find("added_tokens"))
      for (size_t i = 0; i < added->array().size(); ++i)
        readAdded(added->at(i));
    if (auto normalizer = json.find("normalizer"))
      readNormalizer(*normalizer, out);
    auto preTokenizer = json.find("pre_tokenizer");
    if (!preTokenizer || !isByteLevel(*preTokenizer, "pretokenizers"))
      throw(preTokenizer ? *preTokenizer : json)
          .error("expected a pre_tokenizer with ByteLevel (byte-level BPE), got none");
    readPreTokenizer(*preTokenizer, out);
    if (auto decoder = json.find("decoder"); decoder && !isByteLevel(*decoder, "decoders"))
      throw decoder->error("expected a decoder with ByteLevel (byte-level BPE), got none");
    if (auto processor = json.find("post_processor"))
      readPostProcessor(*processor);
    if (auto unknown = model.find("unk_token"))
      out.unkId = idOf(unknown->string());
    if (auto fuse = model.find("fuse_unk"))
      out.fuseUnk = fuse->boolean();
    return std::move(out);
  }

private:
  static bool isByteLevel(const JsonView &step, std::string_view listKey) {
    const std::string &type = step.get("type").string();
    if (type != "Sequence")
      return type == "ByteLevel";
    JsonView steps = step.get(listKey);
    for (size_t i = 0; i < steps.array().size(); ++i)
      if (isByteLevel(steps.at(i), listKey))
        return true;
    return false;
  }

  /// Fails if the key holds anything but null, "", 0 or false.
  static void expectUnset(const JsonView &model, std::string_view key) {
    auto view = model.find(key);
    if (!view)
      return;
    const std::string *text = view->node().string();
    const double *real = std::get_if<double>(&view->node().value);
    const int64_t *integer = std::get_if<int64_t>(&view->node().value);
    if ((text && text->empty()) || (real && *real == 0) || (integer && *integer == 0))
      return;
    throw view->expected("null");
  }

  void readModel(const JsonView &model) {
    // Files of old `tokenizers` versions have no type; only BPE has merges.
    if (auto type = model.find("type"); type && type->string() != "BPE")
      throw type->expected("\"BPE\" (byte-level)");
    expectUnset(model, "dropout");
    expectUnset(model, "continuing_subword_prefix");
    expectUnset(model, "end_of_word_suffix");
    if (auto ignore = model.find("ignore_merges"))
      out.ignoreMerges = ignore->boolean();
    readVocabulary(model.get("vocab"));
    readMerges(model.get("merges"));
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
    auto flag = [&](const char *key) {
      auto value = view.find(key);
      return value && value->boolean();
    };
    token.special = flag("special");
    token.lstrip = flag("lstrip");
    token.rstrip = flag("rstrip");
    token.singleWord = flag("single_word");
    token.normalized = flag("normalized");
    if (!place(token.id, token.content))
      throw content.error("expected " + quote(out.tokens[static_cast<size_t>(token.id)]) + ", which has id " +
                          std::to_string(token.id) + " in the vocabulary, got " + quote(token.content));
    ids.emplace(token.content, token.id);
    out.added.push_back(std::move(token));
  }

  int32_t idOf(const std::string &spelling) const {
    auto found = ids.find(spelling);
    return found == ids.end() ? -1 : found->second;
  }

  void readPostProcessor(const JsonView &view) {
    JsonView type = view.get("type");
    if (type.string() == "Sequence") {
      JsonView steps = view.get("processors");
      for (size_t i = 0; i < steps.array().size(); ++i)
        readPostProcessor(steps.at(i));
    } else if (type.string() == "TemplateProcessing") {
      readTemplate(view.get("single"));
    } else if (type.string() != "ByteLevel") { // which only trims offsets
      throw type.expected("a post-processor of type TemplateProcessing, ByteLevel or Sequence");
    }
  }

  /// One bos before the text and one eos after it at most.
  void readTemplate(const JsonView &single) {
    bool afterText = false;
    for (size_t i = 0; i < single.array().size(); ++i) {
      JsonView piece = single.at(i);
      if (piece.find("Sequence")) {
        afterText = true;
        continue;
      }
      JsonView spelling = piece.get("SpecialToken").get("id");
      int32_t id = idOf(spelling.string());
      if (id < 0)
        throw spelling.expected("a token of the vocabulary");
      bool &add = afterText ? out.addEos : out.addBos;
      if (add)
        throw piece.error("expected at most one special token before and one after the text, got more");
      add = true;
      if (afterText)
        out.eosIds.push_back(id);
      else
        out.bosId = id;
    }
  }

  const JsonView &json;
  int64_t vocab;
  std::vector<std::string> &warnings;
  TokenizerData out;
  std::map<std::string, int32_t> ids;
};

} // namespace

TokenizerData huggingface::readTokenizer(const JsonView &json, int64_t vocab,
                                         std::vector<std::string> &warnings) {
  return TokenizerReader(json, vocab, warnings).run();
}
