//===- FiltersOnLists.cpp - filters of lists and dicts --------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

Value jinja::itemsOf(Runtime &runtime, const Dict &dict) {
  std::vector<Value> pairs;
  for (const auto &[key, value] : dict.items())
    pairs.push_back(runtime.list({key, value}, true));
  return runtime.list(std::move(pairs));
}

Value jinja::joinItems(Runtime &runtime, const std::vector<Value> &items, const std::string &separator) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i)
      text += separator;
    text += items[i].string() ? *items[i].string() : toString(items[i]);
    if (text.size() > runtime.bounds().stringBytes)
      break; // string() reports it
  }
  return runtime.string(std::move(text));
}

static std::string text(const Value *value) { return value && !value->isNone() ? toString(*value) : ""; }

static bool flag(Args args, size_t i, bool fallback = false) { return args.given(i) ? args[i]->truthy() : fallback; }

static Value filterLength(Runtime &runtime, const Value &self, Args) {
  if (auto *s = self.string())
    return Value(static_cast<int64_t>(countCharacters(*s)));
  if (auto *d = self.dict())
    return Value(static_cast<int64_t>(d->size()));
  if (auto *l = self.list(); l && !l->lazy)
    return Value(static_cast<int64_t>(l->items.size()));
  if (self.isUndefined())
    return Value(int64_t{0});
  runtime.fail(std::string("length: expected a string, list or dict, got ") + self.typeName());
}

static Value filterJoin(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> items = runtime.iterate(self);
  if (args.given(1) && !args[1]->isNone())
    for (Value &item : items)
      item = runtime.path(item, toString(*args[1]));
  return joinItems(runtime, items, text(args[0]));
}

static Value filterFirst(Runtime &runtime, const Value &self, Args) {
  std::vector<Value> items = runtime.iterate(self);
  return items.empty() ? Value::undefined("first item of nothing") : items.front();
}

static Value filterLast(Runtime &runtime, const Value &self, Args) {
  std::vector<Value> items = runtime.iterate(self);
  return items.empty() ? Value::undefined("last item of nothing") : items.back();
}

static Value filterList(Runtime &runtime, const Value &self, Args) { return runtime.list(runtime.iterate(self)); }

static Value filterReverse(Runtime &runtime, const Value &self, Args) {
  std::vector<Value> items = runtime.iterate(self);
  std::reverse(items.begin(), items.end());
  return self.isString() ? joinItems(runtime, items, "") : runtime.lazy(std::move(items));
}

static Value filterItems(Runtime &runtime, const Value &self, Args) {
  if (self.isUndefined())
    return runtime.lazy({});
  if (!self.dict())
    runtime.fail(std::string("items: expected a dict, got ") + self.typeName());
  return runtime.lazy(runtime.iterate(itemsOf(runtime, *self.dict())));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {
struct Keyed {
  Value key, item;
};
} // namespace

static Value foldCase(Runtime &runtime, const Value &value, bool caseSensitive) {
  return caseSensitive || !value.string() ? value : runtime.string(lower(*value.string()));
}

/// Stable; merge sort of our own, since the comparison may throw.
static void sortKeyed(Runtime &runtime, std::vector<Keyed> &items, bool reverse) {
  std::vector<Keyed> other(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t i = begin, middle = std::min(begin + width, items.size()), j = middle;
      size_t end = std::min(begin + 2 * width, items.size());
      for (size_t k = begin; k < end; ++k) {
        bool left = j >= end;
        if (!left && i < middle) {
          int order = runtime.compare(items[j].key, items[i].key);
          left = reverse ? order <= 0 : order >= 0;
        }
        other[k] = std::move(left ? items[i++] : items[j++]);
      }
    }
    items.swap(other);
  }
}

static Value unkeyed(Runtime &runtime, std::vector<Keyed> items) {
  std::vector<Value> out;
  for (Keyed &item : items)
    out.push_back(std::move(item.item));
  return runtime.list(std::move(out));
}

/// sort(reverse, case_sensitive, attribute)
static Value filterSort(Runtime &runtime, const Value &self, Args args) {
  std::vector<Keyed> items;
  for (Value &item : runtime.iterate(self)) {
    Value key = args.given(2) && !args[2]->isNone() ? runtime.path(item, toString(*args[2])) : item;
    items.push_back({foldCase(runtime, key, flag(args, 1)), std::move(item)});
  }
  sortKeyed(runtime, items, flag(args, 0));
  return unkeyed(runtime, std::move(items));
}

/// dictsort(case_sensitive, by, reverse)
static Value filterDictsort(Runtime &runtime, const Value &self, Args args) {
  if (!self.dict())
    runtime.fail(std::string("dictsort: expected a dict, got ") + self.typeName());
  std::string by = args.given(1) ? toString(*args[1]) : "key";
  if (by != "key" && by != "value")
    runtime.fail("dictsort: expected to sort by 'key' or 'value', got '" + by + "'");
  std::vector<Keyed> items;
  for (const auto &[key, value] : self.dict()->items())
    items.push_back({foldCase(runtime, by == "key" ? key : value, flag(args, 0)), runtime.list({key, value}, true)});
  sortKeyed(runtime, items, flag(args, 2));
  return unkeyed(runtime, std::move(items));
}

/// unique(case_sensitive, attribute)
static Value filterUnique(Runtime &runtime, const Value &self, Args args) {
  Dict seen;
  std::vector<Value> out;
  for (Value &item : runtime.iterate(self)) {
    Value key = args.given(1) && !args[1]->isNone() ? runtime.path(item, toString(*args[1])) : item;
    key = foldCase(runtime, key, flag(args, 0));
    if (key.list() || key.dict())
      runtime.fail(std::string("unique: expected items that are no lists or dicts, got a ") + key.typeName());
    runtime.charge(64 + 16 * seen.size() * !key.isString()); // a key that is no string is looked up linearly
    if (seen.find(key))
      continue;
    seen.set(key, Value(true));
    out.push_back(std::move(item));
  }
  return runtime.lazy(std::move(out));
}

template <int sign> static Value extreme(Runtime &runtime, const Value &self, Args args) {
  Value best, bestKey;
  bool any = false;
  for (Value &item : runtime.iterate(self)) {
    Value key = args.given(1) && !args[1]->isNone() ? runtime.path(item, toString(*args[1])) : item;
    key = foldCase(runtime, key, flag(args, 0));
    if (any && runtime.compare(key, bestKey) * sign <= 0)
      continue;
    any = true;
    best = std::move(item);
    bestKey = std::move(key);
  }
  return any ? best : Value::undefined("extreme of nothing");
}

/// sum(attribute, start)
static Value filterSum(Runtime &runtime, const Value &self, Args args) {
  Value total = args.given(1) ? *args[1] : Value(int64_t{0});
  for (const Value &item : runtime.iterate(self))
    total = runtime.binary(
        '+', total, args.given(0) && !args[0]->isNone() ? runtime.path(item, toString(*args[0])) : item);
  return total;
}

//===----------------------------------------------------------------------===//
// map, select
//===----------------------------------------------------------------------===//

static Value callNamedBuiltin(Runtime &runtime, const Builtin &builtin, const Value &item, Args args, size_t skip) {
  std::vector<Value> positional;
  for (size_t i = skip; i < args.extra.size(); ++i)
    positional.push_back(*args.extra[i]);
  std::vector<std::pair<std::string, Value>> named;
  for (const auto &[name, value] : args.named)
    named.emplace_back(std::string(name), *value);
  return runtime.call(builtin, item, positional, named);
}

/// jinja2 takes whatever is false (none, 0) for nothing to iterate over.
static std::vector<Value> iterateIfTrue(Runtime &runtime, const Value &value) {
  return value.truthy() ? runtime.iterate(value) : std::vector<Value>();
}

static Value filterMap(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> items = iterateIfTrue(runtime, self);
  if (args.extra.empty()) {
    const Value *attribute = nullptr, *fallback = nullptr;
    for (const auto &[name, value] : args.named)
      if (name == "attribute")
        attribute = value;
      else if (name == "default")
        fallback = value;
      else
        runtime.fail("map: expected attribute or default, got '" + std::string(name) + "'");
    if (!attribute)
      runtime.fail("map: expected a filter or an attribute, got none");
    for (Value &item : items) {
      item = runtime.path(item, toString(*attribute));
      if (fallback && item.isUndefined())
        item = *fallback;
    }
    return runtime.lazy(std::move(items));
  }
  const Builtin *filter = findFilter(toString(*args.extra[0]));
  if (!filter)
    runtime.fail("map: expected a known filter, got '" + toString(*args.extra[0]) + "'");
  for (Value &item : items)
    item = callNamedBuiltin(runtime, *filter, item, args, 1);
  return runtime.lazy(std::move(items));
}

/// select(test, ...) and selectattr(attribute, test, ...); without a test: truth.
template <bool keep, bool byAttribute> static Value filterSelect(Runtime &runtime, const Value &self, Args args) {
  const size_t testAt = byAttribute ? 1 : 0;
  if (byAttribute && args.extra.empty())
    runtime.fail("expected an attribute, got none");
  const Builtin *test = args.extra.size() > testAt ? findTest(toString(*args.extra[testAt])) : nullptr;
  if (!test && args.extra.size() > testAt)
    runtime.fail("expected a known test, got '" + toString(*args.extra[testAt]) + "'");
  std::vector<Value> out;
  for (Value &item : iterateIfTrue(runtime, self)) {
    Value subject = byAttribute ? runtime.path(item, toString(*args.extra[0])) : item;
    bool holds = test ? callNamedBuiltin(runtime, *test, subject, args, testAt + 1).truthy() : subject.truthy();
    if (holds == keep)
      out.push_back(std::move(item));
  }
  return runtime.lazy(std::move(out));
}

void jinja::addListFilters(std::vector<Builtin> &table) {
  const std::vector<Builtin> more = {
      {"length", {}, 0, filterLength},
      {"count", {}, 0, filterLength},
      {"join", {"d", "attribute"}, 0, filterJoin},
      {"first", {}, 0, filterFirst},
      {"last", {}, 0, filterLast},
      {"list", {}, 0, filterList},
      {"reverse", {}, 0, filterReverse},
      {"items", {}, 0, filterItems},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, filterSort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, filterDictsort},
      {"unique", {"case_sensitive", "attribute"}, 0, filterUnique},
      {"min", {"case_sensitive", "attribute"}, 0, extreme<-1>},
      {"max", {"case_sensitive", "attribute"}, 0, extreme<1>},
      {"sum", {"attribute", "start"}, 0, filterSum},
      {"map", {}, 0, filterMap, true},
      {"select", {}, 0, filterSelect<true, false>, true},
      {"reject", {}, 0, filterSelect<false, false>, true},
      {"selectattr", {}, 0, filterSelect<true, true>, true},
      {"rejectattr", {}, 0, filterSelect<false, true>, true},
  };
  table.insert(table.end(), more.begin(), more.end());
}
