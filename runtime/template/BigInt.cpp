#include "runtime/template/BigInt.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace llmc::jinja;

using Limbs = std::vector<uint32_t>;

BigInt::BigInt(int64_t value) : negative(value < 0) {
  uint64_t magnitude = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  for (; magnitude; magnitude >>= 32)
    limbs.push_back(static_cast<uint32_t>(magnitude));
}

void BigInt::trim() {
  while (!limbs.empty() && limbs.back() == 0)
    limbs.pop_back();
  negative &= !limbs.empty();
  if (limbs.size() * 32 > kMaxBits)
    throw TooLarge();
}

size_t BigInt::bits() const {
  return limbs.empty() ? 0 : limbs.size() * 32 - static_cast<size_t>(std::countl_zero(limbs.back()));
}

static int compareLimbs(const Limbs &a, const Limbs &b) {
  if (a.size() != b.size())
    return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i])
      return a[i] < b[i] ? -1 : 1;
  return 0;
}

static Limbs addLimbs(const Limbs &a, const Limbs &b) {
  Limbs sum;
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()) || carry; ++i) {
    carry += uint64_t{i < a.size() ? a[i] : 0} + (i < b.size() ? b[i] : 0);
    sum.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  return sum;
}

/// a - b, where a >= b.
static Limbs subtractLimbs(const Limbs &a, const Limbs &b) {
  Limbs difference = a;
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t digit = int64_t{a[i]} - (i < b.size() ? b[i] : 0) + borrow;
    difference[i] = static_cast<uint32_t>(digit);
    borrow = digit < 0 ? -1 : 0;
  }
  return difference;
}

/// Divides in place; returns the rest.
static uint32_t divideSmall(Limbs &limbs, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs.size(); i-- > 0;) {
    rest = rest << 32 | limbs[i];
    limbs[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  while (!limbs.empty() && limbs.back() == 0)
    limbs.pop_back();
  return static_cast<uint32_t>(rest);
}

BigInt BigInt::truncate(double value) {
  int exponent = 0;
  double fraction = std::frexp(std::abs(std::trunc(value)), &exponent); // 0.5 <= fraction < 1
  const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  BigInt result(exponent <= 53 ? mantissa >> (53 - exponent) : mantissa);
  for (int shift = exponent - 53; shift > 0; shift -= 32)
    result = result * BigInt(int64_t{1} << std::min(shift, 32));
  result.negative = value < 0 && !result.isZero();
  return result;
}

std::optional<BigInt> BigInt::parse(std::string_view digits, unsigned base) {
  BigInt result;
  for (char c : digits) {
    unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                     : c >= 'a' && c <= 'z' ? static_cast<unsigned>(c - 'a') + 10
                     : c >= 'A' && c <= 'Z' ? static_cast<unsigned>(c - 'A') + 10
                                            : 99;
    if (digit >= base)
      return std::nullopt;
    uint64_t carry = digit;
    for (uint32_t &limb : result.limbs) {
      carry += uint64_t{limb} * base;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry)
      result.limbs.push_back(static_cast<uint32_t>(carry));
    result.trim();
  }
  return digits.empty() ? std::nullopt : std::optional<BigInt>(result);
}

std::optional<int64_t> BigInt::toInt64() const {
  if (limbs.size() > 2)
    return std::nullopt;
  uint64_t magnitude = 0;
  for (size_t i = limbs.size(); i-- > 0;)
    magnitude = magnitude << 32 | limbs[i];
  if (magnitude > uint64_t{INT64_MAX} + negative)
    return std::nullopt;
  return static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
}

double BigInt::toDouble() const {
  const size_t size = bits();
  if (size > 1024)
    return negative ? -HUGE_VAL : HUGE_VAL;
  // The top 64 bits, the last of them "any bit below"; converting them rounds once.
  const size_t drop = size > 64 ? size - 64 : 0;
  uint64_t top = 0;
  for (size_t i = size; i-- > drop;)
    top = top << 1 | (limbs[i / 32] >> (i % 32) & 1);
  for (size_t i = 0; i < drop; ++i)
    if (limbs[i / 32] >> (i % 32) & 1) {
      top |= 1;
      break;
    }
  double value = std::ldexp(static_cast<double>(top), static_cast<int>(drop));
  return negative ? -value : value;
}

std::string BigInt::toString(unsigned base) const {
  std::string text;
  for (Limbs rest = limbs; !rest.empty();) {
    uint32_t digit = divideSmall(rest, base);
    text += static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  text += text.empty() ? "0" : negative ? "-" : "";
  std::reverse(text.begin(), text.end());
  return text;
}

BigInt BigInt::operator-() const {
  BigInt result = *this;
  result.negative = !negative && !isZero();
  return result;
}

namespace llmc::jinja {

BigInt operator+(const BigInt &a, const BigInt &b) {
  BigInt result;
  if (a.negative == b.negative) {
    result.limbs = addLimbs(a.limbs, b.limbs);
    result.negative = a.negative;
  } else if (compareLimbs(a.limbs, b.limbs) >= 0) {
    result.limbs = subtractLimbs(a.limbs, b.limbs);
    result.negative = a.negative;
  } else {
    result.limbs = subtractLimbs(b.limbs, a.limbs);
    result.negative = b.negative;
  }
  result.trim();
  return result;
}

BigInt operator-(const BigInt &a, const BigInt &b) { return a + -b; }

BigInt operator*(const BigInt &a, const BigInt &b) {
  BigInt result;
  if (a.bits() + b.bits() > BigInt::kMaxBits + 1)
    throw BigInt::TooLarge();
  result.limbs.assign(a.limbs.size() + b.limbs.size(), 0);
  for (size_t i = 0; i < a.limbs.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs.size() || carry; ++j) {
      carry += result.limbs[i + j] + uint64_t{a.limbs[i]} * (j < b.limbs.size() ? b.limbs[j] : 0);
      result.limbs[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  result.negative = a.negative != b.negative;
  result.trim();
  return result;
}

} // namespace llmc::jinja

/// Schoolbook division, a bit at a time: numbers are short.
void BigInt::floorDivide(const BigInt &a, const BigInt &b, BigInt &quotient, BigInt &rest) {
  BigInt q, r;
  q.limbs.assign(a.limbs.size(), 0);
  for (size_t i = a.bits(); i-- > 0;) {
    uint32_t carry = a.limbs[i / 32] >> (i % 32) & 1;
    for (uint32_t &limb : r.limbs) {
      uint32_t out = limb >> 31;
      limb = limb << 1 | carry;
      carry = out;
    }
    if (carry)
      r.limbs.push_back(carry);
    if (compareLimbs(r.limbs, b.limbs) >= 0) {
      r.limbs = subtractLimbs(r.limbs, b.limbs);
      while (!r.limbs.empty() && r.limbs.back() == 0)
        r.limbs.pop_back();
      q.limbs[i / 32] |= 1u << (i % 32);
    }
  }
  q.negative = a.negative != b.negative;
  q.trim();
  r.negative = a.negative;
  r.trim();
  if (!r.isZero() && a.negative != b.negative) {
    q = q - BigInt(1);
    r = r + b;
  }
  quotient = std::move(q);
  rest = std::move(r);
}

int BigInt::compare(const BigInt &a, const BigInt &b) {
  if (a.negative != b.negative)
    return a.negative ? -1 : 1;
  int order = compareLimbs(a.limbs, b.limbs);
  return a.negative ? -order : order;
}
