//===- FiltersOnText.cpp - trim, indent, truncate, escape, ... -------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"
#include "runtime/template/WordWrap.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

std::string jinja::escaped(Runtime &runtime, const Value &value) {
  if (value.isMarkup())
    return *value.string();
  std::string out;
  for (char c : value.string() ? *value.string() : runtime.str(value))
    switch (c) {
    case '&': out += "&amp;"; break;
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '\'': out += "&#39;"; break;
    case '"': out += "&#34;"; break;
    default: out += c;
    }
  checkLength(runtime, out.size());
  runtime.charge(out.size());
  return out;
}

static Value filterEscape(Runtime &runtime, const Value &self, Args) {
  return self.isMarkup() ? self : Value::markup(escaped(runtime, self));
}

static Value filterForceEscape(Runtime &runtime, const Value &self, Args) {
  return Value::markup(escaped(runtime, Value(runtime.str(self))));
}

static Value filterSafe(Runtime &runtime, const Value &self, Args) {
  return self.isMarkup() ? self : Value::markup(runtime.str(self));
}

static Value filterTrim(Runtime &runtime, const Value &self, Args args) {
  Value text = softString(runtime, self);
  const std::string *chars = isGiven(args, 0) ? &textArgument(runtime, *args[0]) : nullptr;
  return runtime.stringLike(text, std::string(strip(*text.string(), chars, true, true)));
}

/// Separators are runs of white space and opening brackets; each piece between
/// them begins with a capital.
static Value filterTitle(Runtime &runtime, const Value &self, Args) {
  Value text = softString(runtime, self);
  std::string out, piece;
  bool separator = false;
  auto flush = [&] {
    const size_t first = piece.empty() ? 0 : utf8::decode(piece).length;
    out += upper(std::string_view(piece).substr(0, first)) + lower(std::string_view(piece).substr(first));
    piece.clear();
  };
  forEachCharacter(*text.string(), [&](uint32_t c, std::string_view bytes) {
    bool separates = c == '-' || isSpace(c) || c == '(' || c == '{' || c == '[' || c == '<';
    if (separates != separator)
      flush();
    separator = separates;
    piece += bytes;
  });
  flush();
  return runtime.string(std::move(out));
}

std::string jinja::replaceAll(Runtime &runtime, const std::string &text, const std::string &from, const std::string &to,
                              int64_t most) {
  std::string out;
  size_t at = 0;
  auto put = [&](std::string_view piece) {
    out += piece;
    checkLength(runtime, out.size());
  };
  if (from.empty() && text.empty() && most != 0)
    return to;
  while (most != 0) {
    if (from.empty()) { // between all characters
      put(to);
      if (at >= text.size())
        break;
      size_t n = utf8::decode(std::string_view(text).substr(at)).length;
      put(std::string_view(text).substr(at, n));
      at += n;
    } else {
      size_t found = text.find(from, at);
      if (found == std::string::npos)
        break;
      put(std::string_view(text).substr(at, found - at));
      put(to);
      at = found + from.size();
    }
    --most;
  }
  put(std::string_view(text).substr(at));
  return out;
}

static Value filterReplace(Runtime &runtime, const Value &self, Args args) {
  int64_t most = isGiven(args, 2) ? toInteger(runtime, *args[2]) : -1;
  return runtime.string(replaceAll(runtime, runtime.str(self), runtime.str(*args[0]), runtime.str(*args[1]), most));
}

std::vector<std::string> jinja::splitLines(const std::string &text, bool keepEnds) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    utf8::Decoded d = utf8::decode(std::string_view(text).substr(i));
    const uint32_t c = d.codePoint;
    size_t next = i + d.length;
    if ((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      if (c == '\r' && next < text.size() && text[next] == '\n')
        ++next;
      lines.push_back(text.substr(start, (keepEnds ? next : i) - start));
      start = next;
    }
    i = next;
  }
  if (start < text.size())
    lines.push_back(text.substr(start));
  return lines;
}

/// indent(width, first, blank)
static Value filterIndent(Runtime &runtime, const Value &self, Args args) {
  std::string pad;
  if (const std::string *text = args.given(0) ? args[0]->string() : nullptr) {
    pad = *text;
  } else {
    const int64_t width = integerArgument(runtime, args, 0, 4);
    checkLength(runtime, static_cast<uint64_t>(std::max<int64_t>(width, 0)));
    pad.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const std::vector<std::string> lines = splitLines(textArgument(runtime, self) + "\n", false);
  const bool blank = flag(args, 2);
  std::string out = flag(args, 1) ? pad : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i)
      out += "\n";
    if (i && (blank || !lines[i].empty()))
      out += pad;
    out += lines[i];
    checkLength(runtime, out.size());
  }
  return runtime.stringLike(self, std::move(out));
}

/// truncate(length, killwords, end, leeway)
static Value filterTruncate(Runtime &runtime, const Value &self, Args args) {
  const Value length = args.given(0) ? *args[0] : Value(int64_t{255}), leeway = isGiven(args, 3) ? *args[3] : Value(int64_t{5});
  const Value end = args.given(2) ? *args[2] : Value("...");
  const auto have = runtime.length(self), ending = runtime.length(end);
  auto less = [&](const Value &a, const Value &b) { return runtime.compare(a, b) == -1; };
  if (!have || !ending || less(length, Value(static_cast<int64_t>(*ending))) || less(leeway, Value(int64_t{0})))
    runtime.fail("truncate: expected a string, a length of at least that of the ending and a leeway of at least 0");
  if (!less(runtime.binary('+', length, leeway), Value(static_cast<int64_t>(*have))))
    return self;
  const std::string &text = textArgument(runtime, self);
  textArgument(runtime, end);
  std::string kept = text.substr(0, offsetOf(text, static_cast<size_t>(toInteger(runtime, length)) - *ending));
  if (!flag(args, 1))
    kept.resize(std::min(kept.rfind(' '), kept.size()));
  Value begin = runtime.stringLike(self, std::move(kept));
  return runtime.binary('+', begin, end);
}

static Value filterCenter(Runtime &runtime, const Value &self, Args args) {
  Value text = softString(runtime, self);
  Value width = args.given(0) ? *args[0] : Value(int64_t{80});
  return runtime.call(*findMethod(text, "center"), text, {width}, {});
}

static Value filterWordcount(Runtime &runtime, const Value &self, Args) {
  int64_t words = 0;
  bool inWord = false;
  forEachCharacter(runtime.str(self), [&](uint32_t c, std::string_view) {
    words += isWord(c) && !inWord;
    inWord = isWord(c);
  });
  return Value(words);
}

/// wordwrap(width, break_long_words, wrapstring, break_on_hyphens)
static Value filterWordwrap(Runtime &runtime, const Value &self, Args args) {
  WordWrap options;
  options.width = integerArgument(runtime, args, 0, 79);
  options.breakLongWords = flag(args, 1, true);
  options.breakOnHyphens = flag(args, 3, true);
  const std::string separator = isGiven(args, 2) ? textArgument(runtime, *args[2]) : "\n";
  std::string out;
  bool first = true;
  for (const std::string &line : splitLines(textArgument(runtime, self), false)) {
    // A long word is cut piece by piece.
    runtime.charge(line.size() * (8 + line.size() / static_cast<uint64_t>(std::max<int64_t>(options.width, 1)) / 16));
    if (!std::exchange(first, false))
      out += separator;
    if (options.width <= 0)
      runtime.fail("wordwrap: expected a width above 0, got " + std::to_string(options.width));
    bool firstPart = true;
    for (const std::string &part : wrapWords(line, options)) {
      if (!std::exchange(firstPart, false))
        out += separator;
      out += part;
      checkLength(runtime, out.size());
    }
  }
  return runtime.string(std::move(out));
}

static Value filterFormat(Runtime &runtime, const Value &self, Args args) {
  if (!args.extra.empty() && !args.named.empty())
    runtime.fail("format: expected positional or named arguments, got both");
  Value text = softString(runtime, self);
  if (!args.named.empty()) {
    Dict dict;
    for (const auto &[name, value] : args.named)
      dict.set(Value(std::string(name)), *value);
    return formatPercent(runtime, text, runtime.dict(std::move(dict)));
  }
  std::vector<Value> values;
  for (const Value *value : args.extra)
    values.push_back(*value);
  return formatPercent(runtime, text, runtime.list(std::move(values), true));
}

static std::string quoteURL(Runtime &runtime, const Value &value, bool forQuery) {
  std::string out;
  char escape[8];
  for (char c : runtime.str(value)) {
    if (std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_.-~").find(c) != std::string_view::npos ||
        (c == '/' && !forQuery))
      out += c;
    else if (c == ' ' && forQuery)
      out += '+';
    else
      out.append(escape, static_cast<size_t>(std::snprintf(escape, sizeof(escape), "%%%02X", static_cast<unsigned char>(c))));
  }
  checkLength(runtime, out.size());
  return out;
}

static Value filterUrlencode(Runtime &runtime, const Value &self, Args) {
  if (self.isString() || self.isNumber() || self.isNone())
    return runtime.string(quoteURL(runtime, self, false));
  std::string out;
  for (const Value &entry : self.dict() ? itemsOf(runtime, *self.dict()) : runtime.iterate(self)) {
    std::vector<Value> pair = runtime.iterate(entry);
    if (pair.size() != 2)
      runtime.fail("urlencode: expected pairs, got " + std::to_string(pair.size()) + " values");
    out += (out.empty() ? "" : "&") + quoteURL(runtime, pair[0], true) + "=" + quoteURL(runtime, pair[1], true);
    checkLength(runtime, out.size());
  }
  return runtime.string(std::move(out));
}

static Value filterXmlattr(Runtime &runtime, const Value &self, Args args) {
  if (!self.dict())
    runtime.fail(std::string("xmlattr: expected a dict, got ") + self.typeName());
  std::string out;
  for (const auto &[key, value] : self.dict()->items()) {
    if (value.isNone() || value.isUndefined())
      continue;
    const std::string &name = textArgument(runtime, key);
    if (name.find_first_of(std::string_view(" \t\n\r\f\v/>=")) != std::string::npos)
      runtime.fail("xmlattr: expected the name of an attribute, got " + runtime.repr(key));
    out += (out.empty() ? "" : " ") + escaped(runtime, key) + "=\"" + escaped(runtime, value) + "\"";
    checkLength(runtime, out.size());
  }
  return runtime.string((out.empty() || !flag(args, 0, true) ? "" : " ") + out);
}

static Value filterStriptags(Runtime &runtime, const Value &self, Args) {
  std::string text = stripTags(runtime.str(self));
  // Only the entities that escape() makes; thousands of others exist.
  static constexpr std::pair<std::string_view, char> known[] = {{"&lt;", '<'},  {"&gt;", '>'},   {"&#39;", '\''},
                                                                {"&#34;", '"'}, {"&quot;", '"'}, {"&amp;", '&'}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    auto found = std::find_if(std::begin(known), std::end(known),
                              [&](const auto &entity) { return text.compare(i, entity.first.size(), entity.first) == 0; });
    if (found != std::end(known)) {
      out += found->second;
      i += found->first.size();
      continue;
    }
    if (text[i] == '&' && i + 1 < text.size() && (std::isalpha(static_cast<unsigned char>(text[i + 1])) || text[i + 1] == '#'))
      runtime.fail("striptags: expected one of the entities &lt; &gt; &amp; &quot; &#39; &#34;, got '" + text.substr(i, 12) + "'");
    out += text[i++];
  }
  return runtime.string(std::move(out));
}

std::string jinja::stripTags(const std::string &text) {
  std::string out;
  size_t at = 0;
  for (size_t start; (start = text.find('<', at)) != std::string::npos;) {
    const bool comment = text.compare(start, 4, "<!--") == 0;
    size_t end = comment ? text.find("-->", start + 4) : text.find('>', start);
    if (end == std::string::npos)
      break;
    out.append(text, at, start - at);
    at = end + (comment ? 3 : 1);
  }
  out.append(text, at);
  std::string collapsed; // white space to single spaces
  bool gap = false;
  forEachCharacter(strip(out, nullptr, true, true), [&](uint32_t c, std::string_view bytes) {
    if (isSpace(c)) {
      gap = true;
      return;
    }
    collapsed += gap ? " " : "";
    gap = false;
    collapsed += bytes;
  });
  return collapsed;
}

template <std::string (*mapping)(std::string_view)>
static Value mapped(Runtime &runtime, const Value &self, Args) {
  Value text = softString(runtime, self);
  return runtime.stringLike(text, mapping(*text.string()));
}

void jinja::addTextFilters(std::vector<Builtin> &table) {
  const std::vector<Builtin> more = {
      {"trim", {"chars"}, 0, filterTrim},
      {"upper", {}, 0, mapped<upper>},
      {"lower", {}, 0, mapped<lower>},
      {"capitalize", {}, 0, mapped<capitalize>},
      {"title", {}, 0, filterTitle},
      {"replace", {"old", "new", "count"}, 2, filterReplace},
      {"indent", {"width", "first", "blank"}, 0, filterIndent},
      {"truncate", {"length", "killwords", "end", "leeway"}, 0, filterTruncate},
      {"center", {"width"}, 0, filterCenter},
      {"wordcount", {}, 0, filterWordcount},
      {"wordwrap", {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0, filterWordwrap},
      {"format", {}, 0, filterFormat, true},
      {"string", {}, 0, [](Runtime &r, const Value &v, Args) { return softString(r, v); }},
      {"safe", {}, 0, filterSafe},
      {"escape", {}, 0, filterEscape},
      {"e", {}, 0, filterEscape},
      {"forceescape", {}, 0, filterForceEscape},
      {"urlencode", {}, 0, filterUrlencode},
      {"xmlattr", {"autospace"}, 0, filterXmlattr},
      {"striptags", {}, 0, filterStriptags},
  };
  table.insert(table.end(), more.begin(), more.end());
}
