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
    {"g", Json::parse(R"({"type": "object", "properties": {"any": {"type": "string"}, "pattern": {"type": "string", "pattern": "^[<a-c]{2,3}$"}, "least": {"type": "string", "minLength": 1, "maxLength": 3},
       "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "mixed": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}]},
       "list": {"type": "array", "items": {"$ref": "#/$defs/word"}}, "word": {"$ref": "#/$defs/word"}, "flag": {"type": "boolean"}, "number": {"type": "number", "minimum": 1, "maximum": 9}},
       "required": ["any", "mixed"], "$defs": {"word": {"type": "string", "enum": ["up", "</parameter>", "1"]}}})")},
    {"open", Json::parse(R"({"type": "object"})")},
    {"get_weather", nullptr},
    {"unused", Json::parse(R"({"type": "object"})")}};

AnswerFormat formatOf(const char *name, bool parallel = true) {
  AnswerFormat format;
  format.tools = findToolFormat(name);
  format.functions = {"f", "g", "get_weather", "open"};
  format.parallel = parallel;
  for (const ToolFunction &function : kFunctions)
    format.types[function.name] = argumentTypesOf(function.parameters);
  if (format.tools->body == ToolFormat::Body::Channels)
    format.reasoning = findReasoningFormat("gpt-oss");
  return format;
}

/// Each argument of f and g is what its schema takes.
void checkArguments(const AnswerPieces &pieces) {
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i].kind != AnswerPiece::Kind::Call || pieces[i].text != "g")
      continue;
    const Json a = Json::parse(pieces[i + 1].text, nullptr, false);
    ASSERT_TRUE(a.is_object()) << pieces[i + 1].text;
    const auto length = [](const Json &s) { return std::ranges::count_if(s.get<std::string>(), [](char c) { return (c & 0xC0) != 0x80; }); };
    ASSERT_TRUE(a.contains("any") && a["any"].is_string() && a.contains("mixed")) << a;
    EXPECT_TRUE(a["mixed"].is_string() ? length(a["mixed"]) <= 2 : a["mixed"].is_object() && a["mixed"].contains("a") && a["mixed"]["a"].is_number_integer()) << a;
    for (const auto &[name, value] : a.items())
      if (name == "pattern")
        EXPECT_TRUE(value.is_string() && length(value) >= 2 && length(value) <= 3) << a;
      else if (name == "least")
        EXPECT_TRUE(value.is_string() && length(value) >= 1 && length(value) <= 3) << a;
      else if (name == "maybe")
        EXPECT_TRUE(value.is_string() || value.is_null()) << a;
      else if (name == "word")
        EXPECT_TRUE(value == "up" || value == "</parameter>" || value == "1") << a;
      else if (name == "list")
        EXPECT_TRUE(value.is_array()) << a;
      else if (name == "flag")
        EXPECT_TRUE(value.is_boolean()) << a;
      else if (name == "number")
        EXPECT_TRUE(value.is_number() && value >= 1 && value <= 9) << a;
      else
        EXPECT_TRUE(name == "any" || name == "mixed") << a;
  }
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

/// What goes on with a mark that the text ends with a beginning of.
std::string nextOfMarks(const std::string &text, const ToolFormat &format) {
  std::string next;
  for (const std::string &mark : format.marks())
    for (size_t length = 1; length < mark.size(); ++length)
      if (text.ends_with(mark.substr(0, length)))
        next += mark[length];
  return next;
}

/// A text of the grammar; ends where it may with a chance of one in three.
std::string write(const std::shared_ptr<Constraint> &constraint, const ToolFormat &format, std::mt19937 &random) {
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
    for (char end : "\"<}]" + nextOfMarks(text, format))
      if (random() % 3 == 0 && std::find(allowed.begin(), allowed.end(), static_cast<unsigned char>(end)) != allowed.end())
        id = static_cast<unsigned char>(end);
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
      {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"},
      {"seed", "<seed:tool_call>\n<function=f>\n<parameter=n>1</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=get_weather>\n</function>\n</seed:tool_call>"},
      {"glm", "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>\n<tool_call>get_weather\n</tool_call>"},
      {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"n\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"deepseek-v3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"deepseek-v3.2", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"n\" string=\"false\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"get_weather\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
      {"kimi", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"n\": 1}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"},
      {"gpt-oss", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 1}<|call|>"},
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
        const std::string text = write(constraint, format, random);
        if (text.size() >= 4000)
          continue; // it goes on
        AnswerFormat all = formatOf(format.name);
        AnswerParser parser(all);
        AnswerPieces pieces;
        parser.feed(text, pieces);
        parser.finish(false, pieces);
        ASSERT_GE(parser.calls(), 1u) << format.name << ": " << text;
        EXPECT_TRUE(parallel || parser.calls() == 1) << text;
        for (const AnswerPiece &piece : pieces)
          EXPECT_TRUE(piece.kind == AnswerPiece::Kind::Call || piece.kind == AnswerPiece::Kind::Arguments || (format.body == ToolFormat::Body::Channels && piece.kind == AnswerPiece::Kind::Reasoning)) << text;
        checkArguments(pieces);
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
      const bool channels = all.channels();
      const std::string begin = channels ? "<|channel|>commentary to=functions." : (format.bare || random() % 3 == 0 ? "" : "Well. ") + std::string(format.bare ? "{" : format.open);
      for (char c : random() % 4 ? begin : std::string(channels ? "<|channel|>final<|message|>No." : "No."))
        ASSERT_TRUE(take(c)) << format.name << ": " << text;
      while (text.size() < 4000 && matcher.fillMask(mask, ends)) {
        if (mask[8] & 1)
          break;
        std::vector<char> allowed;
        for (int32_t id = 0; id < kEnd; ++id)
          if (mask[size_t(id) / 32] >> (id % 32) & 1)
            allowed.push_back(char(id));
        char next = allowed[random() % allowed.size()];
        for (char end : "\"<}]" + nextOfMarks(text, format))
          if (random() % 3 == 0 && std::find(allowed.begin(), allowed.end(), end) != allowed.end())
            next = end;
        take(next);
      }
      if (text.size() >= 4000)
        continue; // it goes on
      AnswerParser parser(all);
      AnswerPieces pieces;
      parser.feed(text, pieces);
      parser.finish(false, pieces);
      EXPECT_EQ(parser.calls() > 0, text.find(begin) != text.npos) << format.name << ": " << text;
      for (const AnswerPiece &piece : pieces)
        EXPECT_NE(piece.kind, AnswerPiece::Kind::Failed) << text;
      checkArguments(pieces);
      calls += parser.calls();
    }
  EXPECT_GT(calls, 100u);
}

// Strings are written as they are, others as JSON.
TEST(ToolGrammar, ArgumentsBetweenMarks) {
  const auto qwen = constraintOf(formatOf("qwen3-coder")), glm = constraintOf(formatOf("glm")), free = constraintOf(formatOf("qwen3-coder"), false);
  const auto g = [](const std::string &more) { return "<tool_call>\n<function=g>\n<parameter=any>\nIt is\n\n\"so\".\n</parameter>\n" + more + "</function>\n</tool_call>"; };
  const std::string mixed = "<parameter=mixed>\n{\"a\": 1}\n</parameter>\n", quoted = "<parameter=mixed>\n\"ab\"\n</parameter>\n";
  const auto one = [](const std::string &name, const std::string &value) { return "<parameter=" + name + ">\n" + value + "\n</parameter>\n"; };
  EXPECT_TRUE(allows(qwen, g(mixed)));
  EXPECT_TRUE(allows(qwen, g(quoted))) << "a string where it may be something else has quotes";
  EXPECT_TRUE(allows(free, "Well. " + g(mixed) + " So."));
  EXPECT_EQ(parse(formatOf("qwen3-coder"), g(quoted)), "g{\"any\": \"It is\\n\\n\\\"so\\\".\", \"mixed\": \"ab\"} 1");
  EXPECT_TRUE(allows(qwen, g(one("pattern", "ab") + one("least", "xyz") + one("maybe", "null") + mixed + one("list", "[\"</parameter>\"]") + one("word", "1") + one("flag", "true") + one("number", "2.5"))));
  for (const std::string &bad : {g(""), g(one("mixed", "abc")), g(one("pattern", "<a") + mixed), g(one("pattern", "abcd") + mixed), g(mixed + one("word", "</parameter>")), g(mixed + one("word", "2")), g(mixed + one("flag", "True")),
                                 g(mixed + one("unknown", "1"))})
    EXPECT_FALSE(allows(qwen, bad)) << bad;
  EXPECT_TRUE(allows(glm, "<tool_call>open\n<arg_key>a-b_1</arg_key>\n<arg_value>any <text>\n</arg_value>\n</tool_call>")) << "nothing is said of its arguments";
  GrammarBuilder builder;
  EXPECT_THROW(addToolCalls(builder, formatOf("glm"), {{"f", Json::parse(R"({"anyOf": [{"type": "object"}]})")}}), GrammarError);
  EXPECT_THROW(addToolCalls(builder, formatOf("glm"), {{"f", Json::parse(R"({"properties": {"a": {"type": "string", "enum": ["</arg_value>"]}}})")}}), GrammarError);
  EXPECT_THROW(addToolCalls(builder, formatOf("glm"), {{"f", Json::parse(R"({"properties": {"a": {"type": "string", "not": {}}}})")}}), GrammarError);
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
