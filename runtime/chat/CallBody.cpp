//===- CallBody.cpp -------------------------------------------------------===//
#include "runtime/chat/CallBody.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

namespace llmc {

static constexpr size_t kMaxName = 256; // bytes of a name with its marks

std::string CallBody::takeArguments() { return named_ ? std::exchange(arguments_, {}) : std::string(); }

bool CallBody::accept(std::string name) {
  name_ = std::move(name);
  return named_ = std::find(functions_->begin(), functions_->end(), name_) != functions_->end();
}

// The scanner has seen a whole string or value in token_. A string that is no UTF-8 gives nothing.
static std::string stringOf(const std::string &token) {
  const nlohmann::json value = nlohmann::json::parse(token, nullptr, false);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Nested no deeper than the arguments that are no string.
static bool isObject(std::string_view text) {
  JsonScanner scanner;
  JsonScanner::Result result = JsonScanner::Result::More;
  size_t end = 0; // behind what was read
  while (end < text.size() && result == JsonScanner::Result::More)
    result = scanner.feed(text[end++]);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && text[begin] == '{' && result == JsonScanner::Result::Done && text.find_first_not_of(" \t\r\n", end) == text.npos;
}

CallBody::Result CallBody::feedObject(char c) {
  if (state_ == State::Key || state_ == State::Value)
    return value(c);
  if (isJsonSpace(c))
    return Result::More;
  auto next = [&](bool right, State state) {
    state_ = state;
    return right ? Result::More : Result::Bad;
  };
  switch (state_) {
  case State::Open:
    return next(c == '{', State::FirstKey);
  case State::FirstKey:
  case State::NextKey:
    state_ = State::Key;
    scanner_ = {};
    return c == '"' ? value(c) : Result::Bad;
  case State::Colon:
    scanner_ = {};
    return next(c == ':', State::Value);
  default:
    if (c == ',')
      return next(true, State::NextKey);
    if (c != '}' || !named_)
      return Result::Bad;
    if (!filled_)
      arguments_ = "{}";
    return Result::Done;
  }
}

// Of a key or a value.
CallBody::Result CallBody::value(char c) {
  if (token_.empty() && !flows_ && isJsonSpace(c))
    return Result::More;
  if (state_ == State::Value && token_.empty() && !flows_ && field_ == Field::Arguments && c == '{')
    flows_ = filled_ = true;
  const JsonScanner::Result result = scanner_.feed(c);
  if (result == JsonScanner::Result::Bad)
    return Result::Bad;
  if (result != JsonScanner::Result::Before)
    (flows_ ? arguments_ : token_) += c;
  if (result == JsonScanner::Result::More)
    return Result::More;
  const bool good = state_ == State::Key ? key() : std::exchange(flows_, false) || store();
  state_ = state_ == State::Key ? State::Colon : State::Behind;
  token_.clear();
  if (!good)
    return Result::Bad;
  return result == JsonScanner::Result::Before ? feedObject(c) : Result::More;
}

// False: the object is no call.
bool CallBody::key() {
  const std::string key = stringOf(token_);
  const bool name = key == "name", arguments = key == "arguments" || key == "parameters";
  field_ = name ? Field::Name : arguments ? Field::Arguments : Field::Other;
  if ((name && named_) || (arguments && filled_))
    return false;
  return name || arguments || key == "type" || key == "id" || !format_->bare; // unmarked, it may be any object
}

bool CallBody::store() {
  if (field_ == Field::Name)
    return accept(stringOf(token_));
  if (field_ != Field::Arguments)
    return true;
  filled_ = true;
  if (token_ == "null") {
    arguments_ = "{}";
    return true;
  }
  arguments_ = stringOf(token_); // some write the arguments as a string that has the object
  return isObject(arguments_);
}

static std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

static bool isOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.'; }

// With the separator behind it.
CallBody::Result CallBody::feedName(char c) {
  const std::string_view separator = trimmed(format_->separator);
  const auto accepted = [&] { return accept(std::string(trimmed(token_))) ? Result::More : Result::Bad; };
  if (separator.empty() && !isOfName(c) && !(isJsonSpace(c) && token_.empty()))
    return accepted() == Result::More ? feedNamed(c) : Result::Bad; // the byte is the next part's
  if (!(separator.empty() && isJsonSpace(c)))
    token_ += c;
  if (separator.empty() || !token_.ends_with(separator))
    return token_.size() < kMaxName ? Result::More : Result::Bad;
  token_.resize(token_.size() - separator.size());
  if (const size_t mark = format_->idMark.empty() ? token_.npos : token_.find(format_->idMark); mark != token_.npos) {
    if (!format_->idPrefix.empty())
      id_ = std::string(format_->idPrefix).append(trimmed(token_));
    token_.resize(mark);
  }
  return accepted();
}

CallBody::Result CallBody::feedNamed(char c) {
  if (!led_) {
    const MarkMatcher::Result result = lead_.feed(c);
    led_ = result == MarkMatcher::Result::Done;
    return result == MarkMatcher::Result::Bad ? Result::Bad : Result::More;
  }
  if (!named_)
    return feedName(c);
  if (format_->body == ToolFormat::Body::Tagged)
    return feedTagged(c);
  if (!filled_ && isJsonSpace(c))
    return Result::More;
  if (!filled_ && c != '{')
    return Result::Bad;
  filled_ = true;
  arguments_ += c;
  const JsonScanner::Result result = scanner_.feed(c);
  return result == JsonScanner::Result::Done ? Result::Done : result == JsonScanner::Result::More ? Result::More : Result::Bad;
}

CallBody::Result CallBody::feedTagged(char c) {
  if (!tagged_) {
    const auto types = types_->find(name_);
    tagged_.emplace(*format_, types == types_->end() ? nullptr : &types->second);
  }
  const TaggedArguments::Result result = tagged_->feed(c, arguments_);
  return result == TaggedArguments::Result::Done ? Result::Done : result == TaggedArguments::Result::More ? Result::More : Result::Bad;
}

} // namespace llmc
