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
  return std::string(traits.writesCalls ? "" : traits.takesTools ? "unknown" : "none") + (traits.tools ? traits.tools->name : "") + (traits.writesCalls && !traits.takesTools ? " untold" : "") + (traits.textArguments ? " text" : "") +
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
      {"families/Qwen3-Coder.jinja", "qwen3-coder"},
      {"families/GLM-4.6.jinja", "glm think"},
      {"families/deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja", "deepseek untold think"},
      {"families/llama-cpp-deepseek-r1.jinja", "deepseek untold think"},
      {"families/deepseek-ai-DeepSeek-V3.1.jinja", "deepseek-v3.1 untold think"},
      {"families/deepseek-ai-DeepSeek-V3.2.jinja", "deepseek-v3.2 think"},
      {"families/Kimi-K2-Instruct.jinja", "unknown"}, // changes a list, which templates may not
      {"families/openai-gpt-oss-120b.jinja", "gpt-oss gpt-oss"},
      {"families/ByteDance-Seed-OSS.jinja", "seed seed"},
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

// Ids that have the function's name, made by the template or given.
TEST(ChatTraits, Kimi) {
  for (const char *id : {"'functions.' + c.function.name + ':' + loop.index0|string", "c.id"}) {
    const ChatTraits traits = traitsOf(ChatTemplate::parse(std::string("{{ tools | tojson }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}<|tool_calls_section_begin|>{% for c in m.tool_calls %}"
                                                                       "<|tool_call_begin|>{{ ") + id + " }}<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>{% endif %}{% endfor %}"), "", "");
    ASSERT_TRUE(traits.tools) << id;
    EXPECT_STREQ(traits.tools->name, "kimi");
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
