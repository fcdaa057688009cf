//===- Interpreter.h - runs a parsed template -------------------*- C++ -*-===//
//
// A tree walker. Work, output, memory and nesting are bounded, so that a hostile
// template ends with an Error; see Limits.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_INTERPRETER_H
#define LLMC_RUNTIME_TEMPLATE_INTERPRETER_H

#include "runtime/template/Ast.h"

#include <ctime>

namespace llmc::jinja {

struct Limits {
  uint64_t steps = 10'000'000;         // expressions and statements evaluated
  uint64_t outputBytes = 16u << 20;
  uint64_t workBytes = 512u << 20;     // of strings and lists made or compared over the whole run
  uint64_t stringBytes = 16u << 20;    // of one string
  uint64_t listItems = 1'000'000;
  unsigned depth = 400;                // statements and expressions within one another, macros included
  int64_t range = 100'000;             // items of range(), jinja2's sandbox has the same
};

struct Scope {
  Scope *parent = nullptr;
  std::vector<std::pair<NameId, Value>> variables;

  const Value *find(NameId name) const;
  void set(NameId name, Value value);
};

/// A macro (with its caller block), or a builtin or method named without a call.
struct Callable {
  const Stmt *macro = nullptr;
  Scope *scope = nullptr; // where the macro was defined
  const Builtin *builtin = nullptr;
};

/// `loop` within a for.
struct LoopState {
  const std::vector<Value> *items = nullptr;
  size_t index = 0;
  std::vector<Value> changed; // of loop.changed(); empty: not called yet
  bool changedCalled = false;
};

/// What builtins see of the interpreter.
class Runtime {
public:
  Runtime(const Ast &ast, const Value &context, const std::tm &now, const Limits &limits)
      : ast(ast), context(context), now(now), limits(limits) {}

  std::string run();

  // For builtins.
  [[noreturn]] void fail(const std::string &message) const { failAt(at, message); }
  Value string(std::string s);
  Value list(std::vector<Value> items, bool tuple = false);
  Value lazy(std::vector<Value> items);
  Value dict(Dict dict);
  /// Throws unless `value` may be put into a list, dict or namespace.
  void checkData(const Value &value) const;
  /// Items of an iterable: list, tuple, keys of a dict, characters, nothing for undefined.
  std::vector<Value> iterate(const Value &value);
  Value attribute(const Value &object, std::string_view name);
  Value item(const Value &object, const Value &key);
  /// By a dotted path as in map(attribute="a.b.0").
  Value path(const Value &object, std::string_view dotted);
  bool contains(const Value &container, const Value &item);
  /// <0, 0, >0; throws for types that have no order.
  int compare(const Value &a, const Value &b);
  Value binary(char op, const Value &a, const Value &b);
  Value call(const Builtin &builtin, const Value &self, const std::vector<Value> &positional,
             const std::vector<std::pair<std::string, Value>> &named);
  /// Counts work in proportion to the size of values.
  void charge(uint64_t bytes);
  bool isEqual(const Value &a, const Value &b);
  const std::tm &time() const { return now; }
  const Limits &bounds() const { return limits; }

private:
  enum class Flow { Next, Break, Continue };
  class Nested;

  Flow execute(const Body &body);
  Flow execute(const Stmt &stmt);
  Flow executeIf(const Stmt &stmt);
  Flow executeFor(const Stmt &stmt);
  void executeWith(const Stmt &stmt);
  void executeCallBlock(const Stmt &stmt);
  void assign(const Target &target, const Value &value);
  std::string capture(const Body &body);
  Value throughFilters(const Stmt &stmt, Value value);
  void emit(std::string_view text);

  Value evaluate(const Expr &expr);
  Value evaluateKind(const Expr &expr);
  Value evaluateName(const Expr &expr);
  Value evaluateDict(const Expr &expr);
  Value evaluateSlice(const Expr &expr);
  Value evaluateCompare(const Expr &expr);
  Value evaluateConcat(const Expr &expr);
  Value evaluateSequence(const Expr &expr);
  Value evaluateUnary(const Expr &expr);
  Value evaluateBuiltin(const Expr &expr);
  Value callNamed(const Expr &expr);
  Value callMacro(const Callable &macro, std::vector<Value> positional, std::vector<std::pair<std::string, Value>> named,
                  const Value *caller);
  void evaluateArguments(const Arguments &arguments, std::vector<Value> &positional,
                         std::vector<std::pair<std::string, Value>> &named);
  NameId nameId(std::string_view name) const; // names.size() if the template has no such name

  const Ast &ast;
  const Value &context;
  const std::tm &now;
  const Limits &limits;
  Scope *scope = nullptr;
  std::string *out = nullptr;
  Position at;
  unsigned depth = 0;
  uint64_t steps = 0, worked = 0, written = 0;
  NameId loopName = 0, callerName = 0, varargsName = 0, kwargsName = 0;
};

/// For messages: the name in quotes, or "a value".
std::string undefinedName(const Value &value);

/// jinja2's format filter and Python's "%" on strings (%s %d %i %r %f %%).
std::string formatPercent(Runtime &runtime, const std::string &format, const std::vector<Value> &values);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_INTERPRETER_H
