//===- Ast.h - a parsed template --------------------------------*- C++ -*-===//
//
// Names of tags, filters and tests are resolved before anything runs, so that an
// unknown one is an error; so are variables (Resolve.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_AST_H
#define LLMC_RUNTIME_TEMPLATE_AST_H

#include "runtime/template/Builtins.h"
#include "runtime/template/Lexer.h"
#include "runtime/template/Value.h"

namespace llmc::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<std::unique_ptr<Stmt>>;

/// Index into Ast::names; equal names have equal indices.
using NameId = uint32_t;

/// A variable: a slot of the function (template, macro, caller block, ...) so
/// many levels outwards.
struct Ref {
  uint32_t hops = 0, slot = 0;
};

/// What a scope does with its variables when it is entered.
struct Load {
  enum class Kind { Unset, Copy, Context };
  Kind kind = Kind::Unset;
  uint32_t slot = 0; // of the current function
  Ref from;          // Copy
  NameId name = 0;   // Context
};

/// Scopes that are no functions share the slots of the function around them.
struct Frame {
  std::vector<Load> loads;
  std::vector<uint32_t> slots; // unset again when it is left
};

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr list, dict; // *list, **dict; may be null
};

enum class CompareOp { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct Expr {
  enum class Kind {
    Constant,    // constant
    Name,        // name, ref
    List,        // operands
    Tuple,       // operands
    Dict,        // operands: key, value, key, value, ...
    Attribute,   // operands[0].text
    Item,        // operands[0][operands[1]]
    Slice,       // operands[0][1:2:3], each may be null
    Call,        // operands[0](arguments)
    Filter,      // operands[0] | builtin(arguments), text is its name
    Test,        // operands[0] is [not] builtin(arguments), text is its name
    Not,
    Negate,
    Plus,
    Binary,      // operands[0] text[0] operands[1] text[1] ...: + - * / % and 'f' for //, 'p' for **
    Concat,      // operands, all joined
    And,
    Or,
    Compare,     // operands[0] comparisons[0] operands[1] comparisons[1] ...
    Conditional, // operands[0] if operands[1] else operands[2] (may be null)
  };
  Kind kind;
  Position at;
  unsigned height = 1; // of the tree, bounded by the parser
  Value constant;
  NameId name = 0;
  Ref ref;
  std::string text;
  const Builtin *builtin = nullptr;
  bool negated = false;
  std::vector<CompareOp> comparisons;
  std::vector<ExprPtr> operands;
  Arguments arguments;
};

/// What an assignment or a loop binds: names, nested as tuples, or ns.attribute.
struct Target {
  NameId name = 0;
  Ref ref;
  Position at;
  std::string attribute;      // of the namespace `name`
  std::vector<Target> parts;  // a tuple
  bool isTuple = false;
};

struct Parameter {
  NameId name;
  ExprPtr fallback; // may be null
  uint32_t slot = 0;
};

struct MacroInfo {
  std::string name; // empty: a caller block
  std::vector<Parameter> parameters;
  bool takesCaller = false, takesVarargs = false, takesKwargs = false; // mentions them
  uint32_t callerSlot = 0, varargsSlot = 0, kwargsSlot = 0;
};

struct Stmt {
  enum class Kind {
    Text,      // text
    Output,    // expressions
    If,        // conditions[i] ? bodies[i]; one more body is else
    For,       // target in expressions[0] if expressions[1]; bodies[0], else bodies[1]
    Set,       // target = expressions[0]
    SetBlock,  // target = bodies[0], through filters
    Macro,     // macro, bodies[0]
    CallBlock, // expressions[0] is the call (null: just the block); macro, bodies[0]
    FilterBlock, // bodies[0] through filters
    With,      // targets = expressions; bodies[0]
    Break,
    Continue,
  };
  Kind kind;
  Position at;
  std::string text;
  std::vector<ExprPtr> expressions;
  std::vector<Body> bodies;
  std::vector<Target> targets;
  std::vector<ExprPtr> filters; // Filter expressions whose operand is absent
  MacroInfo macro;
  bool recursive = false;       // a loop
  Frame frame, elseFrame;       // of bodies[0] and [1]
  uint32_t slots = 0;           // of the function that bodies[0] is (macros, caller blocks, recursive loops)
  uint32_t loopSlot = 0;        // of `loop`
  // The condition of a loop is a function of its own: its scope, slots and target.
  Frame testFrame;
  uint32_t testSlots = 0;
  Target testTarget;
};

struct Ast {
  Body body;
  Frame frame;
  uint32_t slots = 0;
  std::vector<std::string> names;
};

inline constexpr unsigned kMaxNesting = 100; // of statements and of expressions

inline constexpr size_t kMaxSource = 1u << 20; // bytes
inline constexpr size_t kMaxNames = 2000;    // of variables

/// Throws Error with line and column.
Ast parse(std::string_view source);
/// Binds names to slots by jinja2's scoping rules; throws Error with line and column.
void resolveNames(Ast &ast);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_AST_H
