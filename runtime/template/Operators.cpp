//===- Operators.cpp - order and arithmetic as Python has them -------------===//
#include "runtime/template/Filters.h"

#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

/// Sets and views of dicts: a subset is less, and 2 is the order of those that
/// are none of each other.
static int compareSets(const List &a, const List &b) {
  auto within = [](const List &inner, const List &outer) {
    return std::all_of(inner.items.begin(), inner.items.end(), [&](const Value &item) {
      return std::any_of(outer.items.begin(), outer.items.end(), [&](const Value &other) { return equal(item, other); });
    });
  };
  const bool less = within(a, b), more = within(b, a);
  return less && more ? 0 : less ? -1 : more ? 1 : 2;
}

int Runtime::compare(const Value &a, const Value &b) {
  charge(std::min(a.weight(), b.weight()));
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b);
  if (a.isString() && b.isString()) {
    int order = a.string()->compare(*b.string()); // UTF-8 sorts as code points do
    return order < 0 ? -1 : order > 0;
  }
  const List *l = a.list(), *m = b.list();
  if (l && m && ((l->kind == List::Kind::List && m->kind == List::Kind::List) || (l->isTuple() && m->isTuple()))) {
    const auto &p = l->items, &q = m->items;
    for (size_t k = 0; k < std::min(p.size(), q.size()); ++k)
      if (!equal(p[k], q[k]))
        return compare(p[k], q[k]);
    return p.size() < q.size() ? -1 : p.size() > q.size();
  }
  if (l && m && l->isSetLike() && m->isSetLike()) {
    charge(l->items.size() * m->items.size() * 16);
    return compareSets(*l, *m);
  }
  for (const Value *side : {&a, &b})
    if (side->isUndefined())
      fail("expected " + undefinedName(*side) + " to be defined where it is compared");
  fail(std::string("expected two values that can be ordered, got ") + a.typeName() + " and " + b.typeName());
}

static Value power(Runtime &runtime, const Value &a, const Value &b) {
  const BigInt exponent = toBigInt(b);
  BigInt base = toBigInt(a), result(1);
  if (exponent.isNegative()) {
    if (base.isZero())
      runtime.fail("expected a base other than 0 with a negative exponent");
    return Value(std::pow(toDouble(a), toDouble(b)));
  }
  if (base.bits() <= 1) // 0, 1, -1
    return runtime.integer(base.isZero() ? BigInt(exponent.isZero()) : base.isNegative() && !exponent.isOdd() ? BigInt(1) : base);
  auto left = exponent.toInt64();
  if (!left || *left > static_cast<int64_t>(BigInt::kMaxBits))
    throw BigInt::TooLarge();
  for (int64_t n = *left; n > 0; n /= 2) {
    runtime.charge(base.bits() * base.bits() / 256);
    if (n % 2)
      result = result * base;
    if (n > 1)
      base = base * base;
  }
  return runtime.integer(result);
}

Value Runtime::integer(const BigInt &i) {
  charge(i.bits() / 8);
  return Value::integer(i);
}

/// Correctly rounded quotient, as Python's int / int.
static double trueDivide(Runtime &runtime, const BigInt &a, const BigInt &b) {
  if (a.bits() <= 53 && b.bits() <= 53)
    return a.toDouble() / b.toDouble();
  // Scale so that the quotient has 64 bits or more, with a last bit for the rest.
  int64_t shift = 66 - static_cast<int64_t>(a.bits()) + static_cast<int64_t>(b.bits());
  auto shifted = [](BigInt x, int64_t by) {
    for (; by > 0; by -= 32)
      x = x * BigInt(int64_t{1} << std::min<int64_t>(by, 32));
    return x;
  };
  shift = std::max<int64_t>(shift, 0);
  BigInt quotient, rest;
  BigInt numerator = shifted(a.isNegative() ? -a : a, shift), denominator = b.isNegative() ? -b : b;
  BigInt::floorDivide(numerator, denominator, quotient, rest);
  quotient = quotient + quotient + BigInt(!rest.isZero());
  double value = std::ldexp(quotient.bits() <= 1024 ? quotient.toDouble() : HUGE_VAL, -1);
  if (shift > 0)
    value = std::ldexp(value, -static_cast<int>(shift));
  if (std::isinf(value))
    runtime.fail("expected a quotient within the range of float, got more");
  return a.isNegative() != b.isNegative() ? -value : value;
}

static Value bigOp(Runtime &runtime, char op, const Value &left, const Value &right) {
  const BigInt a = toBigInt(left), b = toBigInt(right);
  runtime.charge((a.bits() / 32 + 1) * (b.bits() / 32 + 1) / (op == '+' || op == '-' ? 32 : 1));
  switch (op) {
  case '+': return runtime.integer(a + b);
  case '-': return runtime.integer(a - b);
  case '*': return runtime.integer(a * b);
  case 'p': return power(runtime, left, right);
  default: break;
  }
  if (b.isZero())
    runtime.fail("expected a divisor other than 0");
  if (op == '/')
    return Value(trueDivide(runtime, a, b));
  BigInt quotient, rest;
  BigInt::floorDivide(a, b, quotient, rest);
  return runtime.integer(op == 'f' ? quotient : rest);
}

/// 64 bits where that is enough.
static Value integerOp(Runtime &runtime, char op, const Value &left, const Value &right) {
  auto small = [](const Value &v, int64_t &out) {
    if (auto *flag = v.get<bool>())
      return out = *flag, true;
    auto *i = v.get<int64_t>();
    return i ? (out = *i, true) : false;
  };
  int64_t a, b, result;
  if (small(left, a) && small(right, b)) {
    if ((op == '+' && !__builtin_add_overflow(a, b, &result)) || (op == '-' && !__builtin_sub_overflow(a, b, &result)) ||
        (op == '*' && !__builtin_mul_overflow(a, b, &result)))
      return Value(result);
    if ((op == 'f' || op == '%') && b != 0 && b != -1) {
      int64_t quotient = a / b, rest = a % b;
      if (rest && (rest < 0) != (b < 0))
        --quotient, rest += b;
      return Value(op == 'f' ? quotient : rest);
    }
  }
  return bigOp(runtime, op, left, right);
}

/// Python's float % and //, which agree with each other.
static double floatModulo(double a, double b, double &quotient) {
  double rest = std::fmod(a, b);
  double div = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      div -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (div != 0) {
    quotient = std::floor(div);
    if (div - quotient > 0.5)
      quotient += 1;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
  return rest;
}

static Value floatPower(Runtime &runtime, double a, double b) {
  if (a == 0 && b < 0)
    runtime.fail("expected a base other than 0 with a negative exponent");
  if (std::isfinite(a) && a < 0 && std::isfinite(b) && b != std::trunc(b))
    runtime.fail("expected a power that is no complex number");
  double value = std::pow(a, b);
  if (std::isinf(value) && std::isfinite(a) && std::isfinite(b))
    runtime.fail("expected a power within the range of float, got more");
  return Value(value);
}

static Value floatOp(Runtime &runtime, char op, const Value &left, const Value &right) {
  const double a = toDouble(left), b = toDouble(right);
  if ((std::isinf(a) && !left.is<double>()) || (std::isinf(b) && !right.is<double>()))
    runtime.fail("expected an integer within the range of float, got more");
  if ((op == '/' || op == 'f' || op == '%') && b == 0)
    runtime.fail("expected a divisor other than 0");
  double quotient = 0;
  switch (op) {
  case '+': return Value(a + b);
  case '-': return Value(a - b);
  case '*': return Value(a * b);
  case '/': return Value(a / b);
  case 'p': return floatPower(runtime, a, b);
  default: break;
  }
  double rest = floatModulo(a, b, quotient);
  return Value(op == 'f' ? quotient : rest);
}

/// Python's repetition of a string or list.
static Value repeat(Runtime &runtime, const Value &what, const Value &count) {
  const BigInt given = toBigInt(count);
  const int64_t times = given.isNegative() ? 0 : given.toInt64().value_or(INT64_MAX);
  const Limits &limits = runtime.bounds();
  if (auto *s = what.string()) {
    if (!s->empty() && static_cast<uint64_t>(times) > limits.stringBytes / s->size())
      runtime.fail("expected strings of at most " + std::to_string(limits.stringBytes) + " bytes, got more");
    std::string text;
    for (int64_t i = 0; i < times && !s->empty(); ++i)
      text += *s;
    return runtime.stringLike(what, std::move(text));
  }
  const auto &items = what.list()->items;
  if (!items.empty() && static_cast<uint64_t>(times) > limits.listItems / items.size())
    runtime.fail("expected lists of at most " + std::to_string(limits.listItems) + " items, got more");
  std::vector<Value> all;
  for (int64_t i = 0; i < times && !items.empty(); ++i)
    all.insert(all.end(), items.begin(), items.end());
  return runtime.list(std::move(all), what.list()->isTuple());
}

static bool repeats(const Value &value) {
  return value.isString() || (value.list() && (value.list()->kind == List::Kind::List || value.list()->isTuple()));
}

Value Runtime::binary(char op, const Value &a, const Value &b) {
  if (a.isNumber() && b.isNumber())
    return a.isInteger() && b.isInteger() ? integerOp(*this, op, a, b) : floatOp(*this, op, a, b);
  if (op == '%' && a.isString())
    return formatPercent(*this, a, b);
  if (op == '-' && isSetDifference(a, b))
    return setDifference(*this, a, b);
  for (const Value *side : {&a, &b})
    if (side->isUndefined())
      fail("expected " + undefinedName(*side) + " to be defined where it is computed with");
  if (op == '+' && a.isString() && b.isString()) {
    if (a.isMarkup() || b.isMarkup()) // the plain one is escaped
      return stringLike(a.isMarkup() ? a : b, escaped(*this, a) + escaped(*this, b));
    return string(*a.string() + *b.string());
  }
  const List *l = a.list(), *m = b.list();
  if (op == '+' && repeats(a) && repeats(b) && l && m && l->isTuple() == m->isTuple()) {
    std::vector<Value> all = iterate(a), more = iterate(b);
    all.insert(all.end(), more.begin(), more.end());
    return list(std::move(all), l->isTuple());
  }
  if (op == '*' && repeats(a) && b.isInteger())
    return repeat(*this, a, b);
  if (op == '*' && repeats(b) && a.isInteger())
    return repeat(*this, b, a);
  const std::string shown = op == 'f' ? "//" : op == 'p' ? "**" : std::string(1, op);
  fail("expected operands that '" + shown + "' can join, got " + a.typeName() + " and " + b.typeName());
}
