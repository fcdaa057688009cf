//===- ToolCallParser.cpp -------------------------------------------------===//
#include "runtime/chat/ToolCallParser.h"

#include <algorithm>
#include <atomic>
#include <random>

namespace llmc {

using Kind = AnswerPiece::Kind;

ToolCallParser::ToolCallParser(const ToolFormat &format, const std::vector<std::string> &functions, const FunctionTypes &types, bool several)
    : format_(format), functions_(functions), types_(types), several_(several) {
  toText();
}

void ToolCallParser::feed(std::string_view text, AnswerPieces &pieces) {
  for (char c : text)
    if (several_ || !calls_)
      feed(c, pieces);
}

void ToolCallParser::feed(char c, AnswerPieces &pieces) {
  switch (state_) {
  case State::Text:
    return text(c, pieces);
  case State::Before:
    return before(c, pieces);
  case State::Body:
    return body(c, pieces);
  case State::Close:
    return close(c, pieces);
  }
}

void ToolCallParser::text(char c, AnswerPieces &pieces) {
  if (!begun_ && !isJsonSpace(c)) {
    begun_ = true;
    if (format_.bare && c == '{') {
      begin({});
      beginBody();
      return body(c, pieces);
    }
  }
  content(opens_.feed(std::string_view(&c, 1)), pieces);
  if (!opens_.matched())
    return;
  begin(std::string(format_.open));
  if (format_.section)
    state_ = State::Before;
  else
    beginBody();
}

// White space at its end waits: it is no content if a call follows.
void ToolCallParser::content(std::string_view text, AnswerPieces &pieces) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == text.npos) {
    space_ += text;
    return;
  }
  afterCall_ = false;
  addPiece(pieces, {Kind::Content, space_.append(text.substr(0, last + 1)), 0, {}});
  space_ = text.substr(last + 1);
}

void ToolCallParser::begin(std::string text) {
  raw_ = std::exchange(space_, {}) + text;
  lead_.clear();
  inList_ = false;
  item_ = !format_.list;
}

void ToolCallParser::beginBody() {
  body_.emplace(format_, functions_, types_);
  handed_ = false;
  state_ = State::Body;
}

void ToolCallParser::toText() {
  state_ = State::Text;
  opens_ = StopMatcher({std::string(format_.open)});
  raw_.clear();
}

// In a section, where a call may begin, or the section end behind one.
void ToolCallParser::before(char c, AnswerPieces &pieces) {
  const bool list = format_.list;
  if (isJsonSpace(c) && lead_.empty()) {
    raw_ += c;
  } else if (list && c == (inList_ ? ',' : '[') && !item_) {
    raw_ += c;
    inList_ = item_ = true;
  } else if (list && c == ']' && inList_ && !item_) {
    toClose(format_.close, State::Text);
  } else if (list && !item_) {
    fail(pieces);
    text(c, pieces);
  } else {
    lead_ += c;
    const bool end = !item_ && format_.close.starts_with(lead_), call = format_.callOpen.starts_with(lead_);
    if (end && call)
      return; // may be either
    const std::string lead = std::exchange(lead_, {});
    end ? toClose(format_.close, State::Text) : beginBody();
    feed(lead, pieces);
  }
}

void ToolCallParser::body(char c, AnswerPieces &pieces) {
  const CallBody::Result result = body_->feed(c);
  if (result == CallBody::Result::Bad) {
    fail(pieces);
    return text(c, pieces); // may begin the next mark
  }
  raw_ += c;
  if (std::string arguments = body_->takeArguments(); !arguments.empty()) {
    if (!std::exchange(handed_, true))
      addPiece(pieces, {Kind::Call, body_->name(), next_++, callIdOf(format_, body_->name(), body_->id(), ids_)});
    addPiece(pieces, {Kind::Arguments, std::move(arguments), next_ - 1, {}});
  }
  if (result == CallBody::Result::More)
    return;
  const std::string rest = body_->takeRest();
  ++calls_;
  afterCall_ = true;
  handed_ = item_ = false;
  raw_.clear();
  const bool marked = format_.body == ToolFormat::Body::Named && !format_.callClose.empty(); // of others the body has it
  const State behind = format_.section ? State::Before : State::Text;
  if (marked)
    toClose(format_.callClose, behind);
  else
    format_.section ? void(state_ = State::Before) : toClose(format_.close, State::Text);
  feed(rest, pieces);
}

void ToolCallParser::toClose(std::string_view mark, State behind) {
  close_.clear();
  closing_ = MarkMatcher(mark);
  behind_ = behind;
  state_ = State::Close;
  if (mark.empty())
    toText();
}

// A mark that is left out is forgiven.
void ToolCallParser::close(char c, AnswerPieces &pieces) {
  if (close_.empty() && isJsonSpace(c))
    return;
  close_ += c;
  const MarkMatcher::Result result = closing_.feed(c);
  if (result == MarkMatcher::Result::More)
    return;
  behind_ == State::Text ? toText() : void(state_ = behind_);
  if (result == MarkMatcher::Result::Bad)
    feed(std::exchange(close_, {}), pieces);
}

// What was read of a call is content.
void ToolCallParser::fail(AnswerPieces &pieces) {
  if (std::exchange(handed_, false))
    addPiece(pieces, {Kind::Failed, {}, next_ - 1, {}});
  content(raw_, pieces);
  toText();
}

void ToolCallParser::finish(bool cut, AnswerPieces &pieces) {
  if (state_ == State::Body && (!cut || !handed_))
    fail(pieces);
  raw_ += state_ == State::Before ? std::exchange(lead_, {}) : std::string();
  if (state_ == State::Before && raw_.find_first_not_of(" \t\r\n") != std::string::npos)
    fail(pieces);
  if (state_ == State::Text)
    content(opens_.flush(), pieces);
  if (!afterCall_ && !space_.empty())
    addPiece(pieces, {Kind::Content, std::exchange(space_, {}), 0, {}});
}

std::string newCallId(const ToolFormat &format) {
  static constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  static const uint64_t process = [] {
    std::random_device random;
    return uint64_t(random()) << 32 | random();
  }();
  static std::atomic<uint64_t> next{0};
  std::mt19937_64 generator(process + next++);
  std::string id = format.idLength ? "" : "call_";
  for (unsigned i = 0; i < (format.idLength ? format.idLength : 24); ++i)
    id += kLetters[generator() % kLetters.size()];
  return id;
}

std::string callIdOf(const ToolFormat &format, const std::string &function, const std::string &written, std::vector<std::string> &taken) {
  if (format.idPrefix.empty())
    return newCallId(format);
  std::string id = written;
  for (size_t i = taken.size(); id.empty() || std::find(taken.begin(), taken.end(), id) != taken.end(); ++i)
    id = std::string(format.idPrefix).append(function).append(format.idMark).append(std::to_string(i));
  taken.push_back(id);
  return id;
}

} // namespace llmc
