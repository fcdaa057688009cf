#include "runtime/template/Value.h"

#include "llmc/Support/Error.h"
#include "runtime/template/Iteration.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

//===----------------------------------------------------------------------===//
// Dict
//===----------------------------------------------------------------------===//

static std::string pointerKey(char kind, const void *pointer) {
  return std::string(1, kind) + std::to_string(reinterpret_cast<uintptr_t>(pointer));
}

/// Integral floats have the key of the integer.
static std::string numberKey(const Value &value) {
  if (auto *d = value.get<double>()) {
    if (std::isfinite(*d) && *d == std::trunc(*d))
      return "i" + BigInt::truncate(*d).toString(16);
    return "f" + std::to_string(std::bit_cast<uint64_t>(*d));
  }
  return "i" + toBigInt(value).toString(16);
}

std::string jinja::hashKey(const Value &value) {
  if (const std::string *s = value.string())
    return "s" + *s;
  if (value.isNumber())
    return numberKey(value);
  if (value.isNone())
    return "n";
  if (value.isUndefined())
    return "u";
  if (const List *l = value.list()) {
    if (l->kind == List::Kind::Range) // by its items
      return "r" + (l->items.empty() ? std::string() : hashKey(l->items.front()) + "," + hashKey(l->items.back())) + "," +
             std::to_string(l->items.size());
    if (l->kind == List::Kind::Values)
      return pointerKey('v', l);
    if (!l->isTuple())
      throw Unhashable{value.typeName()};
    std::string key = "t";
    for (const Value &item : l->items) {
      std::string part = hashKey(item);
      key += std::to_string(part.size()) + ":" + part;
    }
    return key;
  }
  if (value.dict())
    throw Unhashable{"dict"};
  if (auto *space = value.get<std::shared_ptr<Namespace>>())
    return pointerKey('p', space->get());
  if (auto *generator = value.get<std::shared_ptr<Generator>>())
    return pointerKey('p', generator->get());
  if (auto *loop = value.get<std::shared_ptr<LoopState>>())
    return pointerKey('p', loop->get());
  return pointerKey('p', value.get<std::shared_ptr<const Callable>>()->get());
}

const Value *Dict::find(const Value &key) const {
  auto it = index.find(hashKey(key));
  return it == index.end() ? nullptr : &entries[it->second].second;
}

const Value *Dict::findName(std::string_view key) const {
  auto it = index.find("s" + std::string(key));
  return it == index.end() ? nullptr : &entries[it->second].second;
}

static uint64_t addWeights(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

void Dict::set(Value key, Value value) {
  weight = addWeights(weight, addWeights(key.weight(), value.weight()));
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  auto [it, fresh] = index.emplace(hashKey(key), entries.size());
  if (fresh)
    entries.emplace_back(std::move(key), std::move(value));
  else
    entries[it->second].second = std::move(value);
}

void Dict::clear() {
  auto old = std::move(entries);
  entries.clear();
  index.clear();
}

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

Value Value::undefined(std::string name) {
  return Value(Storage(Undefined{std::make_shared<const std::string>(std::move(name))}));
}

Value Value::integer(const BigInt &i) {
  if (auto small = i.toInt64())
    return Value(*small);
  return Value(Storage(std::make_shared<const BigInt>(i)));
}

static void checkDepth(unsigned depth) {
  if (depth > kMaxDataDepth)
    throw Error("template data: expected at most " + std::to_string(kMaxDataDepth) + " nested lists and dicts, got more");
}

Value Value::list(List list) {
  for (const Value &item : list.items) {
    list.depth = std::max(list.depth, item.depth() + 1);
    list.weight = addWeights(list.weight, item.weight());
  }
  checkDepth(list.depth);
  return Value(Storage(std::make_shared<const List>(std::move(list))));
}

Value Value::list(std::vector<Value> items, bool tuple) {
  List list;
  list.items = std::move(items);
  list.kind = tuple ? List::Kind::Tuple : List::Kind::List;
  return Value::list(std::move(list));
}

Value Value::dict(Dict dict) {
  checkDepth(dict.depth);
  return Value(Storage(std::make_shared<const Dict>(std::move(dict))));
}

const char *Value::typeName() const {
  static constexpr const char *lists[] = {"list", "tuple", "range", "dict_keys", "dict_values", "dict_items", "tuple", "set"};
  if (auto *l = list())
    return lists[static_cast<size_t>(l->kind)];
  static constexpr const char *names[] = {"undefined", "none", "bool", "int",       "int",       "float", "str",
                                          "str",       "list", "dict", "namespace", "generator", "loop",  "function"};
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
    return !l->items.empty();
  if (auto *d = dict())
    return d->size() != 0;
  return !isUndefined() && !isNone();
}

unsigned Value::depth() const {
  if (auto *l = list())
    return l->depth;
  if (auto *d = dict())
    return d->depth;
  if (auto *g = get<std::shared_ptr<Generator>>())
    return (*g)->depth;
  return 0;
}

uint64_t Value::weight() const {
  if (auto *l = list())
    return l->weight;
  if (auto *d = dict())
    return d->weight;
  if (auto *b = get<std::shared_ptr<const BigInt>>())
    return 1 + (*b)->bits() / 64;
  auto *s = string();
  return s ? 1 + s->size() / 16 : 1;
}

BigInt jinja::toBigInt(const Value &integer) {
  if (auto *big = integer.get<std::shared_ptr<const BigInt>>())
    return **big;
  auto *i = integer.get<int64_t>();
  return BigInt(i ? *i : int64_t{*integer.get<bool>()});
}

double jinja::toDouble(const Value &number) {
  if (auto *d = number.get<double>())
    return *d;
  if (auto *i = number.get<int64_t>())
    return static_cast<double>(*i);
  return toBigInt(number).toDouble();
}

/// Exact also between integers and floats, as in Python.
int jinja::compareNumbers(const Value &a, const Value &b) {
  auto *i = a.get<int64_t>(), *j = b.get<int64_t>();
  if (i && j)
    return *i < *j ? -1 : *i > *j;
  auto *x = a.get<double>(), *y = b.get<double>();
  if (x && y)
    return std::isnan(*x) || std::isnan(*y) ? 2 : *x < *y ? -1 : *x > *y;
  if (!x && !y)
    return BigInt::compare(toBigInt(a), toBigInt(b));
  const double d = x ? *x : *y;
  if (std::isnan(d))
    return 2;
  int order; // of the integer against d
  if (std::isinf(d)) {
    order = d < 0 ? 1 : -1;
  } else {
    order = BigInt::compare(toBigInt(x ? b : a), BigInt::truncate(d));
    if (order == 0)
      order = d > std::trunc(d) ? -1 : d < std::trunc(d);
  }
  return x ? -order : order;
}

static bool equalDicts(const Dict &a, const Dict &b) {
  if (a.size() != b.size())
    return false;
  return std::all_of(a.items().begin(), a.items().end(), [&](const auto &entry) {
    const Value *other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

static bool equalLists(const List &a, const List &b) {
  if (&a == &b)
    return true;
  if (a.isSetLike() && b.isSetLike())
    return a.items.size() == b.items.size() && std::all_of(a.items.begin(), a.items.end(), [&](const Value &item) {
             return std::any_of(b.items.begin(), b.items.end(), [&](const Value &other) { return equal(item, other); });
           });
  if (a.kind == List::Kind::Values || (a.kind != b.kind && !(a.isTuple() && b.isTuple())))
    return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal);
}

bool jinja::equal(const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b) == 0;
  if (a.isString() && b.isString())
    return *a.string() == *b.string();
  if (a.storage.index() != b.storage.index())
    return false;
  if (auto *l = a.list())
    return equalLists(*l, *b.list());
  if (auto *d = a.dict())
    return d == b.dict() || equalDicts(*d, *b.dict());
  if (a.isUndefined() || a.isNone())
    return true;
  return hashKey(a) == hashKey(b); // identity
}
