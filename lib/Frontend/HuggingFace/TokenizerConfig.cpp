//===- TokenizerConfig.cpp - tokenizer_config.json ------------------------===//
#include "HuggingFace.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

#include <algorithm>
#include <charconv>

using namespace llmc;
using namespace llmc::huggingface;

/// A special token is a string or {"content": ...}. -1 when absent or not in the vocabulary.
static int32_t specialId(const JsonView &json, std::string_view key, const TokenizerData &tokenizer) {
  auto view = json.find(key);
  if (!view)
    return -1;
  const std::string &text = view->isObject() ? view->get("content").string() : view->string();
  auto found = std::find(tokenizer.tokens.begin(), tokenizer.tokens.end(), text);
  return text.empty() || found == tokenizer.tokens.end()
             ? -1
             : static_cast<int32_t>(found - tokenizer.tokens.begin());
}

/// added_tokens_decoder {"id": {content, special, ...}}: those that tokenizer.json lacks.
static void readAddedTokens(const JsonView &decoder, ModelFacts &facts) {
  TokenizerData &tokenizer = facts.tokenizer;
  for (const JsonMember &member : decoder.object()) {
    JsonView view = decoder.at(member);
    int32_t id = -1;
    auto [end, failure] = std::from_chars(member.key.data(), member.key.data() + member.key.size(), id);
    if (failure != std::errc() || end != member.key.data() + member.key.size() || id < 0)
      throw view.error("expected a token id as key, got " + quote(member.key));
    const std::string &content = view.get("content").string();
    bool known = std::any_of(tokenizer.added.begin(), tokenizer.added.end(),
                             [&](const AddedToken &token) { return token.id == id; });
    if (known || content.empty())
      continue;
    if (id >= facts.vocab) {
      facts.warnings.push_back(
          view.error("added token " + quote(content) + " is beyond the vocabulary, not used").what());
      continue;
    }
    growTokens(tokenizer, static_cast<size_t>(id) + 1);
    std::string &spelling = tokenizer.tokens[static_cast<size_t>(id)];
    if (!spelling.empty() && spelling != content)
      throw view.error("expected " + quote(spelling) + ", the token of that id, got " + quote(content));
    spelling = content;
    bool special = flagOf(view, "special", false);
    tokenizer.added.push_back({id, content, special, flagOf(view, "lstrip", false), flagOf(view, "rstrip", false),
                               flagOf(view, "single_word", false), flagOf(view, "normalized", !special)});
  }
}

/// A string, or a list of {name, template} of which "default" is meant.
static std::string readTemplate(const JsonView &view) {
  if (view.isString())
    return view.string();
  for (size_t i = 0; i < view.array().size(); ++i)
    if (view.at(i).get("name").string() == "default")
      return view.at(i).get("template").string();
  throw view.error("expected a template named \"default\", got none");
}

/// A token with a role is special even where the vocabulary's files have it as a plain one (vocab.json has all alike).
static void markSpecial(int32_t id, TokenizerData &tokenizer) {
  for (const AddedToken &token : tokenizer.added)
    if (token.id == id)
      return;
  tokenizer.added.push_back(
      {.id = id, .content = tokenizer.tokens[static_cast<size_t>(id)], .special = true});
}

/// add_bos_token and add_eos_token say more than the post-processor, as in transformers.
static void readAdditions(const JsonView &json, TokenizerData &tokenizer) {
  if (auto add = json.find("add_bos_token"); add && tokenizer.bosId >= 0) {
    if (!add->boolean())
      tokenizer.prefixIds.clear();
    tokenizer.addBos = add->boolean();
  }
  auto add = json.find("add_eos_token");
  if (!add)
    return;
  int32_t eos = specialId(json, "eos_token", tokenizer);
  tokenizer.addEos = add->boolean() && eos >= 0;
  tokenizer.suffixIds.clear();
  if (tokenizer.addEos)
    tokenizer.suffixIds = {eos};
}

void huggingface::readTokenizerConfig(const JsonView &json, ModelFacts &facts) {
  TokenizerData &tokenizer = facts.tokenizer;
  if (auto decoder = json.find("added_tokens_decoder"))
    readAddedTokens(*decoder, facts);
  for (const char *key : {"bos_token", "eos_token", "pad_token", "unk_token"})
    if (int32_t id = specialId(json, key, tokenizer); id >= 0)
      markSpecial(id, tokenizer);
  if (int32_t id = specialId(json, "bos_token", tokenizer); id >= 0 && tokenizer.bosId < 0)
    tokenizer.bosId = id;
  if (int32_t id = specialId(json, "pad_token", tokenizer); id >= 0)
    tokenizer.padId = id;
  // unk_token here is for padding and display; the BPE model's own is in tokenizer.json (model.unk_token).
  // Only a fallback: the ids of (generation_)config.json are what generation stops at.
  if (int32_t id = specialId(json, "eos_token", tokenizer); id >= 0 && tokenizer.eosIds.empty())
    tokenizer.eosIds.push_back(id);
  readAdditions(json, tokenizer);
  // transformers leaves BPE alone, where it would take spaces out of the text.
  bool bpe = tokenizer.model == TokenizerData::Model::BPE || tokenizer.model == TokenizerData::Model::ScoredBPE;
  if (!bpe && flagOf(json, "clean_up_tokenization_spaces", false))
    tokenizer.decoders.push_back({.kind = DecoderStep::Kind::CleanUp});
  if (auto source = json.find("chat_template"); source && facts.chatTemplate.empty())
    facts.chatTemplate = readTemplate(*source);
}
