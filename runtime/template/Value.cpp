#include "runtime/template/Value.h"

#include "llmc/Support/Error.h"
#include "runtime/template/Characters.h"
#include "runtime/template/Interpreter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

//===----------------------------------------------------------------------===//
// Dict
//===----------------------------------------------------------------------===//

size_t Dict::position(const Value &key) const {
  if (const std::string *s = key.string()) {
    auto it = index.find(*s);
    return it == index.end() ? entries.size() : it->second;
  }
  for (size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].first.isString() && equal(entries[i].first, key))
      return i;
  return entries.size();
}

const Value *Dict::find(const Value &key) const {
  size_t i = position(key);
  return i < entries.size() ? &entries[i].second : nullptr;
}

const Value *Dict::findName(std::string_view key) const {
  auto it = index.find(std::string(key));
  return it == index.end() ? nullptr : &entries[it->second].second;
}

static uint64_t addWeights(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

void Dict::set(Value key, Value value) {
  weight = addWeights(weight, addWeights(key.weight(), value.weight()));
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  size_t i = position(key);
  if (i < entries.size()) {
    entries[i].second = std::move(value);
    return;
  }
  if (const std::string *s = key.string())
    index.emplace(*s, i);
  entries.emplace_back(std::move(key), std::move(value));
}

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

Value Value::undefined(std::string name) {
  return Value(Storage(Undefined{std::make_shared<const std::string>(std::move(name))}));
}

static void checkDepth(unsigned depth) {
  if (depth > kMaxDataDepth)
    throw Error("template data: expected at most " + std::to_string(kMaxDataDepth) + " nested lists and dicts, got more");
}

Value Value::list(std::vector<Value> items, bool tuple) {
  auto list = std::make_shared<List>();
  for (const Value &item : items) {
    list->depth = std::max(list->depth, item.depth() + 1);
    list->weight = addWeights(list->weight, item.weight());
  }
  checkDepth(list->depth);
  list->items = std::move(items);
  list->tuple = tuple;
  return Value(Storage(std::shared_ptr<const List>(std::move(list))));
}

Value Value::dict(Dict dict) {
  checkDepth(dict.depth);
  return Value(Storage(std::make_shared<const Dict>(std::move(dict))));
}

const char *Value::typeName() const {
  if (auto *l = list())
    return l->lazy ? "generator" : l->tuple ? "tuple" : "list";
  static constexpr const char *names[] = {"undefined", "none", "bool",      "int",  "float",   "str",
                                          "list",      "dict", "namespace", "loop", "function"};
  return names[storage.index()];
}

bool Value::truthy() const {
  if (auto *b = get<bool>())
    return *b;
  if (auto *i = get<int64_t>())
    return *i != 0;
  if (auto *d = get<double>())
    return *d != 0;
  if (auto *s = string())
    return !s->empty();
  if (auto *l = list())
    return l->lazy || !l->items.empty();
  if (auto *d = dict())
    return d->size() != 0;
  return !isUndefined() && !isNone();
}

unsigned Value::depth() const {
  if (auto *l = list())
    return l->depth;
  if (auto *d = dict())
    return d->depth;
  return 0;
}

uint64_t Value::weight() const {
  if (auto *l = list())
    return l->weight;
  if (auto *d = dict())
    return d->weight;
  auto *s = string();
  return s ? 1 + s->size() / 16 : 1;
}

static bool equalNumbers(const Value &a, const Value &b) {
  auto integer = [](const Value &v, int64_t &out) {
    if (auto *flag = v.get<bool>())
      return out = *flag, true;
    if (auto *i = v.get<int64_t>())
      return out = *i, true;
    return false;
  };
  int64_t x, y;
  bool xInt = integer(a, x), yInt = integer(b, y);
  if (xInt && yInt)
    return x == y;
  double dx = xInt ? static_cast<double>(x) : *a.get<double>();
  double dy = yInt ? static_cast<double>(y) : *b.get<double>();
  return dx == dy;
}

static bool equalDicts(const Dict &a, const Dict &b) {
  if (a.size() != b.size())
    return false;
  return std::all_of(a.items().begin(), a.items().end(), [&](const auto &entry) {
    const Value *other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

bool jinja::equal(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return equalNumbers(a, b);
  if (a.storage.index() != b.storage.index())
    return false;
  if (auto *s = a.string())
    return *s == *b.string();
  if (auto *l = a.list())
    return l->tuple == b.list()->tuple && std::equal(l->items.begin(), l->items.end(), b.list()->items.begin(),
                                                     b.list()->items.end(), equal);
  if (auto *d = a.dict())
    return equalDicts(*d, *b.dict());
  if (auto *n = a.get<std::shared_ptr<Namespace>>())
    return *n == *b.get<std::shared_ptr<Namespace>>();
  if (auto *l = a.get<LoopState *>())
    return *l == *b.get<LoopState *>();
  if (auto *c = a.get<std::shared_ptr<const Callable>>())
    return *c == *b.get<std::shared_ptr<const Callable>>();
  return true; // undefined, none
}

//===----------------------------------------------------------------------===//
// Spelling
//===----------------------------------------------------------------------===//

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
    if (auto *s = value.string())
      string(*s);
    else if (auto *l = value.list())
      list(*l);
    else if (auto *d = value.dict())
      dict(*d);
    else
      put(scalar(value));
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
    if (auto *d = value.get<double>())
      return floatRepr(*d);
    return std::string("<") + value.typeName() + ">";
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

  void list(const List &list) {
    put(list.tuple ? "(" : "[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      put(i ? ", " : "");
      repr(list.items[i]);
    }
    if (list.tuple && list.items.size() == 1)
      put(",");
    put(list.tuple ? ")" : "]");
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
