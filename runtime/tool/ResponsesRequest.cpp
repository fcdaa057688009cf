//===- ResponsesRequest.cpp -----------------------------------------------===//
#include "runtime/tool/ResponsesRequest.h"
#include "runtime/tool/Model.h"
#include "runtime/tool/ResponsesInput.h"

#include <algorithm>

namespace llmc {

using Json = nlohmann::ordered_json;
using namespace fields;

namespace {

// Of both interfaces, by the same name.
constexpr const char *kShared[] = {
    "model", "temperature", "top_p", "stream", "parallel_tool_calls", "user", "safety_identifier", "prompt_cache_key", "service_tier",
    // our own
    "seed", "stop", "presence_penalty", "frequency_penalty", "logit_bias", "top_k", "min_p", "typical_p", "repetition_penalty", "min_tokens", "ignore_eos",
    "stop_token_ids", "priority", "cache_salt", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "chat_template_kwargs", "include_reasoning"};

class Translator {
public:
  explicit Translator(const Json &body) : body_(body) {
    addShared();
    addOwn();
    addUnsupported();
  }

  const FieldReaders &readers() const { return readers_; }

  /// The body of a chat.
  Json chat() {
    if (!body_.is_object())
      wrong("body", "an object", body_);
    for (const auto &[key, value] : body_.items()) {
      const auto reader = readers_.find(key);
      if (reader == readers_.end())
        throw BadRequest(key, "unknown or not supported");
      if (!value.is_null())
        reader->second(value);
    }
    Json messages = messagesOfInput(body_.contains("input") ? body_["input"] : Json());
    if (!instructions_.empty())
      messages.insert(messages.begin(), Json{{"role", "system"}, {"content", instructions_}});
    chat_["messages"] = std::move(messages);
    if (logprobs_)
      chat_["logprobs"] = true;
    return std::move(chat_);
  }

private:
  void addShared() {
    for (const char *name : kShared)
      readers_[name] = [this, name](const Json &v) { chat_[name] = v; };
  }

  void addOwn() {
    readers_["input"] = [](const Json &) {};
    readers_["instructions"] = [this](const Json &v) { instructions_ = text("instructions", v); };
    readers_["max_output_tokens"] = [this](const Json &v) { chat_["max_completion_tokens"] = v; };
    readers_["tools"] = [this](const Json &v) { readTools(v); };
    readers_["tool_choice"] = [this](const Json &v) { readChoice(v); };
    readers_["text"] = [this](const Json &v) { readText(v); };
    readers_["reasoning"] = [this](const Json &v) {
      object("reasoning", v, {"effort"});
      if (v.contains("effort") && !v["effort"].is_null())
        chat_["reasoning_effort"] = v["effort"];
    };
    readers_["top_logprobs"] = [this](const Json &v) {
      logprobs_ = true;
      chat_["top_logprobs"] = v;
    };
    readers_["include"] = [this](const Json &v) {
      if (!v.is_array())
        wrong("include", "a list", v);
      for (const Json &item : v)
        if (item != "message.output_text.logprobs")
          wrong("include", "\"message.output_text.logprobs\" (nothing else is supported)", item);
      logprobs_ |= !v.empty();
    };
    readers_["metadata"] = [](const Json &v) {
      if (!v.is_object())
        wrong("metadata", "an object", v);
    };
    readers_["stream_options"] = [this](const Json &v) {
      if (!body_.contains("stream") || body_["stream"] != true)
        throw BadRequest("stream_options", "expected \"stream\": true with it");
      object("stream_options", v, {"include_obfuscation"});
      only("stream_options.include_obfuscation", v.contains("include_obfuscation") ? v["include_obfuscation"] : Json(false), false, "nothing else is supported");
    };
  }

  // Answers are not kept, and there is nothing here that works in the background or is cut to fit.
  void addUnsupported() {
    for (const auto &[name, value, why] : std::initializer_list<std::tuple<const char *, Json, const char *>>{
             {"store", false, "answers are not kept"}, {"background", false, "nothing else is supported"}, {"truncation", "disabled", "nothing else is supported"}})
      readers_[name] = [name = name, value = value, why = why](const Json &v) { only(name, v, value, why); };
    for (const char *name : {"previous_response_id", "conversation"})
      readers_[name] = [name](const Json &v) { wrong(name, "null: answers are not kept, so give the conversation in input", v); };
    for (const char *name : {"prompt", "max_tool_calls", "prompt_cache_retention"})
      readers_[name] = [name](const Json &v) { wrong(name, "null (nothing else is supported)", v); };
  }

  static void only(const std::string &name, const Json &got, const Json &value, const char *why) {
    if (got != value)
      wrong(name, value.dump() + " (" + why + ")", got);
  }

  // {"type": "function", "name": ...} becomes {"type": "function", "function": {"name": ...}}.
  static Json wrapped(const std::string &field, const Json &tool) {
    if (!tool.is_object())
      wrong(field, "an object", tool);
    Json function = tool;
    Json whole{{"type", tool.contains("type") ? tool["type"] : Json()}};
    function.erase("type");
    whole["function"] = std::move(function);
    return whole;
  }
  static Json wrappedAll(const std::string &field, const Json &tools) {
    if (!tools.is_array())
      return tools; // the chat says what is wrong
    Json all = Json::array();
    for (size_t i = 0; i < tools.size(); ++i)
      all.push_back(wrapped(field + "[" + std::to_string(i) + "]", tools[i]));
    return all;
  }

  void readTools(const Json &v) { chat_["tools"] = wrappedAll("tools", v); }

  void readChoice(const Json &v) {
    if (!v.is_object())
      chat_["tool_choice"] = v;
    else if (v.contains("type") && v["type"] == "allowed_tools") {
      object("tool_choice", v, {"type", "mode", "tools"});
      chat_["tool_choice"] = {{"type", "allowed_tools"},
                              {"allowed_tools", {{"mode", v.contains("mode") ? v["mode"] : Json()}, {"tools", wrappedAll("tool_choice.tools", v.contains("tools") ? v["tools"] : Json())}}}};
    } else {
      chat_["tool_choice"] = wrapped("tool_choice", v);
    }
  }

  // A schema is one level further in in a chat.
  void readText(const Json &v) {
    object("text", v, {"format"});
    const Json format = v.contains("format") ? v["format"] : Json();
    if (format.is_null())
      return;
    if (!format.is_object())
      wrong("text.format", "an object", format);
    if (!format.contains("type") || format["type"] != "json_schema") {
      chat_["response_format"] = format;
      return;
    }
    Json schema = format;
    schema.erase("type");
    chat_["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  }

  const Json &body_;
  Json chat_ = Json::object();
  std::string instructions_;
  bool logprobs_ = false;
  FieldReaders readers_;
};

// A field of a chat as it is called here.
std::string renamed(std::string field) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_completion_tokens", "max_output_tokens"}, {"messages", "input"}, {"response_format.json_schema", "text.format"}, {"response_format", "text.format"}, {"reasoning_effort", "reasoning.effort"}, {"tool_choice.allowed_tools", "tool_choice"}};
  for (const auto &[chat, own] : kNames)
    if (field.starts_with(chat)) {
      field = std::string(own) + (own == "input" ? "" : field.substr(chat.size()));
      break;
    }
  const bool tool = field.starts_with("tools[") || field.starts_with("tool_choice");
  if (const size_t at = field.find(".function"); tool && at != std::string::npos)
    field.erase(at, std::string_view(".function").size());
  return field;
}

// What an answer repeats of its request, as the interface has it.
Json repeated(const Json &body, const SamplingParams &p) {
  auto given = [&](const char *name, Json otherwise) { return body.contains(name) && !body[name].is_null() ? body[name] : otherwise; };
  const Json reasoning = given("reasoning", Json::object()), text = given("text", Json::object());
  return {{"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"max_tool_calls", nullptr},
          {"parallel_tool_calls", given("parallel_tool_calls", true)},
          {"previous_response_id", nullptr},
          {"reasoning", {{"effort", reasoning.value("effort", Json())}, {"summary", nullptr}}},
          {"store", false},
          {"temperature", p.temperature},
          {"text", {{"format", text.value("format", Json{{"type", "text"}})}}},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", given("tools", Json::array())},
          {"top_logprobs", std::max<int64_t>(p.logprobs, 0)},
          {"top_p", p.topP},
          {"truncation", "disabled"},
          {"user", given("user", nullptr)},
          {"metadata", given("metadata", Json::object())}};
}

} // namespace

CompletionRequest readResponses(const Json &body, Model &model, bool mayStream) {
  const Json chat = Translator(body).chat();
  try {
    CompletionRequest request = readCompletion(chat, true, model, mayStream);
    if (request.request.sampling.logprobs >= 0 && !request.answer.plain())
      throw BadRequest(body.contains("include") ? "include" : "top_logprobs", "expected none beside tools, or from a model that thinks: their tokens are no text");
    request.repeated = std::make_shared<const Json>(repeated(body, request.request.sampling));
    return request;
  } catch (const BadRequest &bad) {
    const std::string what = bad.what();
    throw BadRequest(renamed(bad.param), bad.param.empty() ? what : what.substr(std::min(what.size(), bad.param.size() + 2)));
  }
}

std::vector<std::string> responsesFields() {
  const Json none;
  const Translator translator(none);
  std::vector<std::string> names;
  for (const auto &[name, read] : translator.readers())
    names.push_back(name);
  return names;
}

} // namespace llmc
