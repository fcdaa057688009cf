//===- FormatPercent.cpp - '%' on strings -----------------------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Format.h"

#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

std::string jinja::floatDigits(Runtime &runtime, double value, char type, int64_t precision, bool alternate) {
  if (precision > 100'000)
    runtime.fail("expected a precision of at most 100000, got " + std::to_string(precision));
  const bool capital = type >= 'A' && type <= 'Z';
  if (!std::isfinite(value))
    return std::string(std::isnan(value) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf"));
  const std::string form = std::string("%") + (alternate ? "#" : "") + ".*" + type;
  const double positive = std::abs(value);
  const int length = std::snprintf(nullptr, 0, form.c_str(), static_cast<int>(precision), positive);
  runtime.charge(static_cast<uint64_t>(length));
  std::string text(static_cast<size_t>(length), '\0');
  std::snprintf(text.data(), text.size() + 1, form.c_str(), static_cast<int>(precision), positive);
  return text;
}

std::string jinja::padded(Runtime &runtime, const std::string &head, const std::string &text, const std::string &fill,
                          char align, int64_t width) {
  const auto have = static_cast<int64_t>(countCharacters(head) + countCharacters(text));
  if (width <= have)
    return head + text;
  const int64_t missing = width - have;
  checkLength(runtime, static_cast<uint64_t>(missing));
  checkLength(runtime, static_cast<uint64_t>(missing) * fill.size());
  runtime.charge(static_cast<uint64_t>(missing) * fill.size());
  const int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string out = align == '=' ? head : "";
  for (int64_t i = 0; i < before; ++i)
    out += fill;
  out += align == '=' ? text : head + text;
  for (int64_t i = before; i < missing; ++i)
    out += fill;
  return out;
}

std::string jinja::asciiRepr(Runtime &runtime, const Value &value) {
  std::string out;
  forEachCharacter(runtime.repr(value), [&](uint32_t c, std::string_view bytes) {
    char escaped[16];
    if (c < 0x80)
      out += bytes;
    else
      out.append(escaped, static_cast<size_t>(std::snprintf(escaped, sizeof(escaped),
                                                            c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c)));
  });
  return out;
}

namespace {
class PercentFormatter {
public:
  PercentFormatter(Runtime &runtime, const Value &format, const Value &values)
      : runtime(runtime), format(*format.string()), markup(format.isMarkup()), values(values),
        tuple(values.list() && values.list()->isTuple() ? values.list() : nullptr) {}

  std::string run() {
    std::string out;
    while (at < format.size()) {
      if (format[at] != '%') {
        size_t next = std::min(format.find('%', at), format.size());
        out.append(format, at, next - at);
        at = next;
      } else {
        ++at;
        out += conversion();
      }
      checkLength(runtime, out.size());
    }
    const bool mapping = !tuple && (values.list() ? values.list()->isIndexed() : values.dict() || values.isUndefined());
    if (!mapping && used < (tuple ? tuple->items.size() : 1))
      runtime.fail("format: expected " + std::to_string(used) + " values for '" + format + "', got more");
    return out;
  }

private:
  char peek() const {
    if (at >= format.size())
      runtime.fail("format: expected a conversion after '%', got the end of '" + format + "'");
    return format[at];
  }

  Value nextValue() {
    if (keyed)
      return *keyed;
    if (used >= (tuple ? tuple->items.size() : 1))
      runtime.fail("format: expected more values for '" + format + "'");
    return tuple ? tuple->items[used++] : (++used, values);
  }

  void readKey() {
    if (peek() != '(')
      return;
    if (!values.dict())
      runtime.fail("format: expected a dict for '" + format + "', got a " + values.typeName());
    size_t start = ++at;
    for (int open = 1; open > 0; ++at)
      open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    const Value *found = values.dict()->findName(std::string_view(format).substr(start, at - start - 1));
    if (!found)
      runtime.fail("format: expected a key " + format.substr(start - 1, at - start + 1) + " in the dict, got none");
    keyed = *found;
  }

  /// A number, or '*' for the next value; `given` says whether there is one.
  int64_t readSize(bool &given) {
    given = true;
    if (peek() == '*') {
      ++at;
      return toInteger(runtime, nextValue());
    }
    int64_t n = 0;
    given = false;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at, given = true)
      if ((n = n * 10 + (format[at] - '0')) > INT32_MAX)
        runtime.fail("format: expected a size below 2^31, got more");
    return n;
  }

  std::string conversion() {
    keyed.reset();
    left = plus = space = alternate = zero = false;
    readKey();
    for (;; ++at) {
      const char c = peek();
      if (c != '-' && c != '+' && c != ' ' && c != '#' && c != '0')
        break;
      (c == '-' ? left : c == '+' ? plus : c == ' ' ? space : c == '#' ? alternate : zero) = true;
    }
    bool given;
    int64_t width = readSize(given);
    if (width < 0) {
      left = true;
      width = width == INT64_MIN ? INT64_MAX : -width;
    }
    hasPrecision = false;
    precision = 0;
    if (peek() == '.') {
      ++at;
      precision = std::max<int64_t>(readSize(given), 0);
      hasPrecision = true;
    }
    if (char c = peek(); c == 'h' || c == 'l' || c == 'L')
      ++at;
    const char type = peek();
    ++at;
    if (type == '%')
      return "%";
    if (std::string_view("sracdiuoxXeEfFgG").find(type) == std::string_view::npos)
      runtime.fail(std::string("format: expected a known conversion, got '%") + type + "'");
    return finish(type, nextValue(), width);
  }

  std::string finish(char type, const Value &value, int64_t width) {
    if (type == 's' || type == 'r' || type == 'a' || type == 'c') {
      std::string text = type == 'c' ? character(value) : spelled(type, value);
      if (hasPrecision && type != 'c')
        text.resize(offsetOf(text, static_cast<size_t>(precision)));
      return padded(runtime, "", text, " ", left ? '<' : '>', width);
    }
    std::string head, digits;
    const bool integral = std::string_view("diuoxX").find(type) != std::string_view::npos;
    const bool negative = integral ? integer(type, value, head, digits) : real(type, value, digits);
    head = (negative ? "-" : plus ? "+" : space ? " " : "") + head;
    return padded(runtime, head, digits, zero && !left ? "0" : " ", left ? '<' : zero ? '=' : '>', width);
  }

  std::string spelled(char type, const Value &value) {
    std::string text = type == 's' ? runtime.str(value) : type == 'r' ? runtime.repr(value) : asciiRepr(runtime, value);
    if (!markup)
      return text;
    return type == 's' && value.isMarkup() ? text : escaped(runtime, Value(text));
  }

  std::string character(const Value &value) {
    if (const std::string *s = value.string()) {
      if (countCharacters(*s) != 1)
        runtime.fail("format: expected one character for '%c', got " + runtime.repr(value));
      return *s;
    }
    int64_t c = toInteger(runtime, value);
    if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
      runtime.fail("format: expected a Unicode character for '%c', got " + std::to_string(c));
    std::string text;
    utf8::append(text, static_cast<uint32_t>(c));
    return text;
  }

  bool integer(char type, const Value &value, std::string &head, std::string &digits) {
    BigInt number;
    if (value.isInteger()) {
      number = toBigInt(value);
    } else if (auto *d = value.get<double>(); d && std::isfinite(*d) && std::string_view("diu").find(type) != std::string_view::npos) {
      number = BigInt::truncate(*d);
    } else {
      runtime.fail(std::string("format: expected a number for '%") + type + "', got " + value.typeName());
    }
    runtime.charge(number.bits() * number.bits() / 64);
    const bool negative = number.isNegative();
    digits = (negative ? -number : number).toString(type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10);
    if (std::string_view("diu").find(type) != std::string_view::npos && digits.size() > 4300)
      throw NoSpelling{"an integer of more than 4300 digits"};
    if (hasPrecision && static_cast<int64_t>(digits.size()) < precision)
      digits = padded(runtime, "", digits, "0", '>', precision);
    if (type == 'X')
      for (char &c : digits)
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (alternate && std::string_view("oxX").find(type) != std::string_view::npos)
      head = std::string("0") + type;
    return negative;
  }

  bool real(char type, const Value &value, std::string &digits) {
    if (!value.isNumber())
      runtime.fail(std::string("format: expected a number for '%") + type + "', got " + value.typeName());
    const double number = toDouble(value);
    if (std::isinf(number) && value.isInteger())
      runtime.fail("format: expected an integer within the range of float, got more");
    digits = floatDigits(runtime, number, type, hasPrecision ? precision : 6, alternate);
    return std::signbit(number) && !std::isnan(number);
  }

  Runtime &runtime;
  const std::string &format;
  const bool markup;
  const Value &values;
  const List *tuple;
  size_t at = 0, used = 0;
  std::optional<Value> keyed;
  bool left = false, plus = false, space = false, alternate = false, zero = false, hasPrecision = false;
  int64_t precision = 0;
};
} // namespace

Value jinja::formatPercent(Runtime &runtime, const Value &format, const Value &values) {
  return runtime.stringLike(format, PercentFormatter(runtime, format, values).run());
}
