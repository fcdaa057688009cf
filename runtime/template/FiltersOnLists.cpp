//===- FiltersOnLists.cpp - join, first, sort, min, ... --------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"
#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

std::vector<Value> jinja::itemsOf(Runtime &runtime, const Dict &dict) {
  std::vector<Value> pairs;
  for (const auto &[key, value] : dict.items())
    pairs.push_back(runtime.list({key, value}, true));
  return pairs;
}

void jinja::checkLength(Runtime &runtime, uint64_t bytes) {
  if (bytes > runtime.bounds().stringBytes)
    runtime.fail("expected strings of at most " + std::to_string(runtime.bounds().stringBytes) + " bytes, got more");
}

std::string jinja::joinItems(Runtime &runtime, const std::vector<Value> &items, const std::string &separator) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i)
      text += separator;
    text += items[i].string() ? *items[i].string() : runtime.str(items[i]);
    checkLength(runtime, text.size());
  }
  return text;
}

int64_t jinja::toInteger(Runtime &runtime, const Value &value) {
  if (!value.isInteger())
    runtime.fail(std::string("expected an integer, got ") + value.typeName());
  const BigInt big = toBigInt(value);
  return big.toInt64().value_or(big.isNegative() ? INT64_MIN : INT64_MAX);
}

int64_t jinja::integerArgument(Runtime &runtime, Args args, size_t i, int64_t fallback) {
  return args.given(i) ? toInteger(runtime, *args[i]) : fallback;
}

const std::string &jinja::textArgument(Runtime &runtime, const Value &value) {
  const std::string *s = value.string();
  if (!s)
    runtime.fail(std::string("expected a string argument, got ") + value.typeName());
  return *s;
}

Value jinja::softString(Runtime &runtime, const Value &value) {
  return value.isString() ? value : runtime.string(runtime.str(value));
}

//===----------------------------------------------------------------------===//
// Paths of attributes
//===----------------------------------------------------------------------===//

AttributePath::AttributePath(Runtime &runtime, const Value *attribute, const Value *given) {
  if (given && !given->isNone())
    fallback = *given;
  if (!attribute || attribute->isNone())
    return;
  const std::string *text = attribute->string();
  if (!text) {
    parts.push_back(*attribute);
    return;
  }
  for (size_t at = 0;;) {
    size_t dot = std::min(text->find('.', at), text->size());
    std::string part = text->substr(at, dot - at);
    bool digits = !part.empty();
    forEachCharacter(part, [&](uint32_t c, std::string_view) { digits &= isDigit(c); });
    if (!digits) {
      parts.emplace_back(part);
    } else if (auto number = parseInteger(part, 10)) {
      parts.push_back(Value::integer(*number));
    } else {
      runtime.fail("expected a number in the path of attributes, got '" + part + "'");
    }
    if (dot == text->size())
      return;
    at = dot + 1;
  }
}

Value AttributePath::get(Runtime &runtime, const Value &item) const {
  Value value = item;
  for (const Value &part : parts) {
    value = runtime.item(value, part);
    if (fallback && value.isUndefined())
      value = *fallback;
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

static Value filterLength(Runtime &runtime, const Value &self, Args) {
  auto n = runtime.length(self);
  if (!n)
    runtime.fail(std::string("length: expected a string, list or dict, got ") + self.typeName());
  return Value(static_cast<int64_t>(*n));
}

static Value filterJoin(Runtime &runtime, const Value &self, Args args) {
  std::vector<Value> items = runtime.iterate(self);
  if (isGiven(args, 1)) {
    AttributePath path(runtime, args[1]);
    for (Value &item : items)
      item = path.get(runtime, item);
  }
  return runtime.string(joinItems(runtime, items, args.given(0) ? runtime.str(*args[0]) : ""));
}

static Value filterFirst(Runtime &runtime, const Value &self, Args) {
  Cursor cursor(runtime, self);
  Value first;
  return cursor.next(runtime, first) ? first : Value::undefined("first item of nothing");
}

static bool isReversible(const Value &value) {
  return (value.list() && value.list()->kind != List::Kind::Set) || value.dict() || value.isString() || value.isUndefined();
}

static Value filterLast(Runtime &runtime, const Value &self, Args) {
  if (!isReversible(self))
    runtime.fail(std::string("last: expected a list, dict or string, got ") + self.typeName());
  std::vector<Value> items = runtime.iterate(self);
  return items.empty() ? Value::undefined("last item of nothing") : items.back();
}

static Value filterList(Runtime &runtime, const Value &self, Args) { return runtime.list(runtime.iterate(self)); }

static Value filterReverse(Runtime &runtime, const Value &self, Args) {
  if (!isReversible(self) && !self.list() && !self.is<std::shared_ptr<Generator>>() && !self.is<std::shared_ptr<LoopState>>())
    runtime.fail(std::string("reverse: expected something to iterate over, got ") + self.typeName());
  auto items = std::make_shared<std::vector<Value>>(runtime.iterate(self));
  if (self.isString()) {
    std::reverse(items->begin(), items->end());
    return runtime.stringLike(self, joinItems(runtime, *items, ""));
  }
  if (!isReversible(self)) {
    std::reverse(items->begin(), items->end());
    return runtime.list(std::move(*items));
  }
  return makeGenerator(runtime, self, [items](Runtime &, Value &out) {
    if (items->empty())
      return false;
    out = std::move(items->back());
    items->pop_back();
    return true;
  });
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
  return caseSensitive || !value.string() ? value : runtime.stringLike(value, lower(*value.string()));
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
          left = reverse ? order != 1 : order != -1;
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

/// sort(reverse, case_sensitive, attribute), where attribute may be several.
static Value filterSort(Runtime &runtime, const Value &self, Args args) {
  std::vector<AttributePath> paths;
  if (const std::string *several = isGiven(args, 2) ? args[2]->string() : nullptr) {
    for (size_t at = 0; at <= several->size();) {
      size_t comma = std::min(several->find(',', at), several->size());
      Value one(several->substr(at, comma - at));
      paths.emplace_back(runtime, &one);
      at = comma + 1;
    }
  } else {
    paths.emplace_back(runtime, args[2]);
  }
  std::vector<Keyed> items;
  for (Value &item : runtime.iterate(self)) {
    std::vector<Value> key; // Python compares the lists
    for (const AttributePath &path : paths)
      key.push_back(foldCase(runtime, path.get(runtime, item), flag(args, 1)));
    items.push_back({runtime.list(std::move(key)), std::move(item)});
  }
  sortKeyed(runtime, items, flag(args, 0));
  return unkeyed(runtime, std::move(items));
}

/// dictsort(case_sensitive, by, reverse)
static Value filterDictsort(Runtime &runtime, const Value &self, Args args) {
  const std::string *by = args.given(1) ? args[1]->string() : nullptr;
  if (args.given(1) && (!by || (*by != "key" && *by != "value")))
    runtime.fail("dictsort: expected to sort by 'key' or 'value', got " + runtime.repr(*args[1]));
  if (!self.dict())
    runtime.fail(std::string("dictsort: expected a dict, got ") + self.typeName());
  std::vector<Keyed> items;
  for (const auto &[key, value] : self.dict()->items())
    items.push_back({foldCase(runtime, by && *by == "value" ? value : key, flag(args, 0)), runtime.list({key, value}, true)});
  sortKeyed(runtime, items, flag(args, 2));
  return unkeyed(runtime, std::move(items));
}

/// groupby(attribute, default, case_sensitive)
static Value filterGroupby(Runtime &runtime, const Value &self, Args args) {
  AttributePath path(runtime, args[0], args[1]);
  std::vector<Keyed> items;
  for (Value &item : runtime.iterate(self))
    items.push_back({foldCase(runtime, path.get(runtime, item), flag(args, 2)), std::move(item)});
  sortKeyed(runtime, items, false);
  std::vector<Value> groups;
  for (size_t i = 0; i < items.size();) {
    std::vector<Value> members;
    size_t first = i;
    for (; i < items.size() && runtime.isEqual(items[i].key, items[first].key); ++i)
      members.push_back(items[i].item);
    List group;
    group.kind = List::Kind::Group;
    group.items = {path.get(runtime, members[0]), runtime.list(std::move(members))};
    groups.push_back(runtime.list(std::move(group)));
  }
  return runtime.list(std::move(groups));
}

template <int sign> static Value extreme(Runtime &runtime, const Value &self, Args args) {
  AttributePath path(runtime, args[1]);
  Value best, bestKey;
  bool any = false;
  for (Value &item : runtime.iterate(self)) {
    Value key = foldCase(runtime, path.get(runtime, item), flag(args, 0));
    if (any && runtime.compare(key, bestKey) != sign)
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
  if (total.isString())
    runtime.fail("sum: expected a start that is no string");
  AttributePath path(runtime, args[0]);
  for (const Value &item : runtime.iterate(self))
    total = runtime.binary('+', total, path.get(runtime, item));
  return total;
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
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, filterSort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, filterDictsort},
      {"groupby", {"attribute", "default", "case_sensitive"}, 1, filterGroupby},
      {"min", {"case_sensitive", "attribute"}, 0, extreme<-1>},
      {"max", {"case_sensitive", "attribute"}, 0, extreme<1>},
      {"sum", {"attribute", "start"}, 0, filterSum},
  };
  table.insert(table.end(), more.begin(), more.end());
}
