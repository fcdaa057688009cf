//===- AnswerParser.h - the text of an answer, in its parts -----*- C++ -*-===//
//
// What is thought, what is said and which functions are called.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_ANSWERPARSER_H
#define LLMC_RUNTIME_CHAT_ANSWERPARSER_H

#include "runtime/chat/ChannelParser.h"
#include "runtime/chat/ReasoningSplitter.h"
#include "runtime/chat/ToolCallParser.h"

#include <cstdint>
#include <memory>

namespace llmc {

/// What to look for in the answers to a request.
struct AnswerFormat {
  const ToolFormat *tools = nullptr; // null: calls are not looked for
  std::vector<std::string> functions; // that may be called
  FunctionTypes types;                // of their arguments, as far as they are known
  bool parallel = true;               // false: the answer ends with its first call
  const ReasoningFormat *reasoning = nullptr; // null: what is thought is content
  bool opened = false;                        // the prompt ends with the mark that begins it
  bool showReasoning = true;                  // false: it is left out
  std::vector<int32_t> marks;                 // special tokens that are text here

  bool plain() const { return !tools && !reasoning; }
  /// ChannelParser.h reads all of it.
  bool channels() const { return (tools && tools->body == ToolFormat::Body::Channels) || (reasoning && reasoning->channels); }
};

class AnswerParser {
public:
  /// `format` outlives it.
  explicit AnswerParser(const AnswerFormat &format);

  void feed(std::string_view text, AnswerPieces &pieces);
  /// `cut`: by a limit.
  void finish(bool cut, AnswerPieces &pieces);
  bool thinks() const { return channels_ ? channels_->thinks() : reasoning_ && reasoning_->inside(); }
  size_t calls() const { return channels_ ? channels_->calls() : tools_ ? tools_->calls() : 0; }
  /// The answer should end here.
  bool complete() const { return !format_.parallel && calls() > 0; }

private:
  void byChannels(AnswerPieces read, AnswerPieces &pieces);
  void hand(const std::string &thought, const std::string &rest, AnswerPieces &pieces);

  const AnswerFormat &format_;
  std::optional<ChannelParser> channels_; // in place of the two below
  std::optional<ReasoningSplitter> reasoning_;
  std::optional<ToolCallParser> tools_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_ANSWERPARSER_H
