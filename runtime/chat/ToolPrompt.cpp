//===- ToolPrompt.cpp -----------------------------------------------------===//
#include "runtime/chat/ToolPrompt.h"
#include "runtime/chat/ToolFormat.h"

namespace llmc {

using Json = nlohmann::ordered_json;

// How a call looks.
static std::string exampleOf(const ToolFormat &format) {
  if (format.body == ToolFormat::Body::Object)
    return std::string(format.open) + "\n{\"name\": <function>, \"arguments\": <object>}\n" + std::string(format.close);
  std::string text(format.open);
  text.append(format.callOpen).append("<function>").append(format.idPrefix.empty() ? "" : std::string(format.idMark) + "<number>");
  return text.append(format.separator).append("<object>").append(format.callClose).append(format.close);
}

static std::string described(const Json &tools, const ToolFormat &format) {
  std::string text = "You may call functions to answer. These are there, with the schemas of their parameters:\n";
  for (const Json &tool : tools)
    text += tool.dump() + "\n";
  if (format.body != ToolFormat::Body::Object)
    return text + "To call one, answer with its name and its arguments, a JSON object, between marks:\n" + exampleOf(format);
  return text + "To call one, answer with a JSON object between marks, and for several calls with several of these:\n" + exampleOf(format);
}

// Content is a string, a list of parts or null.
static void append(Json &content, const std::string &text) {
  if (content.is_array())
    content.push_back({{"type", "text"}, {"text", text}});
  else if (content.is_string() && !content.get_ref<const std::string &>().empty())
    content.get_ref<std::string &>().append("\n\n").append(text); // in place: there may be many
  else
    content = text;
}

static std::string textOf(const Json &content) {
  if (content.is_string())
    return content.get<std::string>();
  std::string text;
  for (const Json &part : content.is_array() ? content : Json::array())
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  return text;
}

static Json called(const Json &message) {
  Json changed = message;
  changed.erase("tool_calls");
  for (const Json &call : message["tool_calls"]) {
    const Json &function = call["function"];
    append(changed["content"], "<tool_call>\n" + Json{{"name", function["name"]}, {"arguments", function["arguments"]}}.dump() + "\n</tool_call>");
  }
  return changed;
}

static bool calls(const Json &message) { return message.contains("tool_calls") && message["tool_calls"].is_array(); }

bool speaksOfTools(const Json &messages) {
  for (const Json &message : messages)
    if (message["role"] == "tool" || calls(message))
      return true;
  return false;
}

// The text goes to the system message.
static Json withText(Json messages, const std::string &text) {
  if (messages.empty() || messages[0]["role"] != "system")
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  append(messages[0]["content"], text);
  return messages;
}

Json messagesWithTools(const Json &messages, const Json &tools) {
  Json all = Json::array();
  bool results = false; // the last message has some, and takes the next ones, too: users and assistants alternate
  for (const Json &message : messages) {
    if (message["role"] == "tool") {
      if (!results)
        all.push_back({{"role", "user"}, {"content", ""}});
      const std::string text = "<tool_response>\n" + textOf(message.contains("content") ? message["content"] : Json()) + "\n</tool_response>";
      all.back()["content"].get_ref<std::string &>().append(results ? "\n" : "").append(text);
    } else {
      all.push_back(calls(message) ? called(message) : message);
    }
    results = message["role"] == "tool";
  }
  if (!tools.is_array() || tools.empty())
    return all;
  return withText(std::move(all), described(tools, *findToolFormat("hermes")) + "\nThe results come between <tool_response> and </tool_response>.");
}

Json messagesWithToolsTold(const Json &messages, const Json &tools, const ToolFormat &format) { return withText(messages, described(tools, format)); }

} // namespace llmc
