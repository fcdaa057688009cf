// A hundred schemas and fifty regular expressions: whatever is drawn under them parses, and matches by PCRE2. judge.py holds the
// values to the schemas with Python's jsonschema: LLMC_GRAMMAR_SAMPLES=FILE llmc-grammar-tests --gtest_filter='Corpus.*' writes them.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "Grammars.h"
#include "runtime/grammar/ConstraintSource.h"
#include "runtime/tokenizer/Utf8.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pcre2.h>

using namespace llmc;
using namespace llmc::grammars;
using Json = nlohmann::ordered_json;

namespace {

constexpr int kSeeds = 4;

Json read(const std::string &name) { return Json::parse(std::ifstream(std::string(LLMC_GRAMMAR_DATA) + "/" + name)); }

/// What a model without sense says under a constraint; after a while it prefers what closes. Empty `ended`: it went on.
std::string draw(const std::shared_ptr<Constraint> &constraint, const std::vector<std::string> &tokens, uint32_t seed, bool &ended) {
  std::mt19937 random(seed);
  Matcher matcher(constraint);
  std::vector<uint32_t> mask((tokens.size() + 31) / 32);
  const int32_t end = int32_t(tokens.size()) - 1, ends[] = {end};
  std::string text;
  for (int n = 0; n < 1500; ++n) {
    if ((ended = matcher.mustEnd()))
      return text;
    EXPECT_TRUE(matcher.fillMask(mask, ends)) << text;
    std::vector<int32_t> may, closing;
    for (int32_t id = 0; id <= end; ++id)
      if (mask[size_t(id) / 32] >> (id % 32) & 1) {
        may.push_back(id);
        if (id == end || tokens[size_t(id)].find_first_not_of("\"]}.'x") == std::string::npos)
          closing.push_back(id);
      }
    if (may.empty())
      return text;
    const std::vector<int32_t> &from = !closing.empty() && (n > 60 || random() % 8 == 0) ? closing : may;
    const int32_t id = from[random() % from.size()];
    if ((ended = id == end))
      return text;
    EXPECT_TRUE(matcher.accept(id)) << text;
    text += tokens[size_t(id)];
  }
  return text;
}

struct Compiled {
  std::shared_ptr<Constraint> constraint;
  double milliseconds;
};
Compiled compile(ConstraintSource::Kind kind, const std::string &text, const std::shared_ptr<const GrammarTokens> &tokens) {
  const double start = cpuSeconds();
  auto constraint = std::make_shared<Constraint>(compileGrammar({kind, text}), tokens);
  return {std::move(constraint), (cpuSeconds() - start) * 1e3};
}

TEST(Corpus, SchemasGiveJson) {
  const Json schemas = read("schemas.json");
  ASSERT_EQ(schemas.size(), 100u);
  const std::vector<std::string> spellings = vocabulary();
  const auto tokens = std::make_shared<GrammarTokens>(spellings);
  std::ofstream samples;
  if (const char *path = std::getenv("LLMC_GRAMMAR_SAMPLES"))
    samples.open(path);
  int drawn = 0, finished = 0;
  double slowest = 0;
  for (const Json &entry : schemas) {
    const std::string name = entry["name"];
    const Compiled compiled = compile(ConstraintSource::Kind::JsonSchema, entry["schema"].dump(), tokens);
    slowest = std::max(slowest, compiled.milliseconds);
    if (samples.is_open())
      printf("%-24s %6u states %8.2f ms\n", name.c_str(), compiled.constraint->grammar().size(), compiled.milliseconds);
    int ends = 0;
    for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
      bool ended = false;
      const std::string text = draw(compiled.constraint, spellings, seed, ended);
      ++drawn;
      if (!ended)
        continue;
      ++ends;
      EXPECT_TRUE(Json::accept(text)) << name << ": " << text;
      if (samples.is_open())
        samples << Json{{"name", name}, {"text", text}}.dump() << "\n";
    }
    EXPECT_GT(ends, 0) << name;
    finished += ends;
  }
  EXPECT_GT(finished, drawn * 9 / 10);
  RecordProperty("slowest_compile_ms", std::to_string(slowest));
  EXPECT_LT(slowest, 2000) << "50 ms but for sanitizers";
}

bool matchesByPcre(const std::string &pattern, const std::string &text) {
  int code;
  PCRE2_SIZE at;
  pcre2_code *compiled = pcre2_compile(PCRE2_SPTR(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_EXTRA_ALT_BSUX | PCRE2_DOLLAR_ENDONLY, &code, &at, nullptr);
  if (!compiled) {
    ADD_FAILURE() << "PCRE2 refuses " << pattern;
    return false;
  }
  pcre2_match_data *data = pcre2_match_data_create_from_pattern(compiled, nullptr);
  const int found = pcre2_match(compiled, PCRE2_SPTR(text.data()), text.size(), 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, data, nullptr);
  pcre2_match_data_free(data);
  pcre2_code_free(compiled);
  return found > 0;
}

TEST(Corpus, ExpressionsMatchByPcre) {
  const Json patterns = read("regexes.json");
  ASSERT_EQ(patterns.size(), 50u);
  const std::vector<std::string> spellings = vocabulary();
  const auto tokens = std::make_shared<GrammarTokens>(spellings);
  for (const Json &entry : patterns) {
    const std::string pattern = entry;
    const Compiled compiled = compile(ConstraintSource::Kind::Regex, pattern, tokens);
    if (std::getenv("LLMC_GRAMMAR_SAMPLES"))
      printf("%-60s %6u states %8.2f ms\n", pattern.c_str(), compiled.constraint->grammar().size(), compiled.milliseconds);
    int ends = 0;
    for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
      bool ended = false;
      const std::string text = draw(compiled.constraint, spellings, seed, ended);
      ends += ended;
      if (ended)
        EXPECT_TRUE(matchesByPcre(pattern, text)) << pattern << ": " << text;
      // And the other way round: with a byte changed it is as PCRE2 says.
      for (uint32_t i = 0; ended && i < 8 && !text.empty(); ++i) {
        std::string changed = text;
        changed[(seed * 31 + i * 7) % text.size()] = "a1 -.,b\""[i];
        if (utf8::firstInvalid(changed) == changed.size())
          EXPECT_EQ(matches(compiled.constraint->grammar(), changed), matchesByPcre(pattern, changed)) << pattern << ": " << changed;
      }
    }
    EXPECT_GT(ends, 0) << pattern;
  }
}

} // namespace
