// The engine against jinja2 within transformers (make_goldens.py).

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace llmc;
using json = nlohmann::ordered_json;

static const char *kFolder = LLMC_SOURCE_DIR "/test/runtime/template/";

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

static const json &goldens() {
  static const json all = json::parse(readFile(std::string(kFolder) + "goldens.json"));
  return all;
}

static std::tm now() { // NOW of make_goldens.py
  std::tm t{};
  t.tm_year = 124, t.tm_mon = 6, t.tm_mday = 9, t.tm_hour = 5, t.tm_min = 6, t.tm_sec = 7, t.tm_wday = 2, t.tm_yday = 190;
  return t;
}

/// The text, or "ERROR: " and the message.
template <typename F> static std::string attempt(F render) {
  try {
    return render();
  } catch (const Error &error) {
    return std::string("ERROR: ") + error.what();
  }
}

static void expectGolden(const json &expected, const std::string &got, const std::string &what) {
  if (expected.is_null())
    EXPECT_TRUE(got.starts_with("ERROR: ")) << what << "\nexpected an error, got: " << got;
  else
    EXPECT_EQ(got, expected.get<std::string>()) << what;
}

TEST(Template, ChatsAsTheReference) {
  size_t checked = 0, rendered = 0;
  for (const json &chat : goldens()["chats"]) {
    const std::string name = chat["template"], conversation = chat["name"];
    ChatTemplate chatTemplate = ChatTemplate::parse(readFile(kFolder + ("data/" + name + ".jinja")));
    ChatOptions options;
    options.now = now();
    options.bosToken = goldens()["tokens"][name][0];
    options.eosToken = goldens()["tokens"][name][1];
    for (const json &tools : goldens()["with_tools"])
      if (tools == conversation)
        options.toolsJson = goldens()["tools"].dump();
    const std::string messages = goldens()["conversations"][conversation].dump();
    for (bool prompt : {false, true}) {
      options.addGenerationPrompt = prompt;
      json expected = prompt ? chat["prompted"] : chat["plain"];
      if (expected.is_object())
        expected = chat["plain"].get<std::string>() + expected["suffix"].get<std::string>();
      expectGolden(expected, attempt([&] { return renderChatJson(chatTemplate, messages, options); }),
                   name + " " + conversation + (prompt ? " with prompt" : ""));
      ++checked;
      rendered += expected.is_string();
    }
  }
  EXPECT_GE(checked, 150u);
  EXPECT_GE(rendered, 130u);
}

TEST(Template, SnippetsAsTheReference) {
  jinja::Value context = jinja::Value::fromJson(goldens()["context"].dump(), "context");
  for (const json &snippet : goldens()["snippets"]) {
    std::string source = snippet[0];
    expectGolden(snippet[1], attempt([&] { return ChatTemplate::parse(source).render(context, now()); }), source);
  }
}

TEST(Template, PlainMessages) {
  ChatTemplate chatTemplate = ChatTemplate::parse(readFile(std::string(kFolder) + "data/smollm2.jinja"));
  EXPECT_EQ(renderChat(chatTemplate, {{"system", "S"}, {"user", "a\xFF" "b"}}, {}),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na\uFFFDb<|im_end|>\n<|im_start|>assistant\n");
}
