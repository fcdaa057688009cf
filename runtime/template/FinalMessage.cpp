//===- FinalMessage.cpp ----------------------------------------------------===//
#include "runtime/template/FinalMessage.h"

#include "llmc/Support/Error.h"
#include "runtime/template/Characters.h"

using namespace llmc;
using namespace llmc::jinja;

// transformers' own, so that a text that holds it gives what it gives there. A template that keeps white space
// at the end of a text keeps the space of the tag.
static constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG ", kTagText = kTag.substr(0, kTag.size() - 1);

static std::string_view stripped(std::string_view text) { return strip(text, nullptr, true, true); }

/// Puts the tag behind the last text of `parts`, which is returned.
static std::string tagLastText(std::vector<Value> &parts, const std::string &where) {
  for (size_t i = parts.size(); i-- > 0;) {
    const Dict *part = parts[i].dict();
    if (!part)
      throw Error(where + "[" + std::to_string(i) + "]: expected an object, got a " + parts[i].typeName());
    const Value *text = part->findName("text");
    if (!text)
      continue;
    if (!text->string())
      throw Error(where + "[" + std::to_string(i) + "].text: expected a string, got a " + text->typeName());
    const std::string found = *text->string();
    Dict changed = *part;
    changed.set(Value("text"), Value(found + std::string(kTag)));
    parts[i] = Value::dict(std::move(changed));
    return found;
  }
  throw Error(where + ": expected a text to continue, got none");
}

FinalMessage::FinalMessage(const ChatTemplate &chatTemplate, const Value &messages, const std::string &field) {
  std::vector<Value> items = messages.list()->items;
  if (items.empty())
    throw Error("messages: expected a last message to continue, got none");
  const std::string last = "messages[" + std::to_string(items.size() - 1) + "]";
  where = last + "." + field;
  const Dict *message = items.back().dict();
  if (!message)
    throw Error(last + ": expected an object, got a " + items.back().typeName());
  const Value *content = message->findName(field);
  if (!content || content->isNone())
    throw Error(where + ": expected a text to continue, got none");
  if (chatTemplate.source().find(field) == std::string::npos)
    throw Error(where + ": expected a field that the chat template shows, got '" + field + "', which it does not mention");
  Dict changed = *message;
  if (content->string()) {
    text = *content->string();
    changed.set(Value(field), Value(text + std::string(kTag)));
  } else if (content->list()) {
    std::vector<Value> parts = content->list()->items;
    text = tagLastText(parts, where);
    changed.set(Value(field), Value::list(std::move(parts)));
  } else {
    throw Error(where + ": expected a string or a list of parts, got a " + content->typeName());
  }
  items.back() = Value::dict(std::move(changed));
  tagged = Value::list(std::move(items));
}

std::string FinalMessage::cut(const std::string &rendered) const {
  const size_t at = rendered.rfind(kTagText);
  if (at == std::string::npos || rendered.find(stripped(text)) == std::string::npos)
    throw Error(where + ": expected a text that the chat template shows as it is, so that it can be continued; it shows it changed or not at all");
  const std::string before = rendered.substr(0, at);
  if (rendered.compare(at, kTag.size(), kTag) == 0)
    return before;
  return std::string(strip(before, nullptr, false, true));
}
