//===- ToolFormat.h - how models write calls of functions -------*- C++ -*-===//
//
// One description for each way. The parser of answers (ToolCallParser.h) and the
// grammar that makes a model write calls (ToolGrammar.h) are both made of it, so that
// what is asked for is what is understood. docs/tools.md shows each.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_TOOLFORMAT_H
#define LLMC_RUNTIME_CHAT_TOOLFORMAT_H

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

/// Empty marks are not there. White space may lie between all parts.
struct ToolFormat {
  enum class Body {
    Object, // {"name": ..., "arguments": {...}}
    Named   // name, `separator`, {...}
  };
  const char *name;
  std::string_view open, close; // what a call begins and ends with
  bool section = false;         // these two are around all calls of an answer, not each
  bool list = false;            // the calls of a section are the items of a JSON list
  Body body = Body::Object;
  std::string_view separator = {}; // of Named
  std::string_view idMark = {};    // of Named: behind the name an id may follow, which is skipped
  bool bare = false;            // an answer that begins with an object is a call, without any mark
  bool together = true;         // an answer may have several calls
  std::string_view argumentsKey = "arguments"; // as the model is asked to write it; both this and "parameters" are read
  unsigned idLength = 0;        // of ids that the template takes; 0: any

  /// All marks that are there, each once.
  std::vector<std::string> marks() const;
};

std::span<const ToolFormat> toolFormats();
/// Null if there is none of this name.
const ToolFormat *findToolFormat(std::string_view name);

/// How models mark what they think before they answer.
struct ReasoningFormat {
  const char *name;
  std::string_view open, close;
};
std::span<const ReasoningFormat> reasoningFormats();
const ReasoningFormat *findReasoningFormat(std::string_view name);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TOOLFORMAT_H
