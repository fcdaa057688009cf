//===- Parser.h - tokens to a tree ------------------------------*- C++ -*-===//
//
// Recursive descent with jinja2's grammar and precedences. Tags, filters and
// tests outside of the supported set are errors that name them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_PARSER_H
#define LLMC_RUNTIME_TEMPLATE_PARSER_H

#include "runtime/template/Ast.h"

#include <unordered_map>

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
  void parseTag(Body &body);
  /// "%}", a body and one of `ends`, whose name is then the next token.
  Body parseStatements(const std::vector<std::string_view> &ends);
  Body parseFunctionBody(std::string_view end);
  std::unique_ptr<Stmt> parseIf(Position at);
  std::unique_ptr<Stmt> parseFor(Position at);
  std::unique_ptr<Stmt> parseSet(Position at);
  std::unique_ptr<Stmt> parseMacro(Position at);
  std::unique_ptr<Stmt> parseCallBlock(Position at);
  std::unique_ptr<Stmt> parseFilterBlock(Position at);
  std::unique_ptr<Stmt> parseWith(Position at);
  std::unique_ptr<Stmt> parseGeneration(Position at);
  void parsePrint(Body &body, Position at);
  std::unique_ptr<Stmt> parseLoopControl(Position at, Stmt::Kind kind);
  void parseParameters(MacroInfo &macro);
  void parseFilterChain(std::vector<ExprPtr> &filters);
  Target parseTarget(bool withNamespace, std::string_view end = {});
  Target parseSingleTarget(bool withNamespace);
  Target parseName();
  void endTag(std::string_view name);

  // Expressions (ParserExpressions.cpp).
  ExprPtr parseTuple(bool withCondition, bool parenthesised = false, std::string_view end = {});
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
  std::string parseDottedName(const char *what);

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
  std::vector<Token> tokens;
  size_t at = 0;
  unsigned nesting = 0, loops = 0;
  std::unordered_map<std::string, NameId> ids;
  std::vector<std::string> names;
  unsigned forLoops = 0; // enclosing ones, within which `loop` cannot be assigned
};

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_PARSER_H
