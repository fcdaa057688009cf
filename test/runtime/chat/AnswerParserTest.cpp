// What is thought and what is said.
#include "Parts.h"

using namespace llmc;

namespace {

AnswerFormat thinking(bool opened = false, const char *tools = nullptr) {
  AnswerFormat format;
  format.reasoning = findReasoningFormat("think");
  format.opened = opened;
  format.tools = tools ? findToolFormat(tools) : nullptr;
  format.functions = {"f"};
  return format;
}

TEST(AnswerParser, PartsThoughtsFromTheAnswer) {
  EXPECT_EQ(parse(thinking(), "<think>\nOne\n\ntwo. \n</think>\n\nHello\n"), "(One\n\ntwo.)|Hello\n");
  EXPECT_EQ(parse(thinking(true), "One</think>Hello"), "(One)|Hello") << "the prompt has the first mark";
  EXPECT_EQ(parse(thinking(), " <think></think>Hello"), "Hello");
  EXPECT_EQ(parse(thinking(), "Hello <think>not now</think>"), "Hello <think>not now</think>");
  EXPECT_EQ(parse(thinking(), "<thin"), "<thin");
  EXPECT_EQ(parse(thinking(), ""), "");
  EXPECT_EQ(parse(thinking(), " \n"), " \n");
  EXPECT_EQ(parse(thinking(), "<think>It goes on </thi"), "(It goes on </thi)") << "and has no end";
  EXPECT_EQ(parse(thinking(true), "a </thi b</think></think>"), "(a </thi b)|</think>");
}

TEST(AnswerParser, ThoughtsMayBeLeftOut) {
  AnswerFormat format = thinking();
  format.showReasoning = false;
  EXPECT_EQ(parse(format, "<think>secret</think>Hello"), "Hello");
}

TEST(AnswerParser, CallsFollowThoughts) {
  const std::string call = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";
  EXPECT_EQ(parse(thinking(false, "hermes"), "<think>" + call + "</think>\n\nNow:\n" + call), "(" + call + ")|Now:|f{} 1") << "a thought is no call";
  EXPECT_EQ(parse(thinking(true, "llama"), "Hm</think>\n{\"name\": \"f\", \"parameters\": {}}"), "(Hm)|f{} 1");
}

TEST(AnswerParser, NothingToLookFor) { EXPECT_EQ(parse({}, "<think>a</think> <tool_call>"), "<think>a</think> <tool_call>"); }

} // namespace
