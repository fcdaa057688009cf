//===- ChatFields.cpp -----------------------------------------------------===//
#include "runtime/tool/ChatFields.h"
#include "runtime/chat/ToolGrammar.h"
#include "runtime/chat/ToolPrompt.h"
#include "runtime/tool/CompletionRequest.h"
#include "runtime/tool/Model.h"

#include <algorithm>
#include <cctype>

namespace llmc {

using Json = nlohmann::ordered_json;
using namespace fields;

static std::string at(const char *list, size_t index) { return std::string(list) + "[" + std::to_string(index) + "]"; }

static const Json &member(const Json &object, const char *key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

void ChatFields::addReaders(FieldReaders &readers) {
  readers["messages"] = [this](const Json &v) { messages_ = v; };
  readers["tools"] = [this](const Json &v) { readTools(v); };
  readers["tool_choice"] = [this](const Json &v) { choice_ = v; };
  readers["parallel_tool_calls"] = [this](const Json &v) { parallel_ = boolean("parallel_tool_calls", v); };
  readers["chat_template_kwargs"] = [this](const Json &v) { readVariables(v); };
  readers["include_reasoning"] = [this](const Json &v) { showReasoning_ = boolean("include_reasoning", v); };
  readers["reasoning_effort"] = [this](const Json &v) { effort_ = text("reasoning_effort", v); };
}

// As the interface has it: at most 64 letters, digits, _ and -.
static bool isFunctionName(const std::string &name) {
  return !name.empty() && name.size() <= 64 &&
         std::all_of(name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; });
}

void ChatFields::readTools(const Json &value) {
  if (!value.is_array() || value.size() > kMaxTools)
    wrong("tools", "a list of at most " + std::to_string(kMaxTools) + " tools", value);
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string field = at("tools", i);
    object(field, value[i], {"type", "function"});
    if (member(value[i], "type") != "function")
      wrong(field + ".type", "\"function\" (nothing else is supported)", member(value[i], "type"));
    const Json &function = member(value[i], "function");
    object(field + ".function", function, {"name", "description", "parameters", "strict"});
    if (const Json &name = member(function, "name"); !name.is_string() || !isFunctionName(name))
      wrong(field + ".function.name", "1 to 64 letters, digits, _ and -", name);
    if (const Json &description = member(function, "description"); !description.is_null())
      text(field + ".function.description", description);
    if (const Json &parameters = member(function, "parameters"); !parameters.is_null() && !parameters.is_object())
      wrong(field + ".function.parameters", "an object (a JSON schema)", parameters);
    if (const Json &strict = member(function, "strict"); !strict.is_null() && boolean(field + ".function.strict", strict))
      strict_ = true;
    for (size_t j = 0; j < i; ++j)
      if (value[j]["function"]["name"] == function["name"])
        wrong(field + ".function.name", "a name that no other tool has", function["name"]);
  }
  tools_ = value;
}

void ChatFields::readVariables(const Json &value) {
  if (!value.is_object())
    wrong("chat_template_kwargs", "an object", value);
  for (const char *own : {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"})
    if (value.contains(own))
      throw BadRequest("chat_template_kwargs", std::string("expected variables of the template's own, got ") + own);
  variables_ = value;
}

std::vector<std::string> ChatFields::functions() const {
  std::vector<std::string> names;
  for (const Json &tool : tools_)
    names.push_back(tool["function"]["name"]);
  return names;
}

// Of {"type": "function", "function": {"name": ...}}.
std::string ChatFields::functionOf(const std::string &field, const Json &value) const {
  object(field, value, {"type", "function"});
  if (member(value, "type") != "function")
    wrong(field + ".type", "\"function\"", member(value, "type"));
  object(field + ".function", member(value, "function"), {"name"});
  const Json &name = member(member(value, "function"), "name");
  const std::vector<std::string> known = functions();
  if (std::find(known.begin(), known.end(), text(field + ".function.name", name)) == known.end())
    wrong(field + ".function.name", "the name of one of the tools", name);
  return name;
}

ChatFields::Choice ChatFields::choice() const {
  if (choice_.is_null() || choice_ == "auto")
    return {functions(), false};
  if (choice_ == "none")
    return {};
  if (tools_.empty())
    throw BadRequest("tool_choice", "expected tools with it");
  if (choice_ == "required")
    return {functions(), true};
  if (!choice_.is_object())
    wrong("tool_choice", "\"none\", \"auto\", \"required\" or an object", choice_);
  if (member(choice_, "type") == "allowed_tools")
    return allowed(choice_);
  return {{functionOf("tool_choice", choice_)}, true};
}

// {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}
ChatFields::Choice ChatFields::allowed(const Json &value) const {
  object("tool_choice", value, {"type", "allowed_tools"});
  const std::string field = "tool_choice.allowed_tools";
  const Json &allowed = member(value, "allowed_tools");
  object(field, allowed, {"mode", "tools"});
  const Json &mode = member(allowed, "mode"), &tools = member(allowed, "tools");
  if (mode != "auto" && mode != "required")
    wrong(field + ".mode", "\"auto\" or \"required\"", mode);
  if (!tools.is_array() || tools.empty() || tools.size() > kMaxTools)
    wrong(field + ".tools", "a list of 1 to " + std::to_string(kMaxTools) + " tools", tools);
  Choice choice{{}, mode == "required"};
  for (size_t i = 0; i < tools.size(); ++i)
    choice.functions.push_back(functionOf(at((field + ".tools").c_str(), i), tools[i]));
  return choice;
}

// Calls that a message has: templates take their arguments as an object, or as text.
static void checkCalls(const std::string &field, Json &message, bool asText) {
  Json &calls = message["tool_calls"];
  if (!calls.is_array())
    wrong(field, "a list of calls", calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string call = at(field.c_str(), i);
    if (!calls[i].is_object() || (calls[i].contains("type") && calls[i]["type"] != "function"))
      wrong(call, "an object of type \"function\"", calls[i]);
    if (!member(calls[i], "function").is_object())
      wrong(call + ".function", "an object", member(calls[i], "function"));
    Json &function = calls[i]["function"];
    text(call + ".function.name", member(function, "name"));
    Json arguments = member(function, "arguments");
    if (!arguments.is_string() && !arguments.is_object())
      wrong(call + ".function.arguments", "a string with a JSON object", arguments);
    if (asText && arguments.is_object()) {
      function["arguments"] = arguments.dump();
    } else if (!asText && arguments.is_string()) {
      try {
        Json read = parseJson(arguments.get_ref<const std::string &>());
        if (read.is_object())
          function["arguments"] = std::move(read);
      } catch (const BadRequest &) { // a model's slip: the template gets what it wrote
      }
    }
  }
}

void ChatFields::checkMessages(const ChatTraits &traits, const ChatTemplate &chatTemplate) {
  if (!messages_.is_array() || messages_.empty())
    wrong("messages", "a list of at least one message", messages_);
  for (size_t i = 0; i < messages_.size(); ++i) {
    Json &message = messages_[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      wrong("messages", "objects with a \"role\"", message);
    if (message["role"] == "developer" && !mentions(chatTemplate, "developer"))
      message["role"] = "system"; // the interface's newer name for it
    const std::string field = at("messages", i);
    if (member(message, "tool_calls").is_null() || message["tool_calls"].empty()) {
      message.erase("tool_calls"); // clients send what a message lacks as null
      continue;
    }
    if (message["role"] != "assistant")
      throw BadRequest(field + ".tool_calls", "expected calls in messages of the role assistant alone");
    checkCalls(field + ".tool_calls", message, traits.textArguments);
    if (!message.contains("content"))
      message["content"] = nullptr;
  }
}

// Templates have a variable of the same name, or one that turns thinking off.
void ChatFields::setEffort(Model &model) {
  if (effort_.empty())
    return;
  const ChatTemplate &chatTemplate = model.chat().chatTemplate();
  const std::initializer_list<const char *> efforts{"none", "minimal", "low", "medium", "high", "xhigh"};
  if (std::find(efforts.begin(), efforts.end(), effort_) == efforts.end())
    wrong("reasoning_effort", "none, minimal, low, medium, high or xhigh", effort_);
  if (mentions(chatTemplate, "reasoning_effort"))
    variables_["reasoning_effort"] = effort_;
  else if (mentions(chatTemplate, "enable_thinking") && effort_ == "none")
    variables_["enable_thinking"] = false;
  else
    wrong("reasoning_effort",
          mentions(chatTemplate, "enable_thinking") ? "\"none\": the model's template knows no other effort" : "none to be given: the model's template knows no efforts",
          effort_);
}

static std::vector<int32_t> marksOf(const AnswerFormat &format, const Tokenizer &tokenizer) {
  std::vector<std::string> spellings = format.tools ? format.tools->marks() : std::vector<std::string>();
  if (format.reasoning)
    for (std::string &mark : format.reasoning->marks())
      spellings.push_back(std::move(mark));
  std::vector<int32_t> ids;
  for (const std::string &spelling : spellings)
    if (const int32_t id = tokenizer.idOf(spelling); id >= 0 && tokenizer.isSpecial(id) && std::find(ids.begin(), ids.end(), id) == ids.end())
      ids.push_back(id);
  return ids;
}

// The answer has calls and nothing else; not `demanded`: calls of functions that are strict are held.
void ChatFields::holdToCalls(Model &model, CompletionRequest &request, bool demanded) const {
  if (request.constraint)
    throw BadRequest(request.constraintField, demanded ? "expected none beside a tool_choice that demands a call" : "expected none beside tools that are strict");
  const AnswerFormat &answer = request.answer;
  std::string key = std::string(demanded ? "tools " : "strict tools ") + answer.tools->name + (answer.parallel ? " parallel" : "") + (answer.reasoning ? answer.reasoning->name : "") + (answer.opened ? " opened" : "");
  for (const std::string &function : answer.functions)
    key += " " + function;
  std::vector<ToolFunction> all;
  for (const Json &tool : tools_) {
    const Json &function = tool["function"];
    all.push_back({function["name"], demanded || member(function, "strict") == true ? member(function, "parameters") : Json{{"type", "object"}}});
  }
  try {
    request.request.constraint = model.constraints().get(key + "\n" + tools_.dump(), model.grammarTokens(answer.marks), [&] {
      GrammarBuilder builder;
      return builder.build(addToolCalls(builder, answer, all, demanded));
    });
  } catch (const GrammarError &error) {
    throw BadRequest("tools", error.what());
  }
}

void ChatFields::prepare(Model &model, CompletionRequest &request) {
  const ChatTraits &traits = model.chatTraits();
  checkMessages(traits, model.chat().chatTemplate());
  for (const auto &[key, value] : variables_.items())
    if (!mentions(model.chat().chatTemplate(), key))
      throw BadRequest("chat_template_kwargs." + key, "expected variables that the model's template uses, got one that it does not mention");
  setEffort(model);
  Choice choice = this->choice();
  ChatPrompt::Options options;
  if (!choice.functions.empty()) {
    if (!traits.tools)
      throw BadRequest("tools", "expected none: how the model writes calls is not known (--tool-format)");
    request.answer.tools = traits.tools;
    request.answer.functions = std::move(choice.functions);
    for (const Json &tool : tools_)
      request.answer.types[tool["function"]["name"]] = argumentTypesOf(member(tool["function"], "parameters"));
    request.answer.parallel = parallel_;
    if (traits.takesTools)
      options.toolsJson = tools_.dump();
  }
  request.answer.reasoning = traits.reasoning;
  request.answer.showReasoning = showReasoning_;
  request.answer.marks = marksOf(request.answer, model.tokenizer());
  if (!variables_.empty())
    options.extraJson = variables_.dump();
  Json messages = messages_;
  if (traits.writesCalls && !traits.takesTools)
    messages = request.answer.tools ? messagesWithToolsTold(messages_, tools_, *request.answer.tools) : messages_;
  else if (!traits.takesTools && (request.answer.tools || speaksOfTools(messages_)))
    messages = messagesWithTools(messages_, request.answer.tools ? tools_ : Json());
  std::string rendered;
  request.request.prompt = model.encodeChat(messages.dump(), options, &rendered);
  while (!rendered.empty() && isJsonSpace(rendered.back()))
    rendered.pop_back();
  // Without variables a template that opens no answer has this of a message.
  const bool opens = traits.opensAnswer || !variables_.empty();
  request.answer.opened = traits.reasoning && opens && rendered.ends_with(traits.reasoning->open);
  if (choice.required || (strict_ && request.answer.tools))
    holdToCalls(model, request, choice.required);
}

} // namespace llmc
