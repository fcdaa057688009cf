//===- AnswerParser.cpp ---------------------------------------------------===//
#include "runtime/chat/AnswerParser.h"

namespace llmc {

using Kind = AnswerPiece::Kind;

AnswerParser::AnswerParser(const AnswerFormat &format) : format_(format) {
  if (format.channels()) {
    channels_.emplace(ChannelParser::Options{format.tools ? &format.functions : nullptr, format.reasoning != nullptr, format.parallel});
    return;
  }
  if (format.reasoning)
    reasoning_.emplace(*format.reasoning, format.opened);
  if (format.tools)
    tools_.emplace(*format.tools, format.functions, format.types, format.parallel);
}

void AnswerParser::feed(std::string_view text, AnswerPieces &pieces) {
  if (channels_) {
    AnswerPieces read;
    channels_->feed(text, read);
    return byChannels(std::move(read), pieces);
  }
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

void AnswerParser::byChannels(AnswerPieces read, AnswerPieces &pieces) {
  for (AnswerPiece &piece : read)
    if (piece.kind != Kind::Reasoning || format_.showReasoning)
      addPiece(pieces, std::move(piece));
}

void AnswerParser::finish(bool cut, AnswerPieces &pieces) {
  if (channels_) {
    AnswerPieces read;
    channels_->finish(cut, read);
    return byChannels(std::move(read), pieces);
  }
  if (reasoning_) {
    std::string thought, rest;
    reasoning_->finish(thought, rest);
    hand(thought, rest, pieces);
  }
  if (tools_)
    tools_->finish(cut, pieces);
}

} // namespace llmc
