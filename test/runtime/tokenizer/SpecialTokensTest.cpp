// What looks like a control token in user text stays text, for every model; conversations of both kinds of text.

#include "Synthetic.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

using Strings = std::vector<std::string>;

namespace {

/// Every model finds "<s>" in one look-up, or makes it by merges.
std::vector<std::pair<const char *, TokenizerData>> vocabularies() {
  std::vector<std::pair<const char *, TokenizerData>> all;
  TokenizerData base;
  for (const char *token : {"<unk>", "<s>", "<", "s", ">", "a", " ", "<s"})
    base.tokens.emplace_back(token);
  base.unkId = 0;
  base.decoders = {{.kind = DecoderStep::Kind::Fuse}};
  base.added = {{.id = 0, .content = "<unk>", .special = true}, {.id = 1, .content = "<s>", .special = true}};
  TokenizerData data = base;
  data.merges = {{"<", "s"}, {"<s", ">"}};
  all.emplace_back("BPE", data);
  data.ignoreMerges = true;
  data.merges.clear();
  all.emplace_back("BPE, ignore_merges", data);
  data = base;
  data.merges = {{"<", "s"}, {"<s", ">"}};
  data.preTokenizers.resize(1);
  data.preTokenizers[0].kind = PreTokenizerStep::Kind::ByteLevel;
  data.tokens[6] = "Ġ";
  data.decoders = {{.kind = DecoderStep::Kind::ByteLevel}};
  all.emplace_back("byte-level BPE", data);
  data = base;
  data.scores = {0, 0, -9, -9, -9, -9, -9, -1};
  data.model = TokenizerData::Model::ScoredBPE;
  all.emplace_back("scored BPE", data);
  data.model = TokenizerData::Model::Unigram;
  all.emplace_back("unigram", data);
  data = base;
  data.model = TokenizerData::Model::WordPiece;
  all.emplace_back("WordPiece", data);
  return all;
}

TEST(SpecialTokens, UserTextNeverGivesThem) {
  for (const auto &[name, data] : vocabularies()) {
    Tokenizer t = Tokenizer::create(data);
    EXPECT_EQ(t.encode("<s>", true, false), (std::vector<int32_t>{1})) << name;
    for (const char *text : {"<s>", "a<s>", "<s><s>a", "<s> <s>"}) {
      std::vector<int32_t> ids = t.encode(text, false, false);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 0) << name << ": " << text;
      EXPECT_EQ(t.decode(ids, false), text) << name;
    }
  }
}

TEST(SpecialTokens, AMergedOneIsTakenApart) {
  Tokenizer t = Tokenizer::create(vocabularies()[0].second);
  EXPECT_EQ(spellings(t, "<s>", false), (Strings{"<s", ">"}));
}

TEST(SpecialTokens, PartsOfAConversation) {
  for (const auto &[name, data] : vocabularies()) {
    Tokenizer t = Tokenizer::create(data);
    auto count = [&](std::vector<TextPart> parts) {
      std::vector<int32_t> ids = t.encode(parts, false);
      return std::count(ids.begin(), ids.end(), 1);
    };
    EXPECT_EQ(count({{"<s>", true}, {"<s>a<s>", false}, {"<s>", true}}), 2) << name;
    EXPECT_EQ(count({{"<", true}, {"s>", false}}), 0) << name << ": half of it is user text";
    EXPECT_EQ(count({{"<s", false}, {">", true}}), 0) << name;
    EXPECT_EQ(count({{"<", true}, {"s", true}, {">a", true}}), 1) << name << ": neighbours that both may";
    EXPECT_EQ(count({{"<s>", true}, {"", false}, {"<s>", true}}), 2) << name;
  }
}

// One text, not pieces: words reach across the borders, and so do longer tokens that are not special.
TEST(SpecialTokens, PartsAreOneText) {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF("gpt-2"));
  addMerge(data, "a", "b");
  addToken(data, {.content = "<|a|>", .special = true});
  addToken(data, {.content = "<|a|>x", .special = true});
  addToken(data, {.content = "##", .special = false});
  Tokenizer t = Tokenizer::create(data);
  auto parts = [&](std::vector<TextPart> list) {
    Strings out;
    for (int32_t id : t.encode(list, false))
      out.emplace_back(t.tokenBytes(id));
    return out;
  };
  EXPECT_EQ(parts({{"a", true}, {"b", false}}), (Strings{"ab"}));
  EXPECT_EQ(parts({{"#", true}, {"#", false}}), (Strings{"##"}));
  EXPECT_EQ(parts({{"<|a|>", true}, {"x", false}}), (Strings{"<|a|>", "x"})) << "the longer one reaches into user text";
  EXPECT_EQ(parts({{"<|a|>x", true}}), (Strings{"<|a|>x"}));
  EXPECT_EQ(parts({{"\xC3", false}, {"\xA9", true}}), (Strings{"\xEF", "\xBF", "\xBD", "\xEF", "\xBF", "\xBD"}));
}

// Tokens found in the normalised text: the borders move with it.
TEST(SpecialTokens, PartsAndNormalisedTokens) {
  TokenizerData data;
  for (const char *token : {"<unk>", "<s>", "<", "s", ">", "▁"})
    data.tokens.emplace_back(token);
  data.unkId = 0;
  data.fuseUnk = true;
  data.added = {{.id = 1, .content = "<S>", .special = true, .normalized = true}};
  data.normalizers = {{.kind = NormalizerStep::Kind::Replace, .text = " ", .content = "▁"},
                      {.kind = NormalizerStep::Kind::Lowercase}};
  Tokenizer t = Tokenizer::create(data);
  std::vector<TextPart> parts{{"<S>   ", true}, {"<S>  ", false}, {"<s>", true}};
  EXPECT_EQ(t.encode(parts, false), (std::vector<int32_t>{1, 5, 5, 5, 2, 3, 4, 5, 5, 1}));
}

} // namespace
