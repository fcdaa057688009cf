// Masks: exactly the tokens whose bytes can follow, whatever is remembered; texts that end are the grammar's.
#include "Grammars.h"
#include "runtime/grammar/GrammarLimits.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::grammars;

namespace {

const std::vector<std::string> &tokens() {
  static const std::vector<std::string> all = vocabulary();
  return all;
}
int32_t endId() { return int32_t(tokens().size()) - 1; }

bool allowed(const std::vector<uint32_t> &mask, int32_t id) { return mask[size_t(id) / 32] >> (id % 32) & 1; }

/// Draws texts, and holds every mask to what a machine of its own says of each token.
void checkMasks(const std::shared_ptr<const Grammar> &grammar, int texts, int length) {
  const auto constraint = std::make_shared<Constraint>(grammar, std::make_shared<GrammarTokens>(tokens()));
  std::vector<uint32_t> mask((tokens().size() + 31) / 32);
  const int32_t ends[] = {endId()};
  int ended = 0;
  for (int seed = 0; seed < texts; ++seed) {
    std::mt19937 random(uint32_t(seed) + 1);
    Matcher matcher(constraint);
    Machine machine(*grammar);
    uint32_t set = machine.start();
    std::string text;
    for (int n = 0; n < length; ++n) {
      ASSERT_TRUE(matcher.fillMask(mask, ends)) << text;
      std::vector<int32_t> may;
      for (int32_t id = 0; id < int32_t(tokens().size()); ++id) {
        uint32_t next = set;
        for (char c : tokens()[size_t(id)])
          next = machine.step(next, uint8_t(c));
        const bool good = id == endId() ? machine.accepting(set) : next != Machine::kDead;
        ASSERT_EQ(allowed(mask, id), good) << "behind '" << text << "' the token '" << tokens()[size_t(id)] << "'";
        if (good)
          may.push_back(id);
      }
      ASSERT_EQ(matcher.mustEnd(), may == std::vector<int32_t>{endId()}) << text;
      const int32_t id = may[random() % may.size()];
      if (id == endId()) {
        ++ended;
        break;
      }
      ASSERT_TRUE(matcher.accept(id));
      text += tokens()[size_t(id)];
      for (char c : tokens()[size_t(id)])
        set = machine.step(set, uint8_t(c));
      machine.startWork();
    }
  }
  EXPECT_GT(ended + texts, texts - 1);
}

TEST(Matcher, MasksAreExact) {
  const char *json = "root ::= value\n"
                     "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
                     "object ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\" ws\npair ::= string ws \":\" ws value\n"
                     "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"
                     "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\" ws\n"
                     "number ::= \"-\"? ([0-9] | [1-9] [0-9]{0,15}) (\".\" [0-9]+)? ([eE] [-+]? [0-9]{1,2})? ws\nws ::= [ \\n]{0,8}";
  checkMasks(gbnf(json), 6, 60);
  checkMasks(regex("[a-z]+( [a-z]+)*\\."), 4, 40);
  checkMasks(regex("([^\"é]{3,40}\"){2,30}"), 4, 60);      // counted, over characters of several bytes
  checkMasks(regex("(([a-c]{1,3}[0-9é]){20,50}-){1,9}"), 4, 60);
  checkMasks(regex("(a|b)*a(a|b){40}"), 3, 30);            // stays nondeterministic
  checkMasks(regex("((a?b?){200}c){2,3}"), 3, 30);         // repetitions of what may be empty
  checkMasks(gbnf("root ::= word (\" \" word){5,300}\nword ::= [a-g]{1,30} | \"<tool_call>\" word \"</\""), 4, 80);
  checkMasks(gbnf("root ::= \"[\" root \"]\" | [a-z]* \"x\""), 3, 60); // up to the greatest depth
}

TEST(Matcher, DepthIsTheSameForMasksAndTokens) {
  const auto grammar = gbnf("root ::= \"[\" root \"]\" | \"x\"");
  const auto constraint = std::make_shared<Constraint>(grammar, std::make_shared<GrammarTokens>(std::vector<std::string>{"[", "]", "x", "[[[[[[[", "]]", ""}));
  Matcher matcher(constraint);
  uint32_t mask[1];
  const int32_t ends[] = {5};
  uint32_t depth = 0;
  for (;;) {
    ASSERT_TRUE(matcher.fillMask(mask, ends));
    ASSERT_EQ(bool(mask[0] & 8), depth + 7 <= kMaxCallDepth) << depth;
    if (!(mask[0] & 1))
      break;
    ASSERT_TRUE(matcher.accept(0));
    ++depth;
  }
  EXPECT_EQ(depth, kMaxCallDepth);
  ASSERT_TRUE(matcher.accept(2));
  while (!matcher.mustEnd())
    ASSERT_TRUE(matcher.accept(1));
}

TEST(Matcher, WithoutAFittingTokenItSaysSo) {
  const auto constraint = std::make_shared<Constraint>(regex("aé"), std::make_shared<GrammarTokens>(std::vector<std::string>{"a", "\xC3", "b"}));
  Matcher matcher(constraint);
  uint32_t mask[1];
  ASSERT_TRUE(matcher.fillMask(mask, {}));
  EXPECT_EQ(mask[0], 1u);
  EXPECT_FALSE(matcher.accept(2));
  EXPECT_FALSE(matcher.accept(-1));
  EXPECT_FALSE(matcher.accept(99));
  ASSERT_TRUE(matcher.accept(0));
  ASSERT_TRUE(matcher.fillMask(mask, {}));
  ASSERT_TRUE(matcher.accept(1));
  EXPECT_FALSE(matcher.fillMask(mask, {}));
  EXPECT_FALSE(matcher.mayEnd());
}

TEST(Matcher, AmbiguityIsBounded) {
  const auto constraint = std::make_shared<Constraint>(gbnf("root ::= (item \",\"?){1,3000} \"x\"\nitem ::= \"a\"{1,3000}"),
                                                       std::make_shared<GrammarTokens>(std::vector<std::string>{"a", "aaaaaaaa"}));
  Matcher matcher(constraint);
  uint32_t mask[1];
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i) {
          matcher.fillMask(mask, {});
          matcher.accept(1);
        }
      },
      GrammarError);
}

TEST(Matcher, MemoryStaysFlat) {
  const auto grammar = regex("([a-z]{1,90000} ){1,5}");
  Machine machine(*grammar);
  uint32_t set = machine.start();
  for (int i = 0; i < 60000; ++i) {
    set = machine.step(set, 'a');
    machine.startWork();
    if (machine.bytes() > (1 << 20))
      set = machine.keepOnly(set);
  }
  EXPECT_NE(set, Machine::kDead);
  EXPECT_LE(machine.bytes(), size_t(1) << 20);
}

TEST(GrammarTokens, OfAVocabulary) {
  const GrammarTokens tokens({"a", "ab", "ab", std::string(20, 'x'), std::string(300, 'y'), ""});
  EXPECT_EQ(tokens.bytes(1, true), "ab");
  EXPECT_EQ(tokens.bytes(4, true), "") << "too long";
  const TokenTrie &trie = tokens.trie(GrammarTokens::Short, false);
  ASSERT_EQ(trie.size(), 3u); // root, a, b
  EXPECT_EQ(trie.tokens(1).size(), 1u);
  EXPECT_EQ(trie.tokens(2).size(), 2u);
  EXPECT_EQ(tokens.trie(GrammarTokens::Long, true).size(), 21u);
}

// The decoder turns marks into spaces, drops the first one, and reads <0xHH> as bytes.
TEST(GrammarTokens, OfSentencePieces) {
  TokenizerData data;
  data.model = TokenizerData::Model::ScoredBPE;
  data.tokens = {"<unk>", "</s>", "▁", "a", "b", "▁a", "▁▁b", "<0x41>", "<0xC3>"};
  data.scores.resize(data.tokens.size());
  data.kinds = {PieceKind::Unknown, PieceKind::Control, PieceKind::Normal, PieceKind::Normal, PieceKind::Normal, PieceKind::Normal, PieceKind::Normal, PieceKind::Byte, PieceKind::Byte};
  data.unkId = 0;
  data.eosIds = {1};
  using Kind = DecoderStep::Kind;
  data.decoders = {{.kind = Kind::Replace, .text = "▁", .content = " "}, {.kind = Kind::ByteFallback}, {.kind = Kind::Fuse}, {.kind = Kind::Strip, .text = " ", .start = 1}};
  const auto tokens = std::make_shared<GrammarTokens>(Tokenizer::create(data));
  const char *inner[] = {"", "", " ", "a", "b", " a", "  b", "A", "\xC3"}, *first[] = {"", "", "", "a", "b", "a", " b", "A", "\xC3"};
  for (int32_t id = 0; id < 9; ++id) {
    EXPECT_EQ(tokens->bytes(id, false), inner[id]) << id;
    EXPECT_EQ(tokens->bytes(id, true), first[id]) << id;
  }
  Matcher matcher(std::make_shared<Constraint>(regex("a a"), tokens));
  uint32_t mask[1];
  ASSERT_TRUE(matcher.fillMask(mask, {}));
  EXPECT_EQ(mask[0], 1u << 3 | 1u << 5);
  ASSERT_TRUE(matcher.accept(5));
  ASSERT_TRUE(matcher.fillMask(mask, {}));
  EXPECT_EQ(mask[0], 1u << 2 | 1u << 5);
  ASSERT_TRUE(matcher.accept(5));
  EXPECT_TRUE(matcher.mustEnd());
}

} // namespace
