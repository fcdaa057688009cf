//===- Parser.h - tokens to a tree ------------------------------*- C++ -*-===//
//
// Recursive descent with jinja2's grammar and precedences. Tags, filters, tests,
// functions and methods outside of the supported set are errors that name them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_PARSER_H
#define LLMC_RUNTIME_TEMPLATE_PARSER_H

#include "runtime/template/Ast.h"

#include <unordered_map>
#include <unordered_set>

namespace llmc::jinja {

class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}
  Ast run();

private:
  using Kind = Token::Kind;
  class Nested;

  // Statements (Parser.cpp).
  Body parseBody(const std::vector<std::string_view> &ends);
  void parseOutput(Body &body);
  std::unique_ptr<Stmt> parseTag();
  std::unique_ptr<Stmt> parseIf(Position at);
  std::unique_ptr<Stmt> parseFor(Position at);
  std::unique_ptr<Stmt> parseSet(Position at);
  std::unique_ptr<Stmt> parseMacro(Position at);
  std::unique_ptr<Stmt> parseCallBlock(Position at);
  std::unique_ptr<Stmt> parseFilterBlock(Position at);
  std::unique_ptr<Stmt> parseWith(Position at);
  std::unique_ptr<Stmt> parseGroup(Position at);
  std::unique_ptr<Stmt> parseLoopControl(Position at, Stmt::Kind kind);
  void parseParameters(MacroInfo &macro);
  void parseFilterChain(std::vector<ExprPtr> &filters);
  Target parseTarget(bool withNamespace);
  Target parseSingleTarget(bool withNamespace);
  void endTag(std::string_view name);
  void checkCalls();

  // Expressions (ParserExpressions.cpp).
  ExprPtr parseTuple(bool withCondition);
  ExprPtr parseExpression(bool withCondition = true);
  ExprPtr parseConditional();
  ExprPtr parseBinary(int level);
  ExprPtr parseNot();
  ExprPtr parseCompare(ExprPtr left, Position position);
  ExprPtr parseConcat(ExprPtr left, Position position);
  int operatorLevel() const;
  ExprPtr parseUnary(bool withFilter);
  ExprPtr parsePrimary();
  ExprPtr parseNumber();
  ExprPtr parseList();
  ExprPtr parseDict();
  ExprPtr parsePostfix(ExprPtr expr);
  ExprPtr parseDot(ExprPtr object);
  ExprPtr parseSubscript(ExprPtr object);
  ExprPtr parseCall(ExprPtr callee);
  ExprPtr parseFilters(ExprPtr expr);
  ExprPtr parseFilter(ExprPtr operand);
  ExprPtr parseTest(ExprPtr operand);
  Arguments parseArguments();
  void checkArguments(const Expr &expr, const char *what) const;
  void checkNestedBuiltin(const Expr &expr, size_t position, bool filter) const;

  ExprPtr make(Expr::Kind kind, Position at, std::vector<ExprPtr> operands = {});
  ExprPtr withHeight(ExprPtr expr);
  ExprPtr fold(Expr::Kind kind, Position at, ExprPtr left, ExprPtr right, std::string text = {});

  // Tokens.
  const Token &peek(size_t ahead = 0) const { return tokens[std::min(at + ahead, tokens.size() - 1)]; }
  Token take() { return at + 1 < tokens.size() ? tokens[at++] : tokens[at]; }
  bool isName(std::string_view name, size_t ahead = 0) const {
    return peek(ahead).kind == Kind::Name && peek(ahead).text == name;
  }
  bool isOperator(std::string_view op, size_t ahead = 0) const {
    return peek(ahead).kind == Kind::Operator && peek(ahead).text == op;
  }
  bool skipName(std::string_view name) { return isName(name) ? (take(), true) : false; }
  bool skipOperator(std::string_view op) { return isOperator(op) ? (take(), true) : false; }
  void expectOperator(std::string_view op);
  std::string expectName(const char *what);
  void expectBlockEnd();
  [[noreturn]] void unexpected(const std::string &expected) const;

  NameId intern(const std::string &name);
  NameId bind(const std::string &name) {
    bound.insert(name);
    return intern(name);
  }

  std::vector<Token> tokens;
  size_t at = 0;
  unsigned nesting = 0, loops = 0;
  std::unordered_map<std::string, NameId> ids;
  std::vector<std::string> names;
  std::unordered_set<std::string> bound;                // names that the template itself assigns
  std::vector<std::pair<std::string, Position>> calls;  // f(...) of names, checked at the end
  std::vector<MacroInfo *> macros;                      // enclosing ones
};

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_PARSER_H
