// The last message continued: where the rendering ends, and what cannot be continued. That it is what transformers
// gives is for FamiliesTest.cpp.

#include "test/ErrorOf.h"
#include "runtime/template/ChatTemplate.h"

#include <gtest/gtest.h>

using namespace llmc;

namespace {

constexpr const char *kPlain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
constexpr const char *kTrimmed = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</>{% endfor %}";
constexpr const char *kParts = "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
                               "{% for p in m.content %}({{ p.text }}){% endfor %}{% endif %}</>{% endfor %}";
constexpr const char *kThinks = "{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content }}|{{ m.content }}</>{% endfor %}";

std::string render(const char *source, const char *messages, const char *field = "content", bool prompt = false) {
  ChatOptions options;
  options.addGenerationPrompt = prompt;
  options.continueFinalMessage = field;
  return renderChatJson(ChatTemplate::parse(source), messages, options);
}

constexpr const char *kAnswer = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": " b  \n "}])";

TEST(FinalMessage, EndsWithItsText) {
  EXPECT_EQ(render(kPlain, kAnswer), "<user>a</><assistant> b  \n ");
  EXPECT_EQ(render(kTrimmed, kAnswer), "<user>a</><assistant>b") << "what the template drops is dropped";
  EXPECT_EQ(render(kPlain, R"([{"role": "user", "content": ""}])"), "<user>");
  EXPECT_EQ(render(kThinks, R"([{"role": "assistant", "content": "x", "reasoning_content": "hm"}])", "reasoning_content"), "<assistant>hm");
  const ChatTemplate plain = ChatTemplate::parse(kPlain);
  ChatOptions options;
  options.addGenerationPrompt = false;
  options.continueFinalMessage = "content";
  EXPECT_EQ(renderChat(plain, {{"user", "a"}, {"assistant", "b"}}, options), "<user>a</><assistant>b");
}

TEST(FinalMessage, LastTextOfParts) {
  constexpr const char *parts = R"([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])";
  EXPECT_EQ(render(kParts, parts), "<assistant>(a)(b");
  EXPECT_EQ(render(kPlain, parts), "<assistant>a\nb") << "joined for a template that takes strings alone";
}

// The text may hold the tag that marks its end.
TEST(FinalMessage, TextThatHoldsTheTag) {
  EXPECT_EQ(render(kPlain, R"([{"role": "user", "content": "CONTINUE_FINAL_MESSAGE_TAG "}])"), "<user>CONTINUE_FINAL_MESSAGE_TAG ");
}

TEST(FinalMessage, WhatCannotBeContinued) {
  auto error = [](const char *source, const char *messages, const char *field = "content", bool prompt = false) {
    return errorOf([&] { render(source, messages, field, prompt); });
  };
  EXPECT_EQ(error(kPlain, "[]"), "messages: expected a last message to continue, got none");
  EXPECT_EQ(error(kPlain, "[1]"), "messages[0]: expected an object, got a int");
  EXPECT_EQ(error(kPlain, R"([{"role": "user"}])"), "messages[0].content: expected a text to continue, got none");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "content": null}])"), "messages[0].content: expected a text to continue, got none");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "content": 5}])"), "messages[0].content: expected a string or a list of parts, got a int");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "content": []}])"), "messages[0].content: expected a text to continue, got none");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "content": ["a"]}])"), "messages[0].content[0]: expected an object, got a str");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "content": [{"text": 1}]}])"), "messages[0].content[0].text: expected a string, got a int");
  EXPECT_EQ(error(kPlain, R"([{"role": "user", "thinking": "a"}])", "thinking"),
            "messages[0].thinking: expected a field that the chat template shows, got 'thinking', which it does not mention");
  EXPECT_NE(error("{% for m in messages %}{{ m.content | upper }}{% endfor %}", kAnswer).find("messages[1].content: expected a text that the chat template shows as it is"), std::string::npos);
  EXPECT_NE(error("{{ messages[0].content }}", kAnswer).find("messages[1].content: expected a text that"), std::string::npos);
  EXPECT_NE(error(kPlain, kAnswer, "content", true).find("got both"), std::string::npos);
}

} // namespace
