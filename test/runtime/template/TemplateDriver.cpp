// Renders the cases that the comparison scripts write (render_all_templates.py,
// differential_fuzz.py): JSON lines in, JSON lines out, in the same order.
//
// In:  {"template": TEXT, "context_text": "JSON", "continue": FIELD}: the variables, whose order and numbers survive as
//      a string; FIELD of the last of the messages among them is to be continued, or is "" or not there.
// Out: {"text": TEXT} or {"error": MESSAGE}.

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
#include "runtime/template/FinalMessage.h"
#include "runtime/template/Interpreter.h"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace llmc;
using json = nlohmann::ordered_json;

/// 2024-07-09 05:06:07, NOW of the scripts.
static std::tm fixedNow() {
  std::tm t{};
  t.tm_year = 124, t.tm_mon = 6, t.tm_mday = 9, t.tm_hour = 5, t.tm_min = 6, t.tm_sec = 7, t.tm_wday = 2, t.tm_yday = 190;
  return t;
}

static std::string render(const json &given) {
  ChatTemplate chatTemplate = ChatTemplate::parse(given["template"].get<std::string>());
  const jinja::Value context = jinja::Value::fromJson(given["context_text"].get<std::string>(), "context");
  const std::string field = given.value("continue", "");
  if (field.empty())
    return chatTemplate.render(context, fixedNow());
  const FinalMessage last(chatTemplate, *context.dict()->findName("messages"), field);
  jinja::Dict variables = *context.dict();
  variables.set(jinja::Value("messages"), last.messages());
  return last.cut(chatTemplate.render(jinja::Value::dict(std::move(variables)), fixedNow()));
}

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    json answer;
    try {
      answer["text"] = render(json::parse(line));
    } catch (const Error &error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
  }
}
