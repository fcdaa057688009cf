// Answers held by a grammar, beside others.
#include "FakeDevice.h"
#include "runtime/engine/Engine.h"
#include "runtime/grammar/ConstraintSource.h"

#include <gtest/gtest.h>
#include <regex>

using namespace llmc;
using fake::Loaded;

namespace {

/// Of the fake model: bytes, then special tokens.
std::shared_ptr<const GrammarTokens> bytes(bool (*there)(int) = [](int) { return true; }) {
  std::vector<std::string> spellings(fake::kVocab);
  for (int b = 0; b < 256; ++b)
    if (there(b))
      spellings[size_t(b)] = std::string(1, char(b));
  return std::make_shared<GrammarTokens>(std::move(spellings));
}

std::shared_ptr<Constraint> regex(const std::string &pattern, std::shared_ptr<const GrammarTokens> tokens = bytes()) {
  return std::make_shared<Constraint>(compileGrammar({ConstraintSource::Kind::Regex, pattern}), std::move(tokens));
}

Request request(const std::string &prompt, uint64_t maxTokens, std::shared_ptr<Constraint> constraint, uint64_t seed = 0) {
  Request r;
  r.prompt.assign(prompt.begin(), prompt.end());
  r.sampling.maxTokens = maxTokens;
  r.sampling.temperature = seed ? 5 : 0;
  r.sampling.seed = seed;
  r.eosIds = {fake::kEos};
  r.constraint = std::move(constraint);
  return r;
}

std::string text(const Sequence &s) { return {s.output().begin(), s.output().end()}; }

TEST(Constraint, AnswersAreTextsOfTheGrammar) {
  Loaded loaded(fake::pool(0));
  Engine engine(*loaded.device);
  for (const char *pattern : {"[a-f]{5}-(yes|no)", "x+", "(ab|cd)*\\.", "[0-9]{1,3}(,[0-9]{1,3}){0,3}"}) {
    const auto constraint = regex(pattern);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const auto s = engine.generate(request("Hello", 60, constraint, seed));
      if (s->finish == Finish::Stop)
        EXPECT_TRUE(std::regex_match(text(*s), std::regex(pattern))) << pattern << ": " << text(*s);
      else
        EXPECT_EQ(s->finish, Finish::Length) << pattern << ": " << s->error;
    }
  }
}

TEST(Constraint, EndsWhereNothingCanFollow) {
  Loaded loaded(fake::pool(0));
  Engine engine(*loaded.device);
  const auto s = engine.generate(request("Hello", 60, regex("abc")));
  EXPECT_EQ(text(*s), "abc");
  EXPECT_EQ(s->finish, Finish::Stop);
  EXPECT_EQ(s->stopId, -1) << "without an id that ends it";
  const auto exact = engine.generate(request("Hello", 3, regex("abc")));
  EXPECT_EQ(exact->finish, Finish::Stop) << "complete with the last token that it may have";
  const auto cut = engine.generate(request("Hello", 2, regex("abc")));
  EXPECT_EQ(text(*cut), "ab");
  EXPECT_EQ(cut->finish, Finish::Length);
  Request ignoring = request("Hello", 60, regex("abc"));
  ignoring.sampling.ignoreEos = true;
  EXPECT_EQ(text(*engine.generate(ignoring)), "abc");
}

// Who is held, and who is not, chooses what it chooses alone.
TEST(Constraint, NeighboursDoNotMatter) {
  for (Overlap overlap : {Overlap::Off, Overlap::On}) {
    Loaded loaded(fake::pool(0));
    const auto constraint = regex("[a-z]{1,30}( [a-z]{1,30})*");
    auto requests = [&] {
      return std::vector{request("One", 20, nullptr, 1), request("Two", 20, constraint, 2), request("Three", 20, constraint, 3), request("Four", 20, nullptr)};
    };
    std::vector<std::string> alone;
    for (Request &r : requests()) {
      Engine engine(*loaded.device, {.overlap = overlap});
      alone.push_back(text(*engine.generate(std::move(r))));
    }
    Engine engine(*loaded.device, {.overlap = overlap});
    std::vector<std::shared_ptr<Sequence>> sequences;
    for (Request &r : requests())
      sequences.push_back(engine.submit(std::move(r)));
    while (engine.step())
      ;
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_EQ(text(*sequences[i]), alone[i]) << i;
    EXPECT_NE(alone[1].find_first_of("abcdefghijklmnopqrstuvwxyz"), std::string::npos);
  }
}

TEST(Constraint, ForksGoTheirOwnWays) {
  Loaded loaded(fake::pool(0));
  Engine engine(*loaded.device);
  const auto constraint = regex("[a-z]{12}");
  const auto first = engine.submit(request("Hello there", 40, constraint, 1));
  const auto second = engine.fork(*first, request("", 40, constraint, 2));
  while (engine.step())
    ;
  EXPECT_EQ(text(*first).size(), 12u);
  EXPECT_EQ(text(*second).size(), 12u);
  EXPECT_NE(text(*first), text(*second));
}

TEST(Constraint, DeadEndsEndWithAnError) {
  Loaded loaded(fake::pool(0));
  Engine engine(*loaded.device);
  const auto other = engine.submit(request("Other", 10, nullptr));
  const auto s = engine.generate(request("Hello", 60, regex("ab+c", bytes([](int b) { return b != 'c' && b != 'b'; }))));
  EXPECT_EQ(s->finish, Finish::Error);
  EXPECT_EQ(text(*s), "a");
  EXPECT_EQ(s->error, "no token of the vocabulary can follow here under the request's constraint");
  while (engine.step())
    ;
  EXPECT_EQ(other->generated(), 10u);
  Request banned = request("Hello", 60, regex("ab"));
  banned.sampling.logitBias = {{'b', -std::numeric_limits<double>::infinity()}};
  EXPECT_NE(engine.generate(banned)->error.find("every token is banned"), std::string::npos);
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

} // namespace
