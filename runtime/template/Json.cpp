//===- Json.cpp - JSON in (context data) and out (the tojson filter) ------===//
#include "llmc/Support/Error.h"
#include "runtime/template/Characters.h"
#include "runtime/template/Value.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

using namespace llmc;
using namespace llmc::jinja;

namespace {
/// Builds values from what the parser reads, without recursion.
class Builder : public nlohmann::json::json_sax_t {
public:
  explicit Builder(const std::string &what) : what(what) {}
  Value result;

  bool null() override { return put(Value::none()); }
  bool boolean(bool value) override { return put(Value(value)); }
  bool number_integer(number_integer_t value) override { return put(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= INT64_MAX ? put(Value(static_cast<int64_t>(value))) : big(std::to_string(value));
  }
  bool number_float(number_float_t value, const std::string &text) override {
    return text.find_first_of(".eE") == std::string::npos ? big(text) : put(Value(value));
  }
  bool string(std::string &value) override { return put(Value(std::move(value))); }
  bool binary(binary_t &) override { return false; }

  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool key(std::string &name) override {
    stack.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    Value made = Value::dict(std::move(stack.back().dict));
    stack.pop_back();
    return put(std::move(made));
  }
  bool end_array() override {
    Value made = Value::list(std::move(stack.back().items));
    stack.pop_back();
    return put(std::move(made));
  }

  bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &) override {
    throw Error(what + ": expected JSON, got an error at byte " + std::to_string(position));
  }

private:
  struct Open {
    std::vector<Value> items;
    Dict dict;
    std::optional<std::string> key; // of an object
  };

  bool open() {
    if (stack.size() >= kMaxDataDepth)
      throw Error(what + ": expected at most " + std::to_string(kMaxDataDepth) + " nested lists and objects, got more");
    stack.emplace_back();
    return true;
  }

  bool put(Value value) {
    if (stack.empty())
      result = std::move(value);
    else if (Open &top = stack.back(); top.key)
      top.dict.set(Value(*top.key), std::move(value));
    else
      top.items.push_back(std::move(value));
    return true;
  }

  bool big(std::string_view digits) {
    const bool minus = digits.starts_with('-');
    digits.remove_prefix(minus);
    auto value = digits.size() <= 4300 ? BigInt::parse(digits, 10) : std::nullopt; // Python's bound
    if (!value)
      throw Error(what + ": expected integers of at most 4300 digits, got " + std::to_string(digits.size()));
    return put(Value::integer(minus ? -*value : *value));
  }

  const std::string &what;
  std::vector<Open> stack;
};
} // namespace

Value Value::fromJson(std::string_view text, const std::string &what) {
  Builder builder(what);
  if (!nlohmann::json::sax_parse(text, &builder))
    throw Error(what + ": expected JSON, got something else");
  return std::move(builder.result);
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
    else if (auto *l = value.list(); l && (l->kind == List::Kind::List || l->isTuple()))
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
    if (value.isInteger())
      return toString(value);
    if (auto *d = value.get<double>())
      return std::isnan(*d) ? "NaN" : std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity") : floatRepr(*d);
    throw Error(std::string("expected a value that JSON can express, got ") + value.typeName());
  }

  void newline(int level) {
    if (!style.pretty)
      return;
    out += '\n';
    for (int i = 0; i < level; ++i)
      out += style.indent;
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
    std::vector<std::pair<const Value *, const Value *>> entries;
    for (const auto &[key, value] : dict.items())
      entries.emplace_back(&key, &value);
    if (style.sortKeys)
      sortByKey(entries);
    out += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i)
        out += style.itemSeparator;
      newline(level + 1);
      const Value &key = *entries[i].first;
      writeString(out, key.string() ? *key.string() : scalar(key), style.asciiOnly);
      out += style.keySeparator;
      write(*entries[i].second, level + 1);
    }
    newline(level);
    out += '}';
  }

  /// As Python orders keys: all strings, or all numbers.
  static void sortByKey(std::vector<std::pair<const Value *, const Value *>> &entries) {
    const bool strings = entries[0].first->isString();
    for (const auto &entry : entries)
      if (entries.size() > 1 && (strings ? !entry.first->isString() : !entry.first->isNumber()))
        throw Error("expected keys of one type to sort, got several");
    std::sort(entries.begin(), entries.end(), [&](const auto &a, const auto &b) {
      return strings ? *a.first->string() < *b.first->string() : compareNumbers(*a.first, *b.first) == -1;
    });
  }

  const JsonStyle &style;
};
} // namespace

std::string jinja::toJson(const Value &value, const JsonStyle &style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}
