//===- ChatTemplate.h - a model's chat template -----------------*- C++ -*-===//
//
// A Jinja engine: renders the templates of tokenizer_config.json and GGUF byte for
// byte as jinja2 does within transformers (apply_chat_template): its sandbox,
// trim_blocks, lstrip_blocks, loop controls, tojson without ASCII escapes,
// raise_exception, strftime_now. What the template uses and the engine lacks is an
// Error that names it, with line and column (docs/chat-templates.md).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_CHATTEMPLATE_H
#define LLMC_RUNTIME_TEMPLATE_CHATTEMPLATE_H

#include "runtime/template/Value.h"

#include <ctime>
#include <memory>
#include <optional>

namespace llmc {

namespace jinja {
struct Ast;
}

class ChatTemplate {
public:
  /// Throws Error "chat template:LINE:COLUMN: expected ..., got ...".
  static ChatTemplate parse(std::string_view source);

  /// Renders with the variables in `context`, a dict. `now` is what strftime_now
  /// shows. Throws Error with line and column: raise_exception, a use of an
  /// undefined value, a limit (jinja::Limits). May be called from several threads.
  std::string render(const jinja::Value &context, const std::tm &now) const;
  std::string render(const jinja::Value &context) const; // now: local time

  const std::string &source() const { return *text; }

private:
  std::shared_ptr<const std::string> text;
  std::shared_ptr<const jinja::Ast> ast;
};

struct ChatMessage {
  std::string role, content; // UTF-8; malformed bytes become U+FFFD
};

struct ChatOptions {
  bool addGenerationPrompt = true;
  /// Spellings; an empty one is not defined in the template.
  std::string bosToken, eosToken;
  std::string toolsJson;       // a JSON list, or empty for none
  std::string extraJson;       // a JSON object with further variables, or empty
  bool textOnly = true;        // a part of a content that is no text is an Error
  /// Ends with the text of the last message, for the model to go on with it (FinalMessage.h): the field that has it,
  /// mostly "content"; empty: no. Not with addGenerationPrompt.
  std::string continueFinalMessage = {};
  std::optional<std::tm> now;  // default: local time
};

std::string renderChat(const ChatTemplate &chatTemplate, const std::vector<ChatMessage> &messages,
                       const ChatOptions &options);
/// With messages as the list that a chat request carries (tool calls, parts;
/// ContentParts.h says what becomes of those), and as its JSON.
std::string renderChat(const ChatTemplate &chatTemplate, const jinja::Value &messages, const ChatOptions &options);
std::string renderChatJson(const ChatTemplate &chatTemplate, std::string_view messagesJson, const ChatOptions &options);

} // namespace llmc

#endif // LLMC_RUNTIME_TEMPLATE_CHATTEMPLATE_H
