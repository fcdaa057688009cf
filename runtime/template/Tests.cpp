//===- Tests.cpp - what may follow "is" -----------------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"
#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static bool allCased(const std::string &text, bool upperCase) {
  bool any = false, all = true;
  forEachCharacter(text, [&](uint32_t c, std::string_view) {
    any |= upperCase ? isUpper(c) : isLower(c);
    all &= !((upperCase ? isLower(c) : isUpper(c)) || isTitle(c));
  });
  return any && all;
}

/// Python's "is", where that does not depend on which equal objects are shared.
static bool sameAs(const Value &a, const Value &b) {
  if (a.storage.index() != b.storage.index())
    return false;
  if (auto *l = a.list())
    return l == b.list() || (l->isTuple() && l->items.empty() && b.list()->isTuple() && b.list()->items.empty());
  if (auto *d = a.dict())
    return d == b.dict();
  return equal(a, b);
}

template <CompareOp op> static Value ordered(Runtime &runtime, const Value &self, Args args) {
  int order = runtime.compare(self, *args[0]);
  return Value(op == CompareOp::Less      ? order < 0
               : op == CompareOp::Greater ? order == 1
               : op == CompareOp::LessEqual ? order <= 0
                                            : order == 0 || order == 1);
}

static Value isEqual(Runtime &runtime, const Value &self, Args args) { return Value(runtime.isEqual(self, *args[0])); }
static Value isNotEqual(Runtime &runtime, const Value &self, Args args) { return Value(!runtime.isEqual(self, *args[0])); }

/// value % number == wanted, by Python's rules for "%".
static Value isRest(Runtime &runtime, const Value &self, const Value &number, int64_t wanted) {
  return Value(runtime.isEqual(runtime.binary('%', self, number), Value(wanted)));
}

static bool isSequence(Runtime &runtime, const Value &value) {
  const List *l = value.list();
  return !value.is<std::shared_ptr<LoopState>>() && runtime.length(value) && !(l && !l->isIndexed());
}

static bool isIterable(const Value &value) {
  return value.list() || value.dict() || value.isString() || value.isUndefined() || value.is<std::shared_ptr<LoopState>>() ||
         value.is<std::shared_ptr<Generator>>();
}

static bool isCallable(const Value &value) {
  auto *callable = value.get<std::shared_ptr<const Callable>>();
  return value.is<std::shared_ptr<LoopState>>() || value.isUndefined() ||
         (callable && ((*callable)->macro || (*callable)->builtin || (*callable)->isJoiner));
}

const Builtin *jinja::findTest(std::string_view name) {
  static const std::vector<Builtin> table = {
      {"defined", {}, 0, [](Runtime &, const Value &v, Args) { return Value(!v.isUndefined()); }},
      {"undefined", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isUndefined()); }},
      {"none", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isNone()); }},
      {"boolean", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<bool>()); }},
      {"true", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<bool>() && v.truthy()); }},
      {"false", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<bool>() && !v.truthy()); }},
      {"string", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isString()); }},
      {"number", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isNumber()); }},
      {"integer", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isInteger() && !v.is<bool>()); }},
      {"float", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<double>()); }},
      {"mapping", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.dict() != nullptr); }},
      {"sequence", {}, 0, [](Runtime &r, const Value &v, Args) { return Value(isSequence(r, v)); }},
      {"iterable", {}, 0, [](Runtime &, const Value &v, Args) { return Value(isIterable(v)); }},
      {"callable", {}, 0, [](Runtime &, const Value &v, Args) { return Value(isCallable(v)); }},
      {"escaped", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.isMarkup()); }},
      {"filter", {}, 0, [](Runtime &, const Value &v, Args) { return Value(!hashKey(v).empty() && v.string() && findFilter(*v.string())); }},
      {"test", {}, 0, [](Runtime &, const Value &v, Args) { return Value(!hashKey(v).empty() && v.string() && findTest(*v.string())); }},
      {"odd", {}, 0, [](Runtime &r, const Value &v, Args) { return isRest(r, v, Value(int64_t{2}), 1); }},
      {"even", {}, 0, [](Runtime &r, const Value &v, Args) { return isRest(r, v, Value(int64_t{2}), 0); }},
      {"divisibleby", {"num"}, 1, [](Runtime &r, const Value &v, Args args) { return isRest(r, v, *args[0], 0); }},
      {"in", {"seq"}, 1, [](Runtime &r, const Value &v, Args args) { return Value(r.contains(*args[0], v)); }},
      {"eq", {"other"}, 1, isEqual},
      {"equalto", {"other"}, 1, isEqual},
      {"ne", {"other"}, 1, isNotEqual},
      {"lt", {"other"}, 1, ordered<CompareOp::Less>},
      {"lessthan", {"other"}, 1, ordered<CompareOp::Less>},
      {"gt", {"other"}, 1, ordered<CompareOp::Greater>},
      {"greaterthan", {"other"}, 1, ordered<CompareOp::Greater>},
      {"le", {"other"}, 1, ordered<CompareOp::LessEqual>},
      {"ge", {"other"}, 1, ordered<CompareOp::GreaterEqual>},
      {"sameas", {"other"}, 1, [](Runtime &, const Value &v, Args args) { return Value(sameAs(v, *args[0])); }},
      {"lower", {}, 0, [](Runtime &r, const Value &v, Args) { return Value(allCased(r.str(v), false)); }},
      {"upper", {}, 0, [](Runtime &r, const Value &v, Args) { return Value(allCased(r.str(v), true)); }},
      // Only reachable as in select('>', 1)
      {"==", {"other"}, 1, isEqual},
      {"!=", {"other"}, 1, isNotEqual},
      {"<", {"other"}, 1, ordered<CompareOp::Less>},
      {">", {"other"}, 1, ordered<CompareOp::Greater>},
      {"<=", {"other"}, 1, ordered<CompareOp::LessEqual>},
      {">=", {"other"}, 1, ordered<CompareOp::GreaterEqual>},
  };
  auto found = std::find_if(table.begin(), table.end(), [&](const Builtin &b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}
