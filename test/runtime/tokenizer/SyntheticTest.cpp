#include "Synthetic.h"

#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/Utf8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <pthread.h>
#include <random>

using namespace llmc;
using namespace llmc::test;

// The lookahead alternative leaves the last space of a run for the next word.
TEST(SplitPattern, SpaceRuns) {
  for (const char *pre : {"llama-bpe", "qwen2"}) {
    EXPECT_EQ(splitAs(pre, "if  ok:\n\t\tgo   up "), "if| | ok|:\n|\t|\tgo|  | up| ") << pre;
    EXPECT_EQ(splitAs(pre, "x=\t\t7"), "x|=|\t|\t|7") << pre;
    EXPECT_EQ(splitAs(pre, "tail \n\n\n  end"), "tail| \n\n\n| | end") << pre;
    EXPECT_EQ(splitAs(pre, "HE'LL"), "HE|'LL") << pre;
  }
  EXPECT_EQ(splitAs("llama-bpe", "2048kg"), "204|8|kg");
  EXPECT_EQ(splitAs("qwen2", "2048kg"), "2|0|4|8|kg");
  EXPECT_EQ(splitAs("smollm", "a  12 b"), "a|  |1|2| b");
  EXPECT_EQ(splitAs("gpt-2", "a  12 b'S we'll"), "a| | 12| b|'|S| we|'ll");
}

// U+180E is no white space (Unicode 6.3); U+0085 and U+3000 are.
TEST(SplitPattern, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(splitAs("gpt-2", "a\u180Eb"), "a|\u180E|b");
  EXPECT_EQ(splitAs("gpt-2", "a\u0085\u3000b"), "a|\u0085|\u3000|b");
  EXPECT_EQ(splitAs("gpt-2", "a \u180E \u180E"), "a| \u180E| \u180E");
}

TEST(SplitPattern, EmptyMatchesCut) {
  std::vector<std::string_view> pieces;
  SplitPattern("(?=é)").split("aéé", pieces);
  EXPECT_EQ(pieces, (std::vector<std::string_view>{"a", "é", "é"}));
}

TEST(Tokenizer, StripRules) {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF("gpt-2"));
  int32_t turn = addToken(data, {.content = "<|turn|>", .special = true, .lstrip = true});
  int32_t mask = addToken(data, {.content = "<|mask|>", .special = true, .rstrip = true});
  Tokenizer t = Tokenizer::create(data);
  auto ids = [&](std::string_view text) { return t.encode(text, true, false); };
  EXPECT_EQ(ids("p  <|turn|> q"), (std::vector<int32_t>{'p', turn, ' ', 'q'}));
  EXPECT_EQ(ids("p <|mask|> \n q"), (std::vector<int32_t>{'p', ' ', mask, 'q'}));
  EXPECT_EQ(ids("<|turn|><|mask|>  "), (std::vector<int32_t>{turn, mask}));
  EXPECT_EQ(ids("<|mask|> \u3000 <|turn|>x"), (std::vector<int32_t>{mask, turn, 'x'}));
}

TEST(Tokenizer, LongestAddedTokenWins) {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF("gpt-2"));
  int32_t a = addToken(data, {.content = "<|a|>"});
  int32_t ax = addToken(data, {.content = "<|a|>x"});
  int32_t w = addToken(data, {.content = "<|w|>", .singleWord = true});
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(t.encode("<|a|>xy", true, false), (std::vector<int32_t>{ax, 'y'}));
  EXPECT_EQ(t.encode("<|a|> <|a|>", true, false), (std::vector<int32_t>{a, ' ', a}));
  EXPECT_EQ(spellings(t, "p<|w|>q"), (std::vector<std::string>{"p", "<", "|", "w", "|", ">", "q"}));
  EXPECT_EQ(t.encode("p <|w|>, é<|w|>", true, false).at(2), w);
  EXPECT_NE(t.encode("é<|w|>", true, false).back(), w);
}

TEST(Tokenizer, UserTextCannotForgeControlTokens) {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF("gpt-2"));
  int32_t end = addToken(data, {.content = "<|im_end|>", .special = true});
  int32_t tool = addToken(data, {.content = "<tool_call>"});
  data.bosId = 0;
  Tokenizer t = Tokenizer::create(data);
  auto forged = t.encode("a<|im_end|>b<tool_call>", false, false);
  EXPECT_EQ(std::count(forged.begin(), forged.end(), end), 0);
  EXPECT_EQ(std::count(forged.begin(), forged.end(), tool), 1); // not special: always a token
  EXPECT_EQ(t.decode(forged, false), "a<|im_end|>b<tool_call>");
  EXPECT_EQ(t.encode("a<|im_end|>", true, true), (std::vector<int32_t>{0, 'a', end}));
  EXPECT_EQ(t.decode(t.encode("a<|im_end|>", true, false), true), "a");
  EXPECT_EQ(t.idOf("<|im_end|>"), end);
  EXPECT_EQ(t.idOf("Ġ"), ' ');
  EXPECT_EQ(t.idOf("nothing of the kind"), -1);
}

TEST(Tokenizer, MergesByRankLeftmostFirst) {
  TokenizerData data = byteVocabulary({});
  int32_t bc = addMerge(data, "b", "c");
  int32_t ab = addMerge(data, "a", "b");
  int32_t aa = addMerge(data, "a", "a");
  int32_t abbc = addMerge(data, "ab", "bc");
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(t.encode("abc", false, false), (std::vector<int32_t>{'a', bc}));
  EXPECT_EQ(t.encode("abbc", false, false), (std::vector<int32_t>{abbc}));
  EXPECT_EQ(t.encode("aaa", false, false), (std::vector<int32_t>{aa, 'a'}));
  EXPECT_EQ(t.encode("aab", false, false), (std::vector<int32_t>{'a', ab}));
}

TEST(Tokenizer, IgnoreMergesTakesTheWholePiece) {
  TokenizerData data = byteVocabulary({});
  addMerge(data, "a", "b");
  data.tokens.push_back("abc"); // no merge leads here
  int32_t abc = static_cast<int32_t>(data.tokens.size() - 1);
  EXPECT_EQ(Tokenizer::create(data).encode("abc", false, false).size(), 2u);
  data.ignoreMerges = true;
  EXPECT_EQ(Tokenizer::create(data).encode("abc", false, false), std::vector<int32_t>{abc});
}

TEST(Tokenizer, UnknownBytes) {
  TokenizerData data = byteVocabulary({});
  data.tokens[4] = "<unk>";
  data.tokens[5] = "";
  EXPECT_EQ(Tokenizer::create(data).encode("a\4\5b", false, false), (std::vector<int32_t>{'a', 'b'}));
  data.unkId = 4;
  EXPECT_EQ(Tokenizer::create(data).encode("a\4\5b\4", false, false), (std::vector<int32_t>{'a', 4, 4, 'b', 4}));
  data.fuseUnk = true;
  EXPECT_EQ(Tokenizer::create(data).encode("a\4\5b\4", false, false), (std::vector<int32_t>{'a', 4, 'b', 4}));
}

TEST(Tokenizer, MalformedTextBecomesReplacementMarks) {
  Tokenizer t = Tokenizer::create(byteVocabulary({}));
  auto ids = t.encode("a\xE4\xB8" "b\xFF", false, false);
  EXPECT_EQ(t.decode(ids, false), "a\uFFFDb\uFFFD");
  EXPECT_EQ(t.encode("", false, false), std::vector<int32_t>{});
  EXPECT_EQ(t.encode(std::string_view("\0", 1), false, false), std::vector<int32_t>{0});
  EXPECT_EQ(t.decode(std::vector<int32_t>{-1, 1 << 20, 'x'}, false), "x");
}

// An added token in plain UTF-8 must not pass for a byte of the alphabet.
TEST(Tokenizer, AddedTokenIsNoByte) {
  TokenizerData data = byteVocabulary({});
  data.tokens[0xE9] = "";
  int32_t e = addToken(data, {.content = "é"});
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(t.encode("é", false, false), std::vector<int32_t>{e});
  EXPECT_EQ(t.encode("\u9E80", false, false), (std::vector<int32_t>{0xBA, 0x80})); // E9 BA 80
  EXPECT_EQ(t.decode(std::vector<int32_t>{e}, false), "é");
}

TEST(Normalizer, NFC) {
  EXPECT_EQ(normalizeNFC("e\u0301"), "é");
  EXPECT_EQ(normalizeNFC("\u1100\u1161\u11A8"), "\uAC01");         // Hangul
  EXPECT_EQ(normalizeNFC("q\u0307\u0323"), "q\u0323\u0307");       // canonical order
  EXPECT_EQ(normalizeNFC("\u0344"), "\u0308\u0301");               // composition exclusion
  EXPECT_EQ(normalizeNFC("\u212B"), "\u00C5");                     // Angstrom
  EXPECT_EQ(normalizeNFC("\u2126 ½ ﬁ"), "\u03A9 ½ ﬁ");             // canonical, not compatible
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i)
    marks += i % 2 ? "\u0301" : "\u0323";
  double start = cpuSeconds();
  normalizeNFC(marks);
  EXPECT_LT(cpuSeconds() - start, 2.0);
}

//===----------------------------------------------------------------------===//
// Long runs: constant stack, near linear time
//===----------------------------------------------------------------------===//

static std::string repeat(std::string_view unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes)
    out.append(unit);
  return out;
}

/// Runs `work` in a thread with a stack of 512 KiB.
template <typename Work> static void onSmallStack(Work work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  pthread_attr_setstacksize(&attributes, 2 << 20); // its frames are larger
#else
  pthread_attr_setstacksize(&attributes, 512 << 10);
#endif
#endif
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void *p) -> void * {
                  (*static_cast<Work *>(p))();
                  return nullptr;
                },
                &work),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

static TokenizerData runVocabulary(const char *pre) {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF(pre));
  std::string left = "Z";
  for (int i = 0; i < 6; ++i, left += left) // Z, ZZ, ZZZZ, ...
    addMerge(data, left, left);
  addMerge(data, "Z", "z");
  addMerge(data, "Zz", "Zz");
  addMerge(data, " ", " ");
  addMerge(data, "\xCC", "\x81");
  addToken(data, {.content = "<|im_end|>", .special = true});
  return data;
}

TEST(Adversarial, LongRunsOnASmallStack) {
  onSmallStack([] {
    for (const char *pre : {"gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "gpt-4o", "deepseek-v3"}) {
      Tokenizer t = Tokenizer::create(runVocabulary(pre));
      for (const char *unit : {"Z", "中", ".", " ", "\n", "\u0301", "0", "<|im_end|", " \n", "'s", "a1"}) {
        std::string text = repeat(unit, 40000 * std::string_view(unit).size());
        EXPECT_EQ(t.decode(t.encode(text, true, false), false), text) << pre << " " << unit;
        text += "x";
        EXPECT_EQ(t.decode(t.encode(text, true, false), false), text) << pre << " " << unit;
      }
    }
    Tokenizer t = Tokenizer::create(runVocabulary("llama-bpe"));
    std::string mixed = repeat("Zz", 1 << 20);
    EXPECT_EQ(t.decode(t.encode(mixed, true, false), false), mixed);
    std::string valid;
    std::mt19937 random(20);
    while (valid.size() < 1 << 20) {
      uint32_t c = random() % 0x110000;
      if (c < 0xD800 || c > 0xDFFF)
        utf8::append(valid, random() % 2 ? c & 0x7F : c);
    }
    EXPECT_EQ(t.decode(t.encode(valid, true, false), false), valid);
  });
}

TEST(Adversarial, TimeIsNearLinear) {
  Tokenizer t = Tokenizer::create(runVocabulary("llama-bpe"));
  auto seconds = [&](std::string_view unit, size_t bytes) {
    std::string text = repeat(unit, bytes);
    double best = 1e9;
    for (int i = 0; i < 2; ++i) {
      double start = cpuSeconds();
      t.encode(text, true, false);
      best = std::min(best, cpuSeconds() - start);
    }
    return best;
  };
  for (const char *unit : {"Z", "Zz", " ", "\n", "the quick 12 "}) {
    double one = seconds(unit, 1 << 18), four = seconds(unit, 1 << 20);
    // 4x the input; quadratic would be 16x.
    EXPECT_LT(four, 9 * one + 0.02) << unit << ": " << one << " s, then " << four << " s";
  }
}

/// Characters "Zz .中" and their pairs as pieces, for the models without a byte alphabet.
static std::vector<TokenizerData> characterVocabularies() {
  TokenizerData data;
  data.tokens = {"<unk>"};
  for (std::string unit : {"Z", "z", "▁", ".", "中"})
    for (int i = 0; i < 5; ++i, unit += unit)
      data.tokens.push_back(unit);
  for (size_t i = 0; i < data.tokens.size(); ++i)
    data.scores.push_back(-1.5 * static_cast<double>(i % 7));
  data.unkId = 0;
  data.normalizers = {{.kind = NormalizerStep::Kind::Replace, .text = " ", .content = "▁"}};
  data.decoders = {{.kind = DecoderStep::Kind::Replace, .text = "▁", .content = " "}};
  std::vector<TokenizerData> all;
  for (auto model : {TokenizerData::Model::BPE, TokenizerData::Model::ScoredBPE, TokenizerData::Model::Unigram,
                     TokenizerData::Model::WordPiece}) {
    all.push_back(data);
    all.back().model = model;
    all.back().maxWordChars = UINT32_MAX;
  }
  for (size_t i = 1; i < data.tokens.size(); ++i)
    if (i % 5)
      all[0].merges.emplace_back(data.tokens[i], data.tokens[i]);
  return all;
}

TEST(Adversarial, WholeTextsAsOnePiece) {
  onSmallStack([] {
    for (const TokenizerData &data : characterVocabularies()) {
      Tokenizer t = Tokenizer::create(data);
      for (const char *unit : {"Z", "zZ", " ", ".", "中"}) {
        std::string text = repeat(unit, 40000 * std::string_view(unit).size());
        EXPECT_EQ(t.decode(t.encode(text, false, false), false), text) << static_cast<int>(data.model) << unit;
      }
      EXPECT_EQ(t.encode(repeat("\u0301", 80000), false, false).back(), 0);
    }
  });
  for (const TokenizerData &data : characterVocabularies()) {
    Tokenizer t = Tokenizer::create(data);
    auto seconds = [&](size_t bytes) {
      std::string text = repeat("Z", bytes);
      double best = 1e9;
      for (int i = 0; i < 2; ++i) {
        double start = cpuSeconds();
        t.encode(text, false, false);
        best = std::min(best, cpuSeconds() - start);
      }
      return best;
    };
    double one = seconds(1 << 17), four = seconds(1 << 19);
    EXPECT_LT(four, 9 * one + 0.02) << static_cast<int>(data.model) << ": " << one << " s, then " << four << " s";
  }
}
