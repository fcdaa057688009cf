// Tools for templates that know of none.
#include "runtime/chat/ToolPrompt.h"

#include <gtest/gtest.h>

using namespace llmc;
using Json = nlohmann::ordered_json;

namespace {

const Json kTools = Json::parse(R"([{"type": "function", "function": {"name": "f"}}])");

TEST(ToolPrompt, BecomesText) {
  const Json messages = Json::parse(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}, {"id": "2", "function": {"name": "f", "arguments": {}}}]},
    {"role": "tool", "tool_call_id": "1", "content": "one"}, {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "two"}]}, {"role": "user", "content": "y"}])");
  EXPECT_TRUE(speaksOfTools(messages));
  const Json told = messagesWithTools(messages, kTools);
  ASSERT_EQ(told.size(), 5u);
  const std::string system = told[0]["content"];
  EXPECT_TRUE(system.starts_with("Be brief.\n\n"));
  EXPECT_NE(system.find(kTools[0].dump()), std::string::npos);
  EXPECT_EQ(told[2], Json::parse(R"({"role": "assistant", "content": "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>\n\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>"})"));
  EXPECT_EQ(told[3], Json::parse(R"({"role": "user", "content": "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"})"));
  EXPECT_EQ(told[4], messages[5]);
}

TEST(ToolPrompt, WithoutASystemMessage) {
  const Json messages = Json::parse(R"([{"role": "user", "content": "x"}])");
  EXPECT_FALSE(speaksOfTools(messages));
  const Json told = messagesWithTools(messages, kTools);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0]["role"], "system");
  EXPECT_EQ(messagesWithTools(messages, Json()), messages);
}

// Time is in the length of the text, not in its square.
TEST(ToolPrompt, ManyResults) {
  Json messages = Json::array({{{"role", "user"}, {"content", "x"}}});
  for (int i = 0; i < 100000; ++i)
    messages.push_back({{"role", "tool"}, {"content", "y"}});
  EXPECT_EQ(messagesWithTools(messages, Json()).size(), 2u);
}

} // namespace
