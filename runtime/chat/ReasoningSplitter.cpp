//===- ReasoningSplitter.cpp ----------------------------------------------===//
#include "runtime/chat/ReasoningSplitter.h"
#include "runtime/chat/JsonScanner.h"

#include <utility>

namespace llmc {

ReasoningSplitter::ReasoningSplitter(const ReasoningFormat &format, bool opened)
    : format_(format), state_(opened ? State::Inside : State::Start), close_({std::string(format.close)}) {}

void ReasoningSplitter::feed(std::string_view text, std::string &reasoning, std::string &rest) {
  for (char c : text)
    feed(c, reasoning, rest);
}

void ReasoningSplitter::feed(char c, std::string &reasoning, std::string &rest) {
  switch (state_) {
  case State::Start: {
    held_ += c;
    const size_t begin = held_.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos)
      return;
    const std::string_view so = std::string_view(held_).substr(begin);
    if (so == format_.open) {
      held_.clear();
      state_ = State::Inside;
    } else if (!format_.open.starts_with(so)) {
      state_ = State::Rest;
      rest += std::exchange(held_, {});
    }
    return;
  }
  case State::Inside:
    return inside(c, reasoning);
  case State::Behind:
    if (isJsonSpace(c))
      return;
    state_ = State::Rest;
    [[fallthrough]];
  case State::Rest:
    rest += c;
  }
}

void ReasoningSplitter::inside(char c, std::string &reasoning) {
  for (char certain : close_.feed(std::string_view(&c, 1)))
    if (isJsonSpace(certain)) {
      if (any_)
        space_ += certain;
    } else {
      any_ = true;
      reasoning += std::exchange(space_, {}) + certain;
    }
  if (close_.matched())
    state_ = State::Behind;
}

void ReasoningSplitter::finish(std::string &reasoning, std::string &rest) {
  rest += std::exchange(held_, {});
  if (state_ == State::Inside)
    reasoning += space_ + close_.flush();
}

} // namespace llmc
