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

// Any single wrong byte gives data or an Error, never a crash; what loads can be used.
TEST(TokenizerData, FlippedBytes) {
  std::string bytes = sample().serialize();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (unsigned char flip : {0x01, 0x80, 0xFF}) {
      std::string bad = bytes;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      try {
        TokenizerData::deserialize(bad);
        Tokenizer tokenizer = Tokenizer::load(bad);
        tokenizer.decode(tokenizer.encode("the <|turn|> he's w", true, true), false);
      } catch (const Error &) {
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
