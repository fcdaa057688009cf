//===- BigInt.h - integers beyond 64 bits ------------------------*- C++ -*-===//
//
// Python's int has no bound; this one ends at kMaxBits, well beyond the 4300
// digits that Python itself writes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TEMPLATE_BIGINT_H
#define LLMC_RUNTIME_TEMPLATE_BIGINT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace llmc::jinja {

class BigInt {
public:
  static constexpr size_t kMaxBits = 1 << 15;
  /// Thrown by operations whose result would be larger.
  struct TooLarge {};

  BigInt() = default;
  explicit BigInt(int64_t value);
  /// The integer part of a finite `value`.
  static BigInt truncate(double value);
  /// Digits of `base` (2 to 36) without sign or separators; null if there are others.
  static std::optional<BigInt> parse(std::string_view digits, unsigned base);

  bool isNegative() const { return negative; }
  bool isZero() const { return limbs.empty(); }
  bool isOdd() const { return !limbs.empty() && (limbs[0] & 1); }
  size_t bits() const;
  std::optional<int64_t> toInt64() const;
  /// Correctly rounded; infinite beyond the range of double.
  double toDouble() const;
  std::string toString(unsigned base = 10) const;

  BigInt operator-() const;
  friend BigInt operator+(const BigInt &a, const BigInt &b);
  friend BigInt operator-(const BigInt &a, const BigInt &b);
  friend BigInt operator*(const BigInt &a, const BigInt &b);
  /// Towards minus infinity, as Python's // and %; `b` must not be zero.
  static void floorDivide(const BigInt &a, const BigInt &b, BigInt &quotient, BigInt &rest);
  /// <0, 0, >0.
  static int compare(const BigInt &a, const BigInt &b);

private:
  void trim();

  bool negative = false;
  std::vector<uint32_t> limbs; // least significant first, no zeros at the end
};

} // namespace llmc::jinja

#endif // LLMC_RUNTIME_TEMPLATE_BIGINT_H
