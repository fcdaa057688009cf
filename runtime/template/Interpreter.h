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
  unsigned depth = 250;                // statements and expressions within one another, macros included
  int64_t range = 100'000;             // items of range(), jinja2's sandbox has the same
};

/// Variables of one run of a function: the template, a macro, a caller block.
struct Env {
  Env *parent = nullptr; // of the function around
  std::vector<Value> slots;
  bool captured = false; // a macro made here may still be called
};

/// A macro or caller block, a function, a method of an object, or one of jinja2's
/// helper objects.
struct Callable {
  const Stmt *macro = nullptr;
  Env *env = nullptr; // where the macro was defined
  const Builtin *builtin = nullptr;
  Value self; // of a method
  // joiner() and cycler(): what they have done so far.
  mutable size_t calls = 0;
  std::vector<Value> items; // of a cycler
  bool isJoiner = false;

  std::string macroName() const;
};

/// What builtins see of the interpreter.
class Runtime {
public:
  Runtime(const Ast &ast, const Value &context, const std::tm &now, const Limits &limits)
      : ast(ast), context(context), now(now), limits(limits) {}
  ~Runtime();
  Runtime(const Runtime &) = delete;
  Runtime &operator=(const Runtime &) = delete;

  std::string run();

  // For builtins.
  [[noreturn]] void fail(const std::string &message) const { failAt(at, message); }
  Value string(std::string s);
  /// A string of the kind of `like`: Markup stays Markup.
  Value stringLike(const Value &like, std::string s);
  Value list(std::vector<Value> items, bool tuple = false);
  Value list(List list);
  Value dict(Dict dict);
  Value integer(const BigInt &i);
  std::shared_ptr<Namespace> makeNamespace();
  void checkDepth(const Value &value) const;
  /// All items of an iterable.
  std::vector<Value> iterate(const Value &value);
  Value attribute(const Value &object, std::string_view name);
  Value item(const Value &object, const Value &key);
  bool contains(const Value &container, const Value &item);
  /// <0, 0, >0, and 2 for NaN; throws for types that have no order.
  int compare(const Value &a, const Value &b);
  Value binary(char op, const Value &a, const Value &b);
  Value call(const Builtin &builtin, const Value &self, const std::vector<Value> &positional, const Named &named);
  Value callValue(const Value &callee, std::vector<Value> positional, Named named);
  /// Of len(); null where Python has none.
  std::optional<size_t> length(const Value &value);
  /// Counts work in proportion to the size of values.
  void charge(uint64_t bytes);
  bool isEqual(const Value &a, const Value &b);
  std::string str(const Value &value);
  std::string repr(const Value &value);
  const std::tm &time() const { return now; }
  const Limits &bounds() const { return limits; }
  /// A loop called as a function.
  Value callLoop(const LoopState &loop, const Value &iterable);

  /// One level of nesting and one step of work.
  class Nested;

private:
  enum class Flow { Next, Break, Continue };

  Flow execute(const Body &body);
  Flow execute(const Stmt &stmt);
  Flow executeIf(const Stmt &stmt);
  Flow executeFor(const Stmt &stmt);
  Flow runLoop(const Stmt &stmt, const Value &iterable, size_t depth0);
  Value filtered(const Stmt &stmt, const Value &iterable);
  Flow executeWith(const Stmt &stmt);
  Flow executeCaptured(const Stmt &stmt);
  void executeCallBlock(const Stmt &stmt);
  void assign(const Target &target, const Value &value);
  Value read(const Target &target);
  Value throughFilters(const Stmt &stmt, Value value);
  void emit(std::string_view text);
  void step();

  Value &slot(Ref ref);
  Value load(Ref ref, NameId name);
  Value fromContext(NameId name);
  void enter(const Frame &frame);
  void leave(const Frame &frame);
  std::unique_ptr<Env> makeEnv(Env *parent, uint32_t slots);
  void retire(std::unique_ptr<Env> done);
  Value closure(const Stmt &stmt);

  Value evaluate(const Expr &expr);
  Value evaluateKind(const Expr &expr);
  Value evaluateDict(const Expr &expr);
  Value evaluateSlice(const Expr &expr);
  Value evaluateCompare(const Expr &expr);
  Value evaluateConcat(const Expr &expr);
  Value evaluateSequence(const Expr &expr);
  Value evaluateUnary(const Expr &expr);
  Value evaluateBuiltin(const Expr &expr);
  Value evaluateCall(const Expr &expr, const Value *caller);
  Value callMacro(const Callable &macro, std::vector<Value> positional, Named named);
  void bindMacro(const Stmt &stmt, std::vector<Value> &positional, Named &named);
  void evaluateArguments(const Arguments &arguments, std::vector<Value> &positional, Named &named);
  [[noreturn]] void tooDeep() const;

  const Ast &ast;
  const Value &context;
  const std::tm &now;
  const Limits &limits;
  Env *env = nullptr;
  std::string *out = nullptr;
  Position at;
  unsigned depth = 0;
  uint64_t steps = 0, worked = 0, written = 0;
  std::vector<std::unique_ptr<Env>> keptEnvs;
  std::vector<std::shared_ptr<Namespace>> namespaces; // emptied at the end, which ends cycles

  friend class Nested;
};

class Runtime::Nested {
public:
  Nested(Runtime &runtime, Position at) : runtime(runtime) {
    runtime.at = at;
    if (++runtime.depth > runtime.limits.depth)
      runtime.tooDeep();
    runtime.step();
  }
  ~Nested() { --runtime.depth; }

private:
  Runtime &runtime;
};

/// Restores a member when a block ends, also by an exception.
template <typename T> class Saved {
public:
  Saved(T &place, T value) : place(place), old(place) { place = value; }
  ~Saved() { place = old; }

private:
  T &place;
  T old;
};

/// For messages: the name in quotes, or "a value".
std::string undefinedName(const Value &value);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_INTERPRETER_H
