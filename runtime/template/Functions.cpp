//===- Functions.cpp - global functions -----------------------------------===//
#include "runtime/template/Filters.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static Value range(Runtime &runtime, const Value &, Args args) {
  List list;
  list.kind = List::Kind::Range;
  list.start = args.given(1) ? toInteger(runtime, *args[0]) : 0;
  list.stop = toInteger(runtime, *args[args.given(1) ? 1 : 0]);
  list.step = integerArgument(runtime, args, 2, 1);
  if (list.step == 0)
    runtime.fail("range: expected a step other than 0");
  const int64_t most = runtime.bounds().range;
  for (int64_t i = list.start; list.step > 0 ? i < list.stop : i > list.stop;) {
    if (static_cast<int64_t>(list.items.size()) >= most)
      runtime.fail("range: expected at most " + std::to_string(most) + " items, got more");
    list.items.emplace_back(i);
    if (__builtin_add_overflow(i, list.step, &i))
      break;
  }
  return runtime.list(std::move(list));
}

/// Python's dict(): keyword arguments after the entries of a dict or of pairs.
static Dict collect(Runtime &runtime, const char *name, Args args) {
  Dict dict;
  if (args.extra.size() > 1)
    runtime.fail(std::string(name) + ": expected at most one positional argument, got " + std::to_string(args.extra.size()));
  if (!args.extra.empty()) {
    if (const Dict *from = args.extra[0]->dict()) {
      dict = *from;
    } else {
      for (const Value &entry : runtime.iterate(*args.extra[0])) {
        std::vector<Value> pair = runtime.iterate(entry);
        if (pair.size() != 2)
          runtime.fail(std::string(name) + ": expected pairs, got " + std::to_string(pair.size()) + " values");
        dict.set(pair[0], pair[1]);
      }
    }
  }
  for (const auto &[key, value] : args.named)
    dict.set(Value(std::string(key)), *value);
  return dict;
}

static Value makeNamespace(Runtime &runtime, const Value &, Args args) {
  Dict attributes = collect(runtime, "namespace", args);
  for (const auto &[key, value] : attributes.items())
    runtime.checkDepth(value);
  auto space = runtime.makeNamespace();
  space->attributes = std::move(attributes);
  runtime.charge(space->attributes.size() * 128);
  return Value(Value::Storage(std::move(space)));
}

static Value makeDict(Runtime &runtime, const Value &, Args args) { return runtime.dict(collect(runtime, "dict", args)); }

static Value makeCycler(Runtime &runtime, const Value &, Args args) {
  if (args.extra.empty() || !args.named.empty())
    runtime.fail("cycler: expected values, got none");
  auto state = std::make_shared<Callable>();
  for (const Value *value : args.extra) {
    runtime.checkDepth(*value);
    state->items.push_back(*value);
  }
  runtime.charge(256 + state->items.size() * sizeof(Value));
  return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(state))));
}

static Value makeJoiner(Runtime &runtime, const Value &, Args args) {
  auto state = std::make_shared<Callable>();
  state->items.push_back(args.given(0) ? *args[0] : Value(", "));
  state->isJoiner = true;
  runtime.charge(256);
  return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(state))));
}

static Value raiseException(Runtime &runtime, const Value &, Args args) { runtime.fail(runtime.str(*args[0])); }

static Value strftimeNow(Runtime &runtime, const Value &, Args args) {
  const std::string &format = textArgument(runtime, *args[0]);
  static constexpr std::string_view known = "aAbBdHIjmMpSUwWyYZzcxXDFTeRn%";
  std::string text;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      text += format[i];
      continue;
    }
    char directive = i + 1 < format.size() ? format[++i] : '\0';
    bool plain = directive == '-' && i + 1 < format.size(); // glibc: without padding
    std::string spec = plain ? std::string("%-") + format[++i] : std::string("%") + directive;
    if (known.find(spec.back()) == std::string_view::npos || spec.back() == '\0')
      runtime.fail("strftime_now: expected a known directive, got '" + spec + "'");
    char buffer[128];
    size_t n = std::strftime(buffer, sizeof(buffer), spec.c_str(), &runtime.time());
    text.append(buffer, n);
    checkLength(runtime, text.size());
  }
  return runtime.string(std::move(text));
}

const Builtin *jinja::findFunction(std::string_view name) {
  static const std::vector<Builtin> table = {
      {"range", {"start", "stop", "step"}, 1, range, false, true},
      {"namespace", {}, 0, makeNamespace, true},
      {"dict", {}, 0, makeDict, true},
      {"cycler", {}, 0, makeCycler, true},
      {"joiner", {"sep"}, 0, makeJoiner},
      {"raise_exception", {"message"}, 1, raiseException},
      {"strftime_now", {"format"}, 1, strftimeNow},
  };
  auto found = std::find_if(table.begin(), table.end(), [&](const Builtin &b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}
