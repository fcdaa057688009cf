//===- ToolCallParser.h - finds calls in an answer as it comes --*- C++ -*-===//
//
// Text goes in in pieces and comes out as content and calls; what comes out does not
// depend on where the pieces are cut. Held back is only what may still become the mark
// of a call, and white space, which is no content beside calls.
//
// A call is handed on as soon as its name is known and its arguments begin, and these as
// they are written.
// What turns out to be no call (no JSON, an unknown function, an end that does not come)
// is content, the whole of its text: nothing is lost. If it was handed on already, a
// piece says that it failed.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_TOOLCALLPARSER_H
#define LLMC_RUNTIME_CHAT_TOOLCALLPARSER_H

#include "runtime/chat/AnswerPieces.h"
#include "runtime/chat/CallBody.h"
#include "runtime/engine/StopMatcher.h"

#include <optional>

namespace llmc {

class ToolCallParser {
public:
  /// `functions`: names that may be called; `types`: of their arguments. All outlive it. `several`: what follows the first call is
  /// read, too. Not for Channels.
  ToolCallParser(const ToolFormat &format, const std::vector<std::string> &functions, const FunctionTypes &types, bool several = true);

  void feed(std::string_view text, AnswerPieces &pieces);
  /// The answer ends. `cut`: by a limit, so that a call that has begun is as good as a text that is cut.
  void finish(bool cut, AnswerPieces &pieces);
  /// Calls that are complete.
  size_t calls() const { return calls_; }

private:
  enum class State { Text, Before, Body, Close };

  void feed(char c, AnswerPieces &pieces);
  void text(char c, AnswerPieces &pieces);
  void before(char c, AnswerPieces &pieces);
  void body(char c, AnswerPieces &pieces);
  void close(char c, AnswerPieces &pieces);
  void content(std::string_view text, AnswerPieces &pieces);
  void begin(std::string text);
  void beginBody();
  void toText();
  void toClose(std::string_view mark, State behind);
  void fail(AnswerPieces &pieces);

  const ToolFormat &format_;
  const std::vector<std::string> &functions_;
  const FunctionTypes &types_;
  const bool several_;
  State state_ = State::Text;
  StopMatcher opens_;  // finds the mark of a call
  std::string space_;  // white space behind content
  std::string raw_;    // text of the call that is being read, with what leads to it
  std::string lead_;   // in a section: what may begin the next call, or the mark at its end
  std::string close_;  // what is there of the mark behind a call
  MarkMatcher closing_;
  State behind_ = State::Text; // that mark
  std::vector<std::string> ids_; // of calls, that the model wrote
  std::optional<CallBody> body_;
  bool begun_ = false;              // something other than white space has come
  bool inList_ = false, item_ = false; // within the list; an item has to follow
  bool handed_ = false;             // the call that is being read
  bool afterCall_ = false;          // no content has come since the last one
  size_t calls_ = 0, next_ = 0;     // complete ones; the index of the next
};

/// An id that no other call has, as the format wants it.
std::string newCallId(const ToolFormat &format);
/// The same of a format with names in its ids: what the model wrote, or the next that is none of `taken`.
std::string callIdOf(const ToolFormat &format, const std::string &function, const std::string &written, std::vector<std::string> &taken);

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_TOOLCALLPARSER_H
