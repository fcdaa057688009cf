//===- TokenizerDecoder.cpp - decoder and post-processor of tokenizer.json ===//
#include "HuggingFace.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::huggingface;

using Decoder = DecoderStep::Kind;

static uint32_t count(const JsonView &view) {
  int64_t value = view.integer();
  if (value < 0 || value > 1 << 20)
    throw view.expected("a count from 0 to 1048576");
  return static_cast<uint32_t>(value);
}

/// The text under `key`, or what HF tokenizers takes for it when it is absent.
static std::string textOf(const JsonView &step, std::string_view key, const char *fallback) {
  auto view = step.find(key);
  return view ? view->string() : fallback;
}

void huggingface::readDecoder(const JsonView &step, TokenizerData &out) {
  JsonView type = step.get("type");
  const std::string &name = type.string();
  auto add = [&](DecoderStep read) { out.decoders.push_back(std::move(read)); };
  if (name == "Sequence") {
    JsonView steps = step.get("decoders");
    for (size_t i = 0; i < steps.array().size(); ++i)
      readDecoder(steps.at(i), out);
  } else if (name == "ByteLevel" || name == "ByteFallback" || name == "Fuse") {
    add({.kind = name == "ByteLevel" ? Decoder::ByteLevel
                 : name == "Fuse"    ? Decoder::Fuse
                                     : Decoder::ByteFallback});
  } else if (name == "Metaspace") {
    add({.kind = Decoder::Metaspace, .text = step.get("replacement").string(), .prepend = readPrependScheme(step)});
  } else if (name == "Replace") {
    TextPattern pattern = readPattern(step.get("pattern"));
    add({.kind = pattern.isRegex ? Decoder::ReplaceRegex : Decoder::Replace,
         .text = pattern.text,
         .content = step.get("content").string()});
  } else if (name == "Strip") {
    add({.kind = Decoder::Strip,
         .text = step.get("content").string(),
         .start = count(step.get("start")),
         .stop = count(step.get("stop"))});
  } else if (name == "WordPiece") {
    add({.kind = Decoder::WordPiece, .text = textOf(step, "prefix", "##"), .cleanUp = flagOf(step, "cleanup", true)});
  } else if (name == "BPEDecoder") {
    add({.kind = Decoder::BPE, .text = textOf(step, "suffix", "</w>")});
  } else {
    // CTC joins the repeated symbols of a speech model's frames, which no text model needs.
    throw type.expected("a decoder of type BPEDecoder, ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, "
                        "Strip or WordPiece");
  }
}

namespace {
struct PostProcessor {
  const std::function<int32_t(const std::string &)> &idOf;
  std::vector<int32_t> before, after;

  void read(const JsonView &step) {
    JsonView type = step.get("type");
    const std::string &name = type.string();
    if (name == "Sequence") {
      JsonView steps = step.get("processors");
      for (size_t i = 0; i < steps.array().size(); ++i)
        read(steps.at(i));
    } else if (name == "TemplateProcessing") {
      readTemplate(step);
    } else if (name == "BertProcessing" || name == "RobertaProcessing") {
      before.insert(before.begin(), tokenOfPair(step.get("cls")));
      after.push_back(tokenOfPair(step.get("sep")));
    } else if (name != "ByteLevel") { // which only trims offsets
      throw type.expected("a post-processor of type BertProcessing, ByteLevel, RobertaProcessing, Sequence or "
                          "TemplateProcessing");
    }
  }

private:
  int32_t token(const JsonView &spelling) {
    int32_t id = idOf(spelling.string());
    if (id < 0)
      throw spelling.expected("a token of the vocabulary");
    return id;
  }

  /// ["[SEP]", 102]; the vocabulary says the id.
  int32_t tokenOfPair(const JsonView &pair) {
    int32_t id = token(pair.at(0));
    if (pair.array().size() != 2 || pair.at(1).integer() != id)
      throw pair.error("expected the token and its id " + std::to_string(id) + ", got another");
    return id;
  }

  /// What a template names may stand for several tokens.
  std::vector<int32_t> tokensOf(const JsonView &step, const JsonView &name) {
    std::vector<int32_t> ids;
    auto specials = step.find("special_tokens");
    auto entry = specials ? specials->find(name.string()) : std::nullopt;
    if (!entry)
      return {token(name)};
    JsonView tokens = entry->get("tokens");
    for (size_t i = 0; i < tokens.array().size(); ++i)
      ids.push_back(token(tokens.at(i)));
    return ids;
  }

  void readTemplate(const JsonView &step) {
    JsonView single = step.get("single");
    std::vector<int32_t> first, last;
    bool afterText = false;
    for (size_t i = 0; i < single.array().size(); ++i) {
      JsonView piece = single.at(i);
      if (auto text = piece.find("Sequence")) {
        if (afterText)
          throw text->error("expected the text once, got it again");
        afterText = true;
        continue;
      }
      std::vector<int32_t> ids = tokensOf(step, piece.get("SpecialToken").get("id"));
      std::vector<int32_t> &side = afterText ? last : first;
      side.insert(side.end(), ids.begin(), ids.end());
    }
    if (!afterText)
      throw single.error("expected the text in the template, got none");
    before.insert(before.begin(), first.begin(), first.end());
    after.insert(after.end(), last.begin(), last.end());
  }
};
} // namespace

void huggingface::readPostProcessor(const JsonView &step, const std::function<int32_t(const std::string &)> &idOf,
                                    TokenizerData &out) {
  PostProcessor processor{idOf, {}, {}};
  processor.read(step);
  if (!processor.before.empty()) {
    out.addBos = true;
    out.bosId = processor.before.front();
    if (processor.before.size() > 1)
      out.prefixIds = processor.before;
  }
  if (!processor.after.empty()) {
    out.addEos = true;
    out.suffixIds = processor.after;
    for (int32_t id : processor.after)
      if (std::find(out.eosIds.begin(), out.eosIds.end(), id) == out.eosIds.end())
        out.eosIds.push_back(id);
  }
}
