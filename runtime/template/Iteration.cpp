#include "runtime/template/Iteration.h"

#include "runtime/template/Characters.h"

using namespace llmc;
using namespace llmc::jinja;

//===----------------------------------------------------------------------===//
// Iterators
//===----------------------------------------------------------------------===//

Cursor::Cursor(Runtime &runtime, Value value) : source(std::move(value)) {
  if (!source.list() && !source.dict() && !source.isString() && !source.isUndefined() &&
      !source.is<std::shared_ptr<Generator>>() && !source.is<std::shared_ptr<LoopState>>())
    runtime.fail(std::string("expected something to iterate over, got ") + source.typeName());
}

bool Cursor::next(Runtime &runtime, Value &out) {
  if (const List *l = source.list()) {
    if (at >= l->items.size())
      return false;
    out = l->items[at++];
  } else if (const Dict *d = source.dict()) {
    if (at >= d->size())
      return false;
    out = d->items()[at++].first;
  } else if (const std::string *s = source.string()) {
    if (at >= s->size())
      return false;
    const size_t n = utf8::decode(std::string_view(*s).substr(at)).length;
    out = Value(s->substr(at, n));
    at += n;
  } else if (auto *generator = source.get<std::shared_ptr<Generator>>()) {
    return (*generator)->get(runtime, out);
  } else if (auto *loop = source.get<std::shared_ptr<LoopState>>()) { // its own iterator
    if (!(*loop)->advance(runtime))
      return false;
    out = runtime.list({(*loop)->current, source}, true);
  } else {
    return false;
  }
  return true;
}

bool Generator::get(Runtime &runtime, Value &out) {
  if (!next)
    return false;
  runtime.charge(sizeof(Value));
  if (next(runtime, out))
    return true;
  next = nullptr;
  return false;
}

Value jinja::makeGenerator(Runtime &runtime, const Value &source, Generator::Next next) {
  runtime.checkDepth(source);
  runtime.charge(128);
  return Value(Value::Storage(std::make_shared<Generator>(std::move(next), source.depth() + 1)));
}

std::vector<Value> Runtime::iterate(const Value &value) {
  if (auto *l = value.list()) {
    charge(l->items.size() * sizeof(Value));
    return l->items;
  }
  std::vector<Value> items;
  Cursor cursor(*this, value);
  for (Value item; cursor.next(*this, item);) {
    if (items.size() >= limits.listItems)
      fail("expected at most " + std::to_string(limits.listItems) + " items, got more");
    charge(2 * sizeof(Value));
    items.push_back(std::move(item));
  }
  return items;
}

std::optional<size_t> Runtime::length(const Value &value) {
  if (auto *s = value.string())
    return countCharacters(*s);
  if (auto *l = value.list())
    return l->items.size();
  if (auto *d = value.dict())
    return d->size();
  if (value.isUndefined())
    return 0;
  if (auto *loop = value.get<std::shared_ptr<LoopState>>())
    return (*loop)->length(*this);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

bool LoopState::draw(Runtime &runtime, Value &out) {
  if (!isDrained)
    return cursor.next(runtime, out);
  if (drainedAt >= drained.size())
    return false;
  out = drained[drainedAt++];
  return true;
}

bool LoopState::advance(Runtime &runtime) {
  Value item;
  if (after) {
    item = std::move(*after);
    after.reset();
  } else if (!draw(runtime, item)) {
    return false;
  }
  index += started;
  started = true;
  before = std::move(current);
  current = std::move(item);
  return true;
}

bool LoopState::peek(Runtime &runtime) {
  if (after)
    return true;
  Value item;
  if (!draw(runtime, item))
    return false;
  after = std::move(item);
  return true;
}

size_t LoopState::length(Runtime &runtime) {
  if (knownLength)
    return *knownLength;
  if (iterable.is<std::shared_ptr<Generator>>()) { // the rest has to be made to be counted
    for (Value item; draw(runtime, item);)
      drained.push_back(std::move(item));
    isDrained = true;
    knownLength = drained.size() + index + started + after.has_value();
  } else {
    knownLength = runtime.length(iterable).value_or(0);
  }
  return *knownLength;
}

/// Items that the condition of the loop keeps, tested when they are asked for.
Value Runtime::filtered(const Stmt &stmt, const Value &iterable) {
  env->captured = true;
  struct State {
    Cursor cursor;
    std::unique_ptr<Env> env;
    bool entered = false;
  };
  auto state = std::make_shared<State>();
  state->cursor = Cursor(*this, iterable);
  state->env = makeEnv(env, stmt.testSlots);
  return makeGenerator(*this, iterable, [state, &stmt](Runtime &runtime, Value &out) {
    Saved<Env *> inside(runtime.env, state->env.get());
    if (!state->entered)
      runtime.enter(stmt.testFrame);
    state->entered = true;
    for (Value item; state->cursor.next(runtime, item);) {
      Nested nested(runtime, stmt.at);
      runtime.assign(stmt.testTarget, item);
      if (runtime.evaluate(*stmt.expressions[1]).truthy()) {
        out = runtime.read(stmt.testTarget);
        return true;
      }
    }
    return false;
  });
}

Runtime::Flow Runtime::executeFor(const Stmt &stmt) {
  Value iterable = evaluate(*stmt.expressions[0]);
  at = stmt.at;
  if (!stmt.recursive)
    return runLoop(stmt, iterable, 0);
  LoopState outermost; // called as the loop itself would be
  outermost.recursive = &stmt;
  outermost.env = env;
  env->captured = true;
  emit(*callLoop(outermost, iterable).string());
  return Flow::Next;
}

Value Runtime::callLoop(const LoopState &loop, const Value &iterable) {
  if (!loop.recursive)
    fail("expected a loop marked 'recursive' where it is called");
  const Stmt &stmt = *loop.recursive;
  Nested nested(*this, at);
  std::string text;
  std::unique_ptr<Env> inner = makeEnv(loop.env, stmt.slots);
  {
    Saved<Env *> inside(env, inner.get());
    Saved<std::string *> redirect(out, &text);
    runLoop(stmt, iterable, loop.depth0);
  }
  retire(std::move(inner));
  return string(std::move(text));
}

/// The body of a loop is a scope that is entered for every item.
Runtime::Flow Runtime::runLoop(const Stmt &stmt, const Value &given, size_t depth0) {
  auto loop = std::make_shared<LoopState>();
  loop->iterable = stmt.expressions.size() > 1 ? filtered(stmt, given) : given;
  loop->cursor = Cursor(*this, loop->iterable);
  loop->recursive = stmt.recursive ? &stmt : nullptr;
  loop->env = stmt.recursive ? env->parent : env;
  loop->depth0 = depth0;
  if (!loop->iterable.is<std::shared_ptr<Generator>>())
    loop->knownLength = length(loop->iterable);
  charge(sizeof(LoopState));
  Flow flow = Flow::Next;
  bool completed = false; // an iteration, which is what "else" asks
  while (loop->advance(*this)) {
    at = stmt.at;
    step();
    assign(stmt.targets[0], loop->current);
    env->slots[stmt.loopSlot] = Value(Value::Storage(loop));
    enter(stmt.frame);
    flow = execute(stmt.bodies[0]);
    if (flow == Flow::Break)
      break;
    completed |= flow == Flow::Next;
  }
  leave(stmt.frame);
  env->slots[stmt.loopSlot] = Value();
  loop->changed.clear(); // may hold the loop itself
  loop->before = loop->current = Value();
  if (completed || stmt.bodies.size() < 2)
    return Flow::Next;
  enter(stmt.elseFrame);
  flow = execute(stmt.bodies[1]);
  leave(stmt.elseFrame);
  return flow;
}
