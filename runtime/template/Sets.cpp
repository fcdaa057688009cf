//===- Sets.cpp - what Python makes of d.keys() - d.items() ----------------===//
//
// A template has no other way to a set. Python leaves the order of a set of strings
// open (it changes from run to run); here it is that of the values it was made of.
//
//===----------------------------------------------------------------------===//
#include "runtime/template/Filters.h"

#include <algorithm>
#include <unordered_set>

using namespace llmc;
using namespace llmc::jinja;

namespace {
/// Distinct values in the order in which they were added.
class SetBuilder {
public:
  explicit SetBuilder(Runtime &runtime) : runtime(runtime) {}
  SetBuilder(Runtime &runtime, const Value &iterable) : SetBuilder(runtime) { add(iterable); }

  void add(const Value &iterable) {
    for (const Value &item : runtime.iterate(iterable))
      if (keys.insert(keyOf(item)).second)
        made.items.push_back(item);
  }
  void remove(const Value &iterable) {
    for (const Value &item : runtime.iterate(iterable))
      keys.erase(keyOf(item));
  }
  bool has(const Value &item) const { return keys.count(keyOf(item)); }

  /// Those of the added values that were not removed.
  Value take() {
    std::erase_if(made.items, [&](const Value &item) { return !has(item); });
    made.kind = List::Kind::Set;
    return runtime.list(std::move(made));
  }

private:
  std::string keyOf(const Value &item) const {
    runtime.charge(item.weight() * 16);
    return hashKey(item);
  }

  Runtime &runtime;
  std::unordered_set<std::string> keys;
  List made;
};
} // namespace

static bool isDictSet(const Value &value) {
  return value.list() && value.list()->isSetLike() && value.list()->kind != List::Kind::Set;
}

static bool isSet(const Value &value) { return value.list() && value.list()->kind == List::Kind::Set; }

bool jinja::isSetDifference(const Value &a, const Value &b) {
  return isDictSet(a) || (isDictSet(b) && !a.isUndefined()) || (isSet(a) && isSet(b));
}

Value jinja::setDifference(Runtime &runtime, const Value &a, const Value &b) {
  SetBuilder set(runtime, a);
  set.remove(b);
  return set.take();
}

//===----------------------------------------------------------------------===//
// Methods
//===----------------------------------------------------------------------===//

static void refuseNamed(Runtime &runtime, Args args, const char *method) {
  if (!args.named.empty())
    runtime.fail(std::string(method) + ": expected no named arguments");
}

static Value methodDifference(Runtime &runtime, const Value &self, Args args) {
  refuseNamed(runtime, args, "difference");
  SetBuilder set(runtime, self);
  for (const Value *other : args.extra)
    set.remove(*other);
  return set.take();
}

static Value methodUnion(Runtime &runtime, const Value &self, Args args) {
  refuseNamed(runtime, args, "union");
  SetBuilder set(runtime, self);
  for (const Value *other : args.extra)
    set.add(*other);
  return set.take();
}

static Value intersection(Runtime &runtime, const Value &self, const Value &other) {
  const SetBuilder wanted(runtime, other);
  std::vector<Value> both = self.list()->items;
  std::erase_if(both, [&](const Value &item) { return !wanted.has(item); });
  return SetBuilder(runtime, runtime.list(std::move(both))).take();
}

static Value methodIntersection(Runtime &runtime, const Value &self, Args args) {
  refuseNamed(runtime, args, "intersection");
  Value set = self;
  for (const Value *other : args.extra)
    set = intersection(runtime, set, *other);
  return set;
}

static Value methodSymmetricDifference(Runtime &runtime, const Value &self, Args args) {
  const Value other = SetBuilder(runtime, *args[0]).take();
  SetBuilder result(runtime, setDifference(runtime, self, other));
  result.add(setDifference(runtime, other, self));
  return result.take();
}

static Value methodIssubset(Runtime &runtime, const Value &self, Args args) {
  const SetBuilder other(runtime, *args[0]);
  const std::vector<Value> &items = self.list()->items;
  return Value(std::all_of(items.begin(), items.end(), [&](const Value &item) { return other.has(item); }));
}

static Value methodIssuperset(Runtime &runtime, const Value &self, Args args) {
  const SetBuilder all(runtime, self);
  const std::vector<Value> items = runtime.iterate(*args[0]);
  return Value(std::all_of(items.begin(), items.end(), [&](const Value &item) { return all.has(item); }));
}

static Value methodIsdisjoint(Runtime &runtime, const Value &self, Args args) {
  for (const Value &item : runtime.iterate(*args[0]))
    if (runtime.contains(self, item))
      return Value(false);
  return Value(true);
}

void jinja::addSetMethods(std::vector<Method> &table) {
  const std::vector<Method> methods = {
      {{"difference", {}, 0, methodDifference, true}, kSet},
      {{"intersection", {}, 0, methodIntersection, true}, kSet},
      {{"isdisjoint", {"other"}, 1, methodIsdisjoint, false, true}, kView | kSet},
      {{"issubset", {"other"}, 1, methodIssubset, false, true}, kSet},
      {{"issuperset", {"other"}, 1, methodIssuperset, false, true}, kSet},
      {{"symmetric_difference", {"other"}, 1, methodSymmetricDifference, false, true}, kSet},
      {{"union", {}, 0, methodUnion, true}, kSet},
  };
  table.insert(table.end(), methods.begin(), methods.end());
}
