//===- Expressions.cpp - evaluation and calls -----------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Interpreter.h"

#include <algorithm>

using namespace llmc;
using namespace llmc::jinja;

Value Runtime::evaluate(const Expr &expr) {
  at = expr.at;
  if (expr.kind == Expr::Kind::Constant)
    return expr.constant;
  if (++depth > limits.depth)
    tooDeep();
  step();
  Value value = evaluateKind(expr);
  --depth; // an Error ends the run, so it need not be undone then
  return value;
}

Value Runtime::evaluateKind(const Expr &expr) {
  auto operand = [&](size_t i) { return evaluate(*expr.operands[i]); };
  switch (expr.kind) {
  case Expr::Kind::Constant:
    return expr.constant;
  case Expr::Kind::Name:
    return load(expr.ref, expr.name);
  case Expr::Kind::List:
  case Expr::Kind::Tuple:
    return evaluateSequence(expr);
  case Expr::Kind::Dict:
    return evaluateDict(expr);
  case Expr::Kind::Attribute: {
    Value object = operand(0);
    at = expr.at;
    return attribute(object, expr.text);
  }
  case Expr::Kind::Item: {
    Value object = operand(0), key = operand(1);
    at = expr.at;
    return item(object, key);
  }
  case Expr::Kind::Slice:
    return evaluateSlice(expr);
  case Expr::Kind::Call:
    return evaluateCall(expr, nullptr);
  case Expr::Kind::Filter:
  case Expr::Kind::Test:
    return evaluateBuiltin(expr);
  case Expr::Kind::Not:
  case Expr::Kind::Negate:
  case Expr::Kind::Plus:
    return evaluateUnary(expr);
  case Expr::Kind::Binary: {
    Value value = operand(0);
    for (size_t i = 1; i < expr.operands.size(); ++i) {
      Value right = operand(i);
      at = expr.at;
      value = binary(expr.text[i - 1], value, right);
    }
    return value;
  }
  case Expr::Kind::Concat:
    return evaluateConcat(expr);
  case Expr::Kind::And:
  case Expr::Kind::Or: {
    Value value = operand(0);
    for (size_t i = 1; i < expr.operands.size() && value.truthy() == (expr.kind == Expr::Kind::And); ++i)
      value = operand(i);
    return value;
  }
  case Expr::Kind::Compare:
    return evaluateCompare(expr);
  case Expr::Kind::Conditional:
    if (operand(1).truthy())
      return operand(0);
    return expr.operands[2] ? operand(2) : Value();
  }
  return Value();
}

Value Runtime::evaluateSequence(const Expr &expr) {
  std::vector<Value> items;
  items.reserve(expr.operands.size());
  for (const ExprPtr &operand : expr.operands)
    items.push_back(evaluate(*operand));
  at = expr.at;
  return list(std::move(items), expr.kind == Expr::Kind::Tuple);
}

Value Runtime::evaluateDict(const Expr &expr) {
  Dict result;
  for (size_t i = 0; i < expr.operands.size(); i += 2) {
    Value key = evaluate(*expr.operands[i]), value = evaluate(*expr.operands[i + 1]);
    at = expr.at;
    charge(key.weight());
    result.set(std::move(key), std::move(value));
  }
  at = expr.at;
  return dict(std::move(result));
}

Value Runtime::evaluateUnary(const Expr &expr) {
  Value value = evaluate(*expr.operands[0]);
  at = expr.at;
  if (expr.kind == Expr::Kind::Not)
    return Value(!value.truthy());
  const bool minus = expr.kind == Expr::Kind::Negate;
  if (auto *d = value.get<double>())
    return Value(minus ? -*d : *d);
  if (!value.isInteger())
    fail(std::string("expected a number after '") + (minus ? "-" : "+") + "', got " +
         (value.isUndefined() ? undefinedName(value) + ", which is undefined" : value.typeName()));
  return binary(minus ? '-' : '+', Value(int64_t{0}), value);
}

Value Runtime::evaluateConcat(const Expr &expr) {
  std::string text;
  for (const ExprPtr &operand : expr.operands) {
    Value value = evaluate(*operand);
    text += value.string() ? *value.string() : toString(value);
    if (text.size() > limits.stringBytes)
      break; // string() reports it
  }
  at = expr.at;
  return string(std::move(text));
}

/// 2 is the order of numbers that have none.
static bool ordered(CompareOp op, int order) {
  switch (op) {
  case CompareOp::Less: return order < 0;
  case CompareOp::LessEqual: return order <= 0;
  case CompareOp::Greater: return order == 1;
  default: return order == 0 || order == 1;
  }
}

Value Runtime::evaluateCompare(const Expr &expr) {
  Value left = evaluate(*expr.operands[0]);
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = evaluate(*expr.operands[i + 1]);
    at = expr.at;
    bool holds = false;
    switch (expr.comparisons[i]) {
    case CompareOp::Equal: holds = isEqual(left, right); break;
    case CompareOp::NotEqual: holds = !isEqual(left, right); break;
    default: holds = ordered(expr.comparisons[i], compare(left, right)); break;
    case CompareOp::In: holds = contains(right, left); break;
    case CompareOp::NotIn: holds = !contains(right, left); break;
    }
    if (!holds)
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

/// The integer of a slice or an index: int or bool.
static bool asIndex(const Value &value, int64_t &out) {
  if (!value.isInteger())
    return false;
  BigInt big = toBigInt(value);
  out = big.toInt64().value_or(big.isNegative() ? INT64_MIN : INT64_MAX);
  return true;
}

/// A slice of a string by characters.
static std::string sliceText(const std::string &text, const std::vector<size_t> &offsets, int64_t start, int64_t stop,
                             int64_t step) {
  std::string out;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    const auto k = static_cast<size_t>(i);
    out.append(text, offsets[k], offsets[k + 1] - offsets[k]);
  }
  return out;
}

static std::vector<size_t> characterOffsets(const std::string &text) {
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); ++i)
    if (!utf8::isContinuation(text[i]))
      offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

/// Python's slice.indices for a sequence of `size`.
Value Runtime::evaluateSlice(const Expr &expr) {
  Value object = evaluate(*expr.operands[0]);
  auto bound = [&](size_t i, bool &given) -> int64_t {
    given = false;
    if (!expr.operands[i])
      return 0;
    Value value = evaluate(*expr.operands[i]);
    int64_t n = 0;
    if (value.isNone())
      return 0;
    if (!asIndex(value, n))
      fail(std::string("expected an integer in a slice, got a ") + value.typeName());
    given = true;
    return n;
  };
  bool hasStart, hasStop, hasStep;
  int64_t start = bound(1, hasStart), stop = bound(2, hasStop), step = bound(3, hasStep);
  at = expr.at;
  const List *l = object.list() && object.list()->isIndexed() ? object.list() : nullptr;
  const std::string *s = object.string();
  if (!l && !s && expr.operands[0]->kind == Expr::Kind::Constant)
    return Value::undefined("slice"); // jinja2 computes it before, by other rules
  if (!l && !s)
    fail(std::string("expected a list or string to slice, got ") + object.typeName());
  step = hasStep ? step : 1;
  if (step == 0)
    fail("expected a slice step other than 0");
  std::vector<size_t> offsets = s ? characterOffsets(*s) : std::vector<size_t>();
  charge(s ? s->size() : 0);
  const auto size = static_cast<int64_t>(s ? offsets.size() - 1 : l->items.size());
  auto clamp = [&](int64_t i) {
    i = i < 0 ? (i < -size - 1 ? -1 : i + size) : i;
    return std::clamp<int64_t>(i, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  start = hasStart ? clamp(start) : step > 0 ? 0 : size - 1;
  stop = hasStop ? clamp(stop) : step > 0 ? size : -1;
  // A step beyond the size picks one item; clamped, the sum cannot overflow.
  step = std::clamp<int64_t>(step, -size - 1, size + 1);
  if (s)
    return stringLike(object, sliceText(*s, offsets, start, stop, step));
  List picked;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
    picked.items.push_back(l->items[static_cast<size_t>(i)]);
  picked.kind = l->kind == List::Kind::Group ? List::Kind::Tuple : l->kind;
  if (l->kind == List::Kind::Range) {
    picked.start = l->start + start * l->step;
    picked.stop = l->start + stop * l->step;
    picked.step = l->step * step;
  }
  return list(std::move(picked));
}
