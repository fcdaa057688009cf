//===- MethodsOfStrings.cpp - methods of Python's str -----------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"
#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

template <bool left, bool right> static Value methodStrip(Runtime &runtime, const Value &self, Args args) {
  const std::string *chars = isGiven(args, 0) ? &textArgument(runtime, *args[0]) : nullptr;
  return runtime.stringLike(self, std::string(strip(*self.string(), chars, left, right)));
}

template <std::string (*mapping)(std::string_view)>
static Value mapped(Runtime &runtime, const Value &self, Args) {
  return runtime.stringLike(self, mapping(*self.string()));
}

//===----------------------------------------------------------------------===//
// Splitting and joining
//===----------------------------------------------------------------------===//

static Value listOf(Runtime &runtime, const Value &self, const std::vector<std::string_view> &parts, bool tuple = false) {
  std::vector<Value> items;
  for (std::string_view part : parts)
    items.push_back(runtime.stringLike(self, std::string(part)));
  return runtime.list(std::move(items), tuple);
}

static std::vector<std::string_view> splitSpaces(std::string_view text, int64_t most) {
  std::vector<std::string_view> parts;
  text = strip(text, nullptr, true, false);
  for (; !text.empty(); --most) {
    if (most == 0) {
      parts.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      utf8::Decoded d = utf8::decode(text.substr(end));
      if (isSpace(d.codePoint))
        break;
      end += d.length;
    }
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), nullptr, true, false);
  }
  return parts;
}

static std::vector<std::string_view> rsplitSpaces(std::string_view text, int64_t most) {
  std::vector<std::string_view> parts;
  text = strip(text, nullptr, false, true);
  for (; !text.empty(); --most) {
    if (most == 0) {
      parts.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0) {
      size_t before = start - 1;
      while (before > 0 && utf8::isContinuation(text[before]))
        --before;
      if (isSpace(utf8::decode(text.substr(before)).codePoint))
        break;
      start = before;
    }
    parts.push_back(text.substr(start));
    text = strip(text.substr(0, start), nullptr, false, true);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

static const std::string &separator(Runtime &runtime, const Value &value) {
  const std::string &text = textArgument(runtime, value);
  if (text.empty())
    runtime.fail("expected a separator that is not empty");
  return text;
}

template <bool fromRight> static Value methodSplit(Runtime &runtime, const Value &self, Args args) {
  const std::string &text = *self.string();
  int64_t most = integerArgument(runtime, args, 1, -1);
  if (!isGiven(args, 0))
    return listOf(runtime, self, fromRight ? rsplitSpaces(text, most) : splitSpaces(text, most));
  const std::string &cut = separator(runtime, *args[0]);
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  for (size_t found; most != 0; --most) {
    if ((found = fromRight ? rest.rfind(cut) : rest.find(cut)) == std::string_view::npos)
      break;
    parts.push_back(fromRight ? rest.substr(found + cut.size()) : rest.substr(0, found));
    rest = fromRight ? rest.substr(0, found) : rest.substr(found + cut.size());
  }
  parts.push_back(rest);
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return listOf(runtime, self, parts);
}

static Value methodSplitlines(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> lines;
  for (std::string &line : splitLines(*self.string(), flag(args, 0)))
    lines.push_back(runtime.stringLike(self, std::move(line)));
  return runtime.list(std::move(lines));
}

template <bool last> static Value methodPartition(Runtime &runtime, const Value &self, Args args) {
  std::string_view text = *self.string();
  const std::string &cut = separator(runtime, *args[0]);
  size_t found = last ? text.rfind(cut) : text.find(cut);
  if (found == std::string::npos)
    return listOf(runtime, self, last ? std::vector<std::string_view>{"", "", text} : std::vector<std::string_view>{text, "", ""}, true);
  return listOf(runtime, self, {text.substr(0, found), cut, text.substr(found + cut.size())}, true);
}

static Value methodJoin(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> items = runtime.iterate(*args[0]);
  for (Value &item : items)
    if (self.isMarkup())
      item = Value(escaped(runtime, item));
    else
      textArgument(runtime, item);
  return runtime.stringLike(self, joinItems(runtime, items, *self.string()));
}

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

namespace {
/// The part of a string that optional start and end arguments choose.
struct Part {
  std::string_view text;
  int64_t start = 0; // characters before it
  bool exists = true;
};
} // namespace

static Part partOf(Runtime &runtime, const std::string &text, Args args, size_t first) {
  if (!isGiven(args, first) && !isGiven(args, first + 1))
    return {text};
  const auto size = static_cast<int64_t>(countCharacters(text));
  auto bound = [&](size_t i, int64_t fallback) {
    int64_t n = isGiven(args, i) ? toInteger(runtime, *args[i]) : fallback;
    return n < 0 ? (n < -size ? 0 : n + size) : n;
  };
  const int64_t start = bound(first, 0), end = std::min(bound(first + 1, size), size);
  if (start > end)
    return {"", start, false};
  const size_t from = offsetOf(text, static_cast<size_t>(start)), to = offsetOf(text, static_cast<size_t>(end));
  return {std::string_view(text).substr(from, to - from), start};
}

template <bool atEnd> static Value methodAffix(Runtime &runtime, const Value &self, Args args) {
  const Part part = partOf(runtime, *self.string(), args, 1);
  auto matches = [&](const Value &affix) {
    const std::string &text = textArgument(runtime, affix);
    return part.exists && (atEnd ? part.text.ends_with(text) : part.text.starts_with(text));
  };
  if (const List *l = args[0]->list(); l && l->isTuple())
    return Value(std::any_of(l->items.begin(), l->items.end(), matches));
  return Value(matches(*args[0]));
}

template <bool last, bool mustExist> static Value methodFind(Runtime &runtime, const Value &self, Args args) {
  const Part part = partOf(runtime, *self.string(), args, 1);
  const std::string &what = textArgument(runtime, *args[0]);
  size_t found = last ? part.text.rfind(what) : part.text.find(what);
  if (!part.exists || found == std::string::npos) {
    if (mustExist)
      runtime.fail("index: expected " + runtime.repr(*args[0]) + " to occur");
    return Value(int64_t{-1});
  }
  return Value(part.start + static_cast<int64_t>(countCharacters(part.text.substr(0, found))));
}

static Value methodCount(Runtime &runtime, const Value &self, Args args) {
  const Part part = partOf(runtime, *self.string(), args, 1);
  const std::string &what = textArgument(runtime, *args[0]);
  if (!part.exists)
    return Value(int64_t{0});
  if (what.empty())
    return Value(static_cast<int64_t>(countCharacters(part.text)) + 1);
  int64_t n = 0;
  for (size_t at = part.text.find(what); at != std::string::npos; at = part.text.find(what, at + what.size()))
    ++n;
  return Value(n);
}

template <bool (*predicate)(uint32_t), bool ofEmpty = false> static Value allAre(Runtime &, const Value &self, Args) {
  bool all = ofEmpty || !self.string()->empty();
  forEachCharacter(*self.string(), [&](uint32_t c, std::string_view) { all &= predicate(c); });
  return Value(all);
}
static bool isAscii(uint32_t c) { return c < 0x80; }

template <bool upperCase> static Value methodCased(Runtime &runtime, const Value &self, Args args) {
  return findTest(upperCase ? "upper" : "lower")->call(runtime, self, args);
}

static Value methodIstitle(Runtime &, const Value &self, Args) {
  bool any = false, good = true, inWord = false;
  forEachCharacter(*self.string(), [&](uint32_t c, std::string_view) {
    const bool begins = isUpper(c) || isTitle(c), continues = isLower(c);
    good &= begins ? !inWord : continues ? inWord : true;
    inWord = begins || continues;
    any |= inWord;
  });
  return Value(any && good);
}

//===----------------------------------------------------------------------===//
// Changing
//===----------------------------------------------------------------------===//

static Value methodReplace(Runtime &runtime, const Value &self, Args args) {
  const std::string &old = textArgument(runtime, *args[0]);
  const std::string fresh = self.isMarkup() ? escaped(runtime, *args[1]) : textArgument(runtime, *args[1]);
  return runtime.stringLike(self, replaceAll(runtime, *self.string(), old, fresh, integerArgument(runtime, args, 2, -1)));
}

template <bool atEnd> static Value methodRemoveAffix(Runtime &runtime, const Value &self, Args args) {
  std::string_view text = *self.string();
  const std::string &affix = textArgument(runtime, *args[0]);
  if (atEnd && text.ends_with(affix))
    text.remove_suffix(affix.size());
  else if (!atEnd && text.starts_with(affix))
    text.remove_prefix(affix.size());
  return runtime.stringLike(self, std::string(text));
}

/// center, ljust, rjust: '^', '<' or '>' as format() has them.
template <char align> static Value methodPad(Runtime &runtime, const Value &self, Args args) {
  const int64_t width = toInteger(runtime, *args[0]);
  const std::string given = args.given(1) ? textArgument(runtime, *args[1]) : " ";
  const std::string fill = self.isMarkup() ? escaped(runtime, Value(given)) : given;
  if (countCharacters(fill) != 1)
    runtime.fail("expected one character to fill with, got '" + fill + "'");
  const auto have = static_cast<int64_t>(countCharacters(*self.string()));
  const int64_t missing = std::max<int64_t>(width < have ? 0 : width - have, 0);
  checkLength(runtime, static_cast<uint64_t>(missing));
  checkLength(runtime, static_cast<uint64_t>(missing) * fill.size());
  // Python's center puts the odd one left where the width is odd.
  const int64_t before = align == '<' ? 0 : align == '>' ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < before; ++i)
    out += fill;
  out += *self.string();
  for (int64_t i = before; i < missing; ++i)
    out += fill;
  return runtime.stringLike(self, std::move(out));
}

static Value methodZfill(Runtime &runtime, const Value &self, Args args) {
  const int64_t width = toInteger(runtime, *args[0]);
  const std::string &text = *self.string();
  const auto have = static_cast<int64_t>(countCharacters(text));
  if (width <= have)
    return self;
  checkLength(runtime, static_cast<uint64_t>(width));
  const bool sign = text.starts_with('-') || text.starts_with('+');
  std::string out = text.substr(0, sign);
  out.append(static_cast<size_t>(width - have), '0');
  return runtime.stringLike(self, out + text.substr(sign));
}

static Value methodExpandtabs(Runtime &runtime, const Value &self, Args args) {
  const int64_t size = integerArgument(runtime, args, 0, 8);
  checkLength(runtime, static_cast<uint64_t>(std::max<int64_t>(size, 0)));
  std::string out;
  int64_t column = 0;
  for (char c : *self.string()) {
    if (c == '\t') {
      const int64_t n = size > 0 ? size - column % size : 0;
      out.append(static_cast<size_t>(n), ' ');
      column += n;
      checkLength(runtime, out.size());
      continue;
    }
    out += c;
    column = c == '\n' || c == '\r' ? 0 : column + !utf8::isContinuation(c);
  }
  return runtime.stringLike(self, std::move(out));
}

static Value methodFormatMap(Runtime &runtime, const Value &self, Args args) {
  if (!args[0]->dict())
    runtime.fail(std::string("format_map: expected a dict, got ") + args[0]->typeName());
  Bound fields;
  for (const auto &[key, value] : args[0]->dict()->items())
    if (key.string())
      fields.named.emplace_back(*key.string(), &value);
  return formatFields(runtime, self, fields);
}

static Value methodStriptags(Runtime &runtime, const Value &self, Args) {
  return runtime.call(*findFilter("striptags"), self, {}, {});
}

void jinja::addStringMethods(std::vector<Method> &table) {
  // Python takes these by position only, but for the ones that say so.
  const std::vector<Builtin> methods = {
      {"strip", {"chars"}, 0, methodStrip<true, true>, false, true},
      {"lstrip", {"chars"}, 0, methodStrip<true, false>, false, true},
      {"rstrip", {"chars"}, 0, methodStrip<false, true>, false, true},
      {"split", {"sep", "maxsplit"}, 0, methodSplit<false>},
      {"rsplit", {"sep", "maxsplit"}, 0, methodSplit<true>},
      {"splitlines", {"keepends"}, 0, methodSplitlines},
      {"partition", {"sep"}, 1, methodPartition<false>, false, true},
      {"rpartition", {"sep"}, 1, methodPartition<true>, false, true},
      {"join", {"iterable"}, 1, methodJoin, false, true},
      {"startswith", {"prefix", "start", "end"}, 1, methodAffix<false>, false, true},
      {"endswith", {"suffix", "start", "end"}, 1, methodAffix<true>, false, true},
      {"find", {"sub", "start", "end"}, 1, methodFind<false, false>, false, true},
      {"rfind", {"sub", "start", "end"}, 1, methodFind<true, false>, false, true},
      {"index", {"sub", "start", "end"}, 1, methodFind<false, true>, false, true},
      {"rindex", {"sub", "start", "end"}, 1, methodFind<true, true>, false, true},
      {"count", {"sub", "start", "end"}, 1, methodCount, false, true},
      {"replace", {"old", "new", "count"}, 2, methodReplace, false, true},
      {"removeprefix", {"prefix"}, 1, methodRemoveAffix<false>, false, true},
      {"removesuffix", {"suffix"}, 1, methodRemoveAffix<true>, false, true},
      {"format", {}, 0, formatFields, true},
      {"format_map", {"mapping"}, 1, methodFormatMap, false, true},
      {"center", {"width", "fillchar"}, 1, methodPad<'^'>, false, true},
      {"ljust", {"width", "fillchar"}, 1, methodPad<'<'>, false, true},
      {"rjust", {"width", "fillchar"}, 1, methodPad<'>'>, false, true},
      {"zfill", {"width"}, 1, methodZfill, false, true},
      {"expandtabs", {"tabsize"}, 0, methodExpandtabs},
      {"upper", {}, 0, mapped<upper>},
      {"lower", {}, 0, mapped<lower>},
      {"capitalize", {}, 0, mapped<capitalize>},
      {"title", {}, 0, mapped<titleCase>},
      {"swapcase", {}, 0, mapped<swapCase>},
      {"casefold", {}, 0, mapped<caseFold>},
      {"isdigit", {}, 0, allAre<isDigit>},
      {"isdecimal", {}, 0, allAre<isDecimal>},
      {"isnumeric", {}, 0, allAre<isNumeric>},
      {"isalpha", {}, 0, allAre<isAlpha>},
      {"isalnum", {}, 0, allAre<isAlnum>},
      {"isspace", {}, 0, allAre<isSpace>},
      {"isascii", {}, 0, allAre<isAscii, true>},
      {"isprintable", {}, 0, allAre<isPrintable, true>},
      {"isupper", {}, 0, methodCased<true>},
      {"islower", {}, 0, methodCased<false>},
      {"istitle", {}, 0, methodIstitle},
  };
  for (const Builtin &method : methods)
    table.push_back({method, kString});
  table.push_back({{"striptags", {}, 0, methodStriptags}, kMarkup});
}
