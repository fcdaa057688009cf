#include "runtime/template/ContentParts.h"

#include "llmc/Support/Error.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace llmc;
using namespace llmc::jinja;

namespace {
struct Content {
  size_t message;
  std::string role; // with what kind of content it has
  std::vector<std::string> texts;
  bool hasOthers = false; // parts that are no text
};

using Roles = std::set<std::string>;

class PartsRenderer {
public:
  PartsRenderer(const Value &messages, bool textOnly, const std::function<std::string(Value)> &render)
      : messages(messages.list()->items), textOnly(textOnly), render(render) {}

  std::string run() {
    Roles roles;
    for (size_t i = 0; i < messages.size(); ++i)
      look(i);
    for (const Content &content : contents)
      roles.insert(content.role);
    if (roles.empty())
      return render(Value::list(messages));
    // Each role is tried as it is given while all others have strings.
    Roles asStrings = roles;
    for (const std::string &role : roles) {
      if (hasOthers(role)) {
        asStrings.erase(role);
        continue;
      }
      Roles others = asStrings;
      others.erase(role);
      if (takes(role, others, asStrings))
        asStrings = others;
    }
    const auto known = attempts.find(asStrings);
    std::string text = known != attempts.end() && known->second ? *known->second : render(with(asStrings));
    for (const Content &content : contents)
      if (content.hasOthers && isPrinted(text))
        throw Error(name(content.message) + ".content: expected text alone, as the chat template takes no other parts");
    return text;
  }

private:
  static std::string name(size_t message) { return "messages[" + std::to_string(message) + "]"; }

  void look(size_t index) {
    const Dict *message = messages[index].dict();
    const Value *content = message ? message->findName("content") : nullptr;
    if (!content || (!content->isNone() && !content->list()))
      return;
    const Value *role = message->findName("role");
    Content found{index, std::string(content->isNone() ? "null " : "list ") + (role && role->string() ? *role->string() : ""), {}};
    if (const List *parts = content->list())
      for (size_t i = 0; i < parts->items.size(); ++i)
        lookAtPart(found, i, parts->items[i]);
    contents.push_back(std::move(found));
  }

  void lookAtPart(Content &content, size_t index, const Value &part) {
    const Dict *dict = part.dict();
    const Value *type = dict ? dict->findName("type") : nullptr, *text = dict ? dict->findName("text") : nullptr;
    if (part.string()) {
      content.texts.push_back(*part.string());
    } else if (text && text->string() && (!type || (type->string() && *type->string() == "text"))) {
      content.texts.push_back(*text->string());
    } else {
      if (textOnly)
        throw Error(name(content.message) + ".content[" + std::to_string(index) + "]: expected a part of type \"text\", got " +
                    (type && type->string() ? "type \"" + *type->string() + "\"" : std::string("a ") + part.typeName()));
      content.hasOthers = true;
    }
  }

  bool hasOthers(const std::string &role) const {
    return std::any_of(contents.begin(), contents.end(), [&](const Content &c) { return c.role == role && c.hasOthers; });
  }

  Value with(const Roles &asStrings) const {
    std::vector<Value> items = messages;
    for (const Content &content : contents) {
      if (!asStrings.count(content.role))
        continue;
      std::string joined;
      for (size_t i = 0; i < content.texts.size(); ++i)
        joined += (i ? kPartSeparator : "") + content.texts[i];
      Dict message = *messages[content.message].dict();
      message.set(Value("content"), Value(std::move(joined)));
      items[content.message] = Value::dict(std::move(message));
    }
    return Value::list(std::move(items));
  }

  std::optional<std::string> attempt(const Roles &asStrings) {
    auto [it, fresh] = attempts.try_emplace(asStrings);
    if (fresh)
      try {
        it->second = render(with(asStrings));
      } catch (const Error &) {
      }
    return it->second;
  }

  static size_t count(const std::string &text, std::string_view what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
      ++n;
    return n;
  }

  static constexpr std::string_view kPrinted[] = {"'type':", "\"type\":", "[]", "None", "['"};

  static bool isPrinted(const std::string &text) { return count(text, "[{'type':") || count(text, "[{\"type\":"); }

  /// Whether the template does with the contents of `role` what it does with strings.
  bool takes(const std::string &role, const Roles &given, const Roles &asStrings) {
    std::optional<std::string> raw = attempt(given), plain = attempt(asStrings);
    if (!raw)
      return false;
    if (!plain)
      return !isPrinted(*raw);
    for (std::string_view mark : kPrinted)
      if (count(*raw, mark) > count(*plain, mark))
        return false;
    for (const Content &content : contents)
      if (content.role == role)
        for (const std::string &text : content.texts) {
          size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
          if (begin == std::string::npos)
            continue;
          std::string core = text.substr(begin, end - begin + 1);
          if (count(*plain, core) > count(*raw, core))
            return false;
        }
    return true;
  }

  const std::vector<Value> &messages;
  const bool textOnly;
  const std::function<std::string(Value)> &render;
  std::vector<Content> contents;
  std::map<Roles, std::optional<std::string>> attempts;
};
} // namespace

std::string llmc::renderWithParts(const Value &messages, bool textOnly, const std::function<std::string(Value)> &render) {
  return PartsRenderer(messages, textOnly, render).run();
}
