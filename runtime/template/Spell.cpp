//===- Spell.cpp - Python's str() and repr() -------------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Interpreter.h"
#include "runtime/template/Iteration.h"

#include <charconv>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

std::string jinja::floatRepr(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string digits(buffer, end); // d.ddde[+-]xx, shortest
  size_t e = digits.find('e');
  int exponent = std::atoi(digits.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16)
    return digits; // Python also writes at least two exponent digits
  end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

static std::string spellBig(const BigInt &big) {
  if (big.bits() > 14284) // 4300 digits are less than that
    throw NoSpelling{"an integer of more than 4300 digits"};
  std::string digits = big.toString();
  if (digits.size() - big.isNegative() > 4300)
    throw NoSpelling{"an integer of more than 4300 digits"};
  return digits;
}

namespace {
class Speller {
public:
  std::string out;

  void str(const Value &value) {
    if (auto *s = value.string())
      put(*s);
    else if (!value.isUndefined())
      repr(value);
  }

  void repr(const Value &value) {
    if (++level > 2 * kMaxDataDepth) // only a namespace within itself
      throw NoSpelling{"a namespace that contains itself"};
    if (auto *s = value.string()) {
      put(value.isMarkup() ? "Markup(" : "");
      string(*s);
      put(value.isMarkup() ? ")" : "");
    } else if (auto *l = value.list()) {
      list(*l);
    } else if (auto *d = value.dict()) {
      dict(*d);
    } else if (auto *space = value.get<std::shared_ptr<Namespace>>()) {
      put("<Namespace ");
      dict((*space)->attributes);
      put(">");
    } else {
      put(scalar(value));
    }
    --level;
  }

private:
  void put(std::string_view text) {
    out += text;
    if (out.size() > kMaxText)
      throw TooLong();
  }

  static std::string scalar(const Value &value) {
    if (value.isUndefined())
      return "Undefined";
    if (value.isNone())
      return "None";
    if (auto *b = value.get<bool>())
      return *b ? "True" : "False";
    if (auto *i = value.get<int64_t>())
      return std::to_string(*i);
    if (auto *big = value.get<std::shared_ptr<const BigInt>>())
      return spellBig(**big);
    if (auto *d = value.get<double>())
      return floatRepr(*d);
    if (auto *loop = value.get<std::shared_ptr<LoopState>>(); loop && (*loop)->knownLength)
      return "<LoopContext " + std::to_string((*loop)->index + 1) + "/" + std::to_string(*(*loop)->knownLength) + ">";
    if (auto *callable = value.get<std::shared_ptr<const Callable>>(); callable && (*callable)->macro)
      return "<Macro " + (*callable)->macroName() + ">";
    throw NoSpelling{std::string("a ") + value.typeName() + ", which the reference prints with its address"};
  }

  void string(const std::string &s) {
    const bool hasSingle = s.find('\'') != std::string::npos, hasDouble = s.find('"') != std::string::npos;
    const char quote = hasSingle && !hasDouble ? '"' : '\'';
    put(std::string_view(&quote, 1));
    forEachCharacter(s, [&](uint32_t c, std::string_view bytes) {
      char escaped[16];
      if (c == '\\' || c == static_cast<uint32_t>(quote))
        out += '\\', out += static_cast<char>(c);
      else if (c == '\n')
        out += "\\n";
      else if (c == '\r')
        out += "\\r";
      else if (c == '\t')
        out += "\\t";
      else if (isPrintable(c))
        out += bytes;
      else
        out.append(escaped, static_cast<size_t>(std::snprintf(
                                escaped, sizeof(escaped), c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c)));
    });
    put(std::string_view(&quote, 1));
  }

  void range(const List &range) {
    put("range(" + std::to_string(range.start) + ", " + std::to_string(range.stop));
    put(range.step == 1 ? ")" : ", " + std::to_string(range.step) + ")");
  }

  void list(const List &list) {
    if (list.kind == List::Kind::Range)
      return range(list);
    if (list.kind == List::Kind::Set && list.items.empty())
      return put("set()");
    static constexpr std::pair<const char *, const char *> brackets[] = {
        {"[", "]"}, {"(", ")"}, {"", ""}, {"dict_keys([", "])"}, {"dict_values([", "])"}, {"dict_items([", "])"}, {"(", ")"},
        {"{", "}"}};
    auto [open, close] = brackets[static_cast<size_t>(list.kind)];
    put(open);
    for (size_t i = 0; i < list.items.size(); ++i) {
      put(i ? ", " : "");
      repr(list.items[i]);
    }
    if (list.isTuple() && list.items.size() == 1)
      put(",");
    put(close);
  }

  void dict(const Dict &dict) {
    const char *separator = "{";
    for (const auto &[key, value] : dict.items()) {
      put(separator);
      repr(key);
      put(": ");
      repr(value);
      separator = ", ";
    }
    put(dict.size() ? "}" : "{}");
  }

  unsigned level = 0;
};
} // namespace

std::string jinja::toRepr(const Value &value) {
  Speller speller;
  speller.repr(value);
  return std::move(speller.out);
}

std::string jinja::toString(const Value &value) {
  Speller speller;
  speller.str(value);
  return std::move(speller.out);
}
