//===- AnswerParser.cpp ---------------------------------------------------===//
#include "runtime/chat/AnswerParser.h"

namespace llmc {

using Kind = AnswerPiece::Kind;

AnswerParser::AnswerParser(const AnswerFormat &format) : format_(format) {
  if (format.reasoning)
    reasoning_.emplace(*format.reasoning, format.opened);
  if (format.tools)
    tools_.emplace(*format.tools, format.functions, format.parallel);
}

void AnswerParser::feed(std::string_view text, AnswerPieces &pieces) {
  if (!reasoning_)
    return hand({}, std::string(text), pieces);
  std::string thought, rest;
  reasoning_->feed(text, thought, rest);
  hand(thought, rest, pieces);
}

void AnswerParser::hand(const std::string &thought, const std::string &rest, AnswerPieces &pieces) {
  if (!thought.empty() && format_.showReasoning)
    addPiece(pieces, {Kind::Reasoning, thought, 0, {}});
  if (tools_)
    tools_->feed(rest, pieces);
  else if (!rest.empty())
    addPiece(pieces, {Kind::Content, rest, 0, {}});
}

void AnswerParser::finish(bool cut, AnswerPieces &pieces) {
  if (reasoning_) {
    std::string thought, rest;
    reasoning_->finish(thought, rest);
    hand(thought, rest, pieces);
  }
  if (tools_)
    tools_->finish(cut, pieces);
}

} // namespace llmc
