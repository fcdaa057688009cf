//===- ResponsesInput.h - items of a conversation as messages ---*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_RESPONSESINPUT_H
#define LLMC_RUNTIME_TOOL_RESPONSESINPUT_H

#include "runtime/tool/JsonFields.h"

namespace llmc {

/// Messages of a chat of "input": a text, or a list of messages, calls of functions, their results and thoughts. Throws
/// BadRequest for what is none of these.
nlohmann::ordered_json messagesOfInput(const nlohmann::ordered_json &input);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_RESPONSESINPUT_H
