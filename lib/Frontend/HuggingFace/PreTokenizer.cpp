//===- PreTokenizer.cpp - normaliser and pre-tokeniser of tokenizer.json --===//
//
// Accepted: what byte-level BPE models use. Everything else is refused by name,
// since ignoring a step gives other token ids.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "llmc/Support/Text.h"

using namespace llmc;
using namespace llmc::huggingface;

/// GPT-2's pattern, which ByteLevel applies when use_regex is set (tokenizers, byte_level.rs).
static const char gpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

static bool flag(const JsonView &step, std::string_view key, bool fallback) {
  auto view = step.find(key);
  return view ? view->boolean() : fallback;
}

/// A Sequence may hold Sequences; JSON's depth limit bounds this.
void huggingface::readNormalizer(const JsonView &step, TokenizerData &out) {
  JsonView type = step.get("type");
  if (type.string() == "Sequence") {
    JsonView steps = step.get("normalizers");
    for (size_t i = 0; i < steps.array().size(); ++i)
      readNormalizer(steps.at(i), out);
  } else if (type.string() == "NFC") {
    out.nfc = true;
  } else {
    throw type.expected("a normalizer of type NFC or Sequence");
  }
}

/// A literal as a pattern, so that one list of patterns says it all.
static std::string escapePattern(const std::string &literal) {
  std::string pattern;
  for (char c : literal) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 static_cast<unsigned char>(c) >= 0x80 || static_cast<unsigned char>(c) <= ' ';
    if (!plain)
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

static void readSplit(const JsonView &step, TokenizerData &out) {
  if (flag(step, "invert", false))
    throw step.get("invert").expected("false");
  JsonView behavior = step.get("behavior");
  if (behavior.string() != "Isolated")
    throw behavior.expected("\"Isolated\"");
  JsonView pattern = step.get("pattern");
  auto regex = pattern.find("Regex");
  std::string text = regex ? regex->string() : escapePattern(pattern.get("String").string());
  if (text.empty())
    throw pattern.error("expected a pattern, got an empty one");
  out.splitPatterns.push_back(text);
}

void huggingface::readPreTokenizer(const JsonView &step, TokenizerData &out) {
  JsonView type = step.get("type");
  const std::string &name = type.string();
  if (name == "Sequence") {
    JsonView steps = step.get("pretokenizers");
    for (size_t i = 0; i < steps.array().size(); ++i) {
      readPreTokenizer(steps.at(i), out);
      // After ByteLevel the text is in the byte alphabet: patterns would mean something else.
      bool last = i + 1 == steps.array().size();
      if (!last && steps.at(i).get("type").string() == "ByteLevel")
        throw steps.at(i + 1).error("expected ByteLevel as the last step, got one more");
    }
  } else if (name == "Split") {
    readSplit(step, out);
  } else if (name == "Digits") {
    out.splitPatterns.push_back(flag(step, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
  } else if (name == "ByteLevel") {
    out.addPrefixSpace = flag(step, "add_prefix_space", true);
    if (flag(step, "use_regex", true))
      out.splitPatterns.push_back(gpt2Pattern);
  } else {
    throw type.expected("a pre-tokenizer of type Split, Digits, ByteLevel or Sequence");
  }
}
