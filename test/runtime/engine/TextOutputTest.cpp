#include "FakePackage.h"
#include "runtime/engine/TextOutput.h"

#include <gtest/gtest.h>

using namespace llmc;

namespace {

struct Outcome {
  std::string text, stop;
  size_t tokens;
};

/// A token for every byte; ends as a server would.
Outcome write(const std::string &bytes, const SamplingParams &params) {
  const Tokenizer tokenizer = Tokenizer::create(fake::tokenizer());
  TextOutput output(tokenizer, params);
  Outcome outcome{"", "", 0};
  for (char c : bytes) {
    ++outcome.tokens;
    outcome.text += output.feed(int32_t(static_cast<unsigned char>(c)));
    if (output.stopped())
      break;
  }
  outcome.text += output.flush();
  outcome.stop = output.stopString();
  return outcome;
}

SamplingParams stopAt(std::vector<std::string> stops, uint64_t minTokens = 0) {
  SamplingParams p;
  p.stop = std::move(stops);
  p.minTokens = minTokens;
  return p;
}

TEST(TextOutput, StopsAcrossASplitCharacter) {
  const Outcome got = write("un café noir", stopAt({"é n"}));
  EXPECT_EQ(got.text, "un caf");
  EXPECT_EQ(got.stop, "é n");
  EXPECT_EQ(got.tokens, 10u) << "the tokens of the stop string are generated ones";
}

TEST(TextOutput, FlushesHalfACharacterAndWhatWasHeld) {
  EXPECT_EQ(write("ab\xC3", stopAt({"bc"})).text, "ab\xEF\xBF\xBD");
  EXPECT_EQ(write("abab", stopAt({"abc"})).text, "abab");
  EXPECT_EQ(write("x\xC3", stopAt({"\xEF\xBF\xBD"})).text, "x") << "what is shown is what is searched";
}

TEST(TextOutput, SpecialTokensShowNothing) {
  const Tokenizer tokenizer = Tokenizer::create(fake::tokenizer());
  TextOutput output(tokenizer, stopAt({"ab", "im_end"}));
  EXPECT_EQ(output.feed('a'), "");
  EXPECT_EQ(output.feed(257), "");
  EXPECT_EQ(output.feed('b'), "");
  EXPECT_TRUE(output.stopped()) << "they do not part the text either";
}

TEST(TextOutput, TextOfTheFirstTokensIsNotSearched) {
  EXPECT_EQ(write("aXbXc", stopAt({"X"}, 2)).text, "aXb");
  EXPECT_EQ(write("aXYbXY", stopAt({"XY"}, 2)).text, "aXYb") << "not even as the beginning of a stop string";
}

} // namespace
