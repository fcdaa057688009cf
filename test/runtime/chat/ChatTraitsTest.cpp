// What is found out about the templates of real models.
#include "runtime/chat/ChatTraits.h"

#include <fstream>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

std::string found(const std::string &file) {
  std::ifstream in(LLMC_SOURCE_DIR "/test/runtime/template/" + file, std::ios::binary);
  const ChatTemplate chatTemplate = ChatTemplate::parse(std::string(std::istreambuf_iterator<char>(in), {}));
  const ChatTraits traits = traitsOf(chatTemplate, "<s>", "</s>");
  return std::string(traits.takesTools ? traits.tools ? traits.tools->name : "unknown" : "none") + (traits.textArguments ? " text" : "") +
         (traits.reasoning ? std::string(" ") + traits.reasoning->name : "") + (traits.opensAnswer ? "" : " bare");
}

TEST(ChatTraits, OfRealTemplates) {
  const std::pair<const char *, const char *> wanted[] = {
      {"data/qwen2.5.jinja", "hermes"},
      {"data/llama-3.1.jinja", "llama"},
      {"data/llama-3.2.jinja", "llama"},
      {"data/llama-3.3.jinja", "llama"},
      {"data/llama-3.jinja", "none"},
      {"data/smollm2.jinja", "none"},
      {"families/Qwen-Qwen3-0.6B.jinja", "hermes think"},
      {"families/Qwen-QwQ-32B.jinja", "hermes think"},
      {"families/MiMo-VL.jinja", "hermes"},
      {"families/mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral bare"},
      {"families/Mistral-Small-3.2-24B-Instruct-2506.jinja", "mistral-args bare"},
      {"families/ibm-granite-granite-4.0.jinja", "hermes"},
      {"families/MiniMax-M1.jinja", "minimax"},
      {"families/Qwen3-Coder.jinja", "unknown"},
      {"families/GLM-4.6.jinja", "unknown think"},
      {"families/deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "none think"},
      {"families/ByteDance-Seed-OSS.jinja", "unknown seed"},
      {"families/microsoft-Phi-3.5-mini-instruct.jinja", "none"},
  };
  for (const auto &[file, traits] : wanted)
    EXPECT_EQ(found(file), traits) << file;
}

// A template that joins the arguments to other text wants them as text.
TEST(ChatTraits, ArgumentsAsText) {
  const std::string form = "{% for t in tools %}{{ t.function.name }}{% endfor %}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
                           "<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ ARGS }}}</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}";
  for (const auto &[arguments, text] : {std::pair("'' + c.function.arguments", true), {"c.function.arguments", true}, {"c.function.arguments | tojson", false}}) {
    std::string source = form;
    const ChatTraits traits = traitsOf(ChatTemplate::parse(source.replace(source.find("ARGS"), 4, arguments)), "", "");
    ASSERT_TRUE(traits.tools) << arguments;
    EXPECT_STREQ(traits.tools->name, "hermes");
    EXPECT_EQ(traits.textArguments, text) << arguments;
  }
}

TEST(ChatTraits, Mentions) {
  const ChatTemplate t = ChatTemplate::parse("{% if enable_thinking %}x{% endif %}{{ tools_x }}");
  EXPECT_TRUE(mentions(t, "enable_thinking"));
  EXPECT_FALSE(mentions(t, "thinking"));
  EXPECT_FALSE(mentions(t, "tools"));
  EXPECT_FALSE(mentions(t, ""));
}

} // namespace
