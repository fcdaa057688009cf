// Templates of many model families against jinja2 within transformers (make_family_goldens.py).

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/template/FinalMessage.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace llmc;
using json = nlohmann::ordered_json;

namespace {

const std::string kFolder = LLMC_SOURCE_DIR "/test/runtime/template/";

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::tm now() { // NOW of reference.py
  std::tm t{};
  t.tm_year = 124, t.tm_mon = 6, t.tm_mday = 9, t.tm_hour = 5, t.tm_min = 6, t.tm_sec = 7, t.tm_wday = 2, t.tm_yday = 190;
  return t;
}

constexpr size_t kDigits = 8;

std::string digest(const std::string &text) {
  uint64_t value = 0xCBF29CE484222325;
  for (unsigned char byte : text)
    value = (value ^ byte) * 0x100000001B3;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(value));
  return std::string(digits, kDigits);
}

/// The variables of one rendering; `field` is set where the last message is to be continued.
jinja::Value contextOf(const json &goldens, const json &messages, const json &combination, std::string &field) {
  json context = {{"messages", messages}, {"documents", nullptr}, {"add_generation_prompt", false}};
  context.update(goldens["tokens"]);
  context.update(combination);
  field = context.value("continue_final_message", "");
  context.erase("continue_final_message");
  return jinja::Value::fromJson(context.dump(), "context");
}

std::string render(const ChatTemplate &chatTemplate, const jinja::Value &context, const std::string &field) {
  if (field.empty())
    return chatTemplate.render(context, now());
  const FinalMessage last(chatTemplate, *context.dict()->findName("messages"), field);
  jinja::Dict variables = *context.dict();
  variables.set(jinja::Value("messages"), last.messages());
  return last.cut(chatTemplate.render(jinja::Value::dict(std::move(variables)), now()));
}

TEST(Families, RenderedAsTheReference) {
  const json goldens = json::parse(readFile(kFolder + "family_goldens.json"));
  const json &combinations = goldens["combinations"];
  ASSERT_GE(goldens["digests"].size(), 20u);
  for (const auto &[name, digests] : goldens["digests"].items()) {
    const ChatTemplate chatTemplate = ChatTemplate::parse(readFile(kFolder + "families/" + name + ".jinja"));
    ASSERT_EQ(digests.size(), combinations.size());
    for (size_t c = 0; c < combinations.size(); ++c) {
      const std::string expected = digests[c];
      ASSERT_EQ(expected.size(), kDigits * goldens["chats"].size());
      size_t at = 0;
      for (const auto &[title, messages] : goldens["chats"].items()) {
        std::string field, text, got;
        const jinja::Value context = contextOf(goldens, messages, combinations[c], field);
        try {
          text = render(chatTemplate, context, field);
          got = digest(text);
        } catch (const Error &error) {
          text = error.what();
          got = std::string(kDigits, '-');
        }
        EXPECT_EQ(got, expected.substr(at, kDigits)) << name << ", chat '" << title << "', combination " << c << ":\n" << text;
        at += kDigits;
      }
    }
  }
}

} // namespace
