//===- Methods.cpp - methods of strings, lists, dicts and loops -----------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

namespace {
enum Types : unsigned { kString = 1, kList = 2, kDict = 4, kLoop = 8 };
struct Method {
  Builtin builtin;
  unsigned types;
};
} // namespace

static const std::string &argument(Runtime &runtime, Args args, size_t i) {
  const std::string *s = args[i]->string();
  if (!s)
    runtime.fail(std::string("expected a string argument, got ") + args[i]->typeName());
  return *s;
}

static std::string optional(Args args, size_t i) {
  return args.given(i) && !args[i]->isNone() ? toString(*args[i]) : "";
}

static int64_t count(Args args, size_t i) {
  auto *n = args.given(i) ? args[i]->get<int64_t>() : nullptr;
  return n ? *n : -1;
}

template <bool left, bool right> static Value methodStrip(Runtime &runtime, const Value &self, Args args) {
  if (args.given(0) && !args[0]->isNone() && optional(args, 0).empty())
    return self;
  return runtime.string(std::string(strip(*self.string(), optional(args, 0), left, right)));
}

template <std::string (*mapping)(std::string_view)>
static Value mapped(Runtime &runtime, const Value &self, Args) {
  return runtime.string(mapping(*self.string()));
}

/// str.title: every letter after a non-letter is upper case.
static std::string titleCase(std::string_view text) {
  std::string out;
  bool inWord = false;
  forEachCharacter(text, [&](uint32_t c, std::string_view bytes) {
    bool letter = isAlpha(c);
    out += !letter ? std::string(bytes) : inWord ? lower(bytes) : capitalize(bytes);
    inWord = letter;
  });
  return out;
}

static std::string swapCase(std::string_view text) {
  std::string out;
  forEachCharacter(text, [&](uint32_t c, std::string_view bytes) { out += isUpper(c) ? lower(bytes) : upper(bytes); });
  return out;
}

//===----------------------------------------------------------------------===//
// Splitting and joining
//===----------------------------------------------------------------------===//

static std::vector<Value> splitSpaces(std::string_view text, int64_t most) {
  std::vector<Value> parts;
  text = strip(text, "", true, false);
  while (!text.empty()) {
    size_t end = 0;
    if (most == 0) {
      parts.emplace_back(std::string(text));
      break;
    }
    while (end < text.size()) {
      utf8::Decoded d = utf8::decode(text.substr(end));
      if (isSpace(d.codePoint))
        break;
      end += d.length;
    }
    parts.emplace_back(std::string(text.substr(0, end)));
    text = strip(text.substr(end), "", true, false);
    --most;
  }
  return parts;
}

static Value methodSplit(Runtime &runtime, const Value &self, Args args) {
  const std::string &text = *self.string();
  int64_t most = count(args, 1);
  if (!args.given(0) || args[0]->isNone())
    return runtime.list(splitSpaces(text, most));
  const std::string &separator = argument(runtime, args, 0);
  if (separator.empty())
    runtime.fail("split: expected a separator that is not empty");
  std::vector<Value> parts;
  size_t at = 0;
  for (size_t found; most != 0 && (found = text.find(separator, at)) != std::string::npos; --most) {
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  parts.emplace_back(text.substr(at));
  return runtime.list(std::move(parts));
}

static Value methodRsplit(Runtime &runtime, const Value &self, Args args) {
  int64_t most = count(args, 1);
  if (most < 0)
    return methodSplit(runtime, self, args);
  if (!args.given(0) || args[0]->isNone())
    runtime.fail("rsplit: expected a separator with a count, got none");
  std::string text = *self.string();
  const std::string &separator = argument(runtime, args, 0);
  if (separator.empty())
    runtime.fail("rsplit: expected a separator that is not empty");
  std::vector<Value> parts;
  for (size_t found; most > 0 && (found = text.rfind(separator)) != std::string::npos; --most) {
    parts.emplace_back(text.substr(found + separator.size()));
    text.resize(found);
  }
  parts.emplace_back(text);
  std::reverse(parts.begin(), parts.end());
  return runtime.list(std::move(parts));
}

static Value methodSplitlines(Runtime &runtime, const Value &self, Args args) {
  const std::string &text = *self.string();
  const bool keep = args.given(0) && args[0]->truthy();
  std::vector<Value> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of("\n\r\v\f\x1c\x1d\x1e", at), text.size());
    size_t next = end + (end < text.size());
    if (end + 1 < text.size() && text[end] == '\r' && text[end + 1] == '\n')
      ++next;
    lines.emplace_back(text.substr(at, (keep ? next : end) - at));
    at = next;
  }
  return runtime.list(std::move(lines));
}

template <bool last> static Value methodPartition(Runtime &runtime, const Value &self, Args args) {
  const std::string &text = *self.string(), &separator = argument(runtime, args, 0);
  if (separator.empty())
    runtime.fail("partition: expected a separator that is not empty");
  size_t found = last ? text.rfind(separator) : text.find(separator);
  if (found == std::string::npos)
    return last ? runtime.list({Value(""), Value(""), self}, true) : runtime.list({self, Value(""), Value("")}, true);
  return runtime.list({Value(text.substr(0, found)), Value(separator), Value(text.substr(found + separator.size()))}, true);
}

static Value methodJoin(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> items = runtime.iterate(*args[0]);
  for (const Value &item : items)
    if (!item.string())
      runtime.fail(std::string("join: expected strings, got a ") + item.typeName());
  return joinItems(runtime, items, *self.string());
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

template <bool atEnd> static Value methodAffix(Runtime &runtime, const Value &self, Args args) {
  auto matches = [&](const Value &affix) {
    if (!affix.string())
      runtime.fail(std::string("expected a string or a tuple of strings, got a ") + affix.typeName());
    return atEnd ? self.string()->ends_with(*affix.string()) : self.string()->starts_with(*affix.string());
  };
  if (const List *l = args[0]->list(); l && l->tuple)
    return Value(std::any_of(l->items.begin(), l->items.end(), matches));
  return Value(matches(*args[0]));
}

template <bool last> static Value methodFind(Runtime &runtime, const Value &self, Args args) {
  const std::string &text = *self.string(), &what = argument(runtime, args, 0);
  size_t found = last ? text.rfind(what) : text.find(what);
  if (found == std::string::npos)
    return Value(int64_t{-1});
  return Value(static_cast<int64_t>(countCharacters(std::string_view(text).substr(0, found))));
}

static Value methodIndex(Runtime &runtime, const Value &self, Args args) {
  if (self.string()) {
    Value found = methodFind<false>(runtime, self, args);
    if (*found.get<int64_t>() < 0)
      runtime.fail("index: expected a part of the string, got " + toRepr(*args[0]));
    return found;
  }
  const auto &items = self.list()->items;
  auto found = std::find_if(items.begin(), items.end(), [&](const Value &item) { return runtime.isEqual(item, *args[0]); });
  if (found == items.end())
    runtime.fail("index: expected an item of the list, got " + toRepr(*args[0]));
  return Value(static_cast<int64_t>(found - items.begin()));
}

static Value methodCount(Runtime &runtime, const Value &self, Args args) {
  int64_t n = 0;
  if (const List *l = self.list()) {
    for (const Value &item : l->items)
      n += runtime.isEqual(item, *args[0]);
    return Value(n);
  }
  const std::string &text = *self.string(), &what = argument(runtime, args, 0);
  if (what.empty())
    return Value(static_cast<int64_t>(countCharacters(text)) + 1);
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++n;
  return Value(n);
}

template <bool (*predicate)(uint32_t)> static Value allAre(Runtime &, const Value &self, Args) {
  bool all = !self.string()->empty();
  forEachCharacter(*self.string(), [&](uint32_t c, std::string_view) { all &= predicate(c); });
  return Value(all);
}
static bool isAlnum(uint32_t c) { return c != '_' && isWord(c); }

template <bool upperCase> static Value isCased(Runtime &runtime, const Value &self, Args args) {
  return findTest(upperCase ? "upper" : "lower")->call(runtime, self, args);
}

static Value methodReplace(Runtime &runtime, const Value &self, Args args) {
  return runtime.string(
      replaceAll(runtime, *self.string(), argument(runtime, args, 0), argument(runtime, args, 1), count(args, 2)));
}

template <bool atEnd> static Value methodRemoveAffix(Runtime &runtime, const Value &self, Args args) {
  std::string_view text = *self.string();
  const std::string &affix = argument(runtime, args, 0);
  if (atEnd && !affix.empty() && text.ends_with(affix))
    text.remove_suffix(affix.size());
  else if (!atEnd && text.starts_with(affix))
    text.remove_prefix(affix.size());
  return runtime.string(std::string(text));
}

/// str.format with {}, {0} and {name}; no conversions or format specifications.
static Value methodFormat(Runtime &runtime, const Value &self, Args args) {
  const std::string &format = *self.string();
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c != '{') {
      out += c;
      continue;
    }
    size_t end = format.find('}', i);
    std::string field = end == std::string::npos ? "!" : format.substr(i + 1, end - i - 1);
    if (field.find_first_of("!:.[{") != std::string::npos)
      runtime.fail("format: expected fields like {}, {0} or {name}, got " + toRepr(self));
    bool number = field.empty() || field.find_first_not_of("0123456789") == std::string::npos;
    const Value *value = nullptr;
    if (number) {
      size_t index = field.empty() ? next++ : field.size() > 4 ? args.extra.size() : std::stoul(field);
      value = index < args.extra.size() ? args.extra[index] : nullptr;
    } else {
      for (const auto &[name, given] : args.named)
        if (name == field)
          value = given;
    }
    if (!value)
      runtime.fail("format: expected an argument for {" + field + "}, got none");
    out += toString(*value);
    if (out.size() > runtime.bounds().stringBytes)
      break; // string() reports it
    i = end;
  }
  return runtime.string(std::move(out));
}

//===----------------------------------------------------------------------===//
// Dicts and loops
//===----------------------------------------------------------------------===//

static Value methodGet(Runtime &runtime, const Value &self, Args args) {
  runtime.charge(args[0]->isString() ? 0 : 16 * self.dict()->size());
  const Value *found = self.dict()->find(*args[0]);
  return found ? *found : args.given(1) ? *args[1] : Value::none();
}

static Value methodKeys(Runtime &runtime, const Value &self, Args) { return runtime.list(runtime.iterate(self)); }

static Value methodValues(Runtime &runtime, const Value &self, Args) {
  std::vector<Value> values;
  for (const auto &entry : self.dict()->items())
    values.push_back(entry.second);
  return runtime.list(std::move(values));
}

static Value methodItems(Runtime &runtime, const Value &self, Args) { return itemsOf(runtime, *self.dict()); }

static Value methodCopy(Runtime &, const Value &self, Args) { return self; } // immutable

/// The reference's sandbox forbids these too, when they are called.
static Value methodForbidden(Runtime &runtime, const Value &self, Args) {
  runtime.fail(std::string("expected a method that leaves its object as it is, got one that changes a ") + self.typeName());
}

static Value methodCycle(Runtime &runtime, const Value &self, Args args) {
  if (args.extra.empty())
    runtime.fail("cycle: expected values, got none");
  const LoopState &loop = **self.get<LoopState *>();
  return *args.extra[loop.index % args.extra.size()];
}

static Value methodChanged(Runtime &runtime, const Value &self, Args args) {
  LoopState &loop = **self.get<LoopState *>();
  std::vector<Value> now;
  for (const Value *value : args.extra) {
    runtime.checkData(*value);
    now.push_back(*value);
  }
  bool same = loop.changedCalled && now.size() == loop.changed.size() &&
              std::equal(now.begin(), now.end(), loop.changed.begin(), [&](auto &a, auto &b) { return runtime.isEqual(a, b); });
  loop.changed = std::move(now);
  loop.changedCalled = true;
  return Value(!same);
}

static const std::vector<Method> &table() {
  static const std::vector<Method> methods = {
      {{"strip", {"chars"}, 0, methodStrip<true, true>}, kString},
      {{"lstrip", {"chars"}, 0, methodStrip<true, false>}, kString},
      {{"rstrip", {"chars"}, 0, methodStrip<false, true>}, kString},
      {{"split", {"sep", "maxsplit"}, 0, methodSplit}, kString},
      {{"rsplit", {"sep", "maxsplit"}, 0, methodRsplit}, kString},
      {{"splitlines", {"keepends"}, 0, methodSplitlines}, kString},
      {{"partition", {"sep"}, 1, methodPartition<false>}, kString},
      {{"rpartition", {"sep"}, 1, methodPartition<true>}, kString},
      {{"join", {"iterable"}, 1, methodJoin}, kString},
      {{"startswith", {"prefix"}, 1, methodAffix<false>}, kString},
      {{"endswith", {"suffix"}, 1, methodAffix<true>}, kString},
      {{"find", {"sub"}, 1, methodFind<false>}, kString},
      {{"rfind", {"sub"}, 1, methodFind<true>}, kString},
      {{"index", {"value"}, 1, methodIndex}, kString | kList},
      {{"count", {"value"}, 1, methodCount}, kString | kList},
      {{"replace", {"old", "new", "count"}, 2, methodReplace}, kString},
      {{"removeprefix", {"prefix"}, 1, methodRemoveAffix<false>}, kString},
      {{"removesuffix", {"suffix"}, 1, methodRemoveAffix<true>}, kString},
      {{"format", {}, 0, methodFormat, true}, kString},
      {{"upper", {}, 0, mapped<upper>}, kString},
      {{"lower", {}, 0, mapped<lower>}, kString},
      {{"capitalize", {}, 0, mapped<capitalize>}, kString},
      {{"title", {}, 0, mapped<titleCase>}, kString},
      {{"swapcase", {}, 0, mapped<swapCase>}, kString},
      {{"isdigit", {}, 0, allAre<isDigit>}, kString},
      {{"isalpha", {}, 0, allAre<isAlpha>}, kString},
      {{"isalnum", {}, 0, allAre<isAlnum>}, kString},
      {{"isspace", {}, 0, allAre<isSpace>}, kString},
      {{"isupper", {}, 0, isCased<true>}, kString},
      {{"islower", {}, 0, isCased<false>}, kString},
      {{"get", {"key", "default"}, 1, methodGet}, kDict},
      {{"keys", {}, 0, methodKeys}, kDict},
      {{"values", {}, 0, methodValues}, kDict},
      {{"items", {}, 0, methodItems}, kDict},
      {{"copy", {}, 0, methodCopy}, kDict | kList},
      {{"append", {}, 0, methodForbidden, true}, kList},
      {{"extend", {}, 0, methodForbidden, true}, kList},
      {{"insert", {}, 0, methodForbidden, true}, kList},
      {{"remove", {}, 0, methodForbidden, true}, kList},
      {{"pop", {}, 0, methodForbidden, true}, kList | kDict},
      {{"clear", {}, 0, methodForbidden, true}, kList | kDict},
      {{"update", {}, 0, methodForbidden, true}, kDict},
      {{"setdefault", {}, 0, methodForbidden, true}, kDict},
      {{"cycle", {}, 0, methodCycle, true}, kLoop},
      {{"changed", {}, 0, methodChanged, true}, kLoop},
  };
  return methods;
}

static const Method *find(std::string_view name) {
  const auto &all = table();
  auto found = std::find_if(all.begin(), all.end(), [&](const Method &m) { return m.builtin.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Builtin *jinja::findMethod(std::string_view name) {
  const Method *method = find(name);
  return method ? &method->builtin : nullptr;
}

bool jinja::hasMethod(const Value &value, std::string_view name) {
  const Method *method = find(name);
  unsigned type = value.string() ? kString : value.list() ? kList : value.dict() ? kDict : value.is<LoopState *>() ? kLoop : 0u;
  return method && (method->types & type);
}
