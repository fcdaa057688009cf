//===- Operators.cpp - order and arithmetic as Python has them -------------===//
#include "runtime/template/Interpreter.h"

#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

static bool asInteger(const Value &value, int64_t &out) {
  if (auto *b = value.get<bool>())
    return out = *b, true;
  if (auto *i = value.get<int64_t>())
    return out = *i, true;
  return false;
}

static bool asDouble(const Value &value, double &out) {
  int64_t i;
  if (asInteger(value, i))
    return out = static_cast<double>(i), true;
  if (auto *d = value.get<double>())
    return out = *d, true;
  return false;
}

int Runtime::compare(const Value &a, const Value &b) {
  charge(std::min(a.weight(), b.weight()));
  int64_t i, j;
  double x, y;
  if (asInteger(a, i) && asInteger(b, j))
    return i < j ? -1 : i > j;
  if (asDouble(a, x) && asDouble(b, y))
    return x < y ? -1 : x > y;
  if (a.string() && b.string()) {
    int order = a.string()->compare(*b.string());
    return order < 0 ? -1 : order > 0;
  }
  if (a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    const auto &p = a.list()->items, &q = b.list()->items;
    for (size_t k = 0; k < std::min(p.size(), q.size()); ++k)
      if (!equal(p[k], q[k]))
        return compare(p[k], q[k]);
    return p.size() < q.size() ? -1 : p.size() > q.size();
  }
  fail(std::string("expected two values that can be ordered, got ") + a.typeName() + " and " + b.typeName());
}

static Value floorModulo(Runtime &runtime, char op, int64_t a, int64_t b) {
  if (b == 0)
    runtime.fail("expected a divisor other than 0");
  if (b == -1) { // INT64_MIN / -1 overflows
    int64_t negated;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated))
      runtime.fail("expected integers below 2^63, got more");
    return Value(op == 'f' ? negated : int64_t{0});
  }
  int64_t quotient = a / b, rest = a % b;
  if (rest && (rest < 0) != (b < 0))
    --quotient, rest += b;
  return Value(op == 'f' ? quotient : rest);
}

static Value integerOp(Runtime &runtime, char op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
  case '+': overflow = __builtin_add_overflow(a, b, &result); break;
  case '-': overflow = __builtin_sub_overflow(a, b, &result); break;
  case '*': overflow = __builtin_mul_overflow(a, b, &result); break;
  case '/':
    if (b == 0)
      runtime.fail("expected a divisor other than 0");
    return Value(static_cast<double>(a) / static_cast<double>(b));
  case 'p':
    if (b < 0)
      return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    result = 1;
    if (a == 0 || a == 1 || a == -1) {
      result = b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a;
      break;
    }
    for (int64_t k = 0; k < b && !overflow; ++k)
      overflow = __builtin_mul_overflow(result, a, &result);
    break;
  default:
    return floorModulo(runtime, op, a, b);
  }
  if (overflow)
    runtime.fail("expected integers below 2^63, got more");
  return Value(result);
}

static Value floatOp(Runtime &runtime, char op, double a, double b) {
  if ((op == '/' || op == 'f' || op == '%') && b == 0)
    runtime.fail("expected a divisor other than 0");
  switch (op) {
  case '+': return Value(a + b);
  case '-': return Value(a - b);
  case '*': return Value(a * b);
  case '/': return Value(a / b);
  case 'f': return Value(std::floor(a / b));
  case 'p': return Value(std::pow(a, b));
  default: {
    double rest = std::fmod(a, b);
    return Value(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
  }
}

/// Python's repetition of a string or list.
static Value repeat(Runtime &runtime, const Value &what, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const Limits &limits = runtime.bounds();
  if (auto *s = what.string()) {
    if (!s->empty() && static_cast<uint64_t>(times) > limits.stringBytes / s->size())
      runtime.fail("expected strings of at most " + std::to_string(limits.stringBytes) + " bytes, got more");
    std::string text;
    for (int64_t i = 0; i < times && !s->empty(); ++i)
      text += *s;
    return runtime.string(std::move(text));
  }
  const auto &items = what.list()->items;
  if (!items.empty() && static_cast<uint64_t>(times) > limits.listItems / items.size())
    runtime.fail("expected lists of at most " + std::to_string(limits.listItems) + " items, got more");
  std::vector<Value> all;
  for (int64_t i = 0; i < times && !items.empty(); ++i)
    all.insert(all.end(), items.begin(), items.end());
  return runtime.list(std::move(all), what.list()->tuple);
}

Value Runtime::binary(char op, const Value &a, const Value &b) {
  int64_t i, j;
  double x, y;
  if (asInteger(a, i) && asInteger(b, j))
    return integerOp(*this, op, i, j);
  if (asDouble(a, x) && asDouble(b, y))
    return floatOp(*this, op, x, y);
  for (const Value *side : {&a, &b})
    if (side->isUndefined())
      fail("expected " + undefinedName(*side) + " to be defined where it is computed with");
  if (op == '+' && a.string() && b.string())
    return string(*a.string() + *b.string());
  if (op == '+' && a.list() && b.list() && a.typeName() == b.typeName() && !a.list()->lazy) {
    std::vector<Value> all = iterate(a), more = iterate(b);
    all.insert(all.end(), more.begin(), more.end());
    return list(std::move(all), a.list()->tuple);
  }
  if (op == '*' && (a.string() || a.list()) && asInteger(b, j))
    return repeat(*this, a, j);
  if (op == '*' && (b.string() || b.list()) && asInteger(a, i))
    return repeat(*this, b, i);
  if (op == '%' && a.string())
    return string(formatPercent(*this, *a.string(), b.list() && b.list()->tuple ? b.list()->items : std::vector<Value>{b}));
  const std::string shown = op == 'f' ? "//" : op == 'p' ? "**" : std::string(1, op);
  fail("expected operands that '" + shown + "' can join, got " + a.typeName() + " and " + b.typeName());
}
