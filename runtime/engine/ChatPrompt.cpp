//===- ChatPrompt.cpp -----------------------------------------------------===//
#include "runtime/engine/ChatPrompt.h"
#include "llmc/Support/Error.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <array>

namespace llmc {

using jinja::Dict;
using jinja::Value;

namespace {

constexpr unsigned kMarks = 32; // U+FDD0 .. U+FDEF, EF B7 90 .. EF B7 AF in UTF-8

std::string markOf(unsigned index) {
  std::string mark;
  utf8::append(mark, 0xFDD0 + index);
  return mark;
}

void findMarksOf(std::string_view text, std::array<bool, kMarks> &found) {
  for (size_t at = text.find("\xEF\xB7"); at != text.npos && at + 2 < text.size(); at = text.find("\xEF\xB7", at + 2))
    if (const unsigned index = static_cast<unsigned char>(text[at + 2]) - 0x90u; index < kMarks)
      found[index] = true;
}

// Data nests at most jinja::kMaxDataDepth deep.
void findMarks(const Value &value, std::array<bool, kMarks> &found) {
  if (value.string())
    findMarksOf(*value.string(), found);
  if (value.list())
    for (const Value &item : value.list()->items)
      findMarks(item, found);
  if (value.dict())
    for (const auto &[key, item] : value.dict()->items()) {
      findMarks(key, found);
      findMarks(item, found);
    }
}

Value parseList(std::string_view json, const char *what) {
  Value list = Value::fromJson(json, what);
  if (!list.list())
    throw Error(std::string(what) + ": expected a JSON list, got a " + list.typeName());
  return list;
}

// The character before a mark belongs to no special token.
std::vector<TextPart> partsOf(std::string_view text, std::string_view mark) {
  std::vector<TextPart> parts;
  for (size_t at; (at = text.find(mark)) != std::string_view::npos; text.remove_prefix(at + mark.size())) {
    size_t start = at;
    while (start > 0 && utf8::isContinuation(text[--start]))
      ;
    parts.push_back({text.substr(0, start), true});
    parts.push_back({text.substr(start, at - start), false});
  }
  parts.push_back({text, true});
  std::erase_if(parts, [](const TextPart &part) { return part.text.empty(); });
  return parts;
}

} // namespace

ChatPrompt::ChatPrompt(const Tokenizer &tokenizer, const std::string &templateSource)
    : tokenizer_(tokenizer), template_(ChatTemplate::parse(templateSource)) {
  for (size_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.isSpecial(int32_t(id)) && !tokenizer.tokenBytes(int32_t(id)).empty())
      spellings_.emplace_back(tokenizer.tokenBytes(int32_t(id)));
  if (tokenizer.bosId() >= 0)
    bos_ = tokenizer.tokenBytes(tokenizer.bosId());
  if (!tokenizer.eosIds().empty())
    eos_ = tokenizer.tokenBytes(tokenizer.eosIds().front());
  std::sort(spellings_.begin(), spellings_.end());
}

// Marks where a spelling begins, whole or cut off by the end of the text: another string may follow it.
std::string ChatPrompt::markedText(std::string_view text, std::string_view mark) const {
  std::string result;
  size_t copied = 0;
  for (size_t start = 0; start < text.size(); ++start) {
    auto low = spellings_.begin(), high = spellings_.end(); // those that agree with the text so far
    bool begins = false;
    for (size_t depth = 0; !begins && low != high; ++depth) {
      if (start + depth == text.size()) {
        begins = true;
        break;
      }
      const auto c = static_cast<unsigned char>(text[start + depth]);
      auto at = [depth](const std::string &s) { return static_cast<unsigned char>(s[depth]); };
      low = std::partition_point(low, high, [&](const std::string &s) { return at(s) < c; });
      high = std::partition_point(low, high, [&](const std::string &s) { return at(s) == c; });
      begins = low != high && low->size() == depth + 1;
    }
    if (!begins)
      continue;
    const size_t behind = std::min<size_t>(start + utf8::decode(text.substr(start)).length, text.size());
    result.append(text.substr(copied, behind - copied)).append(mark);
    copied = behind;
  }
  return result.append(text.substr(copied));
}

Value ChatPrompt::marked(const Value &value, std::string_view mark) const {
  if (const std::string *text = value.string()) {
    std::string changed = markedText(*text, mark);
    return changed.size() == text->size() ? value : Value(std::move(changed));
  }
  if (const jinja::List *list = value.list()) {
    std::vector<Value> items;
    for (const Value &item : list->items)
      items.push_back(marked(item, mark));
    return Value::list(std::move(items));
  }
  if (const Dict *dict = value.dict()) {
    Dict changed;
    for (const auto &[key, item] : dict->items())
      changed.set(marked(key, mark), marked(item, mark));
    return Value::dict(std::move(changed));
  }
  return value;
}

std::string ChatPrompt::freeMark(const std::vector<const Value *> &values) const {
  std::array<bool, kMarks> found{};
  findMarksOf(template_.source(), found);
  for (const Value *value : values)
    findMarks(*value, found);
  const auto unused = std::find(found.begin(), found.end(), false);
  if (unused == found.end())
    throw Error("messages: expected text that lacks one of the noncharacters U+FDD0 to U+FDEF, got all of them");
  return markOf(unsigned(unused - found.begin()));
}

std::vector<int32_t> ChatPrompt::encode(std::string_view messagesJson, const Options &options, std::string *rendered) const {
  Value messages = parseList(messagesJson, "messages");
  if (messages.list()->items.empty())
    throw Error("messages: expected at least one message, got none");
  Value tools = options.toolsJson.empty() ? Value::none() : parseList(options.toolsJson, "tools");
  Value extra = options.extraJson.empty() ? Value::none() : Value::fromJson(options.extraJson, "chat template variables");
  ChatOptions chat;
  chat.addGenerationPrompt = options.addGenerationPrompt;
  chat.continueFinalMessage = options.continueFinalMessage;
  chat.bosToken = bos_;
  chat.eosToken = eos_;
  std::string mark;
  if (!options.parseSpecial) {
    mark = freeMark({&messages, &tools, &extra});
    for (Value *value : {&messages, &tools, &extra})
      *value = marked(*value, mark);
  }
  if (!tools.isNone())
    chat.toolsJson = jinja::toJson(tools, {});
  if (!extra.isNone())
    chat.extraJson = jinja::toJson(extra, {});
  const std::string text = renderChat(template_, messages, chat);
  if (rendered)
    *rendered = text;
  return mark.empty() ? tokenizer_.encode(text, true, false) : tokenizer_.encode(partsOf(text, mark), false);
}

} // namespace llmc
