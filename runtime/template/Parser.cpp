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

Ast jinja::parse(std::string_view source) {
  if (source.size() > kMaxSource)
    failAt({}, "expected a template of at most " + std::to_string(kMaxSource) + " bytes, got " + std::to_string(source.size()));
  Ast ast = Parser(tokenize(source)).run();
  resolveNames(ast);
  return ast;
}

Ast Parser::run() {
  Ast ast;
  ast.body = parseBody({});
  if (peek().kind != Kind::End)
    unexpected("the end of the template");
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
  if (names.size() > kMaxNames)
    failAt(peek().at, "expected at most " + std::to_string(kMaxNames) + " different names, got more");
  return it->second;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

static std::unique_ptr<Stmt> makeStmt(Stmt::Kind kind, Position at) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->at = at;
  return stmt;
}

/// Up to a tag named in `ends` (its name is the next token), or the end of the
/// template if `ends` is empty.
Body Parser::parseBody(const std::vector<std::string_view> &ends) {
  Nested nested(*this);
  Body body;
  for (;;) {
    switch (peek().kind) {
    case Kind::Text: {
      auto stmt = makeStmt(Stmt::Kind::Text, peek().at);
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
      parseTag(body);
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

Body Parser::parseStatements(const std::vector<std::string_view> &ends) {
  skipOperator(":"); // as in Python
  expectBlockEnd();
  return parseBody(ends);
}

/// Loops outside cannot be left from within.
Body Parser::parseFunctionBody(std::string_view end) {
  unsigned outer = std::exchange(loops, 0u);
  Body body = parseStatements({end});
  loops = outer;
  take();
  expectBlockEnd();
  return body;
}

void Parser::parseOutput(Body &body) {
  auto stmt = makeStmt(Stmt::Kind::Output, take().at);
  stmt->expressions.push_back(parseTuple(true));
  if (peek().kind != Kind::VariableEnd)
    unexpected("'}}'");
  take();
  body.push_back(std::move(stmt));
}

void Parser::parsePrint(Body &body, Position position) {
  bool first = true;
  while (peek().kind != Kind::BlockEnd) {
    if (!std::exchange(first, false))
      expectOperator(",");
    auto stmt = makeStmt(Stmt::Kind::Output, position);
    stmt->expressions.push_back(parseExpression());
    body.push_back(std::move(stmt));
  }
  take();
}

void Parser::parseTag(Body &body) {
  const Position position = peek().at;
  if (peek().kind != Kind::Name)
    unexpected("the name of a tag");
  std::string tag = take().text;
  if (tag == "print")
    return parsePrint(body, position);
  body.push_back([&] {
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
      return parseGeneration(position);
    if (tag == "break")
      return parseLoopControl(position, Stmt::Kind::Break);
    if (tag == "continue")
      return parseLoopControl(position, Stmt::Kind::Continue);
    failAt(position, "expected a supported tag (if, for, set, macro, call, filter, with, print, raw, break, continue, "
                     "generation), got '" + tag + "'");
  }());
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
    stmt->bodies.push_back(parseStatements({"elif", "else", "endif"}));
    if (!skipName("elif"))
      break;
  }
  if (skipName("else"))
    stmt->bodies.push_back(parseStatements({"endif"}));
  endTag("endif");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseFor(Position position) {
  auto stmt = makeStmt(Stmt::Kind::For, position);
  ++forLoops;
  stmt->targets.push_back(parseTarget(false, "in"));
  if (!skipName("in"))
    unexpected("'in'");
  stmt->expressions.push_back(parseTuple(false, false, "recursive"));
  if (skipName("if"))
    stmt->expressions.push_back(parseExpression());
  stmt->recursive = skipName("recursive");
  intern("loop");
  ++loops;
  stmt->bodies.push_back(parseStatements({"else", "endfor"}));
  --loops;
  if (skipName("else")) {
    unsigned outer = loops;
    loops = stmt->recursive ? 0 : loops; // a recursive loop is a function
    stmt->bodies.push_back(parseStatements({"endfor"}));
    loops = outer;
  }
  --forLoops;
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
  stmt->bodies.push_back(parseStatements({"endset"}));
  endTag("endset");
  return stmt;
}

Target Parser::parseName() {
  static constexpr std::string_view reserved[] = {"true", "false", "none", "True", "False", "None"};
  Target target;
  target.at = peek().at;
  std::string name = expectName("a name to assign to");
  if (std::find(std::begin(reserved), std::end(reserved), name) != std::end(reserved) || (forLoops && name == "loop"))
    failAt(target.at, "expected a name to assign to, got '" + name + "'");
  target.name = intern(name);
  return target;
}

/// name, name.attribute, or a parenthesised target.
Target Parser::parseSingleTarget(bool withNamespace) {
  Nested nested(*this);
  if (skipOperator("(")) {
    Target inner;
    inner.isTuple = true;
    inner.at = peek().at;
    if (!isOperator(")"))
      inner = parseTarget(false, ")");
    expectOperator(")");
    return inner;
  }
  if (withNamespace && isOperator(".", 1) && peek().kind == Kind::Name) {
    Target target;
    target.at = peek().at;
    target.name = intern(take().text);
    take();
    target.attribute = expectName("an attribute");
    return target;
  }
  return parseName();
}

/// One target, or several with commas; `end` is what may follow a last comma.
Target Parser::parseTarget(bool withNamespace, std::string_view end) {
  Target first = parseSingleTarget(withNamespace);
  if (!isOperator(","))
    return first;
  Target tuple;
  tuple.isTuple = true;
  tuple.at = first.at;
  tuple.parts.push_back(std::move(first));
  while (skipOperator(",")) {
    bool over = peek().kind == Kind::BlockEnd || isOperator(")") || (!end.empty() && isName(end)) || isOperator("=");
    if (over)
      break;
    tuple.parts.push_back(parseSingleTarget(withNamespace));
  }
  return tuple;
}

void Parser::parseParameters(MacroInfo &macro) {
  expectOperator("(");
  while (!isOperator(")")) {
    if (!macro.parameters.empty())
      expectOperator(",");
    Parameter parameter;
    const Position position = peek().at;
    parameter.name = parseName().name;
    for (const Parameter &other : macro.parameters)
      if (other.name == parameter.name)
        failAt(position, "expected the parameter '" + names[parameter.name] + "' once, got it twice");
    if (skipOperator("="))
      parameter.fallback = parseExpression();
    else if (!macro.parameters.empty() && macro.parameters.back().fallback)
      unexpected("a default value");
    macro.parameters.push_back(std::move(parameter));
  }
  expectOperator(")");
}

std::unique_ptr<Stmt> Parser::parseMacro(Position position) {
  auto stmt = makeStmt(Stmt::Kind::Macro, position);
  stmt->targets.push_back(parseName());
  stmt->macro.name = names[stmt->targets[0].name];
  parseParameters(stmt->macro);
  stmt->bodies.push_back(parseFunctionBody("endmacro"));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseCallBlock(Position position) {
  auto stmt = makeStmt(Stmt::Kind::CallBlock, position);
  if (isOperator("("))
    parseParameters(stmt->macro);
  stmt->expressions.push_back(parseExpression());
  if (stmt->expressions[0]->kind != Expr::Kind::Call)
    failAt(position, "expected a call in {% call %}, got another expression");
  stmt->bodies.push_back(parseFunctionBody("endcall"));
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
  stmt->bodies.push_back(parseStatements({"endfilter"}));
  endTag("endfilter");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseWith(Position position) {
  auto stmt = makeStmt(Stmt::Kind::With, position);
  while (peek().kind != Kind::BlockEnd && !isOperator(":")) {
    if (!stmt->targets.empty())
      expectOperator(",");
    stmt->targets.push_back(parseTarget(false));
    expectOperator("=");
    stmt->expressions.push_back(parseExpression());
  }
  stmt->bodies.push_back(parseStatements({"endwith"}));
  endTag("endwith");
  return stmt;
}

/// A caller block that nothing but itself calls.
std::unique_ptr<Stmt> Parser::parseGeneration(Position position) {
  auto stmt = makeStmt(Stmt::Kind::CallBlock, position);
  stmt->expressions.push_back(nullptr);
  stmt->bodies.push_back(parseFunctionBody("endgeneration"));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parseLoopControl(Position position, Stmt::Kind kind) {
  if (!loops)
    failAt(position, std::string("expected '") + (kind == Stmt::Kind::Break ? "break" : "continue") + "' within a loop");
  expectBlockEnd();
  return makeStmt(kind, position);
}
