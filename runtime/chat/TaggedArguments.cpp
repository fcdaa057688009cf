//===- TaggedArguments.cpp ------------------------------------------------===//
#include "runtime/chat/TaggedArguments.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace llmc {

using Json = nlohmann::ordered_json;

static constexpr size_t kMaxKey = 256; // bytes

const TaggedArguments::Word TaggedArguments::kWords[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};

TaggedArguments::Result TaggedArguments::feed(char c, std::string &json) {
  switch (state_) {
  case State::Between: {
    const MarkMatcher::Result key = first_.feed(c), end = second_.feed(c);
    if (key == MarkMatcher::Result::Done) {
      state_ = State::Key;
      token_.clear();
      return Result::More;
    }
    if (end == MarkMatcher::Result::Done)
      json += any_ ? "}" : "{}";
    return end == MarkMatcher::Result::Done ? Result::Done : key == end && key == MarkMatcher::Result::Bad ? Result::Bad : Result::More;
  }
  case State::Key:
    return key(c, json);
  case State::Open: {
    const MarkMatcher::Result text = first_.feed(c), other = second_.feed(c);
    if (text == MarkMatcher::Result::Done || other == MarkMatcher::Result::Done)
      beginValue(other == MarkMatcher::Result::Done);
    return text == other && text == MarkMatcher::Result::Bad ? Result::Bad : Result::More;
  }
  case State::Behind: {
    const MarkMatcher::Result result = first_.feed(c);
    if (result == MarkMatcher::Result::Done)
      between();
    return result == MarkMatcher::Result::Bad ? Result::Bad : Result::More;
  }
  case State::Text:
    return asText(c, json);
  case State::Json:
    return asJson(c, json);
  }
  return Result::Bad;
}

void TaggedArguments::between() {
  state_ = State::Between;
  first_ = MarkMatcher(format_->keyOpen);
  second_ = MarkMatcher(format_->callClose);
}

TaggedArguments::Result TaggedArguments::key(char c, std::string &json) {
  token_ += c;
  if (!token_.ends_with(format_->keyClose))
    return token_.size() < kMaxKey ? Result::More : Result::Bad;
  token_.resize(token_.size() - format_->keyClose.size());
  const size_t begin = token_.find_first_not_of(" \t\r\n"), end = token_.find_last_not_of(" \t\r\n");
  if (begin == std::string::npos)
    return Result::Bad;
  const std::string name = token_.substr(begin, end + 1 - begin);
  json += any_ ? ", " : "{";
  json += Json(name).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
  any_ = true;
  expected_ = types_ ? types_->of(name) : JsonTypes::kAny;
  if (format_->valueOpen.empty()) {
    beginValue(expected_ != JsonTypes::kString);
  } else {
    state_ = State::Open;
    first_ = MarkMatcher(format_->valueOpen);
    second_ = MarkMatcher(format_->jsonOpen);
  }
  return Result::More;
}

void TaggedArguments::beginValue(bool json) {
  if (format_->jsonOpen.empty())
    json = expected_ != JsonTypes::kString;
  else
    expected_ = json ? JsonTypes::kAny : JsonTypes::kString; // the mark says it
  state_ = json ? State::Json : State::Text;
  close_ = StopMatcher({std::string(format_->valueClose)});
  token_.clear();
  read_.clear();
  pad_.clear();
  scanner_ = {};
  word_ = nullptr;
  begun_ = flows_ = whole_ = false;
}

// The byte of a string in JSON.
static void addEscaped(std::string &json, char c) {
  static constexpr std::string_view kPlain = "\"\\\b\f\n\r\t", kShort = "\"\\bfnrt";
  if (const size_t at = kPlain.find(c); at != kPlain.npos) {
    json += '\\';
    json += kShort[at];
  } else if (static_cast<unsigned char>(c) < 0x20) {
    char text[8];
    std::snprintf(text, sizeof text, "\\u%04x", unsigned(c));
    json += text;
  } else {
    json += c;
  }
}

TaggedArguments::Result TaggedArguments::asText(char c, std::string &json) {
  if (!std::exchange(begun_, true)) {
    json += '"';
    pad_ = "-"; // the one in front may come
  }
  for (char certain : close_.feed(std::string_view(&c, 1))) {
    const bool pad = format_->pad.starts_with(certain) && !format_->pad.empty(), front = pad_ == "-";
    if (!front)
      for (char before : pad_)
        addEscaped(json, before);
    pad_.clear();
    if (pad && !front)
      pad_ = certain;
    else if (!pad)
      addEscaped(json, certain);
  }
  if (close_.matched()) {
    json += '"';
    between();
  }
  return Result::More;
}

TaggedArguments::Result TaggedArguments::asJson(char c, std::string &json) {
  if (!flows_)
    token_ += c;
  if (whole_)
    return behindJson(c, json);
  if (!begun_) {
    if (isJsonSpace(c))
      return Result::More;
    begun_ = true;
    flows_ = (c == '{' || c == '[') && !(expected_ & ~(JsonTypes::kArray | JsonTypes::kObject));
    for (const Word &word : kWords)
      if (c == word.python[0])
        word_ = &word;
  }
  if (word_ && (read_.size() == word_->python.size() || c != word_->python[read_.size()]))
    return asTextAfterAll(json);
  const char as = word_ ? word_->json[read_.size()] : c;
  const JsonScanner::Result result = scanner_.feed(as);
  if (result == JsonScanner::Result::Bad)
    return flows_ ? Result::Bad : asTextAfterAll(json);
  if (result != JsonScanner::Result::Before)
    (flows_ ? json : read_) += as;
  if (result == JsonScanner::Result::More)
    return Result::More;
  first_ = MarkMatcher(format_->valueClose);
  if (flows_)
    state_ = State::Behind;
  whole_ = true;
  return result == JsonScanner::Result::Before ? behindJson(c, json) : Result::More;
}

TaggedArguments::Result TaggedArguments::behindJson(char c, std::string &json) {
  const MarkMatcher::Result result = first_.feed(c);
  if (result == MarkMatcher::Result::More)
    return Result::More;
  const uint32_t type = jsonTypeOf(Json::parse(read_, nullptr, false));
  if (result == MarkMatcher::Result::Bad || !type || (!(type & expected_) && (expected_ & JsonTypes::kString)))
    return asTextAfterAll(json);
  json += read_;
  between();
  return Result::More;
}

// What has come is read once more.
TaggedArguments::Result TaggedArguments::asTextAfterAll(std::string &json) {
  const std::string text = std::exchange(token_, {});
  state_ = State::Text;
  begun_ = false;
  for (size_t i = 0; i < text.size(); ++i) // the mark may be in it, too, in what looked like a string
    if (const Result result = feed(text[i], json); result != Result::More) {
      rest_ += text.substr(i + 1);
      return result;
    }
  return Result::More;
}

} // namespace llmc
