// Calls as models write them, right and wrong; each text is cut at every byte.
#include "Parts.h"

#include <random>
#include <set>

using namespace llmc;

namespace {

std::string parse(const char *format, const std::string &text, bool cut = false, bool parallel = true) {
  AnswerFormat answer;
  answer.tools = findToolFormat(format);
  answer.functions = {"f", "get_weather"};
  answer.parallel = parallel;
  return llmc::parse(answer, text, cut);
}

TEST(ToolCalls, Hermes) {
  auto hermes = [](const std::string &text) { return parse("hermes", text); };
  EXPECT_EQ(hermes("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, {\"b\": \"}\"}]}}\n</tool_call>"), "f{\"a\": [1, {\"b\": \"}\"}]} 1");
  EXPECT_EQ(hermes("Let me look.\n<tool_call>{\"arguments\": {\"city\": \"Zürich\"}, \"name\": \"get_weather\"}</tool_call>\n"),
            "Let me look.|get_weather{\"city\": \"Zürich\"} 1")
      << "in any order";
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":-1.5e3}}</tool_call>"),
            "f{}|f{\"x\":-1.5e3} 2");
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\"}</tool_call>"), "f{} 1") << "no arguments are none";
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"arguments\":null,\"why\":[true]}</tool_call>"), "f{} 1");
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"parameters\":\"{\\\"a\\\": 1}\"}</tool_call>"), "f{\"a\": 1} 1") << "text that has the object";
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"\\u0066\",\"arguments\":{}}"), "f{} 1") << "the last mark may be left out";
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"arguments\":{}}<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"), "f{}|f{} 2");
  EXPECT_EQ(hermes("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> So be it. "), "f{}| So be it.  1");
}

TEST(ToolCalls, TextStaysText) {
  for (const std::string text : {"", " ", "a", "a <tool_ca", "<tool", "<", "<<tool_cal>", "{\"name\": \"f\", \"arguments\": {}}", "\n\nHello,\n\nworld.\n "}) {
    EXPECT_EQ(parse("hermes", text), text);
    EXPECT_EQ(parse("mistral", text), text);
  }
  EXPECT_EQ(parse("hermes", "<<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"), "<|f{} 1");
}

// All of the text comes back.
TEST(ToolCalls, MalformedCallsAreContent) {
  const std::vector<std::string> bad{
      "<tool_call>",
      "<tool_call>\n",
      "<tool_call>f(1)</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
      "<tool_call>{\"name\": \"unknown\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
      "<tool_call>{\"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"name\": \"f\"}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": \"no object\"}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": \"{} {}\"}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": -}\"}</tool_call>",
      "<tool_call>{\"name\": \"f\xff\", \"arguments\": {}}</tool_call>",
      "<tool_call>{'name': 'f', 'arguments': {}}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": " + std::string(100, '[') + "</tool_call>",
      "Wait.\n\n<tool_call>\n{\"name\": \"f",
      "<tool_call>{}</tool_call>"};
  for (const std::string &text : bad)
    EXPECT_EQ(parse("hermes", text), text);
}

// Whether the pieces were handed on before it was seen or not, what is left is the text.
TEST(ToolCalls, CallsThatBreakAreTakenBack) {
  for (const std::string text : {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": x}}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 01}}",
                                 "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"line\nend\"}}", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"",
                                 "<tool_call>{\"name\": \"f\", \"arguments\": {}} ", "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"arguments\": {}}"}) {
    AnswerFormat format;
    format.tools = findToolFormat("hermes");
    format.functions = {"f"};
    llmc::parse(format, text);
    AnswerParser parser(format);
    AnswerPieces pieces;
    parser.feed(text, pieces);
    parser.finish(false, pieces);
    if (parser.calls() == 0) {
      EXPECT_EQ(settled(pieces), text);
    }
  }
  EXPECT_EQ(parse("hermes", "Hm. <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"),
            "Hm.|f{\"a\": |!| <tool_call>{\"name\": \"f\", \"arguments\": {\"a\":|f{} 1")
      << "the next one counts";
}

// A limit on tokens cuts a call as it cuts a text.
TEST(ToolCalls, CutByALimit) {
  EXPECT_EQ(parse("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"lo", true), "f{\"a\": \"lo");
  EXPECT_EQ(parse("hermes", "<tool_call>{\"name\": \"f", true), "<tool_call>{\"name\": \"f") << "no name yet";
  EXPECT_EQ(parse("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool", true), "f{} 1");
}

TEST(ToolCalls, OneAtATime) {
  const std::string one = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  EXPECT_EQ(parse("hermes", "A " + one + one + "B", false, false), "A|f{} 1");
  EXPECT_EQ(parse("mistral", "[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{}},{\"name\":\"f\",\"arguments\":{}}]", false, false), "f{} 1");
}

TEST(ToolCalls, Mistral) {
  auto mistral = [](const std::string &text) { return parse("mistral", text); };
  EXPECT_EQ(mistral("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"]\"}, \"id\": \"abcdefghi\"}, {\"name\": \"get_weather\", \"arguments\": {}}]"),
            "f{\"a\": \"]\"}|get_weather{} 2");
  EXPECT_EQ(mistral("Yes [TOOL_CALLS] [ {\"name\": \"f\", \"arguments\": {}} ] "), "Yes|f{} 1");
  for (const std::string text : {"[TOOL_CALLS]", "[TOOL_CALLS][", "[TOOL_CALLS][]", "[TOOL_CALLS][,", "[TOOL_CALLS]f", "[TOOL_CALLS][{\"name\": \"g\"}]", "[TOOL_CALLS][[", "[TOOL"})
    EXPECT_EQ(mistral(text), text);
  EXPECT_EQ(mistral("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\"}]"), "f{}|, {\"name\": \"g\"}] 1") << "the good one counts";
  EXPECT_EQ(mistral("[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}"), "f{} 1") << "the bracket may be left out";
}

TEST(ToolCalls, MistralWithNamesInFront) {
  auto mistral = [](const std::string &text) { return parse("mistral-args", text); };
  EXPECT_EQ(mistral("[TOOL_CALLS]f[ARGS]{\"a\": 1}"), "f{\"a\": 1} 1");
  EXPECT_EQ(mistral("Hm.[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{\"a\": 1}[TOOL_CALLS]get_weather[ARGS] {}"), "Hm.|f{\"a\": 1}|get_weather{} 2");
  for (const std::string text : {"[TOOL_CALLS]g[ARGS]{}", "[TOOL_CALLS]f[ARG", "[TOOL_CALLS]f{}", "[TOOL_CALLS][ARGS]{}"})
    EXPECT_EQ(mistral(text), text);
  EXPECT_EQ(mistral("[TOOL_CALLS]" + std::string(1000, 'x') + "[ARGS]{}"), "[TOOL_CALLS]" + std::string(1000, 'x') + "[ARGS]{}");
}

TEST(ToolCalls, Llama) {
  auto llama = [](const std::string &text) { return parse("llama", text); };
  EXPECT_EQ(llama("{\"name\": \"f\", \"parameters\": {\"a\": 1}}"), "f{\"a\": 1} 1");
  EXPECT_EQ(llama("\n{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}"), "f{} 1");
  EXPECT_EQ(llama("<|python_tag|>{\"name\": \"f\", \"parameters\": {}}"), "f{} 1");
  for (const std::string text : {"{\"a\": 1}", "{\"name\": \"Bob\", \"age\": 3}", "{\"name\": \"f\", \"parameters\": 3}", "{", "{}", "Like so: {\"name\": \"f\", \"parameters\": {}}",
                                 "<|python_tag|>print(1)", "{\"name\": \"Bob\"} <|py"})
    EXPECT_EQ(llama(text), text);
}

TEST(ToolCalls, GraniteAndMiniMax) {
  EXPECT_EQ(parse("granite", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]"), "f{} 1");
  EXPECT_EQ(parse("minimax", "<tool_calls>\n{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_calls>\nBye"), "f{}|f{\"a\": 1}|\nBye 2");
  EXPECT_EQ(parse("minimax", "<tool_calls></tool_calls>"), "<tool_calls></tool_calls>");
}

FunctionTypes typesOfF() {
  return {{"f", argumentTypesOf(nlohmann::ordered_json::parse(R"({"properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "b": {"type": "boolean"}, "l": {"type": "array"},
      "o": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "m": {"type": ["string", "object"]}, "r": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"enum": ["x", "y"]}}})"))}};
}

std::string parseTyped(const char *format, const std::string &text, bool cut = false) {
  AnswerFormat answer;
  answer.tools = findToolFormat(format);
  answer.functions = {"f", "get_weather"};
  answer.types = typesOfF();
  return llmc::parse(answer, text, cut);
}

TEST(ToolCalls, Qwen3Coder) {
  auto qwen = [](const std::string &text) { return parseTyped("qwen3-coder", text); };
  const auto f = [](const std::string &arguments) { return "<tool_call>\n<function=f>\n" + arguments + "</function>\n</tool_call>"; };
  const auto one = [&](const std::string &name, const std::string &value) { return f("<parameter=" + name + ">\n" + value + "\n</parameter>\n"); };
  EXPECT_EQ(qwen("Well.\n" + f("<parameter=s>\nParis\n</parameter>\n<parameter=n>\n3\n</parameter>\n") + "\n" + f("")), "Well.|f{\"s\": \"Paris\", \"n\": 3}|f{} 2");
  EXPECT_EQ(qwen(one("s", "12")), "f{\"s\": \"12\"} 1") << "the schema says it is a string";
  EXPECT_EQ(qwen(one("s", "a \"b\" \\ <c>\n\n\td\x01 é")), "f{\"s\": \"a \\\"b\\\" \\\\ <c>\\n\\n\\td\\u0001 é\"} 1");
  EXPECT_EQ(qwen(one("s", "\nx\n")), "f{\"s\": \"\\nx\\n\"} 1") << "one line end on each side is no part of it";
  EXPECT_EQ(qwen(one("s", "")), "f{\"s\": \"\"} 1");
  EXPECT_EQ(qwen(f("<parameter=s>x</parameter>")), "f{\"s\": \"x\"} 1");
  EXPECT_EQ(qwen(f("<parameter=s></parameter>")), "f{\"s\": \"\"} 1");
  EXPECT_EQ(qwen(one("r", "12")), "f{\"r\": \"12\"} 1") << "by reference";
  EXPECT_EQ(qwen(one("b", "True")), "f{\"b\": true} 1");
  EXPECT_EQ(qwen(one("b", "false")), "f{\"b\": false} 1");
  EXPECT_EQ(qwen(one("b", "Trueish")), "f{\"b\": \"Trueish\"} 1") << "nothing is lost";
  EXPECT_EQ(qwen(one("o", "None")), "f{\"o\": null} 1");
  EXPECT_EQ(qwen(one("o", "12")), "f{\"o\": \"12\"} 1");
  EXPECT_EQ(qwen(one("o", "No")), "f{\"o\": \"No\"} 1");
  EXPECT_EQ(qwen(one("o", "\"12\"")), "f{\"o\": \"12\"} 1");
  EXPECT_EQ(qwen(one("m", "{\"a\": 1}")), "f{\"m\": {\"a\": 1}} 1");
  EXPECT_EQ(qwen(one("m", "{a}")), "f{\"m\": \"{a}\"} 1");
  EXPECT_EQ(qwen(one("m", "{\"a\": 1} or so")), "f{\"m\": \"{\\\"a\\\": 1} or so\"} 1");
  EXPECT_EQ(qwen(one("l", "[\"</parameter>\",\n 1]")), "f{\"l\": [\"</parameter>\",\n 1]} 1") << "JSON ends where it ends";
  EXPECT_EQ(qwen(one("other", "1.5e3")), "f{\"other\": 1.5e3} 1");
  EXPECT_EQ(qwen(one("other", "text")), "f{\"other\": \"text\"} 1");
  EXPECT_EQ(qwen(one("other", "")), "f{\"other\": \"\"} 1");
  EXPECT_EQ(qwen(f("<parameter=other>\"a</parameter></function></tool_call> So.") + "\n"), "f{\"other\": \"\\\"a\"}| So.</function>\n</tool_call>\n 1") << "what looked like a string is short";
  EXPECT_EQ(qwen(f("").substr(0, 36)), "f{} 1") << "the last mark may be left out";
  for (const std::string text : {"<tool_call>", "<tool_call>\n<function=g>\n</function>", "<tool_call>\n<function=f>\n", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
                                 "<tool_call>\n<function=f>\nx</function>", "<tool_call><function=f><parameter=></function>", "<function=f></function>"})
    EXPECT_EQ(qwen(text), text);
  EXPECT_EQ(qwen(one("s", "x").substr(0, 40)), "f{\"s\": \"x|!|" + one("s", "x").substr(0, 40)) << "no end";
  EXPECT_EQ(parseTyped("qwen3-coder", "<tool_call>\n<function=f>\n<parameter=s>\nlo", true), "f{\"s\": \"lo");
  EXPECT_EQ(parseTyped("seed", "<seed:tool_call>\n<function=f>\n<parameter=s>\nx</parameter>\n<parameter=n>3</parameter>\n</function>\n</seed:tool_call>"), "f{\"s\": \"\\nx\", \"n\": 3} 1");
}

TEST(ToolCalls, Glm) {
  auto glm = [](const std::string &text) { return parseTyped("glm", text); };
  EXPECT_EQ(glm("I look.\n<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>12</arg_value>\n<arg_key>l</arg_key>\n<arg_value>[1]</arg_value>\n</tool_call>\n<tool_call>get_weather\n</tool_call>"),
            "I look.|f{\"s\": \"12\", \"l\": [1]}|get_weather{} 2");
  EXPECT_EQ(glm("<tool_call>f<arg_key>n</arg_key><arg_value>12</arg_value></tool_call>"), "f{\"n\": 12} 1") << "newer ones have no line ends";
  for (const std::string text : {"<tool_call>g\n</tool_call>", "<tool_call>f", "<tool_call>f x</tool_call>", "<tool_call>\n<function=f>\n</function>", "<tool_call>\n</tool_call>"})
    EXPECT_EQ(glm(text), text);
}

TEST(ToolCalls, DeepSeek) {
  EXPECT_EQ(parse("deepseek", "Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
                              "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            "Hm.|f{\"a\": 1}|get_weather{} 2");
  EXPECT_EQ(parse("deepseek-v3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"<｜tool▁call▁end｜>\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            "f{\"a\": \"<｜tool▁call▁end｜>\"}|get_weather{} 2");
  EXPECT_EQ(parse("deepseek-v3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}"), "f{} 1") << "marks behind may be left out";
  EXPECT_EQ(parseTyped("deepseek-v3.2", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">12</｜DSML｜parameter>\n"
                                        "<｜DSML｜parameter name=\"s\" string=\"false\">[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"get_weather\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"),
            "f{\"a\": \"12\", \"s\": [1]}|get_weather{} 2") << "the marks say what is a string";
  for (const std::string text : {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}", "<｜tool▁calls▁begin｜><｜tool▁call"})
    EXPECT_EQ(parse("deepseek-v3.1", text), text);
}

TEST(ToolCalls, Kimi) {
  const std::string two = "Yes.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>"
                          "<|tool_call_begin|>functions.get_weather:4<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>";
  EXPECT_EQ(parse("kimi", two), "Yes.|f{\"a\": 1}|get_weather{} 2");
  AnswerFormat format;
  format.tools = findToolFormat("kimi");
  format.functions = {"f", "get_weather"};
  const auto ids = [&](const std::string &text) {
    AnswerParser parser(format);
    AnswerPieces pieces;
    parser.feed(text, pieces);
    std::vector<std::string> all;
    for (const AnswerPiece &piece : pieces)
      if (piece.kind == AnswerPiece::Kind::Call)
        all.push_back(piece.id);
    return all;
  };
  EXPECT_EQ(ids(two), (std::vector<std::string>{"functions.f:3", "functions.get_weather:4"}));
  std::string same = two;
  same.replace(same.find("get_weather:4"), 13, "f:3");
  EXPECT_EQ(ids(same), (std::vector<std::string>{"functions.f:3", "functions.f:1"})) << "no two are the same";
  same.replace(same.find(":3"), 2, "");
  EXPECT_EQ(ids(same), (std::vector<std::string>{"functions.f:0", "functions.f:3"})) << "one that is left out";
  for (const std::string text : {"<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|>{}", "<|tool_calls_section_begin|><|tool_calls_section_end|>"})
    EXPECT_EQ(parse("kimi", text), text);
}

TEST(ToolCalls, GptOss) {
  AnswerFormat format;
  format.tools = findToolFormat("gpt-oss");
  format.reasoning = findReasoningFormat("gpt-oss");
  format.functions = {"f", "get_weather"};
  const auto oss = [&](const std::string &text, bool cut = false) { return llmc::parse(format, text, cut); };
  const std::string thought = "<|channel|>analysis<|message|>They ask.<|end|><|start|>assistant";
  EXPECT_EQ(oss(thought + "<|channel|>final<|message|>Hello <b>.<|return|>"), "(They ask.)|Hello <b>.");
  EXPECT_EQ(oss(thought + "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>"), "(They ask.)|f{\"a\": 1} 1");
  EXPECT_EQ(oss(" to=functions.f<|channel|>commentary json<|message|>{\"a\": \"<|end|>\"}"), "f{\"a\": \"<|end|>\"} 1") << "as the template writes it";
  EXPECT_EQ(oss(thought + thought + "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|><|start|>assistant to=functions.get_weather<|channel|>commentary<|message|>{}"),
            "(They ask.\nThey ask.)|I look.|f{}|get_weather{} 2");
  EXPECT_EQ(oss("Hello."), "Hello.") << "no head";
  EXPECT_EQ(oss("{\"a\": 1}"), "{\"a\": 1}");
  EXPECT_EQ(oss(""), "");
  EXPECT_EQ(oss("<|channel|>ana", true), "<|channel|>ana");
  EXPECT_EQ(oss("<|channel|>analysis<|message|>They", true), "(They)");
  EXPECT_EQ(oss("<|channel|>commentary to=functions.g<|message|>{}<|call|>"), "<|channel|>commentary to=functions.g<|message|>{}") << "a function that is not there";
  EXPECT_EQ(oss("<|channel|>commentary to=functions.f<|message|>{\"a\": x}"), "f{\"a\": |!|<|channel|>commentary to=functions.f<|message|>{\"a\": x}");
  EXPECT_EQ(oss("<|channel|>commentary to=functions.f<|message|>[1]"), "<|channel|>commentary to=functions.f<|message|>[1]");
  EXPECT_EQ(oss("<|channel|>commentary to=functions.f<|message|>{\"a\"", true), "f{\"a\"");
  EXPECT_EQ(oss("<|channel|>final<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B"), "A\nB");
  format.reasoning = nullptr;
  EXPECT_EQ(oss(thought + "<|channel|>final<|message|>Hello."), "They ask.\nHello.");
  format.parallel = false;
  EXPECT_EQ(oss(" to=functions.f<|channel|>commentary json<|message|>{}<|call|><|start|>assistant"), "f{} 1");
}

// Marks and parts of calls in any order: pieces do not depend on cuts, and without a call all of the text is content.
TEST(ToolCalls, AnyTextIsReadTheSameInPieces) {
  const char *fragments[] = {"<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", "<|tool_call|>", "<tool_calls>", "</tool_calls>", "{\"name\": \"f\", \"arguments\": ",
                             "<function=f>", "</function>", "<parameter=a>", "</parameter>", "<seed:tool_call>", "<arg_key>a</arg_key>", "<arg_value>", "</arg_value>", "<｜tool▁calls▁begin｜>",
                             "<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "```json", "```", "<|tool_calls_section_begin|>",
                             "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>", "<|channel|>commentary to=functions.f<|message|>", "<|channel|>analysis<|message|>", "<|end|>", "True",
                             "{\"name\": \"f\"}", "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "[TOOL_CALLS][{\"name\": \"f\"}", "{\"parameters\": {}, ", "\"name\": \"f\"", "{}", "{\"a\": [1, \"\\u00e9\"]}", "}", "]", "[", ",", "f", " ", "\n", "<", "é", "text", "\"", "1.5", "null"};
  std::mt19937 random(7);
  int calls = 0;
  for (int round = 0; round < 4000; ++round) {
    AnswerFormat format;
    format.tools = &toolFormats()[size_t(round) % toolFormats().size()];
    format.functions = {"f"};
    std::string text;
    for (size_t n = random() % 9; n > 0; --n)
      text += fragments[random() % std::size(fragments)];
    const bool cut = random() % 4 == 0;
    llmc::parse(format, text, cut);
    AnswerParser parser(format);
    AnswerPieces pieces;
    parser.feed(text, pieces);
    parser.finish(false, pieces);
    calls += int(parser.calls());
    if (parser.calls() == 0 && (!format.channels() || text.find("<|") == std::string::npos)) // heads of messages are no text
      ASSERT_EQ(settled(pieces), text) << format.tools->name;
  }
  EXPECT_GT(calls, 50) << "the texts have some";
}

TEST(ToolCalls, Ids) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.insert(newCallId(*findToolFormat("hermes")));
    ids.insert(newCallId(*findToolFormat("mistral")));
  }
  EXPECT_EQ(ids.size(), 2000u);
  for (const std::string &id : ids)
    EXPECT_TRUE(id.size() == 9 || (id.starts_with("call_") && id.size() == 29)) << id;
}

TEST(JsonScanner, KnowsValues) {
  auto scan = [](const std::string &text) {
    JsonScanner scanner;
    for (size_t i = 0; i < text.size(); ++i)
      switch (scanner.feed(text[i])) {
      case JsonScanner::Result::More:
        break;
      case JsonScanner::Result::Done:
        return "done " + std::to_string(i + 1);
      case JsonScanner::Result::Before:
        return "done " + std::to_string(i);
      case JsonScanner::Result::Bad:
        return "bad " + std::to_string(i);
      }
    return std::string("more");
  };
  for (const std::string good : {"1 ", "-0.5e+10 ", "0 ", "1E5,", "true", "null", "\"\"", "\"\\u00fC\\n\\\"\"", "[]", "{}", "[1, -2.5, [], {}]", "{\"a\": {\"b\": [false]}, \"\": 0}", " [0]"})
    EXPECT_EQ(scan(good), "done " + std::to_string(good.size() - (good.back() == ' ' || good.back() == ','))) << good;
  for (const std::string bad : {"]", "[,", "[1,]", "{,", "{1", "{\"a\",", "{\"a\":}", "[1 2", "-a", "1.a", "1ea", "1e+a", "tru ", "\"\\x", "\"\\u12g", "\"\n", "[}", "{]", "+", "'"})
    EXPECT_EQ(scan(bad), "bad " + std::to_string(bad.size() - 1)) << bad;
  EXPECT_EQ(scan("[01"), "bad 2");
  EXPECT_EQ(scan(std::string(64, '[')), "more");
  EXPECT_EQ(scan(std::string(65, '[')), "bad 64");
}

} // namespace
