//===- ResponsesInput.cpp -------------------------------------------------===//
#include "runtime/tool/ResponsesInput.h"

namespace llmc {

using Json = nlohmann::ordered_json;
using namespace fields;

namespace {

class InputReader {
public:
  Json read(const Json &input) {
    if (input.is_string())
      return Json::array({{{"role", "user"}, {"content", input}}});
    if (!input.is_array() || input.empty())
      wrong("input", "a string or a list of at least one item", input);
    for (size_t i = 0; i < input.size(); ++i)
      item("input[" + std::to_string(i) + "]", input[i]);
    return messages_;
  }

private:
  void item(const std::string &field, const Json &item) {
    if (!item.is_object())
      wrong(field, "an object", item);
    const std::string type = item.contains("type") ? text(field + ".type", item["type"]) : "message";
    if (type == "message")
      message(field, item);
    else if (type == "function_call")
      call(field, item);
    else if (type == "function_call_output")
      result(field, item);
    else if (type == "reasoning")
      thought(field, item);
    else
      wrong(field + ".type", "message, function_call, function_call_output or reasoning (nothing else is supported)", item["type"]);
  }

  static const Json &member(const Json &item, const char *key) {
    static const Json none;
    return item.contains(key) ? item[key] : none;
  }

  // Texts of a list of parts of these types; they are joined.
  static std::string textOf(const std::string &field, const Json &content, std::initializer_list<std::string_view> types) {
    if (content.is_string())
      return content.get<std::string>();
    if (!content.is_array())
      wrong(field, "a string or a list of parts", content);
    std::string all;
    for (size_t i = 0; i < content.size(); ++i) {
      const std::string part = field + "[" + std::to_string(i) + "]";
      if (!content[i].is_object())
        wrong(part, "an object", content[i]);
      const Json &type = member(content[i], "type");
      if (!type.is_string() || std::find(types.begin(), types.end(), type.get_ref<const std::string &>()) == types.end())
        wrong(part + ".type", "text of the type " + std::string(*types.begin()), type);
      all += (all.empty() ? "" : "\n") + text(part + ".text", member(content[i], "text"));
    }
    return all;
  }

  void message(const std::string &field, const Json &item) {
    object(field, item, {"type", "role", "content", "id", "status", "phase"});
    const std::string role = text(field + ".role", member(item, "role"));
    if (role != "user" && role != "assistant" && role != "system" && role != "developer")
      wrong(field + ".role", "user, assistant, system or developer", item["role"]);
    Json &message = role == "assistant" ? answer() : messages_.emplace_back(Json{{"role", role}});
    message["content"] = textOf(field + ".content", member(item, "content"), {role == "assistant" ? "output_text" : "input_text", "input_text"});
    open_ = role == "assistant";
  }

  void call(const std::string &field, const Json &item) {
    object(field, item, {"type", "id", "call_id", "name", "arguments", "status"});
    if (!open_ || messages_.back()["role"] != "assistant")
      answer();
    open_ = true;
    messages_.back()["tool_calls"].push_back(
        {{"id", text(field + ".call_id", member(item, "call_id"))},
         {"type", "function"},
         {"function", {{"name", text(field + ".name", member(item, "name"))}, {"arguments", text(field + ".arguments", member(item, "arguments"))}}}});
  }

  void result(const std::string &field, const Json &item) {
    object(field, item, {"type", "id", "call_id", "output", "status"});
    messages_.push_back({{"role", "tool"},
                         {"tool_call_id", text(field + ".call_id", member(item, "call_id"))},
                         {"content", textOf(field + ".output", member(item, "output"), {"input_text"})}});
    open_ = false;
  }

  // Belongs to what the assistant says or calls next.
  void thought(const std::string &field, const Json &item) {
    object(field, item, {"type", "id", "summary", "content", "status", "encrypted_content"});
    if (!member(item, "encrypted_content").is_null())
      throw BadRequest(field + ".encrypted_content", "unknown or not supported");
    if (!member(item, "content").is_null())
      thought_ = textOf(field + ".content", item["content"], {"reasoning_text"});
    open_ = false;
  }

  Json &answer() {
    Json &message = messages_.emplace_back(Json{{"role", "assistant"}});
    if (!thought_.empty())
      message["reasoning_content"] = std::exchange(thought_, {});
    return message;
  }

  Json messages_ = Json::array();
  bool open_ = false; // calls that follow belong to the last message
  std::string thought_;
};

} // namespace

Json messagesOfInput(const Json &input) { return InputReader().read(input); }

} // namespace llmc
