//===- Tests.cpp - what may follow "is" -----------------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Interpreter.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

using Args = const Bound &;

static int64_t integer(Runtime &runtime, const Value &value) {
  if (auto *b = value.get<bool>())
    return *b;
  auto *n = value.get<int64_t>();
  if (!n)
    runtime.fail(std::string("expected an integer, got ") + value.typeName());
  return *n;
}

static bool allCased(const Value &self, bool upperCase) {
  bool any = false, all = true;
  forEachCharacter(toString(self), [&](uint32_t c, std::string_view) {
    any |= upperCase ? isUpper(c) : isLower(c);
    all &= !(upperCase ? isLower(c) : isUpper(c));
  });
  return any && all;
}

static bool sameAs(const Value &a, const Value &b) {
  if (a.storage.index() != b.storage.index())
    return false;
  if (auto *l = a.list())
    return l == b.list();
  if (auto *d = a.dict())
    return d == b.dict();
  return equal(a, b);
}

template <CompareOp op> static Value ordered(Runtime &runtime, const Value &self, Args args) {
  int order = runtime.compare(self, *args[0]);
  return Value(op == CompareOp::Less      ? order < 0
               : op == CompareOp::Greater ? order > 0
               : op == CompareOp::LessEqual ? order <= 0
                                            : order >= 0);
}

static Value isEqual(Runtime &runtime, const Value &self, Args args) { return Value(runtime.isEqual(self, *args[0])); }
static Value isNotEqual(Runtime &runtime, const Value &self, Args args) { return Value(!runtime.isEqual(self, *args[0])); }

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
      {"integer", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<int64_t>()); }},
      {"float", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<double>()); }},
      {"mapping", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.dict() != nullptr); }},
      // Undefined has a length and an iterator in jinja2, but no item access
      {"sequence", {}, 0, [](Runtime &, const Value &v, Args) {
         return Value((v.list() && !v.list()->lazy) || v.dict() || v.isString() || v.isUndefined());
       }},
      {"iterable", {}, 0, [](Runtime &, const Value &v, Args) {
         return Value(v.list() || v.dict() || v.isString() || v.isUndefined() || v.is<LoopState *>());
       }},
      {"callable", {}, 0, [](Runtime &, const Value &v, Args) { return Value(v.is<std::shared_ptr<const Callable>>()); }},
      {"odd", {}, 0, [](Runtime &r, const Value &v, Args) { return Value(integer(r, v) % 2 != 0); }},
      {"even", {}, 0, [](Runtime &r, const Value &v, Args) { return Value(integer(r, v) % 2 == 0); }},
      {"divisibleby", {"num"}, 1, [](Runtime &r, const Value &v, Args args) {
         return Value(integer(r, r.binary('%', Value(integer(r, v)), *args[0])) == 0);
       }},
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
      {"lower", {}, 0, [](Runtime &, const Value &v, Args) { return Value(allCased(v, false)); }},
      {"upper", {}, 0, [](Runtime &, const Value &v, Args) { return Value(allCased(v, true)); }},
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
