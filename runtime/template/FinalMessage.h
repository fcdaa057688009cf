//===- FinalMessage.h - a conversation to be continued ----------*- C++ -*-===//
//
// What apply_chat_template(continue_final_message=...) does: the rendering ends
// where the text of the last message does, so that the model goes on with it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_FINALMESSAGE_H
#define LLMC_RUNTIME_TEMPLATE_FINALMESSAGE_H

#include "runtime/template/ChatTemplate.h"

namespace llmc {

class FinalMessage {
public:
  /// `field` of the last of `messages`, a list of dicts: "content", or where a template has its text otherwise
  /// ("reasoning_content"). A text or a list of parts, of which the last text counts. Throws Error where there is no
  /// such text, and where the template does not speak of such a field.
  FinalMessage(const ChatTemplate &chatTemplate, const jinja::Value &messages, const std::string &field);

  /// The messages with a tag behind the text: what the template is given.
  const jinja::Value &messages() const { return tagged; }
  /// What was rendered of them up to the tag. White space behind the text goes if the template drops it. Throws Error
  /// where the text is not in it as it was given.
  std::string cut(const std::string &rendered) const;

private:
  std::string where; // for messages: "messages[2].content"
  std::string text;
  jinja::Value tagged;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TEMPLATE_FINALMESSAGE_H
