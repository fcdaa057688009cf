// Ids to text, at once and token by token.

#include "Synthetic.h"

#include "runtime/tokenizer/DecodeStream.h"
#include "runtime/tokenizer/Utf8.h"

#include <gtest/gtest.h>

#include <random>

using namespace llmc;
using namespace llmc::test;

using Kind = DecoderStep::Kind;
using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

namespace {

Strings chunksOf(const Tokenizer &t, const Ids &ids, bool skipSpecial = false) {
  DecodeStream stream(t, skipSpecial);
  Strings chunks;
  for (int32_t id : ids)
    chunks.push_back(stream.feed(id));
  chunks.push_back(stream.flush());
  return chunks;
}

std::string joined(const Strings &chunks) {
  std::string all;
  for (const std::string &chunk : chunks)
    all += chunk;
  return all;
}

TokenizerData spelled(const Strings &tokens, const std::vector<DecoderStep> &decoders) {
  TokenizerData data;
  data.tokens = tokens;
  data.decoders = decoders;
  return data;
}

std::string decodeAll(const TokenizerData &data) {
  Tokenizer t = Tokenizer::create(data);
  Ids ids;
  for (size_t i = 0; i < data.tokens.size(); ++i)
    ids.push_back(static_cast<int32_t>(i));
  std::string text = t.decode(ids, false);
  EXPECT_EQ(joined(chunksOf(t, ids)), text);
  return text;
}

} // namespace

// B23: characters spread over tokens come out whole, when their last byte does.
TEST(DecodeStream, ByteLevelGivesWholeCharacters) {
  Tokenizer t = Tokenizer::create(byteVocabulary({}));
  Ids ids = t.encode("né 🦊\u200D❄!", false, false);
  ASSERT_EQ(ids.size(), 15u);
  const Strings expected = {"n", "", "é", " ", "", "", "", "🦊", "", "", "\u200D", "", "", "❄", "!", ""};
  EXPECT_EQ(chunksOf(t, ids), expected);
  EXPECT_EQ(t.decode(ids, false), "né 🦊\u200D❄!");
  // Two requests in turn.
  DecodeStream a(t, false), b(t, false);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(a.feed(ids[i]), expected[i]);
    EXPECT_EQ(b.feed(ids[i]), expected[i]);
  }
}

// B24 ----------------------------------------------------------------------------

static TokenizerData fallbackVocabulary(bool fallback) {
  TokenizerData data;
  data.tokens = {"<unk>"};
  for (int b = 0; b < 256; ++b) {
    char spelling[8];
    std::snprintf(spelling, sizeof spelling, "<0x%02X>", b);
    data.tokens.emplace_back(spelling);
  }
  for (const char *token : {"▁", "c", "a", "f", "o", "k", "▁caf", "▁ok", "▁q", "<", "0", "x", "C", "3", ">", "<0xc3>", "▁c", "▁ca", "▁o"})
    data.tokens.emplace_back(token);
  data.merges = {{"▁", "c"}, {"▁c", "a"}, {"▁ca", "f"}, {"▁", "o"}, {"▁o", "k"}};
  data.unkId = 0;
  data.byteFallback = fallback;
  data.preTokenizers.resize(1);
  data.preTokenizers[0].kind = PreTokenizerStep::Kind::Metaspace;
  data.decoders = {{.kind = Kind::Replace, .text = "▁", .content = " "},
                   {.kind = Kind::ByteFallback},
                   {.kind = Kind::Fuse},
                   {.kind = Kind::Strip, .text = " ", .start = 1}};
  return data;
}

TEST(DecodeStream, ByteFallback) {
  Tokenizer t = Tokenizer::create(fallbackVocabulary(true));
  EXPECT_EQ(spellings(t, "café ok"), (Strings{"▁caf", "<0xC3>", "<0xA9>", "▁ok"}));
  EXPECT_EQ(spellings(t, "c<0xC3>"), (Strings{"▁c", "<", "0", "x", "C", "3", ">"})) << "text is not turned into a byte";
  auto text = [&](const Strings &tokens) {
    Ids ids;
    for (const std::string &token : tokens)
      ids.push_back(t.idOf(token));
    std::string once = t.decode(ids, false);
    EXPECT_EQ(joined(chunksOf(t, ids)), once);
    return once;
  };
  EXPECT_EQ(text({"▁caf", "<0xC3>", "<0xA9>", "▁ok"}), "café ok");
  EXPECT_EQ(text({"▁q", "<0xC3>"}), "q\uFFFD");
  EXPECT_EQ(text({"<0xC3>", "<0x28>"}), "\uFFFD\uFFFD") << "the whole run";
  EXPECT_EQ(text({"<0xc3>", "<0xA9>"}), "é") << "a token of that spelling is a byte in either case";
  EXPECT_EQ(text({"▁c", "<", "0", "x", "C", "3", ">"}), "c<0xC3>");
  EXPECT_EQ(spellings(Tokenizer::create(fallbackVocabulary(false)), "café ok"), (Strings{"▁caf", "<unk>", "▁ok"}));
}

// Other decoders -------------------------------------------------------------------

TEST(DecodeStream, Metaspace) {
  DecoderStep step{.kind = Kind::Metaspace, .text = "▁"};
  EXPECT_EQ(decodeAll(spelled({"▁Hey", "▁you▁!", "▁"}, {step})), "Hey you ! ");
  EXPECT_EQ(decodeAll(spelled({"▁▁", "▁a"}, {step})), " a") << "all of them in the first token";
  step.prepend = PrependScheme::Never;
  EXPECT_EQ(decodeAll(spelled({"▁Hey", "▁you"}, {step})), " Hey you");
}

TEST(DecodeStream, WordPiece) {
  DecoderStep step{.kind = Kind::WordPiece, .text = "##"};
  const Strings tokens = {"un", "##aff", "able", ".", "don", "'", "t"};
  EXPECT_EQ(decodeAll(spelled(tokens, {step})), "unaff able . don ' t");
  step.cleanUp = true;
  EXPECT_EQ(decodeAll(spelled(tokens, {step})), "unaff able. don ' t");
}

TEST(DecodeStream, EndOfWord) {
  EXPECT_EQ(decodeAll(spelled({"my</w>", "fr", "iend</w>"}, {{.kind = Kind::BPE, .text = "</w>"}})), "my friend");
}

TEST(DecodeStream, StripsEachTokenOrTheText) {
  DecoderStep strip{.kind = Kind::Strip, .text = "_", .start = 1, .stop = 1};
  EXPECT_EQ(decodeAll(spelled({"__a_", "_", "b__"}, {strip})), "_ab_");
  EXPECT_EQ(decodeAll(spelled({"__a_", "_", "b__"}, {{.kind = Kind::Fuse}, strip})), "_a__b_");
}

TEST(DecodeStream, CleanUp) {
  TokenizerData data = spelled({"do", " n", "'t", " stop", " ", ".", " he", " '", "s", " ", "' ", "x", " "},
                               {{.kind = Kind::Fuse}, {.kind = Kind::CleanUp}});
  EXPECT_EQ(decodeAll(data), "don't stop. he's'x ");
}

TEST(DecodeStream, SpecialTokensAndUnknownIds) {
  TokenizerData data = byteVocabulary({});
  int32_t end = addToken(data, {.content = "<|end|>", .special = true});
  Tokenizer t = Tokenizer::create(data);
  EXPECT_EQ(t.decode(Ids{'a', end, 'b', -1, 9999}, false), "a<|end|>b");
  EXPECT_EQ(t.decode(Ids{'a', end, 'b', -1, 9999}, true), "ab");
}

// Any ids through any steps: joined chunks are the one-shot text, and valid UTF-8.
TEST(DecodeStream, ChunksJoinToTheWhole) {
  const Strings tokens = {"▁",    "▁a", "<0xC3>", "<0xA9>", "<0x28>", " ", ".", "'", "n't", " '", "s", "##x", "é",
                          "b</w>", "__", "_",     "▁▁",     "<0xF0>", "",  "\xC3", "\xA9"};
  const std::vector<std::vector<DecoderStep>> chains = {
      {},
      {{.kind = Kind::ByteLevel}},
      {{.kind = Kind::ByteLevel}, {.kind = Kind::CleanUp}},
      {{.kind = Kind::Replace, .text = "▁", .content = " "}, {.kind = Kind::ByteFallback}, {.kind = Kind::Fuse}, {.kind = Kind::Strip, .text = " ", .start = 1}},
      {{.kind = Kind::Metaspace, .text = "▁"}, {.kind = Kind::CleanUp}},
      {{.kind = Kind::WordPiece, .text = "##", .cleanUp = true}},
      {{.kind = Kind::BPE, .text = "</w>"}, {.kind = Kind::Fuse}, {.kind = Kind::Replace, .text = "__", .content = "-"}},
      {{.kind = Kind::Fuse}, {.kind = Kind::Strip, .text = "_", .start = 2, .stop = 3}},
      {{.kind = Kind::Fuse}, {.kind = Kind::ReplaceRegex, .text = "_+", .content = "-"}, {.kind = Kind::ByteFallback}},
      {{.kind = Kind::Fuse}, {.kind = Kind::WordPiece, .text = "##", .cleanUp = true}, {.kind = Kind::BPE, .text = "</w>"}},
  };
  std::mt19937 random(23);
  for (size_t c = 0; c < chains.size(); ++c) {
    Tokenizer t = Tokenizer::create(spelled(tokens, chains[c]));
    for (int i = 0; i < 300; ++i) {
      Ids ids(random() % 12);
      for (int32_t &id : ids)
        id = static_cast<int32_t>(random() % tokens.size());
      std::string once = t.decode(ids, false);
      EXPECT_EQ(joined(chunksOf(t, ids)), once) << "chain " << c;
      EXPECT_EQ(utf8::firstInvalid(once), once.size()) << "chain " << c;
    }
  }
}
