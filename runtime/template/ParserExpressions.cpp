#include "runtime/template/Parser.h"

#include <algorithm>
#include <cstdlib>

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
  look(expr->arguments.list);
  look(expr->arguments.dict);
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

/// a, b, c without brackets is a tuple; `end` is a name that may follow a last comma.
ExprPtr Parser::parseTuple(bool withCondition, bool parenthesised, std::string_view end) {
  const Position position = peek().at;
  auto over = [&] {
    return peek().kind == Kind::BlockEnd || peek().kind == Kind::VariableEnd || isOperator(")") ||
           (!end.empty() && isName(end));
  };
  if (over() && !parenthesised)
    unexpected("an expression");
  if (over())
    return make(Expr::Kind::Tuple, position);
  ExprPtr first = parseExpression(withCondition);
  if (!isOperator(","))
    return first;
  std::vector<ExprPtr> items;
  items.push_back(std::move(first));
  while (skipOperator(",") && !over())
    items.push_back(parseExpression(withCondition));
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
  int chain = -1; // level of what `left` was made of here, which may take more operands
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
      op = op == "//" ? "f" : op == "**" ? "p" : op.substr(0, 1);
      ExprPtr right = parseBinary(next + 1);
      if (chain == next) { // flat, however long
        left->height = std::max(left->height, right->height + 1);
        left->operands.push_back(std::move(right));
        left->text += op;
        if (left->height > kMaxNesting)
          left = withHeight(std::move(left)); // fails
      } else {
        left = fold(kind, position, std::move(left), std::move(right), op);
      }
    }
    chain = next;
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
  if (isFloat) {
    expr->constant = Value(std::strtod(token.text.c_str(), nullptr));
    return expr;
  }
  std::string_view digits = token.text;
  unsigned base = 10;
  if (digits.size() > 1 && digits[0] == '0' && digits[1] > '9') {
    base = std::tolower(digits[1]) == 'x' ? 16 : std::tolower(digits[1]) == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  if (digits.size() > 4300)
    failAt(token.at, "expected an integer of at most 4300 digits, got " + std::to_string(digits.size()));
  auto value = BigInt::parse(digits, base);
  if (!value)
    failAt(token.at, "expected a number, got '" + token.text + "'");
  expr->constant = Value::integer(*value);
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
    }
    return expr;
  }
  default:
    break;
  }
  if (skipOperator("(")) {
    ExprPtr expr = parseTuple(true, true);
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
  ExprPtr expr = make(Expr::Kind::Attribute, peek().at, std::move(operands));
  expr->text = expectName("an attribute");
  return expr;
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
  if (!slice && !part) // x[] has the empty tuple as key
    part = make(Expr::Kind::Tuple, position);
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
  bool first = true;
  while (!isOperator(")")) {
    if (!std::exchange(first, false)) {
      expectOperator(",");
      if (isOperator(")"))
        break;
    }
    if (arguments.dict || (arguments.list && isOperator("*")))
      unexpected("')'");
    if (skipOperator("*")) {
      arguments.list = parseExpression();
    } else if (skipOperator("**")) {
      arguments.dict = parseExpression();
    } else if (peek().kind == Kind::Name && isOperator("=", 1)) {
      const Position position = peek().at;
      std::string name = take().text;
      take();
      for (const auto &other : arguments.named)
        if (other.first == name)
          failAt(position, "expected the argument '" + name + "' once, got it twice");
      arguments.named.emplace_back(std::move(name), parseExpression());
    } else {
      if (!arguments.named.empty() || arguments.list)
        unexpected("a named argument");
      arguments.positional.push_back(parseExpression());
    }
  }
  expectOperator(")");
  return arguments;
}

/// What jinja2 and Python have, and this engine has not.
static void refuseUnsupported(const Expr &callee, const std::string &name) {
  static constexpr std::string_view methods[] = {"encode",   "maketrans",  "translate", "unescape",
                                                 "to_bytes", "from_bytes", "fromhex",   "fromkeys"};
  if (callee.kind == Expr::Kind::Attribute && std::find(std::begin(methods), std::end(methods), callee.text) != std::end(methods))
    failAt(callee.at, "expected a supported method, got '" + callee.text + "'");
  if (callee.kind == Expr::Kind::Name && name == "lipsum")
    failAt(callee.at, "expected a supported function, got 'lipsum'");
}

ExprPtr Parser::parseCall(ExprPtr callee) {
  refuseUnsupported(*callee, callee->kind == Expr::Kind::Name ? names[callee->name] : std::string());
  std::vector<ExprPtr> operands;
  const Position position = callee->at;
  operands.push_back(std::move(callee));
  ExprPtr expr = make(Expr::Kind::Call, position, std::move(operands));
  expr->arguments = parseArguments();
  return withHeight(std::move(expr));
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

std::string Parser::parseDottedName(const char *what) {
  std::string name = expectName(what);
  while (skipOperator("."))
    name += "." + expectName(what);
  return name;
}

ExprPtr Parser::parseFilter(ExprPtr operand) {
  const Position position = peek().at;
  std::string name = parseDottedName("the name of a filter");
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(operand));
  ExprPtr expr = make(Expr::Kind::Filter, position, std::move(operands));
  expr->builtin = findFilter(name); // Resolve.cpp says whether it may be unknown
  expr->text = name;
  if (isOperator("("))
    expr->arguments = parseArguments();
  return withHeight(std::move(expr));
}

ExprPtr Parser::parseTest(ExprPtr operand) {
  take(); // is
  const bool negated = skipName("not");
  const Position position = peek().at;
  std::string name = parseDottedName("the name of a test");
  std::vector<ExprPtr> operands;
  operands.push_back(std::move(operand));
  ExprPtr expr = make(Expr::Kind::Test, position, std::move(operands));
  expr->builtin = findTest(name);
  expr->text = name;
  expr->negated = negated;
  const Token &next = peek();
  bool hasArgument = next.kind == Kind::String || next.kind == Kind::Integer || next.kind == Kind::Float ||
                     isOperator("[") || isOperator("{") ||
                     (next.kind == Kind::Name && next.text != "else" && next.text != "or" && next.text != "and");
  if (isOperator("(")) {
    expr->arguments = parseArguments();
  } else if (hasArgument) {
    if (isName("is"))
      unexpected("one test");
    expr->arguments.positional.push_back(parsePostfix(parsePrimary()));
  }
  return withHeight(std::move(expr));
}
