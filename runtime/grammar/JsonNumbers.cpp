//===- JsonNumbers.cpp - numbers within bounds ------------------*- C++ -*-===//
//
// Digits are compared from the left: as long as they are those of a bound, the next one is
// held to it; once they differ, the rest is free. Numbers have at most 15 digits in
// all: then two that differ are different doubles, and a bound holds for both.
//
//===----------------------------------------------------------------------===//
#include "runtime/grammar/JsonText.h"

#include <algorithm>

namespace llmc {

namespace {

constexpr size_t kDigits = 15, kWholeDigits = 18;

/// From `least` to `most`, neither negative.
class Magnitudes {
public:
  Magnitudes(GrammarBuilder &g, NumberBound least, std::optional<NumberBound> most, bool whole)
      : g_(g), least_(std::move(least)), most_(std::move(most)), whole_(whole) {}

  Expression all() {
    std::vector<Expression> ways;
    const size_t longest = std::min(whole_ ? kWholeDigits : kDigits, most_ ? most_->integer.size() : SIZE_MAX);
    for (length_ = least_.integer.size(); length_ <= longest; ++length_)
      ways.push_back(integerDigits(0, length_ == least_.integer.size(), most_ && length_ == most_->integer.size()));
    return g_.choice(std::move(ways));
  }

private:
  size_t fractionDigits() const { return whole_ || length_ >= kDigits ? 0 : kDigits - length_; }
  Expression digits(char first, char last) { return g_.character({{uint32_t(first), uint32_t(last)}}); }
  static char digitOf(const std::string &digits, size_t at) { return at < digits.size() ? digits[at] : '0'; }

  /// One digit between what is left of the bounds that still hold, then `rest` of those that hold on.
  template <typename Rest> Expression digit(char low, char high, bool tightLow, bool tightHigh, Rest rest) {
    std::vector<Expression> ways;
    if (tightLow && tightHigh && low == high)
      ways.push_back(g_.sequence({digits(low, low), rest(true, true)}));
    if (low > high || (tightLow && tightHigh && low == high))
      return g_.choice(std::move(ways));
    if (tightLow)
      ways.push_back(g_.sequence({digits(low, low), rest(true, false)}));
    if (tightHigh)
      ways.push_back(g_.sequence({digits(high, high), rest(false, true)}));
    if (const char from = char(low + tightLow), to = char(high - tightHigh); from <= to)
      ways.push_back(g_.sequence({digits(from, to), rest(false, false)}));
    return g_.choice(std::move(ways));
  }

  Expression integerDigits(size_t at, bool tightLow, bool tightHigh) {
    if (at == length_)
      return fraction(0, tightLow, tightHigh);
    const char least = at == 0 && length_ > 1 ? '1' : '0';
    if (at > 0 && !tightLow && !tightHigh)
      return g_.sequence({g_.repeat(digits('0', '9'), uint32_t(length_ - at), uint32_t(length_ - at)), fraction(0, false, false)});
    return digit(tightLow ? least_.integer[at] : least, tightHigh ? most_->integer[at] : '9', tightLow, tightHigh,
                 [&](bool low, bool high) { return integerDigits(at + 1, low, high); });
  }

  // May the number end before fraction digit `at`?
  bool mayEnd(size_t at, bool tightLow, bool tightHigh) const {
    if (tightLow && (at < least_.fraction.size() || least_.strict))
      return false;
    return !tightHigh || at < most_->fraction.size() || !most_->strict;
  }

  Expression fraction(size_t at, bool tightLow, bool tightHigh) {
    const size_t left = fractionDigits() - std::min(at, fractionDigits());
    const bool ends = mayEnd(at, tightLow, tightHigh);
    if (left == 0)
      return ends ? g_.literal("") : g_.choice({});
    Expression more = g_.literal("");
    if (!tightLow && !tightHigh)
      more = g_.repeat(digits('0', '9'), 1, uint32_t(left));
    else
      more = digit(tightLow ? digitOf(least_.fraction, at) : '0', tightHigh ? digitOf(most_->fraction, at) : '9', tightLow, tightHigh,
                   [&](bool low, bool high) { return fraction(at + 1, low, high); });
    if (at == 0)
      more = g_.sequence({g_.literal("."), more});
    return ends ? g_.optional(more) : more;
  }

  GrammarBuilder &g_;
  NumberBound least_;
  std::optional<NumberBound> most_;
  bool whole_;
  size_t length_ = 0; // digits before the point
};

} // namespace

Expression numberRange(GrammarBuilder &g, const std::optional<NumberBound> &least, const std::optional<NumberBound> &most, bool whole) {
  std::vector<Expression> ways;
  NumberBound zero;
  if (!most || !most->negative)
    ways.push_back(Magnitudes(g, least && !least->negative ? *least : zero, most, whole).all());
  zero.strict = true; // -0 is left out
  if (!least || least->negative)
    ways.push_back(g.sequence({g.literal("-"), Magnitudes(g, most && most->negative ? *most : zero, least, whole).all()}));
  return g.choice(std::move(ways));
}

} // namespace llmc
