//===- SplitPatternsGGUF.cpp - pre-tokenizers by tokenizer.ggml.pre -------===//
//
// GGUF names its pre-tokeniser instead of carrying it. The steps are those of the
// models' own tokenizer.json files (llama.cpp, src/llama-vocab.cpp, lists the names
// and keeps the patterns beside its adaptations), so case folding is left to
// (?i:...) and what follows ByteLevel sees the byte alphabet.
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
constexpr const char *kDigits3 = R"(\p{N}{1,3})";
constexpr const char *kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kUfakZeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kMiniCPM5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kJais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr const char *kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kGPT4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kYoutuHan = R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)";
constexpr const char *kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Oniguruma's [A&&[^\p{Han}]] as a lookahead.
constexpr const char *kKimiK2 =
    R"(\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kCJK = "[一-龥぀-ゟ゠-ヿ]+";
constexpr const char *kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr const char *kDeepSeekLetters =
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1F7Dᾀ-ᾴᾶ-ᾼ"
    "\u1FBEῂ-ῄῆ-ῌῐ-\u1FD3ῖ-\u1FDBῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212A-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
constexpr const char *kDeepSeekPunctuation = "\\s?[!-/:-~！-／：-～‘-‟　-。]+";
constexpr const char *kDeepSeekHan = "[一-龥ࠀ-一가-퟿]+";
constexpr const char *kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char *kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char *kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr const char *kTriplesFromRight = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr const char *kAfmoeDigits = R"(\p{Nd}{1,3}(?=(?:\p{Nd}{3})*(?!\p{Nd})))";
constexpr const char *kAfmoeScripts =
    "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+";

/// Patterns applied in order, then ByteLevel.
struct PreTokenizer {
  std::vector<std::string_view> names; // the first one is shown in messages
  std::vector<const char *> patterns;
  bool ignoreMerges = false, nfc = false; // as these models' tokenizer.json says
};

const std::vector<PreTokenizer> &table() {
  static const std::vector<PreTokenizer> entries = {
      {{"gpt-2", "gpt2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v1-en", "jina-v2-es", "jina-v2-de",
        "jina-v2-code", "a.x-4.0", "mellum", "modern-bert", "jais", "trillion", "granite-docling", "roberta-bpe",
        "exaone4"},
       {kGPT2}},
      {{"mpt", "olmo"}, {kGPT2}, false, true},
      {{"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"}, {kDigit, kGPT2}},
      {{"command-r"}, {kDigit, kGPT2}, false, true},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {kLlama3},
       true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"}, {kLlama3}},
      {{"glm4", "glm5"}, {kLlama3}, true},
      {{"jais-2"}, {kJais2}},
      {{"minicpm5"}, {kDigits3, kMiniCPM5}, true},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2"}, {kQwen2}, false, true},
      {{"stablelm2", "hunyuan", "solar-open", "grok-2"}, {kQwen2}},
      {{"qwen35"}, {kQwen35}}, // no NFC, as the pairs of llama.cpp (models/ggml-vocab-qwen35.gguf.out) show
      {{"ufakzeka"}, {kUfakZeka}},
      {{"laguna"}, {R"([^\n]+|[\n]+)", kQwen2}},
      {{"tekken"}, {kTekken}, true},
      {{"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, {kGPT4o}},
      {{"granite-embed-multi-97m"}, {kGPT4o}, true},
      {{"tiny_aya", "cohere2moe"}, {kTriplesFromRight, kGPT4o}},
      {{"youtu"}, {kYoutuHan, kYoutu}, true},
      {{"kimi-k2"}, {kKimiK2}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, {kDigits3, kCJK, kDeepSeek3}},
      {{"spark2_5"}, {kDigits3, kCJK, kSpark, kDigit}},
      {{"afmoe"}, {kAfmoeDigits, kAfmoeScripts, kDeepSeek3}},
      {{"deepseek-llm"},
       {"[\r\n]", kDeepSeekLetters, kDeepSeekPunctuation, R"(\s+$)", kDeepSeekHan, kDigit}},
      {{"deepseek-coder"}, {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekHan, kDigit}},
      {{"seed-coder"}, {kSeedCoder}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {kBailing}},
      {{"exaone-moe"}, {kExaoneMoe}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
      {{"viking"}, {kBloom, kDigit}},
      {{"superbpe"}, {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}},
      {{"chameleon"},
       {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", kDigit,
        R"([\p{P}!-/:-@\[-`{-~])", kGPT2}},
      // What llama.cpp takes where a file says nothing better: falcon's without the change of alphabet.
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", kGPT2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return entries;
}

/// Falcon's steps after ByteLevel see the alphabet, where some bytes look like digits.
std::vector<PreTokenizerStep> falcon() {
  using Kind = PreTokenizerStep::Kind;
  return {{.kind = Kind::Punctuation, .behavior = PreTokenizerStep::Behavior::Contiguous},
          {.kind = Kind::ByteLevel, .useRegex = true},
          {.kind = Kind::Digits},
          {.kind = Kind::Split, .pattern = "[0-9][0-9][0-9]"}};
}

const PreTokenizer &find(const std::string &pre) {
  std::string known = "falcon";
  for (const PreTokenizer &entry : table())
    for (std::string_view name : entry.names) {
      if (name == pre)
        return entry;
      known += ", " + std::string(name);
    }
  throw Error("tokenizer.ggml.pre: expected a known byte-level pre-tokeniser (" + known + "), got '" + pre + "'");
}
} // namespace

std::vector<std::string> llmc::splitPatternsForGGUF(const std::string &pre) {
  const PreTokenizer &entry = find(pre);
  return {entry.patterns.begin(), entry.patterns.end()};
}

void llmc::applyPreTokenizerForGGUF(const std::string &pre, TokenizerData &data) {
  if (pre == "falcon") {
    data.preTokenizers = falcon();
    return;
  }
  const PreTokenizer &entry = find(pre);
  data.splitPatterns.assign(entry.patterns.begin(), entry.patterns.end());
  data.ignoreMerges = entry.ignoreMerges;
  data.nfc = entry.nfc;
}
