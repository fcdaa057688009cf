//===- Expressions.cpp - evaluation and calls -----------------------------===//
#include "runtime/template/Interpreter.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

Value Runtime::evaluate(const Expr &expr) {
  at = expr.at;
  if (expr.kind == Expr::Kind::Constant)
    return expr.constant;
  if (++depth > limits.depth)
    fail("expected at most " + std::to_string(limits.depth) + " nested calls and constructs, got more");
  if (++steps > limits.steps)
    fail("expected at most " + std::to_string(limits.steps) + " steps, got more");
  Value value = evaluateKind(expr);
  --depth; // an Error ends the run, so it need not be undone then
  return value;
}

Value Runtime::evaluateKind(const Expr &expr) {
  auto operand = [&](size_t i) { return evaluate(*expr.operands[i]); };
  switch (expr.kind) {
  case Expr::Kind::Constant:
    return expr.constant;
  case Expr::Kind::Name:
    return evaluateName(expr);
  case Expr::Kind::List:
  case Expr::Kind::Tuple:
    return evaluateSequence(expr);
  case Expr::Kind::Dict:
    return evaluateDict(expr);
  case Expr::Kind::Attribute: {
    Value object = operand(0);
    at = expr.at;
    return attribute(object, expr.text);
  }
  case Expr::Kind::Item: {
    Value object = operand(0), key = operand(1);
    at = expr.at;
    return item(object, key);
  }
  case Expr::Kind::Slice:
    return evaluateSlice(expr);
  case Expr::Kind::CallName:
    return callNamed(expr);
  case Expr::Kind::CallBuiltin:
  case Expr::Kind::CallMethod:
  case Expr::Kind::Filter:
  case Expr::Kind::Test:
    return evaluateBuiltin(expr);
  case Expr::Kind::Not:
  case Expr::Kind::Negate:
  case Expr::Kind::Plus:
    return evaluateUnary(expr);
  case Expr::Kind::Binary: {
    Value a = operand(0), b = operand(1);
    at = expr.at;
    return binary(expr.text[0], a, b);
  }
  case Expr::Kind::Concat:
    return evaluateConcat(expr);
  case Expr::Kind::And: {
    Value a = operand(0);
    return a.truthy() ? operand(1) : a;
  }
  case Expr::Kind::Or: {
    Value a = operand(0);
    return a.truthy() ? a : operand(1);
  }
  case Expr::Kind::Compare:
    return evaluateCompare(expr);
  case Expr::Kind::Conditional:
    if (operand(1).truthy())
      return operand(0);
    return expr.operands[2] ? operand(2) : Value();
  }
  return Value();
}

Value Runtime::evaluateName(const Expr &expr) {
  if (const Value *found = scope->find(expr.name))
    return *found;
  const std::string &name = ast.names[expr.name];
  if (const Dict *variables = context.dict())
    if (const Value *found = variables->findName(name))
      return *found;
  if (const Builtin *function = findFunction(name)) {
    auto callable = std::make_shared<Callable>();
    callable->builtin = function;
    return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
  }
  return Value::undefined(name);
}

Value Runtime::evaluateSequence(const Expr &expr) {
  std::vector<Value> items;
  items.reserve(expr.operands.size());
  for (const ExprPtr &operand : expr.operands)
    items.push_back(evaluate(*operand));
  at = expr.at;
  return list(std::move(items), expr.kind == Expr::Kind::Tuple);
}

Value Runtime::evaluateDict(const Expr &expr) {
  Dict result;
  for (size_t i = 0; i < expr.operands.size(); i += 2) {
    Value key = evaluate(*expr.operands[i]);
    if (key.list() || key.dict())
      fail(std::string("expected a key that is no list or dict, got a ") + key.typeName());
    charge(key.isString() ? 0 : 16 * result.size()); // such keys are looked up linearly
    result.set(std::move(key), evaluate(*expr.operands[i + 1]));
  }
  at = expr.at;
  return dict(std::move(result));
}

Value Runtime::evaluateUnary(const Expr &expr) {
  Value value = evaluate(*expr.operands[0]);
  at = expr.at;
  if (expr.kind == Expr::Kind::Not)
    return Value(!value.truthy());
  if (auto *d = value.get<double>())
    return Value(expr.kind == Expr::Kind::Negate ? -*d : *d);
  return binary(expr.kind == Expr::Kind::Negate ? '-' : '+', Value(int64_t{0}), value);
}

Value Runtime::evaluateConcat(const Expr &expr) {
  std::string text;
  for (const ExprPtr &operand : expr.operands) {
    Value value = evaluate(*operand);
    text += value.string() ? *value.string() : toString(value);
    if (text.size() > limits.stringBytes)
      break; // string() reports it
  }
  at = expr.at;
  return string(std::move(text));
}

Value Runtime::evaluateCompare(const Expr &expr) {
  Value left = evaluate(*expr.operands[0]);
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = evaluate(*expr.operands[i + 1]);
    at = expr.at;
    bool holds = false;
    switch (expr.comparisons[i]) {
    case CompareOp::Equal: holds = isEqual(left, right); break;
    case CompareOp::NotEqual: holds = !isEqual(left, right); break;
    case CompareOp::Less: holds = compare(left, right) < 0; break;
    case CompareOp::LessEqual: holds = compare(left, right) <= 0; break;
    case CompareOp::Greater: holds = compare(left, right) > 0; break;
    case CompareOp::GreaterEqual: holds = compare(left, right) >= 0; break;
    case CompareOp::In: holds = contains(right, left); break;
    case CompareOp::NotIn: holds = !contains(right, left); break;
    }
    if (!holds)
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

/// Python's slice.indices for a sequence of `size`.
Value Runtime::evaluateSlice(const Expr &expr) {
  Value object = evaluate(*expr.operands[0]);
  auto bound = [&](size_t i, bool &given) -> int64_t {
    given = false;
    if (!expr.operands[i])
      return 0;
    Value value = evaluate(*expr.operands[i]);
    if (value.isNone())
      return 0;
    auto *n = value.get<int64_t>();
    if (!n)
      fail(std::string("expected an integer in a slice, got a ") + value.typeName());
    given = true;
    return *n;
  };
  bool hasStart, hasStop, hasStep;
  int64_t start = bound(1, hasStart), stop = bound(2, hasStop), step = bound(3, hasStep);
  at = expr.at;
  if ((!object.list() || object.list()->lazy) && !object.string())
    fail(std::string("expected a list or string to slice, got ") + object.typeName());
  step = hasStep ? step : 1;
  if (step == 0)
    fail("expected a slice step other than 0");
  std::vector<Value> items = iterate(object);
  const auto size = static_cast<int64_t>(items.size());
  auto clamp = [&](int64_t i) {
    i = i < 0 ? i + size : i;
    return std::clamp<int64_t>(i, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  start = hasStart ? clamp(start) : step > 0 ? 0 : size - 1;
  stop = hasStop ? clamp(stop) : step > 0 ? size : -1;
  std::vector<Value> picked;
  // A step beyond the size picks one item; clamped, the sum cannot overflow.
  step = std::clamp<int64_t>(step, -size - 1, size + 1);
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
    picked.push_back(items[static_cast<size_t>(i)]);
  if (!object.string())
    return list(std::move(picked), object.list()->tuple);
  std::string text;
  for (const Value &character : picked)
    text += *character.string();
  return string(std::move(text));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void Runtime::evaluateArguments(const Arguments &arguments, std::vector<Value> &positional,
                                std::vector<std::pair<std::string, Value>> &named) {
  for (const ExprPtr &argument : arguments.positional)
    positional.push_back(evaluate(*argument));
  for (const auto &[name, argument] : arguments.named)
    named.emplace_back(name, evaluate(*argument));
}

Value Runtime::evaluateBuiltin(const Expr &expr) {
  Value self = expr.kind == Expr::Kind::CallBuiltin ? Value() : evaluate(*expr.operands[0]);
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  evaluateArguments(expr.arguments, positional, named);
  at = expr.at;
  if (expr.kind == Expr::Kind::CallMethod && self.isUndefined())
    attribute(self, expr.builtin->name); // fails and names the value
  if (expr.kind == Expr::Kind::CallMethod && !hasMethod(self, expr.builtin->name))
    fail(std::string("expected a value with a method '") + std::string(expr.builtin->name) + "', got a " + self.typeName());
  Value result = call(*expr.builtin, self, positional, named);
  return expr.negated ? Value(!result.truthy()) : result;
}

Value Runtime::call(const Builtin &builtin, const Value &self, const std::vector<Value> &positional,
                    const std::vector<std::pair<std::string, Value>> &named) {
  Bound bound;
  bound.by.resize(builtin.parameters.size());
  for (size_t i = 0; i < positional.size(); ++i)
    if (i < bound.by.size())
      bound.by[i] = &positional[i];
    else
      bound.extra.push_back(&positional[i]);
  for (const auto &[name, value] : named) {
    auto found = std::find(builtin.parameters.begin(), builtin.parameters.end(), name);
    if (found == builtin.parameters.end())
      bound.named.emplace_back(name, &value);
    else
      bound.by[static_cast<size_t>(found - builtin.parameters.begin())] = &value;
  }
  // The parser has checked this; a filter named in map() or select() comes unchecked.
  if (!builtin.variadic && (!bound.extra.empty() || !bound.named.empty()))
    fail("'" + std::string(builtin.name) + "': expected at most " + std::to_string(bound.by.size()) +
         " known arguments, got others");
  for (size_t i = 0; i < builtin.required; ++i)
    if (!bound.by[i])
      fail("'" + std::string(builtin.name) + "': expected the argument '" + std::string(builtin.parameters[i]) + "', got none");
  return builtin.call(*this, self, bound);
}

Value Runtime::callNamed(const Expr &expr) {
  const Value *callee = scope->find(expr.name);
  const std::string &name = ast.names[expr.name];
  auto *callable = callee ? callee->get<std::shared_ptr<const Callable>>() : nullptr;
  const Builtin *function = callable ? (*callable)->builtin : callee ? nullptr : findFunction(name);
  if (!callable && !function)
    fail("expected '" + name + "' to be a macro or function, got " +
         (callee ? callee->typeName() : "nothing of that name"));
  Callable macro = callable ? **callable : Callable{};
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  evaluateArguments(expr.arguments, positional, named);
  at = expr.at;
  if (macro.macro)
    return callMacro(macro, std::move(positional), std::move(named), nullptr);
  return call(*function, Value(), positional, named);
}

Value Runtime::callMacro(const Callable &macro, std::vector<Value> positional,
                         std::vector<std::pair<std::string, Value>> named, const Value *caller) {
  const MacroInfo &info = macro.macro->macro;
  Scope inner{macro.scope, {}};
  const Position callSite = at;
  Scope *callerScope = scope;
  std::string text, *outer = out;
  scope = &inner;
  out = &text;
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter &parameter = info.parameters[i];
    const std::string &name = ast.names[parameter.name];
    auto found = std::find_if(named.begin(), named.end(), [&](auto &argument) { return argument.first == name; });
    if (i < positional.size()) {
      if (found != named.end())
        fail("macro '" + info.name + "': expected the argument '" + name + "' once, got it twice");
      inner.set(parameter.name, positional[i]);
    } else if (found != named.end()) {
      inner.set(parameter.name, std::move(found->second));
      named.erase(found);
    } else {
      inner.set(parameter.name, parameter.fallback ? evaluate(*parameter.fallback) : Value::undefined(name));
    }
  }
  at = callSite;
  if (positional.size() > info.parameters.size() && !info.takesVarargs)
    fail("macro '" + info.name + "': expected at most " + std::to_string(info.parameters.size()) + " arguments, got " +
         std::to_string(positional.size()));
  if (info.takesVarargs) {
    size_t taken = std::min(positional.size(), info.parameters.size());
    inner.set(varargsName, list({positional.begin() + static_cast<long>(taken), positional.end()}, true));
  }
  if (caller)
    inner.set(callerName, *caller);
  else if (info.takesCaller && macro.macro->kind == Stmt::Kind::Macro)
    inner.set(callerName, Value::undefined("caller"));
  if (!named.empty() && !info.takesKwargs)
    fail("macro '" + info.name + "': expected a known argument, got '" + named.front().first + "'");
  if (info.takesKwargs) {
    Dict rest;
    for (auto &[name, value] : named)
      rest.set(Value(name), std::move(value));
    inner.set(kwargsName, dict(std::move(rest)));
  }
  execute(macro.macro->bodies[0]);
  scope = callerScope; // an Error ends the run, so these need not be undone then
  out = outer;
  at = callSite;
  return string(std::move(text));
}
