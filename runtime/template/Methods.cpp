//===- Methods.cpp - methods of lists, dicts, numbers and loops -------------===//
//
// What changes its object is no method here: transformers' sandbox does not let
// a template have it either.
//
//===----------------------------------------------------------------------===//
#include "runtime/template/Filters.h"
#include "runtime/template/Iteration.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

using namespace llmc;
using namespace llmc::jinja;

static Value methodIndex(Runtime &runtime, const Value &self, Args args) {
  const auto &items = self.list()->items;
  const auto size = static_cast<int64_t>(items.size());
  auto bound = [&](size_t i, int64_t fallback) {
    int64_t n = integerArgument(runtime, args, i, fallback);
    return std::clamp<int64_t>(n < 0 ? (n < -size ? 0 : n + size) : n, 0, size);
  };
  for (int64_t i = bound(1, 0), end = bound(2, size); i < end; ++i)
    if (runtime.isEqual(items[static_cast<size_t>(i)], *args[0]))
      return Value(i);
  runtime.fail("index: expected an item of the list, got " + runtime.repr(*args[0]));
}

static Value methodCount(Runtime &runtime, const Value &self, Args args) {
  int64_t n = 0;
  for (const Value &item : self.list()->items)
    n += runtime.isEqual(item, *args[0]);
  return Value(n);
}

static Value methodGet(Runtime &runtime, const Value &self, Args args) {
  runtime.charge(args[0]->weight());
  const Value *found = self.dict()->find(*args[0]);
  return found ? *found : args.given(1) ? *args[1] : Value::none();
}

template <List::Kind kind> static Value methodView(Runtime &runtime, const Value &self, Args) {
  List view;
  view.kind = kind;
  if (kind == List::Kind::Items)
    view.items = itemsOf(runtime, *self.dict());
  else
    for (const auto &entry : self.dict()->items())
      view.items.push_back(kind == List::Kind::Keys ? entry.first : entry.second);
  return runtime.list(std::move(view));
}

static Value methodCopy(Runtime &, const Value &self, Args) { return self; } // immutable

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static Value methodBitLength(Runtime &, const Value &self, Args) { return Value(static_cast<int64_t>(toBigInt(self).bits())); }

static Value methodBitCount(Runtime &runtime, const Value &self, Args) {
  int64_t ones = 0;
  BigInt value = toBigInt(self);
  runtime.charge(value.bits());
  for (char c : (value.isNegative() ? -value : value).toString(2))
    ones += c == '1';
  return Value(ones);
}

static Value methodConjugate(Runtime &runtime, const Value &self, Args) {
  return self.is<double>() ? self : runtime.integer(toBigInt(self));
}

static Value methodIsInteger(Runtime &, const Value &self, Args) {
  const double d = *self.get<double>();
  return Value(std::isfinite(d) && d == std::trunc(d));
}

static Value methodAsIntegerRatio(Runtime &runtime, const Value &self, Args) {
  if (self.isInteger())
    return runtime.list({runtime.integer(toBigInt(self)), Value(int64_t{1})}, true);
  double d = *self.get<double>();
  if (!std::isfinite(d))
    runtime.fail("as_integer_ratio: expected a finite number, got " + floatRepr(d));
  BigInt below(1);
  for (; d != std::trunc(d); d *= 2)
    below = below + below;
  return runtime.list({runtime.integer(BigInt::truncate(d)), runtime.integer(below)}, true);
}

//===----------------------------------------------------------------------===//
// Loops and cyclers
//===----------------------------------------------------------------------===//

static Value methodCycle(Runtime &runtime, const Value &self, Args args) {
  if (args.extra.empty())
    runtime.fail("cycle: expected values, got none");
  if (!args.named.empty())
    runtime.fail("cycle: expected no named arguments");
  const LoopState &loop = **self.get<std::shared_ptr<LoopState>>();
  return *args.extra[loop.index % args.extra.size()];
}

static Value methodChanged(Runtime &runtime, const Value &self, Args args) {
  LoopState &loop = **self.get<std::shared_ptr<LoopState>>();
  if (!args.named.empty())
    runtime.fail("changed: expected no named arguments");
  std::vector<Value> now;
  for (const Value *value : args.extra)
    now.push_back(*value);
  bool same = loop.changedCalled && now.size() == loop.changed.size() &&
              std::equal(now.begin(), now.end(), loop.changed.begin(), [&](auto &a, auto &b) { return runtime.isEqual(a, b); });
  loop.changed = std::move(now);
  loop.changedCalled = true;
  return Value(!same);
}

static const Callable &cycler(const Value &self) { return **self.get<std::shared_ptr<const Callable>>(); }

static Value methodNext(Runtime &, const Value &self, Args) {
  const Callable &state = cycler(self);
  Value value = state.items[state.calls];
  state.calls = (state.calls + 1) % state.items.size();
  return value;
}

static Value methodReset(Runtime &, const Value &self, Args) {
  cycler(self).calls = 0;
  return Value::none();
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static std::vector<Method> makeTable() {
  std::vector<Method> methods = {
      {{"index", {"value", "start", "stop"}, 1, methodIndex, false, true}, kList | kTuple},
      {{"index", {"value"}, 1, methodIndex, false, true}, kRange},
      {{"count", {"value"}, 1, methodCount, false, true}, kList | kTuple | kRange},
      {{"get", {"key", "default"}, 1, methodGet, false, true}, kDict},
      {{"keys", {}, 0, methodView<List::Kind::Keys>}, kDict},
      {{"values", {}, 0, methodView<List::Kind::Values>}, kDict},
      {{"items", {}, 0, methodView<List::Kind::Items>}, kDict},
      {{"copy", {}, 0, methodCopy}, kDict | kList | kSet},
      {{"bit_length", {}, 0, methodBitLength}, kInteger},
      {{"bit_count", {}, 0, methodBitCount}, kInteger},
      {{"conjugate", {}, 0, methodConjugate}, kInteger | kFloat},
      {{"as_integer_ratio", {}, 0, methodAsIntegerRatio}, kInteger | kFloat},
      {{"is_integer", {}, 0, methodIsInteger}, kFloat},
      {{"cycle", {}, 0, methodCycle, true}, kLoop},
      {{"changed", {}, 0, methodChanged, true}, kLoop},
      {{"next", {}, 0, methodNext}, kCycler},
      {{"reset", {}, 0, methodReset}, kCycler},
  };
  addSetMethods(methods);
  addStringMethods(methods);
  return methods;
}

static unsigned typeOf(const Value &value) {
  if (value.isString())
    return kString | (value.isMarkup() ? kMarkup : 0u);
  if (const List *l = value.list())
    return l->kind == List::Kind::List ? kList : l->kind == List::Kind::Range ? kRange
           : l->isTuple()                                                     ? kTuple
           : l->kind == List::Kind::Set                                       ? kSet
           : l->kind != List::Kind::Values                                    ? kView
                                                                              : 0u;
  if (value.isNumber())
    return value.isInteger() ? kInteger : kFloat;
  if (auto *callable = value.get<std::shared_ptr<const Callable>>())
    return !(*callable)->items.empty() && !(*callable)->isJoiner ? kCycler : 0u;
  return value.dict() ? kDict : value.is<std::shared_ptr<LoopState>>() ? kLoop : 0u;
}

const Builtin *jinja::findMethod(const Value &object, std::string_view name) {
  static const std::vector<Method> methods = makeTable();
  static const auto index = [] {
    std::unordered_multimap<std::string_view, const Method *> all;
    for (const Method &method : methods)
      all.emplace(method.builtin.name, &method);
    return all;
  }();
  const unsigned type = typeOf(object);
  if (!type)
    return nullptr;
  for (auto [it, end] = index.equal_range(name); it != end; ++it)
    if (it->second->types & type)
      return &it->second->builtin;
  return nullptr;
}
