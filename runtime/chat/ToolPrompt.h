//===- ToolPrompt.h - tools for templates that know of none -----*- C++ -*-===//
//
// The tools become text of the system message, and where the template does not write them
// calls and their results text of the messages, in the format `hermes`, which most models
// have seen.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_TOOLPROMPT_H
#define LLMC_RUNTIME_CHAT_TOOLPROMPT_H

#include <nlohmann/json.hpp>

namespace llmc {

struct ToolFormat;

/// The messages of a request, a list of objects with a role, without the roles and fields of tools. `tools`: a list, or null.
nlohmann::ordered_json messagesWithTools(const nlohmann::ordered_json &messages, const nlohmann::ordered_json &tools);
/// The messages as they are, and the tools in the first: of a template that writes calls, in this format.
nlohmann::ordered_json messagesWithToolsTold(const nlohmann::ordered_json &messages, const nlohmann::ordered_json &tools, const ToolFormat &format);
/// True if a message calls a function or has the result of a call.
bool speaksOfTools(const nlohmann::ordered_json &messages);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TOOLPROMPT_H
