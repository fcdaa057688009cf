//===- ToolGrammar.h - answers that call functions, as a grammar -*- C++ -*-===//
//
// Made of the same description as the parser (ToolFormat.h): whatever it allows, the
// parser reads as calls with arguments of their schemas.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_TOOLGRAMMAR_H
#define LLMC_RUNTIME_CHAT_TOOLGRAMMAR_H

#include "runtime/chat/AnswerParser.h"
#include "runtime/grammar/GrammarBuilder.h"

#include <nlohmann/json.hpp>

namespace llmc {

/// A function that may be called.
struct ToolFunction {
  std::string name;
  nlohmann::ordered_json parameters; // a schema; null: it has none
};

/// Text that calls functions of `answer.functions`, at least one and no other: several where the format and `answer.parallel`
/// allow it. Not `demanded`: any text, in which what begins as a call is one of these. What the model thinks before is free. Throws
/// GrammarError for a schema that is not supported; it begins with the place in it.
Expression addToolCalls(GrammarBuilder &builder, const AnswerFormat &answer, const std::vector<ToolFunction> &functions, bool demanded = true);

/// The shortest texts that end with `mark`, whose first character is at no other place in it.
Expression addTextUntil(GrammarBuilder &builder, std::string_view mark);
/// The texts that do not have it.
Expression addTextWithout(GrammarBuilder &builder, std::string_view mark);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TOOLGRAMMAR_H
