//===- Resolve.cpp - scopes -------------------------------------------------===//
//
// jinja2 decides before it runs which scope a name belongs to; this follows its
// rules (the documentation of scoping, and what jinja2 does in the cases that it
// leaves open): a name that a scope assigns anywhere is that scope's own, starts
// as a copy of the outer one, and is unset or taken from the context where there
// is no outer one. Branches of an "if" share the scope around them.
//
//===----------------------------------------------------------------------===//
#include "runtime/template/Ast.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

using namespace llmc;
using namespace llmc::jinja;

namespace {

/// What Python runs as one function: slots, one for every level and name.
struct Function {
  Function *parent = nullptr;
  uint32_t depth = 0;
  std::map<std::pair<unsigned, NameId>, uint32_t> slots;

  uint32_t slot(unsigned level, NameId name) {
    return slots.emplace(std::pair(level, name), static_cast<uint32_t>(slots.size())).first->second;
  }
};

struct Symbols {
  struct Variable {
    Function *function;
    uint32_t slot;
  };
  enum class LoadKind { Parameter, Unset, Copy, Context };
  struct SymbolLoad {
    LoadKind kind;
    NameId name;
    Variable from;
  };

  const Symbols *parent;
  Function *function;
  unsigned level;
  std::map<NameId, uint32_t> own; // name to slot of `function`
  std::map<uint32_t, SymbolLoad> loads;
  std::set<NameId> stores;

  Symbols(const Symbols *parent, Function *function)
      : parent(parent), function(function), level(parent ? parent->level + 1 : 0) {}

  bool find(NameId name, Variable &out) const {
    for (const Symbols *s = this; s; s = s->parent)
      if (auto it = s->own.find(name); it != s->own.end()) {
        out = {s->function, it->second};
        return true;
      }
    return false;
  }

  uint32_t define(NameId name, SymbolLoad load) {
    uint32_t slot = function->slot(level, name);
    own[name] = slot;
    loads[slot] = load;
    return slot;
  }

  void store(NameId name) {
    stores.insert(name);
    if (own.count(name))
      return;
    Variable outer{};
    if (parent && parent->find(name, outer))
      define(name, {LoadKind::Copy, name, outer});
    else
      define(name, {LoadKind::Unset, name, {}});
  }

  uint32_t parameter(NameId name) {
    stores.insert(name);
    return define(name, {LoadKind::Parameter, name, {}});
  }

  void load(NameId name) {
    Variable found{};
    if (!find(name, found))
      define(name, {LoadKind::Context, name, {}});
  }

  /// After the branches of an "if": what only some of them set must exist anyway.
  void merge(const std::vector<Symbols> &branches) {
    std::set<NameId> fresh;
    for (const Symbols &branch : branches)
      fresh.insert(branch.stores.begin(), branch.stores.end());
    for (NameId name : stores)
      fresh.erase(name);
    for (const Symbols &branch : branches) {
      for (const auto &[name, slot] : branch.own)
        own[name] = slot;
      for (const auto &[slot, load] : branch.loads)
        loads[slot] = load;
      stores.insert(branch.stores.begin(), branch.stores.end());
    }
    for (NameId name : fresh) {
      Variable target{}, outer{};
      find(name, target);
      if (parent && parent->find(name, outer))
        loads[target.slot] = {LoadKind::Copy, name, outer};
      else
        loads[target.slot] = {LoadKind::Context, name, {}};
    }
  }
};

class Resolver {
public:
  explicit Resolver(Ast &ast) : ast(ast) {
    for (const char *special : {"loop", "caller", "varargs", "kwargs"})
      specials.push_back(static_cast<NameId>(std::find(ast.names.begin(), ast.names.end(), special) - ast.names.begin()));
  }

  void run() {
    Function root;
    Symbols symbols(nullptr, &root);
    collect(symbols, ast.body);
    bind(symbols, ast.body);
    ast.frame = finish(symbols);
    ast.slots = static_cast<uint32_t>(root.slots.size());
  }

private:
  NameId loop() const { return specials[0]; }

  //===--------------------------------------------------------------------===//
  // First pass over a scope: which names it stores and loads.
  //===--------------------------------------------------------------------===//

  template <typename F> static void forEachChild(const Expr &expr, F f) {
    for (const ExprPtr &operand : expr.operands)
      if (operand)
        f(*operand);
    forEachArgument(expr.arguments, f);
  }
  template <typename F> static void forEachArgument(const Arguments &arguments, F f) {
    for (const ExprPtr &argument : arguments.positional)
      f(*argument);
    for (const auto &named : arguments.named)
      f(*named.second);
    for (const ExprPtr *rest : {&arguments.list, &arguments.dict})
      if (*rest)
        f(**rest);
  }

  void collect(Symbols &symbols, const Expr &expr) {
    if (expr.kind == Expr::Kind::Name)
      symbols.load(expr.name);
    forEachChild(expr, [&](const Expr &child) { collect(symbols, child); });
  }

  void collect(Symbols &symbols, const Target &target, bool asParameter) {
    for (const Target &part : target.parts)
      collect(symbols, part, asParameter);
    if (target.isTuple)
      return;
    if (!target.attribute.empty())
      symbols.load(target.name);
    else if (asParameter)
      symbols.parameter(target.name);
    else
      symbols.store(target.name);
  }

  void collect(Symbols &symbols, const Body &body) {
    for (const auto &stmt : body)
      collect(symbols, *stmt);
  }

  void collect(Symbols &symbols, const Stmt &stmt) {
    switch (stmt.kind) {
    case Stmt::Kind::If:
      return collectIf(symbols, stmt);
    case Stmt::Kind::For: // its body is a scope of its own
      return collect(symbols, *stmt.expressions[0]);
    case Stmt::Kind::Macro:
    case Stmt::Kind::SetBlock:
      return collect(symbols, stmt.targets[0], false);
    default:
      break;
    }
    for (const ExprPtr &expr : stmt.expressions)
      if (expr)
        collect(symbols, *expr);
    if (stmt.kind == Stmt::Kind::Set)
      collect(symbols, stmt.targets[0], false);
    if (stmt.kind == Stmt::Kind::FilterBlock)
      for (const ExprPtr &filter : stmt.filters)
        collectFilter(symbols, *filter);
  }

  void collectFilter(Symbols &symbols, const Expr &filter) {
    forEachArgument(filter.arguments, [&](const Expr &child) { collect(symbols, child); });
  }

  void collectIf(Symbols &symbols, const Stmt &stmt) {
    collect(symbols, *stmt.expressions[0]);
    // The first branch, the others with their conditions, and the last one.
    std::vector<Symbols> branches;
    Symbols first = symbols, middle = symbols, last = symbols;
    collect(first, stmt.bodies[0]);
    for (size_t i = 1; i < stmt.expressions.size(); ++i) {
      // An elif is an if of its own within the branch.
      collect(middle, *stmt.expressions[i]);
      Symbols branch = middle;
      collect(branch, stmt.bodies[i]);
      middle.merge({branch});
    }
    if (stmt.bodies.size() > stmt.expressions.size())
      collect(last, stmt.bodies.back());
    branches.push_back(std::move(first));
    branches.push_back(std::move(middle));
    branches.push_back(std::move(last));
    symbols.merge(branches);
  }

  //===--------------------------------------------------------------------===//
  // Second pass: references, and the scopes within.
  //===--------------------------------------------------------------------===//

  static Ref reference(const Symbols &symbols, Symbols::Variable variable) {
    return {symbols.function->depth - variable.function->depth, variable.slot};
  }

  static Ref lookUp(Symbols &symbols, NameId name) {
    Symbols::Variable found{};
    if (!symbols.find(name, found)) { // only in the filter of a set block
      symbols.load(name);
      symbols.find(name, found);
    }
    return reference(symbols, found);
  }

  static Frame finish(const Symbols &symbols) {
    Frame frame;
    for (const auto &[slot, load] : symbols.loads) {
      frame.slots.push_back(slot);
      if (load.kind == Symbols::LoadKind::Parameter)
        continue;
      Load::Kind kind = load.kind == Symbols::LoadKind::Unset  ? Load::Kind::Unset
                        : load.kind == Symbols::LoadKind::Copy ? Load::Kind::Copy
                                                               : Load::Kind::Context;
      Ref from = kind == Load::Kind::Copy ? reference(symbols, load.from) : Ref{};
      frame.loads.push_back({kind, slot, from, load.name});
    }
    return frame;
  }

  void bind(Symbols &symbols, Expr &expr) {
    if (expr.kind == Expr::Kind::Name)
      expr.ref = lookUp(symbols, expr.name);
    if (expr.kind == Expr::Kind::Filter || expr.kind == Expr::Kind::Test)
      checkKnown(expr);
    const bool outer = std::exchange(conditional, conditional || expr.kind == Expr::Kind::Conditional);
    for (ExprPtr &operand : expr.operands)
      if (operand)
        bind(symbols, *operand);
    bindArguments(symbols, expr.arguments);
    conditional = outer;
  }

  /// An unknown filter or test is an error here, but for what a condition may keep
  /// from running (as in jinja2, where templates ask first what there is).
  void checkKnown(const Expr &expr) const {
    const bool filter = expr.kind == Expr::Kind::Filter;
    if (conditional)
      return;
    if (!expr.builtin)
      failAt(expr.at, std::string("expected a known ") + (filter ? "filter" : "test") + ", got '" + expr.text + "'");
    const bool maps = filter && expr.text == "map", byAttribute = expr.text == "selectattr" || expr.text == "rejectattr";
    const size_t position = byAttribute ? 1 : 0;
    if (!maps && !(filter && (byAttribute || expr.text == "select" || expr.text == "reject")))
      return;
    if (expr.arguments.positional.size() <= position || expr.arguments.positional[position]->kind != Expr::Kind::Constant)
      return;
    const Expr &argument = *expr.arguments.positional[position]; // names another one
    const std::string *name = argument.constant.string();
    if (name && (maps ? !findFilter(*name) : !findTest(*name)))
      failAt(argument.at, std::string("expected a known ") + (maps ? "filter" : "test") + ", got '" + *name + "'");
  }

  void bindArguments(Symbols &symbols, Arguments &arguments) {
    for (ExprPtr &argument : arguments.positional)
      bind(symbols, *argument);
    for (auto &named : arguments.named)
      bind(symbols, *named.second);
    for (ExprPtr *rest : {&arguments.list, &arguments.dict})
      if (*rest)
        bind(symbols, **rest);
  }

  void bind(Symbols &symbols, Target &target) {
    for (Target &part : target.parts)
      bind(symbols, part);
    if (!target.isTuple)
      target.ref = lookUp(symbols, target.name);
  }

  void bind(Symbols &symbols, Body &body) {
    for (auto &stmt : body)
      bind(symbols, *stmt);
  }

  void bind(Symbols &symbols, Stmt &stmt) {
    const bool outer = std::exchange(conditional, conditional || stmt.kind == Stmt::Kind::If);
    bindKind(symbols, stmt);
    conditional = outer;
  }

  /// What is evaluated in the scope around comes before what a new scope holds.
  void bindKind(Symbols &symbols, Stmt &stmt) {
    for (ExprPtr &expr : stmt.expressions)
      if (expr && (stmt.kind != Stmt::Kind::For || expr == stmt.expressions[0]))
        bind(symbols, *expr);
    switch (stmt.kind) {
    case Stmt::Kind::For:
      return bindFor(symbols, stmt);
    case Stmt::Kind::Macro:
      bind(symbols, stmt.targets[0]);
      return bindMacro(symbols, stmt);
    case Stmt::Kind::CallBlock:
      return bindMacro(symbols, stmt);
    case Stmt::Kind::SetBlock:
    case Stmt::Kind::FilterBlock:
      return bindCaptured(symbols, stmt);
    case Stmt::Kind::With:
      return bindWith(symbols, stmt);
    default:
      break;
    }
    for (Target &target : stmt.targets)
      bind(symbols, target);
    for (Body &body : stmt.bodies) // of an if
      bind(symbols, body);
  }

  void bindCaptured(Symbols &symbols, Stmt &stmt) {
    if (stmt.kind == Stmt::Kind::SetBlock)
      bind(symbols, stmt.targets[0]);
    conditional = false;
    Symbols inner(&symbols, symbols.function);
    collect(inner, stmt.bodies[0]);
    for (ExprPtr &filter : stmt.filters) {
      checkKnown(*filter);
      collectFilter(inner, *filter);
    }
    bind(inner, stmt.bodies[0]);
    for (ExprPtr &filter : stmt.filters)
      bindArguments(inner, filter->arguments);
    stmt.frame = finish(inner);
  }

  void bindWith(Symbols &symbols, Stmt &stmt) {
    conditional = false;
    Symbols inner(&symbols, symbols.function);
    for (const Target &target : stmt.targets)
      collect(inner, target, true);
    collect(inner, stmt.bodies[0]);
    for (Target &target : stmt.targets)
      bind(inner, target);
    bind(inner, stmt.bodies[0]);
    stmt.frame = finish(inner);
  }

  void bindFor(Symbols &symbols, Stmt &stmt) {
    conditional = false;
    Function own{symbols.function, symbols.function->depth + 1, {}};
    Function *function = stmt.recursive ? &own : symbols.function;
    Symbols inner(&symbols, function), otherwise(&symbols, function);
    const bool usesLoop = stmt.recursive || mentions(stmt.bodies[0], {loop()}).count(loop());
    if (usesLoop)
      stmt.loopSlot = inner.parameter(loop());
    collect(inner, stmt.targets[0], true);
    collect(inner, stmt.bodies[0]);
    if (stmt.expressions.size() > 1) {
      Function condition{function, function->depth + 1, {}};
      Symbols test(&symbols, &condition);
      collect(test, stmt.targets[0], true);
      collect(test, *stmt.expressions[1]);
      stmt.testTarget = stmt.targets[0];
      bind(test, stmt.testTarget);
      bind(test, *stmt.expressions[1]);
      stmt.testFrame = finish(test);
      stmt.testSlots = static_cast<uint32_t>(condition.slots.size());
    }
    bind(inner, stmt.targets[0]);
    bind(inner, stmt.bodies[0]);
    stmt.frame = finish(inner);
    if (!usesLoop) // a slot that nobody reads, so that every loop can set it
      stmt.loopSlot = function->slot(inner.level, static_cast<NameId>(-1));
    if (stmt.bodies.size() > 1) {
      collect(otherwise, stmt.bodies[1]);
      bind(otherwise, stmt.bodies[1]);
      stmt.elseFrame = finish(otherwise);
    }
    stmt.slots = static_cast<uint32_t>(own.slots.size());
  }

  void bindMacro(Symbols &symbols, Stmt &stmt) {
    conditional = false;
    MacroInfo &macro = stmt.macro;
    Function function{symbols.function, symbols.function->depth + 1, {}};
    Symbols inner(&symbols, &function);
    std::set<NameId> given;
    for (Parameter &parameter : macro.parameters) {
      parameter.slot = inner.parameter(parameter.name);
      given.insert(parameter.name);
    }
    const NameId caller = specials[1], varargs = specials[2], kwargs = specials[3];
    std::set<NameId> used = mentions(stmt.bodies[0], {caller, varargs, kwargs});
    macro.takesCaller = used.count(caller);
    if (macro.takesCaller && !given.count(caller))
      macro.callerSlot = inner.parameter(caller);
    if (macro.takesCaller && given.count(caller))
      for (const Parameter &parameter : macro.parameters)
        if (parameter.name == caller && !parameter.fallback)
          failAt(stmt.at, "expected a default for the parameter 'caller', got none");
    if ((macro.takesKwargs = used.count(kwargs) && !given.count(kwargs)))
      macro.kwargsSlot = inner.parameter(kwargs);
    if ((macro.takesVarargs = used.count(varargs) && !given.count(varargs)))
      macro.varargsSlot = inner.parameter(varargs);
    for (const Parameter &parameter : macro.parameters)
      if (parameter.fallback)
        collect(inner, *parameter.fallback);
    collect(inner, stmt.bodies[0]);
    for (Parameter &parameter : macro.parameters)
      if (parameter.fallback)
        bind(inner, *parameter.fallback);
    bind(inner, stmt.bodies[0]);
    stmt.frame = finish(inner);
    stmt.slots = static_cast<uint32_t>(function.slots.size());
  }

  //===--------------------------------------------------------------------===//
  // Which of some names are read before they are assigned, inner scopes included.
  //===--------------------------------------------------------------------===//

  struct Mentions {
    std::set<NameId> wanted, found;
  };

  std::set<NameId> mentions(const Body &body, std::set<NameId> names) {
    Mentions state{std::move(names), {}};
    mention(state, body);
    return state.found;
  }

  void mention(Mentions &state, const Expr &expr) {
    if (expr.kind == Expr::Kind::Name && state.wanted.count(expr.name))
      state.found.insert(expr.name);
    forEachChild(expr, [&](const Expr &child) { mention(state, child); });
  }

  static void mention(Mentions &state, const Target &target) {
    for (const Target &part : target.parts)
      mention(state, part);
    if (!target.isTuple && target.attribute.empty())
      state.wanted.erase(target.name);
  }

  void mention(Mentions &state, const Body &body) {
    for (const auto &stmt : body)
      mention(state, *stmt);
  }

  void mention(Mentions &state, const Stmt &stmt) {
    using Kind = Stmt::Kind;
    if (stmt.kind == Kind::For || stmt.kind == Kind::Set || stmt.kind == Kind::SetBlock || stmt.kind == Kind::With)
      for (const Target &target : stmt.targets)
        mention(state, target);
    for (const Parameter &parameter : stmt.macro.parameters)
      state.wanted.erase(parameter.name);
    for (const Parameter &parameter : stmt.macro.parameters)
      if (parameter.fallback)
        mention(state, *parameter.fallback);
    for (const ExprPtr &expr : stmt.expressions)
      if (expr)
        mention(state, *expr);
    for (const ExprPtr &filter : stmt.filters)
      forEachArgument(filter->arguments, [&](const Expr &child) { mention(state, child); });
    for (const Body &body : stmt.bodies)
      mention(state, body);
  }

  Ast &ast;
  std::vector<NameId> specials;
  bool conditional = false; // within an if or a conditional expression, but no scope in it
};

} // namespace

void jinja::resolveNames(Ast &ast) { Resolver(ast).run(); }
