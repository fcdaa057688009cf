//===- Json.cpp - JSON in (context data) and out (the tojson filter) ------===//
#include "llmc/Support/Error.h"
#include "runtime/template/Characters.h"
#include "runtime/template/Value.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

static Value convert(const nlohmann::ordered_json &json, const std::string &what, unsigned depth) {
  if (depth > kMaxDataDepth)
    throw Error(what + ": expected at most " + std::to_string(kMaxDataDepth) + " nested lists and objects, got more");
  using Type = nlohmann::json::value_t;
  switch (json.type()) {
  case Type::boolean:
    return Value(json.get<bool>());
  case Type::number_integer:
    return Value(json.get<int64_t>());
  case Type::number_unsigned:
    if (json.get<uint64_t>() > INT64_MAX)
      throw Error(what + ": expected integers below 2^63, got " + json.dump());
    return Value(json.get<int64_t>());
  case Type::number_float:
    return Value(json.get<double>());
  case Type::string:
    return Value(json.get<std::string>());
  case Type::array: {
    std::vector<Value> items;
    for (const auto &item : json)
      items.push_back(convert(item, what, depth + 1));
    return Value::list(std::move(items));
  }
  case Type::object: {
    Dict dict;
    for (const auto &[key, value] : json.items())
      dict.set(Value(key), convert(value, what, depth + 1));
    return Value::dict(std::move(dict));
  }
  default:
    return Value::none();
  }
}

Value Value::fromJson(std::string_view text, const std::string &what) {
  try {
    return convert(nlohmann::ordered_json::parse(text), what, 1);
  } catch (const nlohmann::json::parse_error &error) {
    throw Error(what + ": expected JSON, got an error at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception &error) {
    throw Error(what + ": expected JSON, got " + error.what());
  }
}

static void writeString(std::string &out, const std::string &s, bool asciiOnly) {
  char escaped[16];
  auto unicode = [&](uint32_t c) {
    out.append(escaped, static_cast<size_t>(std::snprintf(escaped, sizeof(escaped), "\\u%04x", c)));
  };
  out += '"';
  forEachCharacter(s, [&](uint32_t c, std::string_view bytes) {
    switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default: break;
    }
    if (c < 0x20 || (asciiOnly && c > 0x7E && c < 0x10000)) {
      unicode(c);
    } else if (asciiOnly && c >= 0x10000) {
      unicode(0xD7C0 + (c >> 10));
      unicode(0xDC00 + (c & 0x3FF));
    } else {
      out += bytes;
    }
  });
  out += '"';
}

namespace {
class JsonWriter {
public:
  JsonWriter(const JsonStyle &style) : style(style) {}
  std::string out;

  void write(const Value &value, int level) {
    if (out.size() > kMaxText)
      throw TooLong();
    if (auto *s = value.string())
      writeString(out, *s, style.asciiOnly);
    else if (auto *l = value.list(); l && !l->lazy)
      writeList(*l, level);
    else if (auto *d = value.dict())
      writeDict(*d, level);
    else
      out += scalar(value);
  }

private:
  static std::string scalar(const Value &value) {
    if (value.isNone())
      return "null";
    if (auto *b = value.get<bool>())
      return *b ? "true" : "false";
    if (auto *i = value.get<int64_t>())
      return std::to_string(*i);
    if (auto *d = value.get<double>())
      return std::isnan(*d) ? "NaN" : std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity") : floatRepr(*d);
    throw Error(std::string("expected a value that JSON can express, got ") + value.typeName());
  }

  void newline(int level) {
    if (style.indent < 0)
      return;
    out += '\n';
    out.append(static_cast<size_t>(style.indent) * static_cast<size_t>(level), ' ');
  }

  void writeList(const List &list, int level) {
    if (list.items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i)
        out += style.itemSeparator;
      newline(level + 1);
      write(list.items[i], level + 1);
    }
    newline(level);
    out += ']';
  }

  void writeDict(const Dict &dict, int level) {
    if (dict.size() == 0) {
      out += "{}";
      return;
    }
    std::vector<std::pair<std::string, const Value *>> entries;
    for (const auto &[key, value] : dict.items())
      entries.emplace_back(key.isString() ? *key.string() : scalar(key), &value);
    if (style.sortKeys)
      std::sort(entries.begin(), entries.end(), [](auto &a, auto &b) { return a.first < b.first; });
    out += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i)
        out += style.itemSeparator;
      newline(level + 1);
      writeString(out, entries[i].first, style.asciiOnly);
      out += style.keySeparator;
      write(*entries[i].second, level + 1);
    }
    newline(level);
    out += '}';
  }

  const JsonStyle &style;
};
} // namespace

std::string jinja::toJson(const Value &value, const JsonStyle &style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}
