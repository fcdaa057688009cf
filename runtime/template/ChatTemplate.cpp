#include "runtime/template/ChatTemplate.h"

#include "llmc/Support/Error.h"
#include "runtime/template/ContentParts.h"
#include "runtime/template/FinalMessage.h"
#include "runtime/template/Interpreter.h"
#include "runtime/tokenizer/Utf8.h"

using namespace llmc;
using namespace llmc::jinja;

ChatTemplate ChatTemplate::parse(std::string_view source) {
  ChatTemplate result;
  result.text = std::make_shared<const std::string>(source);
  result.ast = std::make_shared<const Ast>(jinja::parse(*result.text));
  return result;
}

static std::tm localNow() {
  std::time_t seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  return now;
}

std::string ChatTemplate::render(const Value &context, const std::tm &now) const {
  const Limits limits;
  return Runtime(*ast, context, now, limits).run();
}

std::string ChatTemplate::render(const Value &context) const { return render(context, localNow()); }

/// What a template sees beside the messages.
static Dict variables(const ChatOptions &options) {
  Dict context;
  context.set(Value("tools"), options.toolsJson.empty() ? Value::none() : Value::fromJson(options.toolsJson, "tools"));
  context.set(Value("documents"), Value::none());
  context.set(Value("add_generation_prompt"), Value(options.addGenerationPrompt));
  if (!options.bosToken.empty())
    context.set(Value("bos_token"), Value(options.bosToken));
  if (!options.eosToken.empty())
    context.set(Value("eos_token"), Value(options.eosToken));
  if (options.extraJson.empty())
    return context;
  Value extra = Value::fromJson(options.extraJson, "chat template variables");
  if (!extra.dict())
    throw Error(std::string("chat template variables: expected a JSON object, got a ") + extra.typeName());
  for (const auto &[key, value] : extra.dict()->items())
    context.set(key, value);
  return context;
}

static std::string renderWith(const ChatTemplate &chatTemplate, Value messages, const Dict &others, const ChatOptions &options) {
  Dict context;
  context.set(Value("messages"), std::move(messages));
  for (const auto &[key, value] : others.items())
    context.set(key, value);
  return chatTemplate.render(Value::dict(std::move(context)), options.now ? *options.now : localNow());
}

std::string llmc::renderChat(const ChatTemplate &chatTemplate, const std::vector<ChatMessage> &messages,
                             const ChatOptions &options) {
  std::vector<Value> items;
  for (const ChatMessage &message : messages) {
    Dict dict;
    dict.set(Value("role"), Value(utf8::sanitize(message.role)));
    dict.set(Value("content"), Value(utf8::sanitize(message.content)));
    items.push_back(Value::dict(std::move(dict)));
  }
  return renderChat(chatTemplate, Value::list(std::move(items)), options);
}

std::string llmc::renderChat(const ChatTemplate &chatTemplate, const Value &messages, const ChatOptions &options) {
  if (!messages.list())
    throw Error(std::string("messages: expected a JSON list, got a ") + messages.typeName());
  const Dict others = variables(options);
  auto render = [&](Value given) { return renderWith(chatTemplate, std::move(given), others, options); };
  if (options.continueFinalMessage.empty())
    return renderWithParts(messages, options.textOnly, render);
  if (options.addGenerationPrompt)
    throw Error("messages: expected either an answer that is opened or a last message that is continued, got both");
  const FinalMessage last(chatTemplate, messages, options.continueFinalMessage);
  return last.cut(renderWithParts(last.messages(), options.textOnly, render));
}

std::string llmc::renderChatJson(const ChatTemplate &chatTemplate, std::string_view messagesJson,
                                 const ChatOptions &options) {
  return renderChat(chatTemplate, Value::fromJson(messagesJson, "messages"), options);
}
