#include "runtime/template/Parser.h"

#include <algorithm>
#include <charconv>

using namespace llmc;
using namespace llmc::jinja;

/// Trees are walked and destroyed recursively, so their height is bounded too:
/// left-leaning ones ("a + a + a ...") grow without recursion in the parser.
ExprPtr Parser::withHeight(ExprPtr expr) {
  unsigned tallest = 0;
  auto look = [&](const ExprPtr &child) {
    if (child)
      tallest = std::max(tallest, child->height);
  };
  for (const ExprPtr &operand : expr->operands)
    look(operand);
  for (const ExprPtr &argument : expr->arguments.positional)
    look(argument);
  for (const auto &argument : expr->arguments.named)
    look(argument.second);
  expr->height = tallest + 1;
  if (expr->height > kMaxNesting)
    failAt(expr->at, "expected at most " + std::to_string(kMaxNesting) + " nested operations, got more");
  return expr;
}

ExprPtr Parser::make(Expr::Kind kind, Position position, std::vector<ExprPtr> operands) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->at = position;
  expr->operands = std::move(operands);
  return withHeight(std::move(expr));
}

ExprPtr Parser::fold(Expr::Kind kind, Position position, ExprPtr left, ExprPtr right, std::string text) {
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(left));
  operands.push_back(std::move(right));
  ExprPtr expr = make(kind, position, std::move(operands));
  expr->text = std::move(text);
  return expr;
}

/// a, b, c without brackets is a tuple.
ExprPtr Parser::parseTuple(bool withCondition) {
  const Position position = peek().at;
  ExprPtr first = parseExpression(withCondition);
  if (!isOperator(","))
    return first;
  std::vector<ExprPtr> items;
  items.push_back(std::move(first));
  while (skipOperator(",")) {
    if (peek().kind == Kind::BlockEnd || peek().kind == Kind::VariableEnd || isOperator(")"))
      break;
    items.push_back(parseExpression(withCondition));
  }
  return make(Expr::Kind::Tuple, position, std::move(items));
}

ExprPtr Parser::parseExpression(bool withCondition) {
  if (++nesting > kMaxNesting)
    failAt(peek().at, "expected at most " + std::to_string(kMaxNesting) + " nested constructs, got more");
  ExprPtr expr = withCondition ? parseConditional() : parseBinary(0);
  --nesting; // an Error ends the parse, so it need not be undone then
  return expr;
}

ExprPtr Parser::parseConditional() {
  const Position position = peek().at;
  ExprPtr expr = parseBinary(0);
  while (skipName("if")) {
    std::vector<ExprPtr> operands;
    operands.push_back(std::move(expr));
    operands.push_back(parseBinary(0));
    operands.push_back(skipName("else") ? parseExpression() : nullptr);
    expr = make(Expr::Kind::Conditional, position, std::move(operands));
  }
  return expr;
}

namespace {
// Binding strength, weakest first. Comparisons and "not" share a level: "not a < b" is not (a < b).
enum Level { kOr, kAnd, kCompare, kAdd, kConcat, kMultiply, kPower, kUnary };
constexpr std::pair<std::string_view, CompareOp> kComparisons[] = {
    {"==", CompareOp::Equal}, {"!=", CompareOp::NotEqual},  {"<", CompareOp::Less},
    {"<=", CompareOp::LessEqual}, {">", CompareOp::Greater}, {">=", CompareOp::GreaterEqual}};
} // namespace

/// The level of the operator that comes next; -1: none.
int Parser::operatorLevel() const {
  const Token &token = peek();
  if (token.kind == Kind::Name) {
    if (token.text == "or")
      return kOr;
    if (token.text == "and")
      return kAnd;
    return token.text == "in" || (token.text == "not" && isName("in", 1)) ? kCompare : -1;
  }
  if (token.kind != Kind::Operator)
    return -1;
  if (token.text == "+" || token.text == "-")
    return kAdd;
  if (token.text == "~")
    return kConcat;
  if (token.text == "*" || token.text == "/" || token.text == "//" || token.text == "%")
    return kMultiply;
  if (token.text == "**")
    return kPower;
  bool comparison = std::any_of(std::begin(kComparisons), std::end(kComparisons),
                                [&](const auto &entry) { return entry.first == token.text; });
  return comparison ? kCompare : -1;
}

/// Operators of at least `level`, by precedence climbing: one frame, whatever
/// the number of levels.
ExprPtr Parser::parseBinary(int level) {
  const Position position = peek().at;
  ExprPtr left = level <= kCompare && isName("not") ? parseNot() : parseUnary(true);
  for (;;) {
    const int next = operatorLevel();
    if (next < level)
      return left;
    if (next == kCompare) {
      left = parseCompare(std::move(left), position);
    } else if (next == kConcat) {
      left = parseConcat(std::move(left), position);
    } else {
      std::string op = take().text;
      Expr::Kind kind = next == kOr ? Expr::Kind::Or : next == kAnd ? Expr::Kind::And : Expr::Kind::Binary;
      op = op == "//" ? "f" : op == "**" ? "p" : op;
      left = fold(kind, position, std::move(left), parseBinary(next + 1), op);
    }
  }
}

ExprPtr Parser::parseNot() {
  const Position position = take().at;
  if (++nesting > kMaxNesting)
    failAt(position, "expected at most " + std::to_string(kMaxNesting) + " nested constructs, got more");
  std::vector<ExprPtr> operands;
  operands.push_back(parseBinary(kCompare));
  --nesting;
  return make(Expr::Kind::Not, position, std::move(operands));
}

ExprPtr Parser::parseConcat(ExprPtr left, Position position) {
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(left));
  while (skipOperator("~"))
    operands.push_back(parseBinary(kConcat + 1));
  return make(Expr::Kind::Concat, position, std::move(operands));
}

ExprPtr Parser::parseCompare(ExprPtr left, Position position) {
  std::vector<ExprPtr> operands;
  std::vector<CompareOp> comparisons;
  operands.push_back(std::move(left));
  while (operatorLevel() == kCompare) {
    Token token = take();
    if (token.text == "not")
      take();
    auto found = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                              [&](const auto &entry) { return entry.first == token.text; });
    comparisons.push_back(found != std::end(kComparisons) ? found->second
                          : token.text == "not"           ? CompareOp::NotIn
                                                          : CompareOp::In);
    operands.push_back(parseBinary(kCompare + 1));
  }
  ExprPtr expr = make(Expr::Kind::Compare, position, std::move(operands));
  expr->comparisons = std::move(comparisons);
  return expr;
}

ExprPtr Parser::parseUnary(bool withFilter) {
  const Position position = peek().at;
  ExprPtr expr;
  if (isOperator("-") || isOperator("+")) {
    if (++nesting > kMaxNesting)
      failAt(position, "expected at most " + std::to_string(kMaxNesting) + " nested constructs, got more");
    bool minus = take().text == "-";
    std::vector<ExprPtr> operands;
    operands.push_back(parseUnary(false));
    --nesting;
    expr = make(minus ? Expr::Kind::Negate : Expr::Kind::Plus, position, std::move(operands));
  } else {
    expr = parsePrimary();
  }
  expr = parsePostfix(std::move(expr));
  return withFilter ? parseFilters(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parseNumber() {
  const bool isFloat = peek().kind == Kind::Float;
  Token token = take();
  ExprPtr expr = make(Expr::Kind::Constant, token.at);
  const char *begin = token.text.data(), *end = begin + token.text.size();
  if (isFloat) {
    double value = 0;
    auto result = std::from_chars(begin, end, value);
    if (result.ec != std::errc())
      failAt(token.at, "expected a number within the range of float, got " + token.text);
    expr->constant = Value(value);
  } else {
    int64_t value = 0;
    auto result = std::from_chars(begin, end, value);
    if (result.ec != std::errc())
      failAt(token.at, "expected an integer below 2^63, got " + token.text);
    expr->constant = Value(value);
  }
  return expr;
}

ExprPtr Parser::parsePrimary() {
  const Token &token = peek();
  const Position position = token.at;
  switch (token.kind) {
  case Kind::Integer:
  case Kind::Float:
    return parseNumber();
  case Kind::String: {
    std::string text;
    while (peek().kind == Kind::String) // adjacent strings join
      text += take().text;
    ExprPtr expr = make(Expr::Kind::Constant, position);
    expr->constant = Value(std::move(text));
    return expr;
  }
  case Kind::Name: {
    std::string name = take().text;
    ExprPtr expr = make(Expr::Kind::Constant, position);
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      expr->constant = Value(name == "true" || name == "True");
    } else if (name == "none" || name == "None") {
      expr->constant = Value::none();
    } else {
      expr->kind = Expr::Kind::Name;
      expr->name = intern(name);
      if (!macros.empty()) {
        macros.back()->takesCaller |= name == "caller";
        macros.back()->takesVarargs |= name == "varargs";
        macros.back()->takesKwargs |= name == "kwargs";
      }
    }
    return expr;
  }
  default:
    break;
  }
  if (skipOperator("(")) {
    if (skipOperator(")"))
      return make(Expr::Kind::Tuple, position);
    ExprPtr expr = parseTuple(true);
    expectOperator(")");
    return expr;
  }
  if (isOperator("["))
    return parseList();
  if (isOperator("{"))
    return parseDict();
  unexpected("an expression");
}

ExprPtr Parser::parseList() {
  const Position position = take().at;
  std::vector<ExprPtr> items;
  while (!isOperator("]")) {
    items.push_back(parseExpression());
    if (!skipOperator(","))
      break;
  }
  expectOperator("]");
  return make(Expr::Kind::List, position, std::move(items));
}

ExprPtr Parser::parseDict() {
  const Position position = take().at;
  std::vector<ExprPtr> items;
  while (!isOperator("}")) {
    items.push_back(parseExpression());
    expectOperator(":");
    items.push_back(parseExpression());
    if (!skipOperator(","))
      break;
  }
  expectOperator("}");
  return make(Expr::Kind::Dict, position, std::move(items));
}

ExprPtr Parser::parsePostfix(ExprPtr expr) {
  for (;;)
    if (isOperator("."))
      expr = parseDot(std::move(expr));
    else if (isOperator("["))
      expr = parseSubscript(std::move(expr));
    else if (isOperator("("))
      expr = parseCall(std::move(expr));
    else
      return expr;
}

ExprPtr Parser::parseDot(ExprPtr object) {
  const Position position = take().at;
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(object));
  if (peek().kind == Kind::Integer) {
    operands.push_back(parseNumber());
    return make(Expr::Kind::Item, position, std::move(operands));
  }
  const Position namePosition = peek().at;
  std::string name = expectName("an attribute");
  if (!isOperator("(")) {
    ExprPtr expr = make(Expr::Kind::Attribute, namePosition, std::move(operands));
    expr->text = std::move(name);
    return expr;
  }
  const Builtin *method = findMethod(name);
  if (!method)
    failAt(namePosition, "expected a known method, got '" + name + "'");
  ExprPtr expr = make(Expr::Kind::CallMethod, namePosition, std::move(operands));
  expr->builtin = method;
  expr->arguments = parseArguments();
  checkArguments(*expr, "method");
  return withHeight(std::move(expr));
}

ExprPtr Parser::parseSubscript(ExprPtr object) {
  const Position position = take().at;
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(object));
  bool slice = false;
  ExprPtr part;
  auto atEnd = [&] { return isOperator("]") || isOperator(":"); };
  if (!atEnd())
    part = parseTuple(true);
  while (skipOperator(":")) {
    slice = true;
    operands.push_back(std::move(part));
    part = atEnd() ? nullptr : parseExpression();
    if (operands.size() > 4)
      unexpected("']'");
  }
  if (!slice && !part)
    unexpected("a subscript");
  operands.push_back(std::move(part));
  expectOperator("]");
  if (!slice)
    return make(Expr::Kind::Item, position, std::move(operands));
  if (operands.size() > 4)
    failAt(position, "expected at most start, stop and step in a slice");
  operands.resize(4);
  return make(Expr::Kind::Slice, position, std::move(operands));
}

Arguments Parser::parseArguments() {
  Arguments arguments;
  expectOperator("(");
  while (!isOperator(")")) {
    if (isOperator("*") || isOperator("**"))
      unexpected("an argument (unpacking with * is not supported)");
    if (peek().kind == Kind::Name && isOperator("=", 1)) {
      std::string name = take().text;
      take();
      arguments.named.emplace_back(std::move(name), parseExpression());
    } else {
      if (!arguments.named.empty())
        unexpected("a named argument");
      arguments.positional.push_back(parseExpression());
    }
    if (!skipOperator(","))
      break;
  }
  expectOperator(")");
  return arguments;
}

ExprPtr Parser::parseCall(ExprPtr callee) {
  const Position position = callee->at;
  if (callee->kind != Expr::Kind::Name)
    failAt(peek().at, "expected a call of a function, macro or method, got one of another expression");
  const std::string name = names[callee->name];
  callee->arguments = parseArguments();
  const Builtin *function = findFunction(name);
  if (function && !bound.count(name)) {
    callee->kind = Expr::Kind::CallBuiltin;
    callee->builtin = function;
    checkArguments(*callee, "function");
  } else {
    callee->kind = Expr::Kind::CallName;
    calls.emplace_back(name, position);
  }
  return withHeight(std::move(callee));
}

ExprPtr Parser::parseFilters(ExprPtr expr) {
  for (;;)
    if (skipOperator("|"))
      expr = parseFilter(std::move(expr));
    else if (isName("is"))
      expr = parseTest(std::move(expr));
    else if (isOperator("("))
      expr = parseCall(std::move(expr));
    else
      return expr;
}

ExprPtr Parser::parseFilter(ExprPtr operand) {
  const Position position = peek().at;
  std::string name = expectName("the name of a filter");
  const Builtin *filter = findFilter(name);
  if (!filter)
    failAt(position, "expected a known filter, got '" + name + "'");
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(operand));
  ExprPtr expr = make(Expr::Kind::Filter, position, std::move(operands));
  expr->builtin = filter;
  if (isOperator("("))
    expr->arguments = parseArguments();
  checkArguments(*expr, "filter");
  if (name == "map")
    checkNestedBuiltin(*expr, 0, true);
  else if (name == "select" || name == "reject")
    checkNestedBuiltin(*expr, 0, false);
  else if (name == "selectattr" || name == "rejectattr")
    checkNestedBuiltin(*expr, 1, false);
  return withHeight(std::move(expr));
}

ExprPtr Parser::parseTest(ExprPtr operand) {
  take(); // is
  const bool negated = skipName("not");
  const Position position = peek().at;
  std::string name = expectName("the name of a test");
  const Builtin *test = findTest(name);
  if (!test && isOperator("==")) // "is ==" is not reachable as a name
    unexpected("the name of a test");
  if (!test)
    failAt(position, "expected a known test, got '" + name + "'");
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(operand));
  ExprPtr expr = make(Expr::Kind::Test, position, std::move(operands));
  expr->builtin = test;
  expr->negated = negated;
  static constexpr std::string_view notArguments[] = {"else", "or", "and", "if", "is", "in", "not", "recursive"};
  const Token &next = peek();
  bool hasArgument =
      next.kind == Kind::String || next.kind == Kind::Integer || next.kind == Kind::Float || isOperator("[") || isOperator("{") ||
      (next.kind == Kind::Name &&
       std::find(std::begin(notArguments), std::end(notArguments), next.text) == std::end(notArguments));
  if (isOperator("("))
    expr->arguments = parseArguments();
  else if (hasArgument)
    expr->arguments.positional.push_back(parsePostfix(parsePrimary()));
  checkArguments(*expr, "test");
  return withHeight(std::move(expr));
}

void Parser::checkArguments(const Expr &expr, const char *what) const {
  const Builtin &builtin = *expr.builtin;
  const std::string title = std::string(what) + " '" + std::string(builtin.name) + "'";
  const size_t given = expr.arguments.positional.size();
  if (builtin.variadic)
    return;
  if (given > builtin.parameters.size())
    failAt(expr.at, title + ": expected at most " + std::to_string(builtin.parameters.size()) + " arguments, got " +
                        std::to_string(given));
  std::vector<bool> set(builtin.parameters.size());
  std::fill(set.begin(), set.begin() + static_cast<long>(given), true);
  for (const auto &[name, value] : expr.arguments.named) {
    auto found = std::find(builtin.parameters.begin(), builtin.parameters.end(), name);
    if (found == builtin.parameters.end())
      failAt(expr.at, title + ": expected a known argument, got '" + name + "'");
    size_t i = static_cast<size_t>(found - builtin.parameters.begin());
    if (set[i])
      failAt(expr.at, title + ": expected the argument '" + name + "' once, got it twice");
    set[i] = true;
  }
  for (size_t i = 0; i < builtin.required; ++i)
    if (!set[i])
      failAt(expr.at, title + ": expected the argument '" + std::string(builtin.parameters[i]) + "', got none");
}

/// map, select and their kin name another filter or test in a string.
void Parser::checkNestedBuiltin(const Expr &expr, size_t position, bool filter) const {
  if (expr.arguments.positional.size() <= position)
    return;
  const Expr &argument = *expr.arguments.positional[position];
  const std::string *name = argument.kind == Expr::Kind::Constant ? argument.constant.string() : nullptr;
  if (!name)
    failAt(argument.at, std::string("expected the name of a ") + (filter ? "filter" : "test") +
                            " as a string, got another expression");
  if (filter ? !findFilter(*name) : !findTest(*name))
    failAt(argument.at, std::string("expected a known ") + (filter ? "filter" : "test") + ", got '" + *name + "'");
}
