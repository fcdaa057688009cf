//===- Functions.cpp - global functions -----------------------------------===//
#include "runtime/template/Interpreter.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static Value range(Runtime &runtime, const Value &, const Bound &args) {
  auto integer = [&](size_t i) {
    auto *n = args[i]->get<int64_t>();
    if (!n)
      runtime.fail(std::string("range: expected integers, got ") + args[i]->typeName());
    return *n;
  };
  int64_t start = args.given(1) ? integer(0) : 0, stop = args.given(1) ? integer(1) : integer(0);
  int64_t step = args.given(2) ? integer(2) : 1;
  if (step == 0)
    runtime.fail("range: expected a step other than 0");
  const int64_t most = runtime.bounds().range;
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) >= most)
      runtime.fail("range: expected at most " + std::to_string(most) + " items, got more");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  return runtime.list(std::move(items));
}

/// Keyword arguments after the entries of an optional dict.
static Dict collect(Runtime &runtime, const char *name, const Bound &args) {
  Dict dict;
  if (args.extra.size() > 1)
    runtime.fail(std::string(name) + ": expected at most one positional argument, got " + std::to_string(args.extra.size()));
  if (!args.extra.empty()) {
    const Dict *from = args.extra[0]->dict();
    if (!from)
      runtime.fail(std::string(name) + ": expected a dict, got " + args.extra[0]->typeName());
    for (const auto &[key, value] : from->items())
      dict.set(key, value);
  }
  for (const auto &[key, value] : args.named) {
    runtime.checkData(*value);
    dict.set(Value(std::string(key)), *value);
  }
  return dict;
}

static Value makeNamespace(Runtime &runtime, const Value &, const Bound &args) {
  auto space = std::make_shared<Namespace>();
  space->attributes = collect(runtime, "namespace", args);
  runtime.charge(256 + space->attributes.size() * 64);
  return Value(Value::Storage(std::move(space)));
}

static Value makeDict(Runtime &runtime, const Value &, const Bound &args) {
  return runtime.dict(collect(runtime, "dict", args));
}

static Value raiseException(Runtime &runtime, const Value &, const Bound &args) { runtime.fail(toString(*args[0])); }

static Value strftimeNow(Runtime &runtime, const Value &, const Bound &args) {
  const std::string *format = args[0]->string();
  if (!format)
    runtime.fail(std::string("strftime_now: expected a format string, got ") + args[0]->typeName());
  static constexpr std::string_view known = "aAbBdHIjmMpSUwWyYZzcxXDFTeRn%";
  std::string text;
  for (size_t i = 0; i < format->size(); ++i) {
    if ((*format)[i] != '%') {
      text += (*format)[i];
      continue;
    }
    char directive = i + 1 < format->size() ? (*format)[++i] : '\0';
    bool plain = directive == '-' && i + 1 < format->size(); // glibc: without padding
    std::string spec = plain ? std::string("%-") + (*format)[++i] : std::string("%") + directive;
    if (known.find(spec.back()) == std::string_view::npos || spec.back() == '\0')
      runtime.fail("strftime_now: expected a known directive, got '" + spec + "'");
    char buffer[128];
    size_t n = std::strftime(buffer, sizeof(buffer), spec.c_str(), &runtime.time());
    text.append(buffer, n);
  }
  return runtime.string(std::move(text));
}

const Builtin *jinja::findFunction(std::string_view name) {
  static const std::vector<Builtin> table = {
      {"range", {"start", "stop", "step"}, 1, range},
      {"namespace", {}, 0, makeNamespace, true},
      {"dict", {}, 0, makeDict, true},
      {"raise_exception", {"message"}, 1, raiseException},
      {"strftime_now", {"format"}, 1, strftimeNow},
  };
  auto found = std::find_if(table.begin(), table.end(), [&](const Builtin &b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}
