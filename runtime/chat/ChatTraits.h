//===- ChatTraits.h - what a chat template can do ---------------*- C++ -*-===//
//
// Found out by rendering small conversations: how a call is written is how its text
// is read back.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_CHATTRAITS_H
#define LLMC_RUNTIME_CHAT_CHATTRAITS_H

#include "runtime/chat/ToolFormat.h"
#include "runtime/template/ChatTemplate.h"

namespace llmc {

struct ChatTraits {
  bool takesTools = false;           // it shows the model the tools that it is given; else they are told as ToolPrompt.h does
  bool writesCalls = false;          // it writes calls and their results as the model does, whether it takes tools or not
  const ToolFormat *tools = nullptr; // how it writes calls; null: in none of the known ways
  bool textArguments = false;        // it wants a call's arguments as JSON text, not as an object
  const ReasoningFormat *reasoning = nullptr; // of what the model thinks; null: its template knows no such thing
  bool opensAnswer = false;          // it writes something in front of an answer
};

/// `bos`, `eos`: the spellings of these tokens.
ChatTraits traitsOf(const ChatTemplate &chatTemplate, const std::string &bos, const std::string &eos);

/// Whether the template speaks of a variable or field of this name.
bool mentions(const ChatTemplate &chatTemplate, std::string_view name);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_CHATTRAITS_H
