#include "Synthetic.h"

#include "llmc/Support/Error.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

static TokenizerData sample() {
  TokenizerData data = byteVocabulary(splitPatternsForGGUF("llama-bpe"));
  addMerge(data, "h", "e");
  addMerge(data, " ", "he");
  addToken(data, {.content = "<|turn|>", .special = true, .lstrip = true});
  data.bosId = addToken(data, {.content = "<bös>", .special = true, .rstrip = true, .normalized = true});
  addToken(data, {.content = "w", .singleWord = true});
  data.tokens.push_back("");
  data.nfc = data.addBos = data.fuseUnk = data.ignoreMerges = true;
  data.eosIds = {258, 259};
  return data;
}

TEST(TokenizerData, RoundTrip) {
  TokenizerData data = sample();
  std::string bytes = data.serialize();
  TokenizerData back = TokenizerData::deserialize(bytes);
  EXPECT_EQ(back.serialize(), bytes);
  EXPECT_EQ(back.tokens, data.tokens);
  EXPECT_EQ(back.merges, data.merges);
  EXPECT_EQ(back.splitPatterns, data.splitPatterns);
  EXPECT_EQ(back.eosIds, data.eosIds);
  EXPECT_EQ(back.bosId, data.bosId);
  EXPECT_EQ(back.padId, -1);
  EXPECT_TRUE(back.nfc && back.addBos && back.fuseUnk && back.ignoreMerges);
  EXPECT_FALSE(back.addEos || back.addPrefixSpace);
  ASSERT_EQ(back.added.size(), 3u);
  EXPECT_TRUE(back.added[0].special && back.added[0].lstrip && !back.added[0].rstrip);
  EXPECT_TRUE(back.added[1].rstrip && back.added[1].normalized && back.added[1].content == "<bös>");
  EXPECT_TRUE(back.added[2].singleWord && !back.added[2].special && back.added[2].id == 260);
}

TEST(TokenizerData, EveryTruncationIsAnError) {
  std::string bytes = sample().serialize();
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(TokenizerData::deserialize(std::string_view(bytes).substr(0, n)), Error) << n;
  EXPECT_THROW(TokenizerData::deserialize(bytes + "x"), Error);
}

/// One of each model, with every kind of step.
static std::vector<TokenizerData> samples() {
  std::vector<TokenizerData> all{sample()};
  TokenizerData data;
  for (const char *token : {"<unk>", "<s>", "a", "b", "ab", "##b", "▁", "▁ab", "<0x41>"}) {
    data.tokens.emplace_back(token);
    data.scores.push_back(-static_cast<double>(data.scores.size()));
  }
  data.kinds.assign(data.tokens.size(), PieceKind::Normal);
  data.kinds[0] = PieceKind::Unknown;
  data.kinds[1] = PieceKind::Control;
  data.kinds[4] = PieceKind::Unused;
  data.kinds[7] = PieceKind::UserDefined;
  data.kinds[8] = PieceKind::Byte;
  data.unkId = 0;
  data.byteFallback = data.fuseUnk = data.addEos = true;
  data.continuingPrefix = "##";
  data.maxWordChars = 7;
  data.added = {{.id = 1, .content = "<s>", .special = true}, {.id = 7, .content = "▁AB", .normalized = true}};
  std::string charsmap("\x08\0\0\0\0\x04\0\0\0\0\0\0 \0", 14);
  for (uint32_t kind = 1; kind < static_cast<uint32_t>(NormalizerStep::Kind::ByteLevel); ++kind)
    data.normalizers.push_back({.kind = static_cast<NormalizerStep::Kind>(kind), .text = charsmap, .content = "▁",
                                .left = true, .cleanText = true, .byGrapheme = kind % 2 == 0});
  data.normalizers[8].text = data.normalizers[9].text = " ";
  data.normalizers[7].text = "▁";
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(PreTokenizerStep::Kind::UnicodeScripts); ++kind)
    if (kind != static_cast<uint32_t>(PreTokenizerStep::Kind::ByteLevel)) {
      PreTokenizerStep step;
      step.kind = static_cast<PreTokenizerStep::Kind>(kind);
      step.behavior = static_cast<PreTokenizerStep::Behavior>(kind % 5);
      step.invert = kind == 2;
      step.pattern = "b";
      step.prepend = PrependScheme::First;
      step.split = false;
      data.preTokenizers.push_back(step);
    }
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(DecoderStep::Kind::CleanUp); ++kind)
    data.decoders.push_back({.kind = static_cast<DecoderStep::Kind>(kind), .text = "_", .content = "-", .start = 1,
                             .stop = kind, .prepend = PrependScheme::Never, .cleanUp = true});
  for (auto model : {TokenizerData::Model::ScoredBPE, TokenizerData::Model::Unigram, TokenizerData::Model::WordPiece,
                     TokenizerData::Model::BPE}) {
    data.model = model;
    data.singlePrecision = model == TokenizerData::Model::Unigram;
    all.push_back(data);
  }
  all.back().merges = {{"a", "##b"}};
  return all;
}

TEST(TokenizerData, EveryStepAndModelSurvives) {
  for (const TokenizerData &data : samples()) {
    TokenizerData back = TokenizerData::deserialize(data.serialize());
    EXPECT_EQ(back.model, data.model);
    EXPECT_EQ(back.normalizers, data.normalizers);
    EXPECT_EQ(back.preTokenizers, data.preTokenizers);
    EXPECT_EQ(back.decoders, data.decoders);
    EXPECT_EQ(back.added, data.added);
    EXPECT_EQ(back.scores, data.scores);
    EXPECT_EQ(back.kinds, data.kinds);
    EXPECT_EQ(back.merges, data.merges);
    EXPECT_EQ(back.continuingPrefix, data.continuingPrefix);
    EXPECT_EQ(back.maxWordChars, data.maxWordChars);
    EXPECT_EQ(back.byteFallback, data.byteFallback);
    EXPECT_EQ(back.singlePrecision, data.singlePrecision);
    Tokenizer made = Tokenizer::create(data), loaded = Tokenizer::load(data.serialize());
    for (const char *text : {"ab a b<s>", "  AB\tb_é", "<0x41> A"})
      EXPECT_EQ(made.encode(text, true, true), loaded.encode(text, true, true)) << text;
  }
}

// Any single wrong byte gives data or an Error, never a crash; what loads can be used.
TEST(TokenizerData, FlippedBytes) {
  for (const TokenizerData &data : samples()) {
    std::string bytes = data.serialize();
    for (size_t i = 0; i < bytes.size(); ++i)
      for (unsigned char flip : {0x01, 0x80, 0xFF}) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(bad[i] ^ flip);
        try {
          TokenizerData::deserialize(bad);
          Tokenizer tokenizer = Tokenizer::load(bad);
          tokenizer.decode(tokenizer.encode("the <|turn|> he's w ab<s>A", true, true), false);
        } catch (const Error &) {
        }
      }
  }
}

TEST(TokenizerData, ErrorsNameWhatIsWrong) {
  auto message = [](auto &&f) -> std::string {
    try {
      f();
    } catch (const Error &error) {
      return error.what();
    }
    return "no error";
  };
  std::string bytes = sample().serialize();
  bytes[4] = 9;
  EXPECT_EQ(message([&] { TokenizerData::deserialize(bytes); }),
            "tokenizer data: expected version 2, got 9");
  TokenizerData data = sample();
  data.merges.emplace_back("z", "qq");
  EXPECT_EQ(message([&] { Tokenizer::create(data); }),
            "tokenizer merge 2: expected 'z', 'qq' and their join in the vocabulary, got 'qq' missing");
  data = sample();
  data.splitPatterns = {"(ab"};
  EXPECT_NE(message([&] { Tokenizer::create(data); }).find("split pattern '(ab': missing closing parenthesis"),
            std::string::npos);
  data = sample();
  data.eosIds = {400};
  EXPECT_EQ(message([&] { Tokenizer::create(data); }),
            "tokenizer: expected an end-of-sequence id below 262, got 400");
  EXPECT_NE(message([&] { splitPatternsForGGUF("sillytok"); }).find("qwen2"), std::string::npos);
  EXPECT_NE(message([&] { splitPatternsForGGUF("sillytok"); }).find("got 'sillytok'"), std::string::npos);
}
