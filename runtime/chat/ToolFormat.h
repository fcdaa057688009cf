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

/// Empty marks are not there. White space may lie between all parts, and where a mark has some.
struct ToolFormat {
  enum class Body {
    Object,  // {"name": ..., "arguments": {...}}
    Named,   // `callOpen`, name, `separator`, {...}, `callClose`
    Tagged,  // `callOpen`, name, `separator`, each argument between marks, `callClose`
    Channels // messages with a channel and a recipient each (ChannelParser.h)
  };
  const char *name;
  std::string_view open, close; // what a call begins and ends with
  bool section = false;         // these two are around all calls of an answer, not each
  bool list = false;            // the calls of a section are the items of a JSON list
  Body body = Body::Object;
  std::string_view callOpen = {}, callClose = {}; // within the two above
  std::string_view separator = {}; // behind the name; empty: it ends where no letter of a name follows
  std::string_view idMark = {};    // of Named: behind the name an id may follow, which is skipped
  std::string_view idPrefix = {};  // the id is a call's: this, the name, `idMark` and what follows
  std::string_view keyOpen = {}, keyClose = {}, valueOpen = {}, valueClose = {}; // of Tagged, around each argument
  std::string_view jsonOpen = {};  // of Tagged: in place of `valueOpen` for all but strings
  std::string_view pad = {};       // of Tagged: inside a value, in front and behind
  bool bare = false;            // an answer that begins with an object is a call, without any mark
  bool together = true;         // an answer may have several calls
  std::string_view argumentsKey = "arguments"; // as the model is asked to write it; both this and "parameters" are read
  unsigned idLength = 0;        // of ids that the template takes; 0: any

  /// All marks that are there, each once, and what may be a token in them: <...>.
  std::vector<std::string> marks() const;
};

std::span<const ToolFormat> toolFormats();
/// Null if there is none of this name.
const ToolFormat *findToolFormat(std::string_view name);

/// How models mark what they think before they answer.
struct ReasoningFormat {
  const char *name;
  std::string_view open, close;
  bool channels = false; // ChannelParser.h reads it

  std::vector<std::string> marks() const;
};
std::span<const ReasoningFormat> reasoningFormats();
const ReasoningFormat *findReasoningFormat(std::string_view name);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TOOLFORMAT_H
