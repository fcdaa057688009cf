//===- Ast.h - a parsed template --------------------------------*- C++ -*-===//
//
// Every name of a filter, test, function or method is resolved by the parser, so
// that an unknown one is an error before anything runs.
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

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

enum class CompareOp { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, In, NotIn };

struct Expr {
  enum class Kind {
    Constant,    // constant
    Name,        // name
    List,        // operands
    Tuple,       // operands
    Dict,        // operands: key, value, key, value, ...
    Attribute,   // operands[0].text
    Item,        // operands[0][operands[1]]
    Slice,       // operands[0][1:2:3], each may be null
    CallName,    // name(arguments): macro, caller or a variable
    CallBuiltin, // builtin(arguments)
    CallMethod,  // operands[0].builtin(arguments)
    Filter,      // operands[0] | builtin(arguments)
    Test,        // operands[0] is [not] builtin(arguments)
    Not,
    Negate,
    Plus,
    Binary,      // operands[0] text[0] operands[1]: + - * / % and 'f' for //, 'p' for **
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
  std::string attribute;      // of the namespace `name`
  std::vector<Target> parts;  // a tuple
  bool isTuple = false;
};

struct Parameter {
  NameId name;
  ExprPtr fallback; // may be null
};

struct MacroInfo {
  std::string name;
  std::vector<Parameter> parameters;
  bool takesCaller = false, takesVarargs = false, takesKwargs = false; // mentions them
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
    CallBlock, // expressions[0] is the call; macro, bodies[0]
    FilterBlock, // bodies[0] through filters
    With,      // targets = expressions; bodies[0]
    Group,     // bodies[0]
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
};

struct Ast {
  Body body;
  std::vector<std::string> names;
};

inline constexpr unsigned kMaxNesting = 100; // of statements and of expressions

/// Throws Error with line and column.
Ast parse(std::string_view source);

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_AST_H
