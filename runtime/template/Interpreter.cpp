//===- Interpreter.cpp - statements, scopes, limits -----------------------===//
#include "runtime/template/Interpreter.h"

#include "runtime/template/Iteration.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

Runtime::~Runtime() {
  for (auto &space : namespaces)
    space->attributes.clear();
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

void Runtime::tooDeep() const {
  fail("expected at most " + std::to_string(limits.depth) + " nested calls and constructs, got more");
}

void Runtime::step() {
  if (++steps > limits.steps)
    fail("expected at most " + std::to_string(limits.steps) + " steps, got more");
}

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

Value Runtime::stringLike(const Value &like, std::string s) {
  Value made = string(std::move(s));
  return like.isMarkup() ? Value(Value::Storage(Markup{*made.get<String>()})) : made;
}

void Runtime::checkDepth(const Value &value) const {
  if (value.depth() >= kMaxDataDepth)
    fail("expected at most " + std::to_string(kMaxDataDepth) + " nested lists and dicts, got more");
}

Value Runtime::list(List list) {
  if (list.items.size() > limits.listItems)
    fail("expected lists of at most " + std::to_string(limits.listItems) + " items, got " + std::to_string(list.items.size()));
  charge(list.items.size() * sizeof(Value));
  for (const Value &item : list.items)
    checkDepth(item);
  return Value::list(std::move(list));
}

Value Runtime::list(std::vector<Value> items, bool tuple) {
  List made;
  made.items = std::move(items);
  made.kind = tuple ? List::Kind::Tuple : List::Kind::List;
  return list(std::move(made));
}

Value Runtime::dict(Dict dict) {
  charge(dict.size() * 3 * sizeof(Value));
  for (const auto &[key, value] : dict.items()) {
    checkDepth(key);
    checkDepth(value);
  }
  return Value::dict(std::move(dict));
}

std::shared_ptr<Namespace> Runtime::makeNamespace() {
  charge(512); // lives to the end
  namespaces.push_back(std::make_shared<Namespace>());
  return namespaces.back();
}

std::string Runtime::str(const Value &value) {
  std::string text = toString(value);
  charge(text.size());
  return text;
}

std::string Runtime::repr(const Value &value) {
  std::string text = toRepr(value);
  charge(text.size());
  return text;
}

void Runtime::emit(std::string_view text) {
  written += text.size();
  if (written > limits.outputBytes || out->size() + text.size() > limits.outputBytes)
    fail("expected at most " + std::to_string(limits.outputBytes) + " bytes of output, got more");
  out->append(text);
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Value &Runtime::slot(Ref ref) {
  Env *in = env;
  for (uint32_t i = 0; i < ref.hops; ++i)
    in = in->parent;
  return in->slots[ref.slot];
}

/// A variable that is not set yet has no name of its own.
Value Runtime::load(Ref ref, NameId name) {
  const Value &found = slot(ref);
  if (auto *undefined = found.get<Undefined>(); undefined && !undefined->name)
    return Value::undefined(ast.names[name]);
  return found;
}

Value Runtime::fromContext(NameId id) {
  const std::string &name = ast.names[id];
  if (const Dict *variables = context.dict())
    if (const Value *found = variables->findName(name))
      return *found;
  if (const Builtin *function = findFunction(name)) {
    auto callable = std::make_shared<Callable>();
    callable->builtin = function;
    return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
  }
  return Value();
}

void Runtime::enter(const Frame &frame) {
  for (const Load &load : frame.loads) {
    Value value = load.kind == Load::Kind::Copy      ? slot(load.from)
                  : load.kind == Load::Kind::Context ? fromContext(load.name)
                                                     : Value();
    env->slots[load.slot] = std::move(value);
  }
}

void Runtime::leave(const Frame &frame) {
  for (uint32_t slot : frame.slots)
    env->slots[slot] = Value();
}

std::unique_ptr<Env> Runtime::makeEnv(Env *parent, uint32_t slots) {
  charge(128 + slots * sizeof(Value));
  auto made = std::make_unique<Env>();
  made->parent = parent;
  made->slots.resize(slots);
  return made;
}

void Runtime::retire(std::unique_ptr<Env> done) {
  if (done->captured)
    keptEnvs.push_back(std::move(done));
}

Value Runtime::closure(const Stmt &stmt) {
  auto callable = std::make_shared<Callable>();
  callable->macro = &stmt;
  callable->env = env;
  env->captured = true;
  charge(sizeof(Callable));
  return Value(Value::Storage(std::shared_ptr<const Callable>(std::move(callable))));
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

std::string Runtime::run() {
  std::unique_ptr<Env> root = makeEnv(nullptr, ast.slots);
  std::string result;
  env = root.get();
  out = &result;
  try {
    enter(ast.frame);
    execute(ast.body);
  } catch (const TooLong &) {
    fail("expected values that can be written in " + std::to_string(kMaxText) + " bytes, got more");
  } catch (const NoSpelling &bad) {
    fail("expected a value that can be printed, got " + bad.what);
  } catch (const Unhashable &bad) {
    fail(std::string("expected a key or member that has a hash, got a ") + bad.type);
  } catch (const BigInt::TooLarge &) {
    fail("expected integers of at most " + std::to_string(BigInt::kMaxBits) + " bits, got more");
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
  case Stmt::Kind::Macro:
    assign(stmt.targets[0], closure(stmt));
    return Flow::Next;
  case Stmt::Kind::CallBlock:
    executeCallBlock(stmt);
    return Flow::Next;
  case Stmt::Kind::SetBlock:
  case Stmt::Kind::FilterBlock:
    return executeCaptured(stmt);
  case Stmt::Kind::With:
    return executeWith(stmt);
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

Runtime::Flow Runtime::executeWith(const Stmt &stmt) {
  std::vector<Value> values;
  for (size_t i = 0; i < stmt.expressions.size(); ++i) // all are of the outer scope
    assign(stmt.targets[i], evaluate(*stmt.expressions[i]));
  enter(stmt.frame);
  Flow flow = execute(stmt.bodies[0]);
  leave(stmt.frame);
  return flow;
}

/// What a block set or filter block makes is lost when a loop is left from within.
Runtime::Flow Runtime::executeCaptured(const Stmt &stmt) {
  std::string text;
  enter(stmt.frame);
  Flow flow;
  {
    Saved<std::string *> redirect(out, &text);
    flow = execute(stmt.bodies[0]);
  }
  if (flow == Flow::Next) {
    at = stmt.at;
    Value value = throughFilters(stmt, string(std::move(text)));
    if (stmt.kind == Stmt::Kind::SetBlock)
      assign(stmt.targets[0], value);
    else if (value.isString())
      emit(*value.string());
    else
      fail(std::string("expected the filters of a block to give a string, got ") + value.typeName());
  }
  leave(stmt.frame);
  return flow;
}

void Runtime::executeCallBlock(const Stmt &stmt) {
  Value block = closure(stmt);
  Value result;
  if (const Expr *call = stmt.expressions[0].get())
    result = evaluateCall(*call, &block);
  else
    result = callValue(block, {}, {});
  at = stmt.at;
  emit(toString(result));
}

void Runtime::assign(const Target &target, const Value &value) {
  if (target.isTuple) {
    at = target.at;
    std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size())
      fail("expected " + std::to_string(target.parts.size()) + " values to unpack, got " + std::to_string(items.size()));
    for (size_t i = 0; i < items.size(); ++i)
      assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) {
    slot(target.ref) = value;
    return;
  }
  at = target.at;
  const Value object = load(target.ref, target.name);
  auto *space = object.get<std::shared_ptr<Namespace>>();
  if (!space)
    fail("expected '" + ast.names[target.name] + "' to be a namespace, got " + object.typeName());
  checkDepth(value);
  charge(64);
  (*space)->attributes.set(Value(target.attribute), value);
}

/// The variables of a target as one value.
Value Runtime::read(const Target &target) {
  if (!target.isTuple)
    return load(target.ref, target.name);
  std::vector<Value> items;
  for (const Target &part : target.parts)
    items.push_back(read(part));
  return list(std::move(items), true);
}

Value Runtime::throughFilters(const Stmt &stmt, Value value) {
  for (const ExprPtr &filter : stmt.filters) {
    std::vector<Value> positional;
    Named named;
    evaluateArguments(filter->arguments, positional, named);
    at = filter->at;
    value = call(*filter->builtin, value, positional, named);
  }
  return value;
}
