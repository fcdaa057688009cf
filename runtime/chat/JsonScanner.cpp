//===- JsonScanner.cpp ----------------------------------------------------===//
#include "runtime/chat/JsonScanner.h"
#include "llmc/Support/HexDigit.h"

namespace llmc {

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

JsonScanner::Result JsonScanner::feed(char c) {
  switch (state_) {
  case State::String:
  case State::Escape:
  case State::Hex:
    return string(c);
  case State::Word:
    if (c != *word_)
      return Result::Bad;
    return *++word_ ? Result::More : complete();
  case State::Minus:
  case State::Zero:
  case State::Digits:
  case State::Point:
  case State::Fraction:
  case State::Exponent:
  case State::Sign:
  case State::Power:
    return number(c);
  default:
    break;
  }
  if (isJsonSpace(c))
    return Result::More;
  switch (state_) {
  case State::FirstItem:
    return c == ']' ? (--depth_, complete()) : value(c);
  case State::FirstKey:
    if (c == '}')
      return --depth_, complete();
    [[fallthrough]];
  case State::Key:
    key_ = true;
    state_ = State::String;
    return c == '"' ? Result::More : Result::Bad;
  case State::Colon:
    state_ = State::Value;
    return c == ':' ? Result::More : Result::Bad;
  case State::Behind:
    return behind(c);
  default:
    return value(c);
  }
}

JsonScanner::Result JsonScanner::value(char c) {
  key_ = false;
  switch (c) {
  case '{':
    return open(true);
  case '[':
    return open(false);
  case '"':
    state_ = State::String;
    return Result::More;
  case 't':
  case 'f':
  case 'n':
    word_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
    state_ = State::Word;
    return Result::More;
  default:
    if (c != '-' && !isDigit(c))
      return Result::Bad;
    state_ = c == '-' ? State::Minus : c == '0' ? State::Zero : State::Digits;
    return Result::More;
  }
}

JsonScanner::Result JsonScanner::open(bool object) {
  if (depth_ == kMaxDepth)
    return Result::Bad;
  object_[depth_++] = object;
  state_ = object ? State::FirstKey : State::FirstItem;
  return Result::More;
}

JsonScanner::Result JsonScanner::string(char c) {
  if (state_ == State::Escape) {
    hex_ = 4;
    state_ = c == 'u' ? State::Hex : State::String;
    for (const char *known = "\"\\/bfnrtu"; *known; ++known)
      if (c == *known)
        return Result::More;
    return Result::Bad;
  }
  if (state_ == State::Hex) {
    if (--hex_ == 0)
      state_ = State::String;
    return hexDigit(c) >= 0 ? Result::More : Result::Bad;
  }
  if (c == '\\')
    state_ = State::Escape;
  else if (c == '"' && key_)
    state_ = State::Colon;
  else if (c == '"')
    return complete();
  else if (static_cast<unsigned char>(c) < 0x20)
    return Result::Bad;
  return Result::More;
}

JsonScanner::Result JsonScanner::number(char c) {
  const bool whole = state_ == State::Zero || state_ == State::Digits;
  switch (state_) {
  case State::Minus:
    state_ = c == '0' ? State::Zero : State::Digits;
    return isDigit(c) ? Result::More : Result::Bad;
  case State::Point:
    state_ = State::Fraction;
    return isDigit(c) ? Result::More : Result::Bad;
  case State::Exponent:
    state_ = c == '+' || c == '-' ? State::Sign : State::Power;
    return state_ == State::Sign || isDigit(c) ? Result::More : Result::Bad;
  case State::Sign:
    state_ = State::Power;
    return isDigit(c) ? Result::More : Result::Bad;
  default:
    break;
  }
  if (isDigit(c) && state_ != State::Zero)
    return Result::More;
  if (c == '.' && whole)
    return state_ = State::Point, Result::More;
  if ((c == 'e' || c == 'E') && state_ != State::Power)
    return state_ = State::Exponent, Result::More;
  if (depth_ == 0)
    return Result::Before;
  state_ = State::Behind;
  return isJsonSpace(c) ? Result::More : behind(c);
}

// A value that lies in a list or an object is complete.
JsonScanner::Result JsonScanner::behind(char c) {
  const bool object = object_[depth_ - 1];
  if (c == ',') {
    state_ = object ? State::Key : State::Value;
    return Result::More;
  }
  if (c != (object ? '}' : ']'))
    return Result::Bad;
  --depth_;
  return complete();
}

JsonScanner::Result JsonScanner::complete() {
  state_ = State::Behind;
  return depth_ ? Result::More : Result::Done;
}

} // namespace llmc
