//===- Filters.cpp - the table of filters, and those of any value ---------===//
#include "runtime/template/Filters.h"

#include "llmc/Support/Error.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static Value filterDefault(Runtime &, const Value &self, Args args) {
  bool use = self.isUndefined() || (args.given(1) && args[1]->truthy() && !self.truthy());
  return !use ? self : args.given(0) ? *args[0] : Value("");
}

static Value filterToJson(Runtime &runtime, const Value &self, Args args) {
  JsonStyle style;
  style.asciiOnly = flag(args, 0);
  if (isGiven(args, 1)) {
    style.pretty = true;
    style.itemSeparator = ",";
    if (const std::string *text = args[1]->string()) {
      style.indent = *text;
    } else {
      const int64_t width = toInteger(runtime, *args[1]);
      if (width > 1000)
        runtime.fail("tojson: expected an indent of at most 1000, got " + std::to_string(width));
      style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (isGiven(args, 2)) {
    std::vector<Value> pair = runtime.iterate(*args[2]);
    if (pair.size() != 2)
      runtime.fail("tojson: expected two separators, got " + std::to_string(pair.size()));
    style.itemSeparator = textArgument(runtime, pair[0]);
    style.keySeparator = textArgument(runtime, pair[1]);
  }
  style.sortKeys = flag(args, 3);
  std::string text;
  try {
    text = toJson(self, style);
  } catch (const Error &error) {
    runtime.fail(std::string("tojson: ") + error.what());
  }
  return runtime.string(std::move(text));
}

/// attr(name): attributes only, no keys of a dict.
static Value filterAttr(Runtime &runtime, const Value &self, Args args) {
  const std::string &name = textArgument(runtime, *args[0]);
  if (self.isUndefined())
    return runtime.attribute(self, name); // fails
  if (self.dict() && !findMethod(self, name))
    return Value::undefined(name);
  return runtime.attribute(self, name);
}

const Builtin *jinja::findFilter(std::string_view name) {
  static const std::vector<Builtin> table = [] {
    std::vector<Builtin> all = {
        {"default", {"default_value", "boolean"}, 0, filterDefault},
        {"d", {"default_value", "boolean"}, 0, filterDefault},
        {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, filterToJson},
        {"attr", {"name"}, 1, filterAttr},
    };
    addListFilters(all);
    addSequenceFilters(all);
    addNumberFilters(all);
    addTextFilters(all);
    return all;
  }();
  auto found = std::find_if(table.begin(), table.end(), [&](const Builtin &b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}
