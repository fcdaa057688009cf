//===- ChannelParser.h - answers that are several messages ------*- C++ -*-===//
//
// gpt-oss writes messages, each with a channel and some with a recipient (the harmony
// format). The prompt ends where the head of the first begins:
//
//   <|channel|>analysis<|message|>They ask for ...<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{...}<|call|>
//
// What is in the channel `analysis` is thought, what is for a function of the request is a
// call of it, and the rest is said. Text without a head is said, too. What comes out does not
// depend on where the text is cut.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CHAT_CHANNELPARSER_H
#define LLMC_RUNTIME_CHAT_CHANNELPARSER_H

#include "runtime/chat/AnswerPieces.h"
#include "runtime/chat/JsonScanner.h"
#include "runtime/chat/ToolFormat.h"
#include "runtime/engine/StopMatcher.h"

namespace llmc {

class ChannelParser {
public:
  struct Options {
    const std::vector<std::string> *functions = nullptr; // null: calls are not looked for
    bool reasoning = true;                               // false: what is thought is said
    bool several = true;                                 // what follows the first call is read, too
  };
  explicit ChannelParser(const Options &options);

  void feed(std::string_view text, AnswerPieces &pieces);
  /// `cut`: by a limit.
  void finish(bool cut, AnswerPieces &pieces);
  bool thinks() const { return state_ == State::Body && kind_ == AnswerPiece::Kind::Reasoning; }
  size_t calls() const { return calls_; }

private:
  enum class State { Head, Body, Call };

  void feed(char c, AnswerPieces &pieces);
  void head(char c, AnswerPieces &pieces);
  void beginMessage();
  void body(char c, AnswerPieces &pieces);
  void call(char c, AnswerPieces &pieces);
  void say(std::string text, AnswerPieces &pieces);
  void toBody(AnswerPiece::Kind kind);
  void fail(AnswerPieces &pieces);

  const Options options_;
  State state_ = State::Head;
  std::string head_; // of a message
  AnswerPiece::Kind kind_ = AnswerPiece::Kind::Content; // of a body
  StopMatcher ends_;
  std::string name_, raw_; // of a call; with its head
  JsonScanner scanner_;
  bool filled_ = false;                 // its arguments have begun
  bool said_ = false, thought_ = false; // something is
  bool apart_ = false;                  // what comes is another message's
  size_t calls_ = 0, next_ = 0;         // complete ones; the index of the next
};

} // namespace llmc

#endif // LLMC_RUNTIME_CHAT_CHANNELPARSER_H
