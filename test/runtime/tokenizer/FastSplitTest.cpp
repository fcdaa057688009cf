// The hand-written splitters against PCRE2.

#include "Synthetic.h"

#include "runtime/tokenizer/FastSplit.h"
#include "runtime/tokenizer/Utf8.h"

#include <gtest/gtest.h>

#include <random>

using namespace llmc;
using namespace llmc::test;

namespace {

using Pieces = std::vector<std::string_view>;

Pieces byHand(FastPattern pattern, std::string_view text) {
  Pieces out;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = endOfPiece(pattern, text, at);
    if (end <= at || end > text.size()) {
      ADD_FAILURE() << "from " << at << " to " << end;
      return out;
    }
    out.push_back(text.substr(at, end - at));
  }
  return out;
}

const char *const kNames[] = {"gpt-2", "llama-bpe", "qwen2"};

FastPattern patternOf(const char *name) {
  FastPattern pattern = recognisePattern(splitPatternsForGGUF(name).at(0));
  EXPECT_NE(pattern, FastPattern::None) << name;
  return pattern;
}

} // namespace

// Of those that PCRE2's Unicode tables know; ours may be newer.
TEST(FastSplit, EveryCharacter) {
  std::string every;
  for (uint32_t c = 1; c < 0x110000; ++c)
    if (c < 0xD800 || c > 0xDFFF)
      utf8::append(every, c);
  every = SplitPattern("\\p{Cn}+").replace(every, "");
  for (const char *name : kNames) {
    FastPattern pattern = patternOf(name);
    SplitPattern reference(splitPatternsForGGUF(name)[0]);
    std::string all;
    for (size_t i = 0, length; i < every.size(); i += length) {
      length = utf8::decode(std::string_view(every).substr(i)).length;
      for (const char *after : {"a", "1 "})
        all.append(every, i, length).append(after);
    }
    Pieces expected;
    reference.split(all, expected);
    EXPECT_TRUE(byHand(pattern, all) == expected) << name;
  }
}

TEST(FastSplit, RandomText) {
  const char *const parts[] = {"a",  "Z",  "é", "ſ", "'",  "s", "S",  "ll", "LL", "re", "VE", "t",  "0",  "٣", "½", " ",  "  ", "\n", "\r",
                               "\t", ".",  "?", "_", "\u0301", "中", "\u3000", "\u200B", "\u180E", "🦊", "\u0085", "\u00A0", "'d", "'ſ", "K"};
  std::mt19937 random(16);
  for (const char *name : kNames) {
    FastPattern pattern = patternOf(name);
    SplitPattern reference(splitPatternsForGGUF(name)[0]);
    for (int i = 0; i < 20000; ++i) {
      std::string text;
      for (size_t n = random() % 14; n; --n)
        text += parts[random() % std::size(parts)];
      Pieces expected;
      reference.split(text, expected);
      ASSERT_EQ(byHand(pattern, text), expected) << name << ": " << text;
    }
  }
}
