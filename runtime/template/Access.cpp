//===- Access.cpp - attributes, items, iteration, containment --------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Interpreter.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

static Value loopAttribute(const LoopState &loop, std::string_view name) {
  const auto size = static_cast<int64_t>(loop.items->size()), index = static_cast<int64_t>(loop.index);
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "revindex")
    return Value(size - index);
  if (name == "revindex0")
    return Value(size - index - 1);
  if (name == "first")
    return Value(index == 0);
  if (name == "last")
    return Value(index + 1 == size);
  if (name == "length")
    return Value(size);
  if (name == "depth" || name == "depth0") // only recursive loops go deeper
    return Value(int64_t{name == "depth"});
  if (name == "previtem")
    return index ? (*loop.items)[loop.index - 1] : Value::undefined("loop.previtem");
  if (name == "nextitem")
    return index + 1 < size ? (*loop.items)[loop.index + 1] : Value::undefined("loop.nextitem");
  return Value::undefined("loop." + std::string(name));
}

std::string jinja::undefinedName(const Value &value) {
  auto *u = value.get<Undefined>();
  return u && u->name ? "'" + *u->name + "'" : "a value";
}

Value Runtime::attribute(const Value &object, std::string_view name) {
  if (object.isUndefined())
    fail("expected " + undefinedName(object) + " to be defined where '" + std::string(name) + "' of it is used");
  if (auto *loop = object.get<LoopState *>())
    return loopAttribute(**loop, name);
  if (auto *space = object.get<std::shared_ptr<Namespace>>()) {
    const Value *found = (*space)->attributes.findName(name);
    return found ? *found : Value::undefined(std::string(name));
  }
  if (hasMethod(object, name)) { // Python prefers the method to a key of that name
    auto callable = std::make_shared<Callable>();
    callable->builtin = findMethod(name);
    return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
  }
  if (const Dict *d = object.dict())
    if (const Value *found = d->findName(name))
      return *found;
  return Value::undefined(std::string(name));
}

Value Runtime::item(const Value &object, const Value &key) {
  if (object.isUndefined())
    fail("expected " + undefinedName(object) + " to be defined where [" + toRepr(key) + "] of it is used");
  if (const Dict *d = object.dict()) {
    charge(key.isString() ? 0 : 16 * d->size());
    if (const Value *found = d->find(key))
      return *found;
  } else {
    const int64_t *given = key.get<int64_t>();
    const List *l = object.list() && !object.list()->lazy ? object.list() : nullptr;
    const std::string *s = object.string();
    if (given && (l || s)) {
      const auto size = static_cast<int64_t>(l ? l->items.size() : countCharacters(*s));
      int64_t i = *given < 0 ? *given + size : *given;
      if (i < 0 || i >= size)
        return Value::undefined("item " + std::to_string(*given));
      if (l)
        return l->items[static_cast<size_t>(i)];
      std::string_view rest = std::string_view(*s).substr(offsetOf(*s, static_cast<size_t>(i)));
      return Value(std::string(rest.substr(0, utf8::decode(rest).length)));
    }
  }
  if (const std::string *name = key.string())
    return attribute(object, *name);
  return Value::undefined("item " + toRepr(key));
}

Value Runtime::path(const Value &object, std::string_view dotted) {
  Value value = object;
  while (!dotted.empty()) {
    size_t dot = dotted.find('.');
    std::string_view part = dotted.substr(0, dot);
    dotted = dot == std::string_view::npos ? std::string_view() : dotted.substr(dot + 1);
    bool digits = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    // environment.getitem: the key first, then the attribute
    if (digits && part.size() < 10)
      value = item(value, Value(static_cast<int64_t>(std::stoll(std::string(part)))));
    else
      value = item(value, Value(std::string(part)));
  }
  return value;
}

std::vector<Value> Runtime::iterate(const Value &value) {
  if (auto *l = value.list()) {
    charge(l->items.size() * sizeof(Value));
    return l->items;
  }
  std::vector<Value> items;
  if (auto *d = value.dict()) {
    for (const auto &entry : d->items())
      items.push_back(entry.first);
  } else if (auto *s = value.string()) {
    forEachCharacter(*s, [&](uint32_t, std::string_view one) { items.emplace_back(std::string(one)); });
  } else if (!value.isUndefined()) {
    fail(std::string("expected something to iterate over, got ") + value.typeName());
  }
  charge(items.size() * 2 * sizeof(Value));
  if (items.size() > limits.listItems)
    fail("expected at most " + std::to_string(limits.listItems) + " items, got " + std::to_string(items.size()));
  return items;
}

bool Runtime::contains(const Value &container, const Value &item) {
  if (auto *s = container.string()) {
    if (!item.string())
      fail(std::string("expected a string on the left of 'in' with a string, got ") + item.typeName());
    charge(container.weight());
    return s->find(*item.string()) != std::string::npos;
  }
  if (auto *l = container.list())
    return std::any_of(l->items.begin(), l->items.end(), [&](const Value &one) { return isEqual(one, item); });
  if (auto *d = container.dict()) {
    charge(item.isString() ? 0 : 16 * d->size());
    return d->find(item) != nullptr;
  }
  if (container.isUndefined())
    return false;
  fail(std::string("expected a container on the right of 'in', got ") + container.typeName());
}
