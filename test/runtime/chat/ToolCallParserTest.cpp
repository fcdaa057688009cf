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

// Marks and parts of calls in any order: pieces do not depend on cuts, and without a call all of the text is content.
TEST(ToolCalls, AnyTextIsReadTheSameInPieces) {
  const char *fragments[] = {"<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", "<|tool_call|>", "<tool_calls>", "</tool_calls>", "{\"name\": \"f\", \"arguments\": ",
                             "{\"name\": \"f\"}", "<tool_call>{\"name\": \"f\", \"arguments\": {}}", "[TOOL_CALLS][{\"name\": \"f\"}", "{\"parameters\": {}, ", "\"name\": \"f\"", "{}", "{\"a\": [1, \"\\u00e9\"]}", "}", "]", "[", ",", "f", " ", "\n", "<", "é", "text", "\"", "1.5", "null"};
  std::mt19937 random(7);
  int calls = 0;
  for (int round = 0; round < 1500; ++round) {
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
    if (parser.calls() == 0)
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
