#include "runtime/template/Parser.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

/// Bounds recursion; the message is about the template, not about the parser.
class Parser::Nested {
public:
  explicit Nested(Parser &parser) : parser(parser) {
    if (++parser.nesting > kMaxNesting)
      failAt(parser.peek().at, "expected at most " + std::to_string(kMaxNesting) + " nested constructs, got more");
  }
  ~Nested() { --parser.nesting; }

private:
  Parser &parser;
};

Ast jinja::parse(std::string_view source) { return Parser(tokenize(source)).run(); }

Ast Parser::run() {
  Ast ast;
  ast.body = parseBody({});
  checkCalls();
  ast.names = std::move(names);
  return ast;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static std::string describe(const Token &token) {
  switch (token.kind) {
  case Token::Kind::BlockEnd: return "'%}'";
  case Token::Kind::VariableEnd: return "'}}'";
  case Token::Kind::String: return "a string";
  case Token::Kind::Text: return "text";
  case Token::Kind::BlockBegin: return "'{%'";
  case Token::Kind::VariableBegin: return "'{{'";
  case Token::Kind::End: return "the end of the template";
  default: return "'" + token.text + "'";
  }
}

void Parser::unexpected(const std::string &expected) const {
  failAt(peek().at, "expected " + expected + ", got " + describe(peek()));
}

void Parser::expectOperator(std::string_view op) {
  if (!skipOperator(op))
    unexpected("'" + std::string(op) + "'");
}

std::string Parser::expectName(const char *what) {
  if (peek().kind != Kind::Name)
    unexpected(what);
  return take().text;
}

void Parser::expectBlockEnd() {
  if (peek().kind != Kind::BlockEnd)
    unexpected("'%}'");
  take();
}

NameId Parser::intern(const std::string &name) {
  auto [it, fresh] = ids.emplace(name, static_cast<NameId>(names.size()));
  if (fresh)
    names.push_back(name);
  return it->second;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Up to a tag named in `ends` (its name is the next token), or the end of the
/// template if `ends` is empty.
Body Parser::parseBody(const std::vector<std::string_view> &ends) {
  Nested nested(*this);
  Body body;
  for (;;) {
    switch (peek().kind) {
    case Kind::Text: {
      auto stmt = std::make_unique<Stmt>();
      stmt->kind = Stmt::Kind::Text;
      stmt->at = peek().at;
      stmt->text = take().text;
      body.push_back(std::move(stmt));
      break;
    }
    case Kind::VariableBegin:
      parseOutput(body);
      break;
    case Kind::BlockBegin: {
      take();
      for (std::string_view end : ends)
        if (isName(end))
          return body;
      auto stmt = parseTag();
      body.push_back(std::move(stmt));
      break;
    }
    default:
      if (ends.empty() && peek().kind == Kind::End)
        return body;
      std::string list;
      for (std::string_view end : ends)
        list += (list.empty() ? "" : " or ") + std::string("{% ") + std::string(end) + " %}";
      unexpected(list.empty() ? "a tag or text" : list);
    }
  }
}

void Parser::parseOutput(Body &body) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = Stmt::Kind::Output;
  stmt->at = take().at;
  stmt->expressions.push_back(parseTuple(true));
  if (peek().kind != Kind::VariableEnd)
    unexpected("'}}'");
  take();
  body.push_back(std::move(stmt));
}

std::unique_ptr<Stmt> Parser::parseTag() {
  const Position position = peek().at;
  if (peek().kind != Kind::Name)
    unexpected("the name of a tag");
  std::string tag = take().text;
  if (tag == "if")
    return parseIf(position);
  if (tag == "for")
    return parseFor(position);
  if (tag == "set")
    return parseSet(position);
  if (tag == "macro")
    return parseMacro(position);
  if (tag == "call")
    return parseCallBlock(position);
  if (tag == "filter")
    return parseFilterBlock(position);
  if (tag == "with")
    return parseWith(position);
  if (tag == "generation") // marks the assistant's part for training masks
    return parseGroup(position);
  if (tag == "break")
    return parseLoopControl(position, Stmt::Kind::Break);
  if (tag == "continue")
    return parseLoopControl(position, Stmt::Kind::Continue);
  failAt(position, "expected a supported tag (if, for, set, macro, call, filter, with, raw, break, continue, generation), got '" +
                       tag + "'");
}

static std::unique_ptr<Stmt> makeStmt(Stmt::Kind kind, Position at) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->at = at;
  return stmt;
}

/// Consumes `name %}` after a body.
void Parser::endTag(std::string_view name) {
  if (!skipName(name))
    unexpected("{% " + std::string(name) + " %}");
  expectBlockEnd();
}

std::unique_ptr<Stmt> Parser::parseIf(Position position) {
  auto stmt = makeStmt(Stmt::Kind::If, position);
  for (;;) {
    stmt->expressions.push_back(parseTuple(false));
    expectBlockEnd();
    stmt->bodies.push_back(parseBody({"elif", "else", "endif"}));
    if (!skipName("elif"))
      break;
  }
  if (skipName("else")) {
    expectBlockEnd();
    stmt->bodies.push_back(parseBody({"endif"}));
  }
  endTag("endif");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseFor(Position position) {
  auto stmt = makeStmt(Stmt::Kind::For, position);
  stmt->targets.push_back(parseTarget(false));
  if (!skipName("in"))
    unexpected("'in'");
  stmt->expressions.push_back(parseTuple(false));
  if (skipName("if"))
    stmt->expressions.push_back(parseExpression());
  if (isName("recursive"))
    failAt(peek().at, "expected a loop without 'recursive', which is not supported");
  expectBlockEnd();
  intern("loop");
  ++loops;
  stmt->bodies.push_back(parseBody({"else", "endfor"}));
  --loops;
  if (skipName("else")) {
    expectBlockEnd();
    stmt->bodies.push_back(parseBody({"endfor"}));
  }
  endTag("endfor");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseSet(Position position) {
  auto stmt = makeStmt(Stmt::Kind::Set, position);
  stmt->targets.push_back(parseTarget(true));
  if (skipOperator("=")) {
    stmt->expressions.push_back(parseTuple(true));
    expectBlockEnd();
    return stmt;
  }
  stmt->kind = Stmt::Kind::SetBlock;
  if (skipOperator("|"))
    parseFilterChain(stmt->filters);
  expectBlockEnd();
  stmt->bodies.push_back(parseBody({"endset"}));
  endTag("endset");
  return stmt;
}

/// name, name.attribute, or a parenthesised target.
Target Parser::parseSingleTarget(bool withNamespace) {
  Nested nested(*this);
  if (skipOperator("(")) {
    Target inner = parseTarget(withNamespace);
    expectOperator(")");
    return inner;
  }
  Target target;
  Position position = peek().at;
  std::string name = expectName("a name to assign to");
  static constexpr std::string_view reserved[] = {"true", "false", "none", "True", "False", "None", "loop"};
  if (std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved))
    failAt(position, "expected a name to assign to, got '" + name + "'");
  if (withNamespace && skipOperator(".")) {
    target.name = intern(name);
    target.attribute = expectName("an attribute");
    return target;
  }
  target.name = bind(name);
  return target;
}

Target Parser::parseTarget(bool withNamespace) {
  Target first = parseSingleTarget(withNamespace);
  if (!isOperator(","))
    return first;
  Target tuple;
  tuple.isTuple = true;
  tuple.parts.push_back(std::move(first));
  while (skipOperator(","))
    if (peek().kind == Kind::Name && !isName("in"))
      tuple.parts.push_back(parseSingleTarget(withNamespace));
    else if (isOperator("("))
      tuple.parts.push_back(parseSingleTarget(withNamespace));
    else
      break;
  return tuple;
}

void Parser::parseParameters(MacroInfo &macro) {
  expectOperator("(");
  while (!isOperator(")")) {
    Parameter parameter;
    parameter.name = bind(expectName("a parameter"));
    if (skipOperator("="))
      parameter.fallback = parseExpression();
    else if (!macro.parameters.empty() && macro.parameters.back().fallback)
      unexpected("a default value");
    macro.parameters.push_back(std::move(parameter));
    if (!skipOperator(","))
      break;
  }
  expectOperator(")");
}

std::unique_ptr<Stmt> Parser::parseMacro(Position position) {
  auto stmt = makeStmt(Stmt::Kind::Macro, position);
  stmt->macro.name = expectName("the name of the macro");
  Target target;
  target.name = bind(stmt->macro.name);
  stmt->targets.push_back(target);
  parseParameters(stmt->macro);
  expectBlockEnd();
  macros.push_back(&stmt->macro);
  unsigned outer = std::exchange(loops, 0u);
  stmt->bodies.push_back(parseBody({"endmacro"}));
  loops = outer;
  macros.pop_back();
  endTag("endmacro");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseCallBlock(Position position) {
  auto stmt = makeStmt(Stmt::Kind::CallBlock, position);
  stmt->macro.name = "caller";
  if (isOperator("("))
    parseParameters(stmt->macro);
  stmt->expressions.push_back(parseExpression());
  if (stmt->expressions[0]->kind != Expr::Kind::CallName)
    failAt(position, "expected the call of a macro in {% call %}, got another expression");
  expectBlockEnd();
  macros.push_back(&stmt->macro);
  unsigned outer = std::exchange(loops, 0u);
  stmt->bodies.push_back(parseBody({"endcall"}));
  loops = outer;
  macros.pop_back();
  endTag("endcall");
  return stmt;
}

void Parser::parseFilterChain(std::vector<ExprPtr> &filters) {
  do
    filters.push_back(parseFilter(nullptr));
  while (skipOperator("|"));
}

std::unique_ptr<Stmt> Parser::parseFilterBlock(Position position) {
  auto stmt = makeStmt(Stmt::Kind::FilterBlock, position);
  parseFilterChain(stmt->filters);
  expectBlockEnd();
  stmt->bodies.push_back(parseBody({"endfilter"}));
  endTag("endfilter");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseWith(Position position) {
  auto stmt = makeStmt(Stmt::Kind::With, position);
  while (peek().kind != Kind::BlockEnd) {
    stmt->targets.push_back(parseSingleTarget(false));
    expectOperator("=");
    stmt->expressions.push_back(parseExpression());
    if (!skipOperator(","))
      break;
  }
  expectBlockEnd();
  stmt->bodies.push_back(parseBody({"endwith"}));
  endTag("endwith");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseGroup(Position position) {
  auto stmt = makeStmt(Stmt::Kind::Group, position);
  expectBlockEnd();
  stmt->bodies.push_back(parseBody({"endgeneration"}));
  endTag("endgeneration");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseLoopControl(Position position, Stmt::Kind kind) {
  if (!loops)
    failAt(position, std::string("expected '") + (kind == Stmt::Kind::Break ? "break" : "continue") + "' within a loop");
  expectBlockEnd();
  return makeStmt(kind, position);
}

/// A called name must be a function, or something that the template itself
/// defines: a context holds data only.
void Parser::checkCalls() {
  for (const auto &[name, position] : calls)
    if (!bound.count(name) && name != "caller")
      failAt(position, "expected a known function or macro, got '" + name + "'");
}
