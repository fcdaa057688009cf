//===- SplitPatternsGGUF.cpp - patterns by tokenizer.ggml.pre -------------===//
//
// GGUF names its pre-tokeniser instead of carrying it. The patterns are those of
// the models' own tokenizer.json files (llama.cpp, src/llama-vocab.cpp, keeps
// them beside its adaptations), so case folding is left to (?i:...).
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/tokenizer/TokenizerData.h"

#include <string_view>

using namespace llmc;

namespace {
constexpr const char *kGPT2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char *kDigit = R"(\p{N})";
constexpr const char *kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kGPT4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kDeepSeek3Main =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct PreTokenizer {
  std::vector<std::string_view> names; // the first one is shown in messages
  std::vector<const char *> patterns;
  bool ignoreMerges = false, nfc = false; // as these models' tokenizer.json says
};

const std::vector<PreTokenizer> &table() {
  static const std::vector<PreTokenizer> entries = {
      {{"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "roberta-bpe"}, {kGPT2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"}, {kDigit, kGPT2}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}, {kLlama3}, true},
      {{"dbrx", "smaug-bpe"}, {kLlama3}},
      {{"qwen2", "deepseek-r1-qwen", "megrez"}, {kQwen2}, false, true},
      {{"stablelm2", "hunyuan", "solar-open", "grok-2"}, {kQwen2}},
      {{"qwen35"}, {kQwen35}, false, true},
      {{"tekken"}, {kTekken}, true},
      {{"gpt-4o", "llama4"}, {kGPT4o}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"}, {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepSeek3Main}},
      {{"seed-coder"}, {kSeedCoder}},
  };
  return entries;
}

const PreTokenizer &find(const std::string &pre) {
  std::string known;
  for (const PreTokenizer &entry : table()) {
    for (std::string_view name : entry.names)
      if (name == pre)
        return entry;
    known += (known.empty() ? "" : ", ") + std::string(entry.names.front());
  }
  throw Error("tokenizer.ggml.pre: expected a known byte-level pre-tokeniser (" + known + " or an alias), got '" + pre +
              "'");
}
} // namespace

std::vector<std::string> llmc::splitPatternsForGGUF(const std::string &pre) {
  const PreTokenizer &entry = find(pre);
  return {entry.patterns.begin(), entry.patterns.end()};
}

void llmc::applyPreTokenizerForGGUF(const std::string &pre, TokenizerData &data) {
  const PreTokenizer &entry = find(pre);
  data.splitPatterns.assign(entry.patterns.begin(), entry.patterns.end());
  data.ignoreMerges = entry.ignoreMerges;
  data.nfc = entry.nfc;
}
