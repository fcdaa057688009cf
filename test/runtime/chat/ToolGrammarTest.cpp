// What the grammar of calls lets a model write is what the parser reads as calls.
#include "Parts.h"
#include "runtime/chat/ToolGrammar.h"
#include "runtime/grammar/Constraint.h"

#include <random>

using namespace llmc;
using Json = nlohmann::ordered_json;

namespace {

constexpr int32_t kEnd = 256;

std::shared_ptr<const GrammarTokens> bytes() {
  static const auto tokens = [] {
    std::vector<std::string> spellings;
    for (int b = 0; b < 256; ++b)
      spellings.emplace_back(1, char(b));
    spellings.emplace_back(); // ends the text
    return std::make_shared<GrammarTokens>(spellings);
  }();
  return tokens;
}

const std::vector<ToolFunction> kFunctions{
    {"f", Json::parse(R"({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"enum": ["</tool_call>", "é"]}}, "required": ["n"], "additionalProperties": false})")},
    {"get_weather", nullptr},
    {"unused", Json::parse(R"({"type": "object"})")}};

AnswerFormat formatOf(const char *name, bool parallel = true) {
  AnswerFormat format;
  format.tools = findToolFormat(name);
  format.functions = {"f", "get_weather"};
  format.parallel = parallel;
  return format;
}

std::shared_ptr<Constraint> constraintOf(const AnswerFormat &format, bool demanded = true) {
  GrammarBuilder g;
  return std::make_shared<Constraint>(g.build(addToolCalls(g, format, kFunctions, demanded)), bytes());
}

bool allows(const std::shared_ptr<Constraint> &constraint, const std::string &text) {
  Matcher matcher(constraint);
  for (char c : text)
    if (!matcher.accept(static_cast<unsigned char>(c)))
      return false;
  return matcher.mayEnd();
}

/// A text of the grammar; ends where it may with a chance of one in three.
std::string write(const std::shared_ptr<Constraint> &constraint, std::mt19937 &random) {
  Matcher matcher(constraint);
  std::string text;
  std::vector<uint32_t> mask(9);
  const int32_t ends[] = {kEnd};
  while (text.size() < 4000) {
    EXPECT_TRUE(matcher.fillMask(mask, ends));
    std::vector<int32_t> allowed;
    for (int32_t id = 0; id <= kEnd; ++id)
      if (mask[size_t(id) / 32] >> (id % 32) & 1)
        allowed.push_back(id);
    if (allowed.empty() || ((mask[8] & 1) && (allowed.size() == 1 || random() % 3 == 0)))
      return text;
    std::erase(allowed, kEnd);
    // Letters of a string are rarely its end: quotes and brackets get more weight.
    int32_t id = allowed[random() % allowed.size()];
    for (char end : {'"', '<', '}', ']'})
      if (random() % 3 == 0 && std::find(allowed.begin(), allowed.end(), end) != allowed.end())
        id = end;
    EXPECT_TRUE(matcher.accept(id));
    text += char(id);
  }
  return text;
}

TEST(ToolGrammar, AllowsCallsAlone) {
  const std::pair<const char *, const char *> good[] = {
      {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"},
      {"mistral", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"n\": 1}}, {\"name\": \"get_weather\", \"arguments\": {}}]"},
      {"mistral-args", "[TOOL_CALLS]f[ARGS]{\"n\": 1}[TOOL_CALLS]get_weather[ARGS]{}"},
      {"granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}, {\"name\": \"get_weather\", \"arguments\": {}}]"},
      {"minimax", "<tool_calls>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_calls>"},
      {"llama", "{\"name\": \"f\", \"parameters\": {\"n\": 1}}"}};
  for (const auto &[name, text] : good) {
    const bool several = findToolFormat(name)->together;
    EXPECT_TRUE(allows(constraintOf(formatOf(name)), text)) << name;
    EXPECT_EQ(allows(constraintOf(formatOf(name, false)), text), !several) << name;
    EXPECT_EQ(parse(formatOf(name), text), several ? "f{\"n\": 1}|get_weather{} 2" : "f{\"n\": 1} 1");
  }
  const auto hermes = constraintOf(formatOf("hermes"));
  for (const char *bad : {"", "No.", "<tool_call>\n{\"name\": \"unused\", \"arguments\": {}}\n</tool_call>", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
                          "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>!"})
    EXPECT_FALSE(allows(hermes, bad)) << bad;
}

TEST(ToolGrammar, WhatItWritesIsRead) {
  std::mt19937 random(3);
  for (const ToolFormat &format : toolFormats())
    for (bool parallel : {true, false}) {
      const auto constraint = constraintOf(formatOf(format.name, parallel));
      for (int i = 0; i < 20; ++i) {
        const std::string text = write(constraint, random);
        AnswerFormat all = formatOf(format.name);
        AnswerParser parser(all);
        AnswerPieces pieces;
        parser.feed(text, pieces);
        parser.finish(false, pieces);
        ASSERT_GE(parser.calls(), 1u) << format.name << ": " << text;
        EXPECT_TRUE(parallel || parser.calls() == 1) << text;
        for (const AnswerPiece &piece : pieces)
          EXPECT_TRUE(piece.kind == AnswerPiece::Kind::Call || piece.kind == AnswerPiece::Kind::Arguments) << text;
      }
    }
}

// Without a demand any text is good, but calls in it are of the functions and their schemas.
TEST(ToolGrammar, CallsInText) {
  const auto hermes = constraintOf(formatOf("hermes"), false), llama = constraintOf(formatOf("llama"), false), granite = constraintOf(formatOf("granite"), false);
  const std::string good = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": 1}}\n</tool_call>";
  for (const std::string &text : {std::string(), std::string("No, a < b <tool_cal"), "Let me see. " + good, good + "\n" + good, "<" + good + " So <b>be</b> it.", std::string("{\"a\": 1}")})
    EXPECT_TRUE(allows(hermes, text)) << text;
  for (const char *bad : {"Hm. <tool_call>", "<tool_call>f", "<tool_call>\n{\"name\": \"unused\"", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\": true"})
    EXPECT_FALSE(allows(hermes, bad)) << bad;
  const std::string object = "{\"name\": \"f\", \"parameters\": {\"n\": 1}}";
  for (const std::string &text : {std::string(), object, "Like so: " + object, std::string("<b>x</b>"), std::string("\n\nYes.")})
    EXPECT_TRUE(allows(llama, text)) << text;
  for (const std::string &bad : {std::string("{"), "\n" + object, std::string("{\"a\": 1}"), std::string("<|python_tag|>x")})
    EXPECT_FALSE(allows(llama, bad)) << bad;
  EXPECT_TRUE(allows(granite, "Hm.<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"n\": 1}}, {\"name\": \"get_weather\", \"arguments\": {}}] So."));
  EXPECT_FALSE(allows(granite, "Hm.<|tool_call|>[]"));
}

// Where the parser finds a beginning it finds a call.
TEST(ToolGrammar, WhatItWritesInTextIsRead) {
  std::mt19937 random(4);
  size_t calls = 0;
  for (const ToolFormat &format : toolFormats())
    for (int i = 0; i < 40; ++i) {
      AnswerFormat all = formatOf(format.name);
      const auto constraint = constraintOf(all, false);
      Matcher matcher(constraint);
      std::string text;
      std::vector<uint32_t> mask(9);
      const int32_t ends[] = {kEnd};
      const auto take = [&](char c) {
        const bool good = matcher.accept(static_cast<unsigned char>(c));
        if (good)
          text += c;
        return good;
      };
      const std::string begin = (format.bare || random() % 3 == 0 ? "" : "Well. ") + std::string(format.bare ? "{" : format.open);
      for (char c : random() % 4 ? begin : std::string("No."))
        ASSERT_TRUE(take(c)) << format.name << ": " << text;
      while (text.size() < 4000 && matcher.fillMask(mask, ends)) {
        if (mask[8] & 1)
          break;
        std::vector<char> allowed;
        for (int32_t id = 0; id < kEnd; ++id)
          if (mask[size_t(id) / 32] >> (id % 32) & 1)
            allowed.push_back(char(id));
        char next = allowed[random() % allowed.size()];
        for (char end : {'"', '<', '}', ']'})
          if (random() % 3 == 0 && std::find(allowed.begin(), allowed.end(), end) != allowed.end())
            next = end;
        take(next);
      }
      AnswerParser parser(all);
      AnswerPieces pieces;
      parser.feed(text, pieces);
      parser.finish(false, pieces);
      EXPECT_EQ(parser.calls() > 0, text.find(begin) != text.npos) << format.name << ": " << text;
      for (const AnswerPiece &piece : pieces)
        EXPECT_NE(piece.kind, AnswerPiece::Kind::Failed) << text;
      calls += parser.calls();
    }
  EXPECT_GT(calls, 100u);
}

TEST(ToolGrammar, ThoughtsAreFree) {
  const std::string call = "{\"name\": \"get_weather\", \"parameters\": {}}";
  AnswerFormat format = formatOf("llama");
  format.reasoning = findReasoningFormat("think");
  const auto closed = constraintOf(format);
  format.opened = true;
  const auto opened = constraintOf(format);
  EXPECT_TRUE(allows(closed, call));
  EXPECT_TRUE(allows(closed, "<think>Hm, <b> </thi </ é</think>\n\n" + call));
  EXPECT_FALSE(allows(closed, "<think>Hm.</think> No."));
  EXPECT_TRUE(allows(opened, "Hm.</think>\n\n" + call));
  EXPECT_FALSE(allows(opened, call));
}

// The first end counts, whatever comes before it.
TEST(ToolGrammar, TextUntilAMark) {
  for (const std::string mark : {"</think>", "[/THINK]", "x", "ab"}) {
    GrammarBuilder g;
    const auto until = std::make_shared<Constraint>(g.build(addTextUntil(g, mark)), bytes());
    GrammarBuilder other;
    const auto without = std::make_shared<Constraint>(other.build(addTextWithout(other, mark)), bytes());
    std::mt19937 random(5);
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (size_t n = random() % 12; n > 0; --n)
        text += random() % 3 == 0 ? mark.substr(0, 1 + random() % mark.size()) : std::string(1, mark[random() % mark.size()]);
      const size_t at = text.find(mark);
      EXPECT_EQ(allows(without, text), at == std::string::npos) << mark << ": " << text;
      EXPECT_EQ(allows(until, text), at != std::string::npos && at + mark.size() == text.size()) << mark << ": " << text;
    }
  }
}

TEST(ToolGrammar, SchemasThatAreNotSupported) {
  GrammarBuilder g;
  EXPECT_THROW(addToolCalls(g, formatOf("hermes"), {{"f", Json::parse(R"({"type": "object", "not": {}})")}}), GrammarError);
}

} // namespace
