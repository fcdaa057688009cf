//===- Calls.cpp - filters, methods, functions, macros ----------------------===//
#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

std::string Callable::macroName() const {
  return macro->kind == Stmt::Kind::Macro ? toRepr(Value(macro->macro.name)) : std::string("anonymous");
}

void Runtime::evaluateArguments(const Arguments &arguments, std::vector<Value> &positional, Named &named) {
  positional.reserve(arguments.positional.size());
  for (const ExprPtr &argument : arguments.positional)
    positional.push_back(evaluate(*argument));
  if (arguments.list)
    for (Value &item : iterate(evaluate(*arguments.list)))
      positional.push_back(std::move(item));
  for (const auto &[name, argument] : arguments.named)
    named.emplace_back(name, evaluate(*argument));
  if (!arguments.dict)
    return;
  Value rest = evaluate(*arguments.dict);
  if (!rest.dict())
    fail(std::string("expected a dict after '**', got ") + rest.typeName());
  for (const auto &[key, value] : rest.dict()->items()) {
    if (!key.string())
      fail(std::string("expected strings as names of arguments, got a ") + key.typeName());
    for (const auto &other : named)
      if (other.first == *key.string())
        fail("expected the argument '" + other.first + "' once, got it twice");
    named.emplace_back(*key.string(), value);
  }
}

Value Runtime::evaluateBuiltin(const Expr &expr) {
  Value self = evaluate(*expr.operands[0]);
  std::vector<Value> positional;
  Named named;
  evaluateArguments(expr.arguments, positional, named);
  at = expr.at;
  if (!expr.builtin)
    fail(std::string("expected a known ") + (expr.kind == Expr::Kind::Filter ? "filter" : "test") + ", got '" + expr.text + "'");
  Value result = call(*expr.builtin, self, positional, named);
  return expr.negated ? Value(!result.truthy()) : result;
}

Value Runtime::call(const Builtin &builtin, const Value &self, const std::vector<Value> &positional, const Named &named) {
  const auto title = [&] { return "'" + std::string(builtin.name) + "': "; };
  Bound bound;
  bound.by.resize(builtin.parameters.size());
  for (size_t i = 0; i < positional.size(); ++i)
    if (i < bound.by.size())
      bound.by[i] = &positional[i];
    else
      bound.extra.push_back(&positional[i]);
  for (const auto &[name, value] : named) {
    auto found = builtin.positionalOnly ? builtin.parameters.end()
                                        : std::find(builtin.parameters.begin(), builtin.parameters.end(), name);
    if (found == builtin.parameters.end()) {
      bound.named.emplace_back(name, &value);
      continue;
    }
    const Value *&place = bound.by[static_cast<size_t>(found - builtin.parameters.begin())];
    if (place)
      fail(title() + "expected the argument '" + name + "' once, got it twice");
    place = &value;
  }
  if (!builtin.variadic && !bound.named.empty())
    fail(title() + "expected a known argument, got '" + std::string(bound.named[0].first) + "'");
  if (!builtin.variadic && !bound.extra.empty())
    fail(title() + "expected at most " + std::to_string(bound.by.size()) + " arguments, got " +
         std::to_string(positional.size()));
  for (size_t i = 0; i < builtin.required; ++i)
    if (!bound.by[i])
      fail(title() + "expected the argument '" + std::string(builtin.parameters[i]) + "', got none");
  return builtin.call(*this, self, bound);
}

/// A method is looked up on its object right away, without a value for it.
Value Runtime::evaluateCall(const Expr &expr, const Value *caller) {
  const Expr &callee = *expr.operands[0];
  Value object, function;
  const Builtin *method = nullptr;
  if (callee.kind == Expr::Kind::Attribute) {
    object = evaluate(*callee.operands[0]);
    at = callee.at;
    method = findMethod(object, callee.text);
    if (!method)
      function = attribute(object, callee.text);
  } else {
    function = evaluate(callee);
  }
  std::vector<Value> positional;
  Named named;
  evaluateArguments(expr.arguments, positional, named);
  if (caller) {
    for (const auto &other : named)
      if (other.first == "caller")
        fail("expected the argument 'caller' once, got it twice");
    // Behind the named arguments, before those of a dict: a macro shows the order as kwargs.
    named.emplace(named.begin() + static_cast<ptrdiff_t>(expr.arguments.named.size()), "caller", *caller);
  }
  at = callee.at;
  if (method)
    return call(*method, object, positional, named);
  if (function.isUndefined())
    fail("expected " + undefinedName(function) + " to be a function or macro, got nothing of that name");
  return callValue(function, std::move(positional), std::move(named));
}

Value Runtime::callValue(const Value &callee, std::vector<Value> positional, Named named) {
  if (auto *loop = callee.get<std::shared_ptr<LoopState>>()) {
    if (positional.size() == 1 && named.empty()) {
      LoopState inner;
      inner.recursive = (*loop)->recursive;
      inner.env = (*loop)->env;
      inner.depth0 = (*loop)->depth0 + 1;
      return callLoop(inner, positional[0]);
    }
    fail("expected one argument for a loop that is called, got " + std::to_string(positional.size() + named.size()));
  }
  auto *callable = callee.get<std::shared_ptr<const Callable>>();
  if (!callable)
    fail(std::string("expected a function or macro to call, got a ") + callee.typeName());
  const std::shared_ptr<const Callable> held = *callable; // its variable may be assigned to meanwhile
  if (held->isJoiner) {
    if (!positional.empty() || !named.empty())
      fail("expected no arguments for a joiner");
    return held->calls++ ? held->items[0] : Value("");
  }
  if (held->macro)
    return callMacro(*held, std::move(positional), std::move(named));
  if (!held->builtin)
    fail("expected a function or macro to call, got a cycler");
  return call(*held->builtin, held->self, positional, named);
}

/// jinja2's order: parameters by position, then by name, then the special ones.
void Runtime::bindMacro(const Stmt &stmt, std::vector<Value> &positional, Named &named) {
  const MacroInfo &info = stmt.macro;
  const std::string title = info.name.empty() ? "caller block: " : "macro '" + info.name + "': ";
  auto takeNamed = [&](const std::string &name, Value &value) {
    auto found = std::find_if(named.begin(), named.end(), [&](auto &argument) { return argument.first == name; });
    if (found == named.end())
      return false;
    value = std::move(found->second);
    named.erase(found);
    return true;
  };
  std::vector<bool> given(info.parameters.size());
  bool explicitCaller = false;
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const std::string &name = ast.names[info.parameters[i].name];
    explicitCaller |= name == "caller";
    Value &place = env->slots[info.parameters[i].slot];
    given[i] = i < positional.size();
    if (given[i])
      place = positional[i];
    else
      given[i] = takeNamed(name, place);
  }
  if (info.takesCaller && !explicitCaller) {
    Value caller;
    if (!takeNamed("caller", caller) || caller.isNone())
      caller = Value::undefined("caller");
    env->slots[info.callerSlot] = caller;
  }
  if (!named.empty() && !info.takesKwargs)
    fail(title + "expected a known argument, got '" + named.front().first + "'");
  if (info.takesKwargs) {
    Dict rest;
    for (auto &[name, value] : named)
      rest.set(Value(name), std::move(value));
    env->slots[info.kwargsSlot] = dict(std::move(rest));
  }
  const size_t taken = std::min(positional.size(), info.parameters.size());
  if (taken < positional.size() && !info.takesVarargs)
    fail(title + "expected at most " + std::to_string(taken) + " arguments, got " + std::to_string(positional.size()));
  if (info.takesVarargs)
    env->slots[info.varargsSlot] = list({positional.begin() + static_cast<long>(taken), positional.end()}, true);
  enter(stmt.frame);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter &parameter = info.parameters[i];
    if (!given[i])
      env->slots[parameter.slot] =
          parameter.fallback ? evaluate(*parameter.fallback) : Value::undefined(ast.names[parameter.name]);
  }
}

Value Runtime::callMacro(const Callable &macro, std::vector<Value> positional, Named named) {
  const Position callSite = at;
  Nested nested(*this, at);
  std::string text;
  std::unique_ptr<Env> inner = makeEnv(macro.env, macro.macro->slots);
  {
    Saved<Env *> inside(env, inner.get());
    Saved<std::string *> redirect(out, &text);
    bindMacro(*macro.macro, positional, named);
    execute(macro.macro->bodies[0]);
  }
  retire(std::move(inner));
  at = callSite;
  return string(std::move(text));
}
