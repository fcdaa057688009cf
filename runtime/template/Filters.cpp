//===- Filters.cpp - filters of strings and numbers, and the table --------===//
#include "runtime/template/Filters.h"

#include "llmc/Support/Error.h"
#include "runtime/template/Characters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::jinja;

static Value filterTrim(Runtime &runtime, const Value &self, Args args) {
  std::string text = toString(self), chars = args.given(0) && !args[0]->isNone() ? toString(*args[0]) : "";
  return runtime.string(std::string(strip(text, chars, true, true)));
}

static Value filterTitle(Runtime &runtime, const Value &self, Args) {
  std::string out, word;
  auto flush = [&] {
    out += capitalize(word);
    word.clear();
  };
  forEachCharacter(toString(self), [&](uint32_t c, std::string_view bytes) {
    if (c == '-' || isSpace(c) || c == '(' || c == '{' || c == '[' || c == '<') {
      flush();
      out += bytes;
    } else {
      word += bytes;
    }
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
    if (out.size() > runtime.bounds().stringBytes)
      runtime.fail("expected strings of at most " + std::to_string(runtime.bounds().stringBytes) + " bytes, got more");
  };
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
  int64_t most = args.given(2) && args[2]->get<int64_t>() ? *args[2]->get<int64_t>() : -1;
  return runtime.string(replaceAll(runtime, toString(self), toString(*args[0]), toString(*args[1]), most));
}

static Value filterDefault(Runtime &, const Value &self, Args args) {
  bool use = self.isUndefined() || (args.given(1) && args[1]->truthy() && !self.truthy());
  return !use ? self : args.given(0) ? *args[0] : Value("");
}

static Value filterToJson(Runtime &runtime, const Value &self, Args args) {
  JsonStyle style;
  style.asciiOnly = args.given(0) && args[0]->truthy();
  if (args.given(1) && !args[1]->isNone()) {
    auto *indent = args[1]->get<int64_t>();
    if (!indent || *indent < 0 || *indent > 64)
      runtime.fail("tojson: expected an indent from 0 to 64, got " + toRepr(*args[1]));
    style.indent = static_cast<int>(*indent);
    style.itemSeparator = ",";
  }
  if (args.given(2) && !args[2]->isNone()) {
    const List *pair = args[2]->list();
    if (!pair || pair->items.size() != 2 || !pair->items[0].string() || !pair->items[1].string())
      runtime.fail("tojson: expected two strings as separators, got " + toRepr(*args[2]));
    style.itemSeparator = *pair->items[0].string();
    style.keySeparator = *pair->items[1].string();
  }
  style.sortKeys = args.given(3) && args[3]->truthy();
  std::string text;
  try {
    text = toJson(self, style);
  } catch (const Error &error) {
    runtime.fail(std::string("tojson: ") + error.what());
  }
  return runtime.string(std::move(text));
}

static Value filterIndent(Runtime &runtime, const Value &self, Args args) {
  std::string pad;
  if (args.given(0) && args[0]->string()) {
    pad = *args[0]->string();
  } else {
    int64_t width = args.given(0) && args[0]->get<int64_t>() ? *args[0]->get<int64_t>() : 4;
    if (width > 1000)
      runtime.fail("indent: expected a width of at most 1000, got " + std::to_string(width));
    pad.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = args.given(1) && args[1]->truthy(), blank = args.given(2) && args[2]->truthy();
  std::string text = toString(self), out = first ? pad : "";
  for (size_t at = 0;;) {
    size_t end = text.find('\n', at);
    out.append(text, at, end == std::string::npos ? end : end - at);
    if (end == std::string::npos)
      break;
    out += '\n';
    at = end + 1;
    size_t next = std::min(text.find('\n', at), text.size());
    if (blank || next > at)
      out += pad;
    if (out.size() > runtime.bounds().stringBytes)
      break; // string() reports it
  }
  return runtime.string(std::move(out));
}

/// Python's int(text) or float(text) after stripping; false: not a number.
static bool parseNumber(const std::string &given, int base, int64_t *integer, double *real) {
  std::string text(strip(given, "", true, true));
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  if (text.empty() || isSpace(static_cast<unsigned char>(text[0])))
    return false;
  char *end = nullptr;
  errno = 0;
  if (integer)
    *integer = std::strtoll(text.c_str(), &end, base);
  else
    *real = std::strtod(text.c_str(), &end);
  bool hex = real && text.find_first_of("xX") != std::string::npos; // strtod's extension
  return *end == '\0' && !(integer && errno) && !hex;
}

static Value filterInt(Runtime &runtime, const Value &self, Args args) {
  Value fallback = args.given(0) ? *args[0] : Value(int64_t{0});
  int base = args.given(1) && args[1]->get<int64_t>() ? static_cast<int>(*args[1]->get<int64_t>()) : 10;
  if (base < 2 || base > 36)
    runtime.fail("int: expected a base from 2 to 36, got " + std::to_string(base));
  auto fromDouble = [&](double d) { return std::abs(d) < 9.2e18 ? Value(static_cast<int64_t>(d)) : fallback; };
  if (auto *b = self.get<bool>())
    return Value(static_cast<int64_t>(*b));
  if (self.get<int64_t>())
    return self;
  if (auto *d = self.get<double>())
    return fromDouble(*d);
  if (self.isUndefined())
    runtime.fail("int: expected a defined value");
  int64_t i;
  double d;
  if (self.string() && parseNumber(*self.string(), base, &i, nullptr))
    return Value(i);
  if (self.string() && parseNumber(*self.string(), base, nullptr, &d))
    return fromDouble(d);
  return fallback;
}

static Value filterFloat(Runtime &runtime, const Value &self, Args args) {
  if (self.get<double>())
    return self;
  if (self.isNumber())
    return runtime.binary('*', self, Value(1.0));
  if (self.isUndefined())
    runtime.fail("float: expected a defined value");
  double d;
  if (self.string() && parseNumber(*self.string(), 10, nullptr, &d))
    return Value(d);
  return args.given(0) ? *args[0] : Value(0.0);
}

static Value filterAbs(Runtime &runtime, const Value &self, Args) {
  if (!self.isNumber())
    runtime.fail(std::string("abs: expected a number, got ") + self.typeName());
  if (auto *d = self.get<double>())
    return Value(std::abs(*d));
  return runtime.compare(self, Value(int64_t{0})) < 0 ? runtime.binary('-', Value(int64_t{0}), self)
                                                      : runtime.binary('+', Value(int64_t{0}), self);
}

static Value filterRound(Runtime &runtime, const Value &self, Args args) {
  if (!self.isNumber())
    runtime.fail(std::string("round: expected a number, got ") + self.typeName());
  double value = *runtime.binary('*', self, Value(1.0)).get<double>();
  int64_t precision = args.given(0) && args[0]->get<int64_t>() ? *args[0]->get<int64_t>() : 0;
  std::string method = args.given(1) ? toString(*args[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    runtime.fail("round: expected the method common, ceil or floor, got '" + method + "'");
  if (precision < -15 || precision > 15)
    runtime.fail("round: expected a precision from -15 to 15, got " + std::to_string(precision));
  if (!std::isfinite(value))
    return Value(value);
  if (!self.get<double>() && method == "common" && precision >= 0)
    return runtime.binary('+', self, Value(int64_t{0}));
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil" || method == "floor")
    return Value((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale);
  if (precision < 0)
    return Value(std::nearbyint(value * scale) / scale);
  char buffer[400]; // printf rounds the exact decimal half to even, as Python does
  std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(precision), value);
  return Value(std::strtod(buffer, nullptr));
}

std::string jinja::formatPercent(Runtime &runtime, const std::string &format, const std::vector<Value> &values) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    char kind = i + 1 < format.size() ? format[++i] : '\0';
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (std::strchr("sdirf", kind) == nullptr || kind == '\0')
      runtime.fail("format: expected %s, %d, %i, %r, %f or %%, got '" + std::string("%") + (kind ? std::string(1, kind) : "") + "'");
    if (next >= values.size())
      runtime.fail("format: expected more than " + std::to_string(values.size()) + " values for '" + format + "'");
    const Value &value = values[next++];
    if (kind == 's' || kind == 'r') {
      out += kind == 's' ? toString(value) : toRepr(value);
      continue;
    }
    if (!value.isNumber())
      runtime.fail(std::string("format: expected a number, got ") + value.typeName());
    double d = *runtime.binary('*', value, Value(1.0)).get<double>();
    char buffer[400];
    std::snprintf(buffer, sizeof(buffer), "%.*f", kind == 'f' ? 6 : 0, kind == 'f' ? d : std::trunc(d));
    out += value.get<int64_t>() && kind != 'f' ? toString(value) : buffer;
  }
  if (next < values.size())
    runtime.fail("format: expected " + std::to_string(next) + " values for '" + format + "', got " +
                 std::to_string(values.size()));
  return out;
}

static Value filterFormat(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> values;
  for (const Value *value : args.extra)
    values.push_back(*value);
  if (!args.named.empty())
    runtime.fail("format: expected positional arguments, got '" + std::string(args.named[0].first) + "'");
  return runtime.string(formatPercent(runtime, toString(self), values));
}

template <std::string (*mapping)(std::string_view)>
static Value mapped(Runtime &runtime, const Value &self, Args) {
  return runtime.string(mapping(toString(self)));
}

const Builtin *jinja::findFilter(std::string_view name) {
  static const std::vector<Builtin> table = [] {
    std::vector<Builtin> all = {
        {"trim", {"chars"}, 0, filterTrim},
        {"upper", {}, 0, mapped<upper>},
        {"lower", {}, 0, mapped<lower>},
        {"capitalize", {}, 0, mapped<capitalize>},
        {"title", {}, 0, filterTitle},
        {"replace", {"old", "new", "count"}, 2, filterReplace},
        {"default", {"default_value", "boolean"}, 0, filterDefault},
        {"d", {"default_value", "boolean"}, 0, filterDefault},
        {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, filterToJson},
        {"indent", {"width", "first", "blank"}, 0, filterIndent},
        {"int", {"default", "base"}, 0, filterInt},
        {"float", {"default"}, 0, filterFloat},
        {"abs", {}, 0, filterAbs},
        {"round", {"precision", "method"}, 0, filterRound},
        {"format", {}, 0, filterFormat, true},
        {"string", {}, 0, [](Runtime &r, const Value &v, Args) { return v.isString() ? v : r.string(toString(v)); }},
        // Nothing is escaped, so there is nothing to exempt.
        {"safe", {}, 0, [](Runtime &r, const Value &v, Args) { return v.isString() ? v : r.string(toString(v)); }},
    };
    addListFilters(all);
    return all;
  }();
  auto found = std::find_if(table.begin(), table.end(), [&](const Builtin &b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}
