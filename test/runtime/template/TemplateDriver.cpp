// Renders the cases that the comparison scripts write (render_all_templates.py,
// differential_fuzz.py): JSON lines in, JSON lines out, in the same order.
//
// In:  {"template": TEXT, "context_text": "JSON"}: the variables, whose order and numbers survive as a string.
// Out: {"text": TEXT} or {"error": MESSAGE}.

#include "llmc/Support/Error.h"
#include "runtime/template/ChatTemplate.h"
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
  return chatTemplate.render(jinja::Value::fromJson(given["context_text"].get<std::string>(), "context"), fixedNow());
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
