//===- Interpreter.cpp - statements, scopes, limits -----------------------===//
#include "runtime/template/Interpreter.h"

#include "runtime/template/Characters.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

const Value *Scope::find(NameId name) const {
  for (const Scope *s = this; s; s = s->parent)
    for (const auto &[id, value] : s->variables)
      if (id == name)
        return &value;
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  for (auto &[id, old] : variables)
    if (id == name) {
      old = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

/// One level of nesting and one step of work.
class Runtime::Nested {
public:
  Nested(Runtime &runtime, Position at) : runtime(runtime) {
    runtime.at = at;
    if (++runtime.depth > runtime.limits.depth)
      runtime.fail("expected at most " + std::to_string(runtime.limits.depth) + " nested calls and constructs, got more");
    if (++runtime.steps > runtime.limits.steps)
      runtime.fail("expected at most " + std::to_string(runtime.limits.steps) + " steps, got more");
  }
  ~Nested() { --runtime.depth; }

private:
  Runtime &runtime;
};

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

void Runtime::charge(uint64_t bytes) {
  if (bytes > limits.workBytes || (worked += bytes) > limits.workBytes)
    fail("expected at most " + std::to_string(limits.workBytes) + " bytes of values to work on, got more");
}

bool Runtime::isEqual(const Value &a, const Value &b) {
  charge(std::min(a.weight(), b.weight()));
  return equal(a, b);
}

Value Runtime::string(std::string s) {
  if (s.size() > limits.stringBytes)
    fail("expected strings of at most " + std::to_string(limits.stringBytes) + " bytes, got " + std::to_string(s.size()));
  charge(s.size());
  return Value(std::move(s));
}

void Runtime::checkData(const Value &value) const {
  if (!value.isData())
    fail(std::string("expected plain data in a list, dict or namespace, got a ") + value.typeName());
  if (value.depth() >= kMaxDataDepth)
    fail("expected at most " + std::to_string(kMaxDataDepth) + " nested lists and dicts, got more");
}

Value Runtime::list(std::vector<Value> items, bool tuple) {
  if (items.size() > limits.listItems)
    fail("expected lists of at most " + std::to_string(limits.listItems) + " items, got " + std::to_string(items.size()));
  charge(items.size() * sizeof(Value));
  for (const Value &item : items)
    checkData(item);
  return Value::list(std::move(items), tuple);
}

Value Runtime::lazy(std::vector<Value> items) {
  Value made = list(std::move(items));
  auto generator = std::make_shared<List>(*made.list());
  generator->lazy = true;
  return Value(Value::Storage(std::shared_ptr<const List>(std::move(generator))));
}

Value Runtime::dict(Dict dict) {
  charge(dict.size() * 2 * sizeof(Value));
  for (const auto &[key, value] : dict.items()) {
    checkData(key);
    checkData(value);
  }
  return Value::dict(std::move(dict));
}

void Runtime::emit(std::string_view text) {
  written += text.size();
  if (written > limits.outputBytes || out->size() + text.size() > limits.outputBytes)
    fail("expected at most " + std::to_string(limits.outputBytes) + " bytes of output, got more");
  out->append(text);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

NameId Runtime::nameId(std::string_view name) const {
  return static_cast<NameId>(std::find(ast.names.begin(), ast.names.end(), name) - ast.names.begin());
}

std::string Runtime::run() {
  loopName = nameId("loop");
  callerName = nameId("caller");
  varargsName = nameId("varargs");
  kwargsName = nameId("kwargs");
  Scope root;
  std::string result;
  scope = &root;
  out = &result;
  try {
    execute(ast.body);
  } catch (const TooLong &) {
    fail("expected values that can be written in " + std::to_string(kMaxText) + " bytes, got more");
  }
  return result;
}

Runtime::Flow Runtime::execute(const Body &body) {
  for (const auto &stmt : body)
    if (Flow flow = execute(*stmt); flow != Flow::Next)
      return flow;
  return Flow::Next;
}

Runtime::Flow Runtime::execute(const Stmt &stmt) {
  Nested nested(*this, stmt.at);
  switch (stmt.kind) {
  case Stmt::Kind::Text:
    emit(stmt.text);
    return Flow::Next;
  case Stmt::Kind::Output: {
    Value value = evaluate(*stmt.expressions[0]);
    at = stmt.at;
    if (auto *s = value.string())
      emit(*s);
    else
      emit(toString(value));
    return Flow::Next;
  }
  case Stmt::Kind::If:
    return executeIf(stmt);
  case Stmt::Kind::For:
    return executeFor(stmt);
  case Stmt::Kind::Set:
    assign(stmt.targets[0], evaluate(*stmt.expressions[0]));
    return Flow::Next;
  case Stmt::Kind::SetBlock:
    assign(stmt.targets[0], throughFilters(stmt, string(capture(stmt.bodies[0]))));
    return Flow::Next;
  case Stmt::Kind::Macro: {
    auto callable = std::make_shared<Callable>();
    callable->macro = &stmt;
    callable->scope = scope;
    scope->set(stmt.targets[0].name, Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable)))));
    return Flow::Next;
  }
  case Stmt::Kind::CallBlock:
    executeCallBlock(stmt);
    return Flow::Next;
  case Stmt::Kind::FilterBlock:
    emit(toString(throughFilters(stmt, string(capture(stmt.bodies[0])))));
    return Flow::Next;
  case Stmt::Kind::With:
    executeWith(stmt);
    return Flow::Next;
  case Stmt::Kind::Group:
    return execute(stmt.bodies[0]);
  case Stmt::Kind::Break:
    return Flow::Break;
  case Stmt::Kind::Continue:
    return Flow::Continue;
  }
  return Flow::Next;
}

Runtime::Flow Runtime::executeIf(const Stmt &stmt) {
  for (size_t i = 0; i < stmt.expressions.size(); ++i)
    if (evaluate(*stmt.expressions[i]).truthy())
      return execute(stmt.bodies[i]);
  if (stmt.bodies.size() > stmt.expressions.size())
    return execute(stmt.bodies.back());
  return Flow::Next;
}

namespace {
/// Restores a member when a block ends, also by an exception.
template <typename T> class Saved {
public:
  Saved(T &place, T value) : place(place), old(place) { place = value; }
  ~Saved() { place = old; }

private:
  T &place;
  T old;
};
} // namespace

/// Every iteration has a scope of its own, as in jinja2.
Runtime::Flow Runtime::executeFor(const Stmt &stmt) {
  std::vector<Value> items = iterate(evaluate(*stmt.expressions[0]));
  Scope *outer = scope;
  if (stmt.expressions.size() > 1) { // "if" keeps some; loop does not exist in it
    std::vector<Value> kept;
    for (Value &item : items) {
      Scope inner{outer, {}};
      Saved<Scope *> enter(scope, &inner);
      assign(stmt.targets[0], item);
      if (evaluate(*stmt.expressions[1]).truthy())
        kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    if (stmt.bodies.size() < 2)
      return Flow::Next;
    Scope inner{outer, {}};
    Saved<Scope *> enter(scope, &inner);
    return execute(stmt.bodies[1]);
  }
  LoopState loop;
  loop.items = &items;
  for (; loop.index < items.size(); ++loop.index) {
    Scope inner{outer, {}};
    Saved<Scope *> enter(scope, &inner);
    inner.variables.emplace_back(loopName, Value(Value::Storage(&loop)));
    at = stmt.at;
    if (++steps > limits.steps)
      fail("expected at most " + std::to_string(limits.steps) + " steps, got more");
    assign(stmt.targets[0], items[loop.index]);
    if (execute(stmt.bodies[0]) == Flow::Break)
      break;
  }
  return Flow::Next;
}

void Runtime::executeWith(const Stmt &stmt) {
  Scope inner{scope, {}};
  std::vector<Value> values;
  for (const ExprPtr &expr : stmt.expressions) // all in the outer scope
    values.push_back(evaluate(*expr));
  Saved<Scope *> enter(scope, &inner);
  for (size_t i = 0; i < values.size(); ++i)
    assign(stmt.targets[i], values[i]);
  execute(stmt.bodies[0]);
}

void Runtime::executeCallBlock(const Stmt &stmt) {
  const Expr &call = *stmt.expressions[0];
  const Value *callee = scope->find(call.name);
  auto *callable = callee ? callee->get<std::shared_ptr<const Callable>>() : nullptr;
  if (!callable || !(*callable)->macro)
    fail("expected a macro to call, got '" + ast.names[call.name] + "'");
  Callable macro = **callable; // the variable may be reassigned while it runs
  auto block = std::make_shared<Callable>();
  block->macro = &stmt;
  block->scope = scope;
  Value caller{Value::Storage(std::shared_ptr<const Callable>(std::move(block)))};
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  evaluateArguments(call.arguments, positional, named);
  emit(toString(callMacro(macro, std::move(positional), std::move(named), &caller)));
}

void Runtime::assign(const Target &target, const Value &value) {
  if (target.isTuple) {
    std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size())
      fail("expected " + std::to_string(target.parts.size()) + " values to unpack, got " + std::to_string(items.size()));
    for (size_t i = 0; i < items.size(); ++i)
      assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty())
    return scope->set(target.name, value);
  const Value *object = scope->find(target.name);
  auto *space = object ? object->get<std::shared_ptr<Namespace>>() : nullptr;
  if (!space)
    fail("expected '" + ast.names[target.name] + "' to be a namespace, got " +
         (object ? object->typeName() : "nothing of that name"));
  checkData(value);
  (*space)->attributes.set(Value(target.attribute), value);
}

std::string Runtime::capture(const Body &body) {
  std::string text;
  Saved<std::string *> redirect(out, &text);
  Scope inner{scope, {}};
  Saved<Scope *> enter(scope, &inner);
  execute(body);
  return text;
}

Value Runtime::throughFilters(const Stmt &stmt, Value value) {
  for (const ExprPtr &filter : stmt.filters) {
    at = filter->at;
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    evaluateArguments(filter->arguments, positional, named);
    value = call(*filter->builtin, value, positional, named);
  }
  return value;
}
