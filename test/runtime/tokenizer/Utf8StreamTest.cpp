#include "Synthetic.h"

#include "runtime/tokenizer/Utf8.h"
#include "runtime/tokenizer/Utf8Stream.h"

#include <gtest/gtest.h>

#include <random>

using namespace llmc;
using namespace llmc::test;

// A byte-level vocabulary without merges: every character comes in pieces.
TEST(Utf8Stream, EmitsOnlyWholeCharacters) {
  Tokenizer tokenizer = Tokenizer::create(byteVocabulary(splitPatternsForGGUF("gpt-2")));
  const std::string text = "né 🦊\u200D❄!";
  std::vector<int32_t> ids = tokenizer.encode(text, false, false);
  ASSERT_EQ(ids.size(), 15u);
  const std::vector<std::string> expected = {"n", "", "é", " ", "", "", "", "🦊", "", "", "\u200D", "", "", "❄", "!"};
  // Two requests interleaved do not disturb each other.
  Utf8Stream first, second;
  std::string joined;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string chunk = first.feed(tokenizer.tokenBytes(ids[i]));
    EXPECT_EQ(chunk, expected[i]) << i;
    EXPECT_EQ(second.feed(tokenizer.tokenBytes(ids[i])), expected[i]) << i;
    joined += chunk;
  }
  EXPECT_FALSE(first.pending());
  EXPECT_EQ(joined + first.flush(), text);
  EXPECT_EQ(tokenizer.decode(ids, false), text);
}

TEST(Utf8Stream, FlushMarksACharacterCutOff) {
  Utf8Stream stream;
  EXPECT_EQ(stream.feed("ab\xF0\x9F"), "ab");
  EXPECT_TRUE(stream.pending());
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8Stream, ReplacesMalformedBytesAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.feed("\xE4\xB8"), "");
  EXPECT_EQ(stream.feed("x"), "\uFFFDx");       // one mark for the two bytes
  EXPECT_EQ(stream.feed("\xFF\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(stream.feed("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD"); // a surrogate
  EXPECT_EQ(stream.feed("\xC0\xAF"), "\uFFFD\uFFFD");           // overlong
}

// However the bytes are cut, the joined chunks are the sanitised text.
TEST(Utf8Stream, ChunksDoNotMatter) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (int i = 0; i < 60; ++i)
      if (random() % 3)
        utf8::append(bytes, random() % 4 ? random() % 0x3000 : 0x1F300 + random() % 300);
      else
        bytes += static_cast<char>(random());
    Utf8Stream stream;
    std::string joined;
    for (size_t at = 0; at < bytes.size();) {
      size_t n = std::min<size_t>(random() % 4, bytes.size() - at);
      std::string chunk = stream.feed(std::string_view(bytes).substr(at, n));
      EXPECT_EQ(utf8::firstInvalid(chunk), chunk.size());
      joined += chunk;
      at += n;
    }
    joined += stream.flush();
    EXPECT_EQ(joined, utf8::sanitize(bytes));
  }
}
