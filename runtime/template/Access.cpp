//===- Access.cpp - attributes, items, containment -------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static std::optional<Value> loopAttribute(Runtime &runtime, LoopState &loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index);
  auto size = [&] { return static_cast<int64_t>(loop.length(runtime)); };
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "revindex")
    return Value(size() - index);
  if (name == "revindex0")
    return Value(size() - index - 1);
  if (name == "first")
    return Value(index == 0);
  if (name == "last")
    return Value(!loop.peek(runtime));
  if (name == "length")
    return Value(size());
  if (name == "depth" || name == "depth0")
    return Value(static_cast<int64_t>(loop.depth0) + (name == "depth"));
  if (name == "previtem")
    return index ? loop.before : Value::undefined("loop.previtem");
  if (name == "nextitem")
    return loop.peek(runtime) ? *loop.after : Value::undefined("loop.nextitem");
  return std::nullopt;
}

static std::optional<Value> macroAttribute(Runtime &runtime, const Callable &callable, std::string_view name,
                                           const std::vector<std::string> &names) {
  const MacroInfo &info = callable.macro->macro;
  auto has = [&](const char *parameter) {
    return std::any_of(info.parameters.begin(), info.parameters.end(), [&](const Parameter &p) { return names[p.name] == parameter; });
  };
  if (name == "name")
    return callable.macro->kind == Stmt::Kind::Macro ? Value(info.name) : Value::none();
  if (name == "arguments") {
    std::vector<Value> arguments;
    for (const Parameter &parameter : info.parameters)
      arguments.emplace_back(names[parameter.name]);
    return runtime.list(std::move(arguments), true);
  }
  if (name == "catch_kwargs")
    return Value(info.takesKwargs);
  if (name == "catch_varargs")
    return Value(info.takesVarargs);
  if (name == "caller")
    return Value(info.takesCaller);
  if (name == "explicit_caller")
    return Value(has("caller"));
  return std::nullopt;
}

/// Attributes of Python's numbers, and of what groupby gives.
static std::optional<Value> plainAttribute(const Value &object, std::string_view name) {
  if (object.isNumber()) {
    if (name == "real" || (name == "numerator" && object.isInteger()))
      return object.is<bool>() ? Value(int64_t{*object.get<bool>()}) : object;
    if (name == "imag")
      return object.isInteger() ? Value(int64_t{0}) : Value(0.0);
    if (name == "denominator" && object.isInteger())
      return Value(int64_t{1});
  }
  const List *l = object.list();
  if (l && l->kind == List::Kind::Group && (name == "grouper" || name == "list"))
    return l->items[name == "list"];
  if (l && l->kind == List::Kind::Range && (name == "start" || name == "stop" || name == "step"))
    return Value(name == "start" ? l->start : name == "stop" ? l->stop : l->step);
  return std::nullopt;
}

std::string jinja::undefinedName(const Value &value) {
  auto *u = value.get<Undefined>();
  return u && u->name ? "'" + *u->name + "'" : "a value";
}

/// What Python's type has but this engine has not must not pass for undefined.
static void refuseUnsupported(const Runtime &runtime, const Value &object, std::string_view name) {
  static constexpr std::string_view ofStrings[] = {"encode", "maketrans", "translate", "unescape"};
  static constexpr std::string_view ofNumbers[] = {"to_bytes", "from_bytes", "hex", "fromhex"};
  auto among = [&](auto &names) { return std::find(std::begin(names), std::end(names), name) != std::end(names); };
  if ((object.isString() && among(ofStrings)) || (object.isNumber() && among(ofNumbers)) ||
      (object.dict() && name == "fromkeys"))
    runtime.fail("expected a supported method of " + std::string(object.typeName()) + ", got '" + std::string(name) + "'");
}

static Value boundMethod(const Builtin &method, const Value &object) {
  auto callable = std::make_shared<Callable>();
  callable->builtin = &method;
  callable->self = object;
  return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
}

Value Runtime::attribute(const Value &object, std::string_view name) {
  if (object.isUndefined())
    fail("expected " + undefinedName(object) + " to be defined where '" + std::string(name) + "' of it is used");
  std::optional<Value> found;
  if (auto *loop = object.get<std::shared_ptr<LoopState>>())
    found = loopAttribute(*this, **loop, name);
  else if (auto *space = object.get<std::shared_ptr<Namespace>>()) {
    const Value *attribute = name.starts_with('_') ? nullptr : (*space)->attributes.findName(name);
    return attribute ? *attribute : Value::undefined(std::string(name));
  } else if (auto *callable = object.get<std::shared_ptr<const Callable>>()) {
    if ((*callable)->macro)
      found = macroAttribute(*this, **callable, name, ast.names);
    else if (!(*callable)->items.empty() && !(*callable)->isJoiner && name == "current")
      found = (*callable)->items[(*callable)->calls];
  } else {
    found = plainAttribute(object, name);
  }
  if (found)
    return *found;
  if (const Builtin *method = findMethod(object, name)) // Python prefers the method to a key of that name
    return boundMethod(*method, object);
  if (const Dict *d = object.dict())
    if (const Value *value = d->findName(name))
      return *value;
  refuseUnsupported(*this, object, name);
  return Value::undefined(std::string(name));
}

Value Runtime::item(const Value &object, const Value &key) {
  if (object.isUndefined())
    fail("expected " + undefinedName(object) + " to be defined where [" + repr(key) + "] of it is used");
  const List *l = object.list() && object.list()->isIndexed() ? object.list() : nullptr;
  const std::string *s = object.string();
  if (const Dict *d = object.dict()) {
    charge(key.weight());
    try {
      if (const Value *found = d->find(key))
        return *found;
    } catch (const Unhashable &) { // no key is equal to it
    }
  } else if ((l || s) && key.isInteger()) {
    const auto size = static_cast<int64_t>(l ? l->items.size() : countCharacters(*s));
    charge(s ? s->size() / 8 : 0);
    int64_t given = toBigInt(key).toInt64().value_or(INT64_MAX), i = given < 0 && given >= -size ? given + size : given;
    if (i < 0 || i >= size)
      return Value::undefined("item " + repr(key));
    if (l)
      return l->items[static_cast<size_t>(i)];
    std::string_view rest = std::string_view(*s).substr(offsetOf(*s, static_cast<size_t>(i)));
    return stringLike(object, std::string(rest.substr(0, utf8::decode(rest).length)));
  }
  if (const std::string *name = key.string()) {
    // Methods and attributes, but the key of a dict has been looked for.
    return object.dict() && !findMethod(object, *name) ? Value::undefined(*name) : attribute(object, *name);
  }
  return Value::undefined("item");
}

bool Runtime::contains(const Value &container, const Value &item) {
  if (auto *s = container.string()) {
    if (!item.string())
      fail(std::string("expected a string on the left of 'in' with a string, got ") + item.typeName());
    charge(container.weight());
    return s->find(*item.string()) != std::string::npos;
  }
  if (auto *l = container.list()) {
    // Views of dicts and sets look keys up, so that those must have a hash; a set is looked up by its items.
    const List *pair = item.list() && item.list()->isTuple() && item.list()->items.size() == 2 ? item.list() : nullptr;
    if (l->kind == List::Kind::Keys || (l->kind == List::Kind::Items && pair))
      hashKey(l->kind == List::Kind::Keys ? item : pair->items[0]);
    if (l->kind == List::Kind::Set && !(item.list() && item.list()->kind == List::Kind::Set))
      hashKey(item);
    return std::any_of(l->items.begin(), l->items.end(), [&](const Value &one) { return isEqual(one, item); });
  }
  if (auto *d = container.dict()) {
    charge(item.weight());
    return d->find(item) != nullptr;
  }
  if (container.isUndefined())
    return false;
  Cursor cursor(*this, container);
  for (Value one; cursor.next(*this, one);) // takes items until it is found
    if (isEqual(one, item))
      return true;
  return false;
}
