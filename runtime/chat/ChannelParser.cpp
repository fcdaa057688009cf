//===- ChannelParser.cpp --------------------------------------------------===//
#include "runtime/chat/ChannelParser.h"
#include "runtime/chat/ToolCallParser.h"

#include <algorithm>
#include <utility>

namespace llmc {

using Kind = AnswerPiece::Kind;

static constexpr size_t kMaxHead = 300; // bytes
static constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessage = "<|message|>", kRecipient = "to=", kFunctions = "functions.";
static constexpr std::string_view kEnds[] = {"<|end|>", "<|call|>", "<|return|>"};

ChannelParser::ChannelParser(const Options &options) : options_(options) {}

void ChannelParser::feed(std::string_view text, AnswerPieces &pieces) {
  for (char c : text)
    if (options_.several || !calls_)
      feed(c, pieces);
}

void ChannelParser::feed(char c, AnswerPieces &pieces) {
  switch (state_) {
  case State::Head:
    return head(c, pieces);
  case State::Body:
    return body(c, pieces);
  case State::Call:
    return call(c, pieces);
  }
}

static std::string_view withoutSpace(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

/// A word behind a mark: up to white space or the next mark.
static std::string wordBehind(std::string_view head, std::string_view mark) {
  const size_t at = head.find(mark);
  if (at == head.npos)
    return {};
  const std::string_view rest = head.substr(at + mark.size());
  return std::string(rest.substr(0, rest.find_first_of(" \t\r\n<")));
}

/// What may still become the head of a message, or what ends the one before.
static bool mayBeHead(std::string_view text) {
  if (std::ranges::any_of(kEnds, [&](std::string_view end) { return end.starts_with(text); }))
    return true;
  for (std::string_view begin : {kStart, kChannel, kRecipient})
    if (begin.starts_with(text.substr(0, begin.size())))
      return text.size() < kMaxHead;
  return false;
}

void ChannelParser::head(char c, AnswerPieces &pieces) {
  head_ += c;
  const std::string_view text = withoutSpace(head_);
  if (std::ranges::find(kEnds, text) != std::end(kEnds)) {
    head_.clear();
  } else if (!mayBeHead(text)) {
    toBody(Kind::Content);
    for (char other : std::exchange(head_, {}))
      feed(other, pieces);
  } else if (text.ends_with(kMessage)) {
    beginMessage();
  }
}

void ChannelParser::beginMessage() {
  const std::string head = std::exchange(head_, {});
  const std::string channel = wordBehind(head, kChannel), recipient = wordBehind(head, kRecipient);
  const bool function = options_.functions && recipient.starts_with(kFunctions) &&
                        std::find(options_.functions->begin(), options_.functions->end(), recipient.substr(kFunctions.size())) != options_.functions->end();
  if (function) {
    name_ = recipient.substr(kFunctions.size());
    raw_ = head;
    scanner_ = {};
    filled_ = false;
    state_ = State::Call;
    return;
  }
  toBody(channel == "analysis" && recipient.empty() && options_.reasoning ? Kind::Reasoning : Kind::Content);
  if (!recipient.empty())
    raw_ = head; // for what the request has not: said as it is
}

void ChannelParser::toBody(Kind kind) {
  kind_ = kind;
  apart_ = true;
  raw_.clear();
  std::vector<std::string> marks{std::string(kStart), std::string(kChannel)};
  marks.insert(marks.end(), std::begin(kEnds), std::end(kEnds));
  ends_ = StopMatcher(marks);
  state_ = State::Body;
}

void ChannelParser::body(char c, AnswerPieces &pieces) {
  say(ends_.feed(std::string_view(&c, 1)), pieces);
  if (!ends_.matched())
    return;
  const std::string_view mark = ends_.match();
  head_ = mark == kStart || mark == kChannel ? mark : std::string_view();
  state_ = State::Head;
}

// Messages of a kind are lines of their own.
void ChannelParser::say(std::string text, AnswerPieces &pieces) {
  if (text.empty())
    return;
  text.insert(0, std::exchange(raw_, {}));
  bool &any = kind_ == Kind::Reasoning ? thought_ : said_;
  if (std::exchange(apart_, false) && any)
    text.insert(0, "\n");
  any = true;
  addPiece(pieces, {kind_, std::move(text), 0, {}});
}

void ChannelParser::call(char c, AnswerPieces &pieces) {
  if (!filled_ && isJsonSpace(c)) {
    raw_ += c;
    return;
  }
  const JsonScanner::Result result = filled_ || c == '{' ? scanner_.feed(c) : JsonScanner::Result::Bad;
  if (result == JsonScanner::Result::Bad) {
    fail(pieces);
    return feed(c, pieces);
  }
  raw_ += c;
  if (!std::exchange(filled_, true))
    addPiece(pieces, {Kind::Call, name_, next_++, newCallId(*findToolFormat("gpt-oss"))});
  addPiece(pieces, {Kind::Arguments, std::string(1, c), next_ - 1, {}});
  if (result == JsonScanner::Result::More)
    return;
  ++calls_;
  state_ = State::Head;
}

// What was read of a call is said.
void ChannelParser::fail(AnswerPieces &pieces) {
  if (filled_)
    addPiece(pieces, {Kind::Failed, {}, next_ - 1, {}});
  std::string text = std::exchange(raw_, {});
  toBody(Kind::Content);
  say(std::move(text), pieces);
}

void ChannelParser::finish(bool cut, AnswerPieces &pieces) {
  if (!options_.several && calls_)
    return;
  if (state_ == State::Call && (!cut || !filled_))
    fail(pieces);
  if (state_ == State::Head && (withoutSpace(head_).empty() ? !said_ && !thought_ && !next_ : !withoutSpace(head_).starts_with(kStart))) {
    const std::string text = std::exchange(head_, {});
    toBody(Kind::Content);
    say(text, pieces);
  }
  if (state_ == State::Body)
    say(ends_.flush(), pieces);
}

} // namespace llmc
