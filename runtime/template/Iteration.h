//===- Iteration.h - iterators, generators, loops ---------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TEMPLATE_ITERATION_H
#define LLMC_RUNTIME_TEMPLATE_ITERATION_H

#include "runtime/template/Interpreter.h"

#include <functional>
#include <optional>

namespace llmc::jinja {

/// Python's iter(): list, tuple, keys of a dict, characters, generator, nothing
/// for undefined.
class Cursor {
public:
  Cursor() = default;
  /// Throws for what cannot be iterated over.
  Cursor(Runtime &runtime, Value source);
  bool next(Runtime &runtime, Value &out);

private:
  Value source;
  size_t at = 0; // item, or byte of a string
};

/// What map, select and others give: items are made when they are asked for, once.
class Generator {
public:
  /// Gives the next item or false.
  using Next = std::function<bool(Runtime &, Value &)>;
  Generator(Next next, unsigned depth) : depth(depth), next(std::move(next)) {}

  bool get(Runtime &runtime, Value &out);

  const unsigned depth; // nesting of what it draws from, this one included

private:
  Next next; // empty when there is no more
};

/// `loop` within a for.
struct LoopState {
  Value iterable;
  Cursor cursor;
  std::optional<size_t> knownLength;
  std::optional<Value> after; // looked at already
  bool exhausted = false;     // there is no item after `current`
  std::vector<Value> drained; // of a generator, when its length was asked for
  size_t drainedAt = 0;
  bool isDrained = false;
  size_t index = 0;
  bool started = false;
  Value before, current;
  std::vector<Value> changed; // of loop.changed()
  bool changedCalled = false;
  const Stmt *recursive = nullptr; // the loop to call, if it is
  Env *env = nullptr;              // where that loop is
  size_t depth0 = 0;

  bool advance(Runtime &runtime);
  bool peek(Runtime &runtime);
  size_t length(Runtime &runtime);

private:
  bool draw(Runtime &runtime, Value &out);
};

Value makeGenerator(Runtime &runtime, const Value &source, Generator::Next next);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_ITERATION_H
