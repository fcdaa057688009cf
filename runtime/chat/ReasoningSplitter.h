//===- ReasoningSplitter.h - parts what is thought from what is said -*- C++ -*-===//
//
// A model that thinks begins its answer with it, between marks ("<think>"), or goes on
// after the first of them where its template has written that. What the pieces are does
// not depend on where the text is cut. White space around the marks belongs to them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_REASONINGSPLITTER_H
#define LLMC_RUNTIME_CHAT_REASONINGSPLITTER_H

#include "runtime/chat/ToolFormat.h"
#include "runtime/engine/StopMatcher.h"

namespace llmc {

class ReasoningSplitter {
public:
  /// `opened`: the prompt ends with the first mark. `format` outlives it.
  ReasoningSplitter(const ReasoningFormat &format, bool opened);

  /// Appends to both what is certain.
  void feed(std::string_view text, std::string &reasoning, std::string &rest);
  void finish(std::string &reasoning, std::string &rest);
  /// True while what comes is thought.
  bool inside() const { return state_ == State::Inside; }

private:
  enum class State { Start, Inside, Behind, Rest };

  void feed(char c, std::string &reasoning, std::string &rest);
  void inside(char c, std::string &reasoning);

  const ReasoningFormat &format_;
  State state_;
  StopMatcher close_;
  std::string held_;   // at the start: what may be the first mark
  std::string space_;  // white space behind what is thought
  bool any_ = false;   // something is
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_REASONINGSPLITTER_H
