//===- PreTokenizer.cpp - normalizers and pre-tokenizers of tokenizer.json ===//
//
// Every type of HF tokenizers 0.23. What is not known is refused by name, since
// ignoring a step gives other token ids.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "TokenizerSteps.h"
#include "llmc/Support/Text.h"

using namespace llmc;
using namespace llmc::huggingface;

using Normalizer = NormalizerStep::Kind;
using PreTokenizer = PreTokenizerStep::Kind;

bool huggingface::flagOf(const JsonView &step, std::string_view key, bool fallback) {
  auto view = step.find(key);
  return view ? view->boolean() : fallback;
}

TextPattern huggingface::readPattern(const JsonView &pattern) {
  if (pattern.isString()) // files of old `tokenizers` versions
    return {pattern.string(), false};
  auto regex = pattern.find("Regex");
  JsonView view = regex ? *regex : pattern.get("String");
  if (view.string().empty())
    throw view.expected("a pattern");
  return {view.string(), regex.has_value()};
}

PrependScheme huggingface::readPrependScheme(const JsonView &step) {
  auto scheme = step.find("prepend_scheme");
  if (!flagOf(step, "add_prefix_space", true)) {
    if (scheme && scheme->string() != "never")
      throw scheme->expected("\"never\", since add_prefix_space is false");
    return PrependScheme::Never;
  }
  if (!scheme || scheme->string() == "always")
    return PrependScheme::Always;
  if (scheme->string() == "first")
    return PrependScheme::First;
  if (scheme->string() == "never")
    return PrependScheme::Never;
  throw scheme->expected("\"first\", \"always\" or \"never\"");
}

/// The bytes of base64 text (RFC 4648, section 4), which is how JSON holds a charsmap.
static std::string decodeBase64(const JsonView &view) {
  std::string_view text = view.string();
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t bits = 0;
  unsigned count = 0;
  for (char c : text) {
    size_t value = alphabet.find(c);
    if (value == alphabet.npos)
      throw view.error("expected base64, got character " + quote(std::string_view(&c, 1)));
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) >= 8)
      bytes += static_cast<char>(bits >> (count -= 8));
  }
  return bytes;
}

static NormalizerStep readReplace(const JsonView &step) {
  TextPattern pattern = readPattern(step.get("pattern"));
  return {.kind = pattern.isRegex ? Normalizer::ReplaceRegex : Normalizer::Replace,
          .text = pattern.text,
          .content = step.get("content").string()};
}

static NormalizerStep readBert(const JsonView &step) {
  bool lowercase = flagOf(step, "lowercase", true);
  return {.kind = Normalizer::Bert,
          .cleanText = flagOf(step, "clean_text", true),
          .chineseChars = flagOf(step, "handle_chinese_chars", true),
          .stripAccents = flagOf(step, "strip_accents", lowercase), // null: as lowercase
          .lowercase = lowercase};
}

/// A Sequence may hold Sequences; JSON's depth limit bounds this.
void huggingface::readNormalizer(const JsonView &step, TokenizerData &out) {
  JsonView type = step.get("type");
  const std::string &name = type.string();
  static const std::pair<std::string_view, Normalizer> plain[] = {
      {"NFC", Normalizer::NFC},   {"NFD", Normalizer::NFD},
      {"NFKC", Normalizer::NFKC}, {"NFKD", Normalizer::NFKD},
      {"Nmt", Normalizer::Nmt},   {"Lowercase", Normalizer::Lowercase},
      {"StripAccents", Normalizer::StripAccents}, {"ByteLevel", Normalizer::ByteLevel}};
  for (const auto &[known, kind] : plain)
    if (name == known)
      return out.normalizers.push_back({.kind = kind});
  if (name == "Sequence") {
    JsonView steps = step.get("normalizers");
    for (size_t i = 0; i < steps.array().size(); ++i)
      readNormalizer(steps.at(i), out);
  } else if (name == "Strip") {
    out.normalizers.push_back({.kind = Normalizer::Strip,
                               .left = flagOf(step, "strip_left", true),
                               .right = flagOf(step, "strip_right", true)});
  } else if (name == "Prepend") {
    out.normalizers.push_back({.kind = Normalizer::Prepend, .text = step.get("prepend").string()});
  } else if (name == "Replace") {
    out.normalizers.push_back(readReplace(step));
  } else if (name == "BertNormalizer") {
    out.normalizers.push_back(readBert(step));
  } else if (name == "Precompiled") {
    if (auto map = step.find("precompiled_charsmap"); map && !map->string().empty())
      out.normalizers.push_back({.kind = Normalizer::Precompiled, .text = decodeBase64(*map), .byGrapheme = true});
  } else {
    throw type.expected("a normalizer of type BertNormalizer, ByteLevel, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, "
                        "Precompiled, Prepend, Replace, Sequence, Strip or StripAccents");
  }
}

static PreTokenizerStep::Behavior readBehavior(const JsonView &view) {
  using Behavior = PreTokenizerStep::Behavior;
  static const std::pair<std::string_view, Behavior> behaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  for (const auto &[name, behavior] : behaviors)
    if (view.string() == name)
      return behavior;
  throw view.expected("\"Removed\", \"Isolated\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"");
}

static PreTokenizerStep readSplit(const JsonView &step) {
  TextPattern pattern = readPattern(step.get("pattern"));
  return {.kind = pattern.isRegex ? PreTokenizer::Split : PreTokenizer::SplitLiteral,
          .pattern = pattern.text,
          .behavior = readBehavior(step.get("behavior")),
          .invert = flagOf(step, "invert", false)};
}

static PreTokenizerStep readMetaspace(const JsonView &step) {
  PreTokenizerStep result{.kind = PreTokenizer::Metaspace};
  result.replacement = step.get("replacement").string();
  result.prepend = readPrependScheme(step);
  result.split = flagOf(step, "split", true);
  return result;
}

/// Pieces of `length` characters.
static PreTokenizerStep readFixedLength(const JsonView &step) {
  JsonView length = step.get("length");
  if (length.integer() < 1 || length.integer() > 65535)
    throw length.expected("a length from 1 to 65535");
  return {.kind = PreTokenizer::Split, .pattern = "(?s:.{1," + std::to_string(length.integer()) + "})"};
}

void huggingface::readPreTokenizer(const JsonView &step, TokenizerData &out) {
  JsonView type = step.get("type");
  const std::string &name = type.string();
  auto add = [&](PreTokenizerStep read) { out.preTokenizers.push_back(std::move(read)); };
  if (name == "Sequence") {
    JsonView steps = step.get("pretokenizers");
    for (size_t i = 0; i < steps.array().size(); ++i)
      readPreTokenizer(steps.at(i), out);
  } else if (name == "Split") {
    add(readSplit(step));
  } else if (name == "ByteLevel") {
    add({.kind = PreTokenizer::ByteLevel,
         .addPrefixSpace = flagOf(step, "add_prefix_space", true),
         .useRegex = flagOf(step, "use_regex", true)});
  } else if (name == "Digits") {
    add({.kind = PreTokenizer::Digits, .individualDigits = flagOf(step, "individual_digits", false)});
  } else if (name == "Metaspace") {
    add(readMetaspace(step));
  } else if (name == "Punctuation") {
    auto behavior = step.find("behavior");
    add({.kind = PreTokenizer::Punctuation,
         .behavior = behavior ? readBehavior(*behavior) : PreTokenizerStep::Behavior::Isolated});
  } else if (name == "CharDelimiterSplit") {
    add({.kind = PreTokenizer::SplitLiteral,
         .pattern = step.get("delimiter").string(),
         .behavior = PreTokenizerStep::Behavior::Removed});
  } else if (name == "FixedLength") {
    add(readFixedLength(step));
  } else if (name == "Whitespace" || name == "WhitespaceSplit" || name == "BertPreTokenizer" ||
             name == "UnicodeScripts") {
    add({.kind = name == "Whitespace"        ? PreTokenizer::Whitespace
                 : name == "WhitespaceSplit" ? PreTokenizer::WhitespaceSplit
                 : name == "UnicodeScripts"  ? PreTokenizer::UnicodeScripts
                                             : PreTokenizer::Bert});
  } else {
    throw type.expected("a pre-tokenizer of type BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, "
                        "FixedLength, Metaspace, Punctuation, Sequence, Split, UnicodeScripts, Whitespace or "
                        "WhitespaceSplit");
  }
}
