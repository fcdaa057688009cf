#include "test/ErrorOf.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/StopMatcher.h"

#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

struct Seen {
  std::vector<std::string> pieces; // as they came out
  std::string text;
  std::string match;
};

Seen pass(const std::vector<std::string> &pieces, const std::vector<std::string> &stops) {
  StopMatcher matcher(stops);
  Seen seen;
  for (const std::string &piece : pieces) {
    seen.pieces.push_back(matcher.feed(piece));
    seen.text += seen.pieces.back();
  }
  seen.match = matcher.match();
  seen.text += matcher.flush();
  return seen;
}

const std::vector<std::string> kPieces = {"al", "pha ", "be", "ta!"};

TEST(StopMatcher, AcrossTokens) {
  const Seen seen = pass(kPieces, {"ha be"});
  EXPECT_EQ(seen.text, "alp");
  EXPECT_EQ(seen.match, "ha be");
  EXPECT_EQ(seen.pieces, (std::vector<std::string>{"al", "p", "", ""})) << "only what may belong to the stop is held";
}

TEST(StopMatcher, NeverCompletes) {
  const Seen seen = pass(kPieces, {"ha bX"});
  EXPECT_EQ(seen.text, "alpha beta!");
  EXPECT_EQ(seen.match, "");
  EXPECT_EQ(pass(kPieces, {"ta!?"}).text, "alpha beta!") << "held text is flushed";
}

TEST(StopMatcher, WithinOnePiece) {
  EXPECT_EQ(pass({"one STOP two"}, {"STOP"}).text, "one ");
  EXPECT_EQ(pass({"STOP"}, {"STOP"}).text, "");
}

TEST(StopMatcher, EarliestWins) {
  for (const std::vector<std::string> &stops : {std::vector<std::string>{"beta", "pha"}, {"pha", "beta"}}) {
    EXPECT_EQ(pass(kPieces, stops).text, "al");
    EXPECT_EQ(pass(kPieces, stops).match, "pha");
  }
  EXPECT_EQ(pass({"abc"}, {"abc", "b"}).text, "a") << "complete first";
  EXPECT_EQ(pass({"abc"}, {"c", "bc"}).text, "a") << "complete with the same byte: the longest";
}

TEST(StopMatcher, SplitCharacter) {
  // é is C3 A9. The pieces come as bytes, as a caller without Utf8Stream would give them.
  const Seen seen = pass({"caf\xC3", "\xA9 noir"}, {"é n"});
  EXPECT_EQ(seen.text, "caf");
  EXPECT_EQ(pass({"caf\xC3", "\xA8 noir"}, {"é n"}).text, "cafè noir");
}

TEST(StopMatcher, OverlapsWithItself) {
  EXPECT_EQ(pass({"aaab"}, {"aab"}).text, "a");
  EXPECT_EQ(pass({"abab", "abc"}, {"ababc"}).text, "ab");
  EXPECT_EQ(pass({"\n", "\n", "\n"}, {"\n\n"}).text, "");
}

TEST(StopMatcher, NothingFollowsAMatch) {
  StopMatcher matcher({"x"});
  EXPECT_EQ(matcher.feed("axb"), "a");
  EXPECT_EQ(matcher.feed("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, EmptyStringIsRefused) {
  EXPECT_NE(errorOf([] { StopMatcher({"a", ""}); }).find("at least one byte"), std::string::npos);
}

TEST(StopMatcher, NoStops) {
  EXPECT_EQ(pass(kPieces, {}).pieces, kPieces);
}

// However the text is cut, the same comes out, and never text that a stop string could still claim.
TEST(StopMatcher, PiecesDoNotMatter) {
  std::mt19937 random(57);
  for (int round = 0; round < 2000; ++round) {
    auto word = [&](size_t most) {
      std::string w;
      for (size_t n = 1 + random() % most; n; --n)
        w += char('a' + random() % 2);
      return w;
    };
    const std::string text = word(40);
    std::vector<std::string> stops;
    for (size_t n = 1 + random() % 3; n; --n)
      stops.push_back(word(6));
    size_t end = std::string::npos, start = 0; // straightforward: the match that ends first, the longest of those
    for (size_t e = 1; e <= text.size() && end == std::string::npos; ++e)
      for (const std::string &stop : stops)
        if (e >= stop.size() && text.compare(e - stop.size(), stop.size(), stop) == 0 && (end == std::string::npos || e - stop.size() < start)) {
          end = e;
          start = e - stop.size();
        }
    const std::string want = end == std::string::npos ? text : text.substr(0, start);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 5;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    ASSERT_EQ(pass(pieces, stops).text, want) << text;
  }
}

// Linear: a megabyte against stops that nearly match everywhere.
TEST(StopMatcher, HostileText) {
  const std::string text(1 << 20, 'a');
  StopMatcher matcher({std::string(1000, 'a') + "b", std::string(999, 'a') + "c"});
  const std::string out = matcher.feed(text);
  EXPECT_EQ(out.size(), text.size() - 1000);
  EXPECT_EQ(matcher.flush().size(), 1000u);
}

} // namespace
