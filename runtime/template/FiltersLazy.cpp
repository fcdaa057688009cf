//===- FiltersLazy.cpp - filters that Python has as generators -------------===//
//
// map, select and their kin make an item when it is asked for, and only once.
//
//===----------------------------------------------------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"
#include "runtime/template/Iteration.h"

#include <set>

using namespace llmc;
using namespace llmc::jinja;

namespace {
/// Arguments that outlive the call, for the builtin that they name.
struct Rest {
  std::vector<Value> positional;
  Named named;

  Rest(Args args, size_t skip) {
    for (size_t i = skip; i < args.extra.size(); ++i)
      positional.push_back(*args.extra[i]);
    for (const auto &[name, value] : args.named)
      named.emplace_back(std::string(name), *value);
  }
};

/// Iterates when the first item is asked for; nothing where the value is false.
struct Source {
  Value value;
  std::optional<Cursor> cursor;

  bool next(Runtime &runtime, Value &out) {
    if (!cursor) {
      if (!value.truthy())
        return false;
      cursor.emplace(runtime, value);
    }
    return cursor->next(runtime, out);
  }
};

template <typename Build> Value fromList(Runtime &runtime, const Value &self, Build build) {
  struct State {
    std::vector<Value> items;
    size_t at = 0;
    bool built = false;
  };
  auto state = std::make_shared<State>();
  return makeGenerator(runtime, self, [state, build](Runtime &runtime, Value &out) {
    if (!std::exchange(state->built, true))
      state->items = build(runtime);
    if (state->at >= state->items.size())
      return false;
    out = std::move(state->items[state->at++]);
    return true;
  });
}
} // namespace

static Value mapAttribute(Runtime &runtime, const Value &self, Args args) {
  Value attribute, fallback = Value::none();
  std::string unknown;
  for (const auto &[name, value] : args.named)
    if (name == "attribute")
      attribute = *value;
    else if (name == "default")
      fallback = *value;
    else
      unknown = name;
  auto source = std::make_shared<Source>(Source{self, {}});
  std::shared_ptr<AttributePath> path;
  return makeGenerator(runtime, self, [=](Runtime &runtime, Value &out) mutable {
    Value item;
    if (!source->next(runtime, item))
      return false;
    if (!unknown.empty())
      runtime.fail("map: expected attribute or default, got '" + unknown + "'");
    if (!path)
      path = std::make_shared<AttributePath>(runtime, &attribute, &fallback);
    out = path->get(runtime, item);
    return true;
  });
}

static Value filterMap(Runtime &runtime, const Value &self, Args args) {
  bool byAttribute = false;
  for (const auto &named : args.named)
    byAttribute |= named.first == "attribute";
  if (args.extra.empty() && byAttribute)
    return mapAttribute(runtime, self, args);
  auto source = std::make_shared<Source>(Source{self, {}});
  const bool named = !args.extra.empty();
  Value name = named ? *args.extra[0] : Value();
  auto rest = std::make_shared<Rest>(args, 1);
  return makeGenerator(runtime, self, [=](Runtime &runtime, Value &out) {
    Value item;
    if (!source->next(runtime, item))
      return false;
    if (!named)
      runtime.fail("map: expected a filter or an attribute, got none");
    const Builtin *filter = name.string() ? findFilter(*name.string()) : nullptr;
    if (!filter)
      runtime.fail("map: expected a known filter, got " + runtime.repr(name));
    out = runtime.call(*filter, item, rest->positional, rest->named);
    return true;
  });
}

/// select(test, ...) and selectattr(attribute, test, ...); without a test: truth.
template <bool keep, bool byAttribute> static Value filterSelect(Runtime &runtime, const Value &self, Args args) {
  const size_t testAt = byAttribute ? 1 : 0;
  auto source = std::make_shared<Source>(Source{self, {}});
  const bool hasAttribute = !byAttribute || !args.extra.empty(), hasTest = args.extra.size() > testAt;
  Value attribute = byAttribute && hasAttribute ? *args.extra[0] : Value::none();
  Value name = hasTest ? *args.extra[testAt] : Value();
  auto rest = std::make_shared<Rest>(args, testAt + 1);
  std::shared_ptr<AttributePath> path;
  return makeGenerator(runtime, self, [=](Runtime &runtime, Value &out) mutable {
    for (Value item; source->next(runtime, item);) {
      runtime.charge(sizeof(Value));
      if (!hasAttribute)
        runtime.fail("expected an attribute, got none");
      if (!path)
        path = std::make_shared<AttributePath>(runtime, &attribute);
      Value subject = path->get(runtime, item);
      const Builtin *test = hasTest && name.string() ? findTest(*name.string()) : nullptr;
      if (hasTest && !test)
        runtime.fail("expected a known test, got " + runtime.repr(name));
      bool holds = (test ? runtime.call(*test, subject, rest->positional, rest->named) : subject).truthy();
      if (holds == keep) {
        out = std::move(item);
        return true;
      }
    }
    return false;
  });
}

static Value filterItems(Runtime &runtime, const Value &self, Args) {
  return fromList(runtime, self, [self](Runtime &runtime) {
    if (self.isUndefined())
      return std::vector<Value>();
    if (!self.dict())
      runtime.fail(std::string("items: expected a dict, got ") + self.typeName());
    return itemsOf(runtime, *self.dict());
  });
}

/// unique(case_sensitive, attribute)
static Value filterUnique(Runtime &runtime, const Value &self, Args args) {
  struct State {
    std::optional<Cursor> cursor;
    std::set<std::string> seen;
    AttributePath path;
  };
  auto state = std::make_shared<State>(State{std::nullopt, {}, AttributePath(runtime, args[1])});
  const bool caseSensitive = flag(args, 0);
  return makeGenerator(runtime, self, [=](Runtime &runtime, Value &out) {
    if (!state->cursor)
      state->cursor.emplace(runtime, self);
    for (Value item; state->cursor->next(runtime, item);) {
      Value key = state->path.get(runtime, item);
      if (!caseSensitive && key.isString())
        key = Value(lower(*key.string()));
      runtime.charge(64 + key.weight() * 16);
      if (state->seen.insert(hashKey(key)).second) {
        out = std::move(item);
        return true;
      }
    }
    return false;
  });
}

/// slice(slices, fill_with): columns.
static Value filterSlice(Runtime &runtime, const Value &self, Args args) {
  Value slices = *args[0], fill = args.given(1) ? *args[1] : Value::none();
  return fromList(runtime, self, [=](Runtime &runtime) {
    std::vector<Value> all = runtime.iterate(self), columns;
    const int64_t n = toInteger(runtime, slices);
    if (n == 0)
      runtime.fail("slice: expected a number other than 0");
    if (n > runtime.bounds().range)
      runtime.fail("slice: expected at most " + std::to_string(runtime.bounds().range) + " slices, got more");
    const auto each = static_cast<int64_t>(all.size()) / std::abs(n), extra = static_cast<int64_t>(all.size()) % std::abs(n);
    for (int64_t i = 0, at = 0; i < n; ++i) {
      int64_t end = at + each + (i < extra);
      std::vector<Value> column(all.begin() + at, all.begin() + end);
      at = end;
      if (!fill.isNone() && i >= extra)
        column.push_back(fill);
      columns.push_back(runtime.list(std::move(column)));
    }
    return columns;
  });
}

/// batch(linecount, fill_with): rows.
static Value filterBatch(Runtime &runtime, const Value &self, Args args) {
  Value width = *args[0], fill = args.given(1) ? *args[1] : Value::none();
  return fromList(runtime, self, [=](Runtime &runtime) {
    std::vector<Value> rows, row;
    for (Value &item : runtime.iterate(self)) {
      if (runtime.isEqual(Value(static_cast<int64_t>(row.size())), width))
        rows.push_back(runtime.list(std::exchange(row, {})));
      row.push_back(std::move(item));
    }
    if (row.empty())
      return rows;
    if (!fill.isNone() && runtime.compare(Value(static_cast<int64_t>(row.size())), width) < 0) {
      const int64_t wanted = toInteger(runtime, width);
      if (static_cast<uint64_t>(wanted) > runtime.bounds().listItems)
        runtime.fail("batch: expected at most " + std::to_string(runtime.bounds().listItems) + " items in a row, got more");
      row.resize(static_cast<size_t>(wanted), fill);
    }
    rows.push_back(runtime.list(std::move(row)));
    return rows;
  });
}

void jinja::addSequenceFilters(std::vector<Builtin> &table) {
  const std::vector<Builtin> more = {
      {"items", {}, 0, filterItems},
      {"unique", {"case_sensitive", "attribute"}, 0, filterUnique},
      {"slice", {"slices", "fill_with"}, 1, filterSlice},
      {"batch", {"linecount", "fill_with"}, 1, filterBatch},
      {"map", {}, 0, filterMap, true},
      {"select", {}, 0, filterSelect<true, false>, true},
      {"reject", {}, 0, filterSelect<false, false>, true},
      {"selectattr", {}, 0, filterSelect<true, true>, true},
      {"rejectattr", {}, 0, filterSelect<false, true>, true},
  };
  table.insert(table.end(), more.begin(), more.end());
}
