//===- Format.cpp - str.format and format() ---------------------------------===//
#include "runtime/template/Format.h"

#include "runtime/template/Characters.h"

#include <cmath>

using namespace llmc;
using namespace llmc::jinja;

//===----------------------------------------------------------------------===//
// format(value, specification)
//===----------------------------------------------------------------------===//

namespace {
struct Specification {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0, grouping = 0;
  bool alternate = false, noNegativeZero = false, zero = false, hasSign = false;
  int64_t width = -1, precision = -1;
};

class SpecificationReader {
public:
  SpecificationReader(Runtime &runtime, const std::string &text) : runtime(runtime), text(text) {}

  Specification run() {
    Specification spec;
    readAlign(spec);
    if (char c = peek(); c == '+' || c == '-' || c == ' ') {
      spec.sign = c;
      spec.hasSign = true;
      ++at;
    }
    spec.noNegativeZero = skip('z');
    spec.alternate = skip('#');
    if (peek() == '0' && !filled) { // with a fill of its own, a zero belongs to the width
      ++at;
      spec.zero = true;
      spec.fill = "0";
      if (!spec.align)
        spec.align = '=', defaulted = true;
    }
    spec.width = readNumber();
    if (char c = peek(); c == ',' || c == '_') {
      spec.grouping = c;
      ++at;
    }
    if (skip('.') && (spec.precision = readNumber()) < 0)
      bad();
    if (at < text.size())
      spec.type = text[at++];
    if (at != text.size())
      bad();
    return spec;
  }

  bool defaulted = false; // the alignment comes from the zero

private:
  [[noreturn]] void bad() const { runtime.fail("format: expected a valid format specification, got '" + text + "'"); }
  char peek() const { return at < text.size() ? text[at] : '\0'; }
  bool skip(char c) { return peek() == c ? (++at, true) : false; }
  static bool isAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

  void readAlign(Specification &spec) {
    if (text.empty())
      return;
    const size_t n = utf8::decode(text).length;
    if (n < text.size() && isAlign(text[n])) {
      spec.fill = text.substr(0, n);
      spec.align = text[n];
      at = n + 1;
      filled = true;
    } else if (isAlign(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }

  int64_t readNumber() {
    int64_t n = -1;
    for (; peek() >= '0' && peek() <= '9'; ++at)
      if ((n = std::max<int64_t>(n, 0) * 10 + (peek() - '0')) > INT32_MAX)
        runtime.fail("format: expected a size below 2^31, got more");
    return n;
  }

  Runtime &runtime;
  const std::string &text;
  size_t at = 0;
  bool filled = false;
};

class ValueFormatter {
public:
  ValueFormatter(Runtime &runtime, const Value &value, const std::string &text) : runtime(runtime), value(value), text(text) {}

  std::string run() {
    if (text.empty())
      return runtime.str(value);
    if (!value.isString() && !value.isNumber())
      bad("no specification for this type");
    SpecificationReader reader(runtime, text);
    spec = reader.run();
    if (value.isString())
      return string(reader.defaulted);
    static constexpr std::string_view real = "eEfFgG%";
    if (value.isInteger() && (!spec.type || real.find(spec.type) == std::string_view::npos))
      return integer();
    return number(toDouble(value));
  }

private:
  [[noreturn]] void bad(const char *why) const {
    runtime.fail(std::string("format: expected ") + why + ", got '" + text + "' for a " + value.typeName());
  }

  std::string string(bool defaulted) {
    if (spec.type && spec.type != 's')
      bad("a known type");
    if (spec.hasSign || spec.noNegativeZero || spec.alternate || spec.grouping || (spec.align == '=' && !defaulted))
      bad("options that a string can have");
    std::string shown = *value.string();
    if (spec.precision >= 0)
      shown.resize(offsetOf(shown, static_cast<size_t>(spec.precision)));
    return padded(runtime, "", shown, spec.fill, spec.align && !defaulted ? spec.align : '<', spec.width);
  }

  std::string integer() {
    const BigInt given = toBigInt(value);
    const unsigned base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : spec.type == 'x' || spec.type == 'X' ? 16 : 10;
    if (spec.type && std::string_view("bcdoxXn").find(spec.type) == std::string_view::npos)
      bad("a known type");
    if (spec.precision >= 0 || spec.noNegativeZero)
      bad("options that an integer can have");
    if (spec.grouping && (spec.type == 'c' || spec.type == 'n' || (spec.grouping == ',' && base != 10)))
      bad("no separator here");
    if (spec.type == 'c')
      return character(given);
    runtime.charge(given.bits() * given.bits() / 64);
    std::string digits = (given.isNegative() ? -given : given).toString(base);
    if (base == 10 && digits.size() > 4300)
      throw NoSpelling{"an integer of more than 4300 digits"};
    if (spec.type == 'X')
      for (char &c : digits)
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string head = signOf(given.isNegative());
    if (spec.alternate && base != 10)
      head += std::string("0") + spec.type;
    return finish(head, digits, "", base == 10 ? 3 : 4);
  }

  std::string character(const BigInt &given) {
    if (spec.hasSign || spec.alternate)
      bad("no sign with a character");
    auto c = given.toInt64();
    if (!c || *c < 0 || *c > 0x10FFFF || (*c >= 0xD800 && *c <= 0xDFFF))
      bad("a Unicode character");
    std::string shown;
    utf8::append(shown, static_cast<uint32_t>(*c));
    return padded(runtime, "", shown, spec.fill, spec.align ? spec.align : '<', spec.width);
  }

  std::string signOf(bool negative) const {
    return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  }

  std::string number(double given) {
    if (std::isinf(given) && value.isInteger())
      bad("an integer within the range of float");
    if (spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos)
      bad("a known type");
    if (spec.grouping && spec.type == 'n')
      bad("no separator here");
    std::string digits = realDigits(given);
    bool negative = std::signbit(given) && !std::isnan(given);
    if (spec.noNegativeZero && digits.find_first_of("123456789ni") == std::string::npos)
      negative = false;
    size_t end = digits.find_first_not_of("0123456789");
    std::string tail = end == std::string::npos ? "" : digits.substr(end);
    return finish(signOf(negative), digits.substr(0, end), tail, 3);
  }

  std::string realDigits(double given) {
    const int64_t precision = spec.precision;
    switch (spec.type) {
    case '%':
      return floatDigits(runtime, given * 100, 'f', precision < 0 ? 6 : precision, spec.alternate) + "%";
    case 0:
      break;
    case 'n':
      return floatDigits(runtime, given, 'g', precision < 0 ? 6 : precision, spec.alternate);
    default:
      return floatDigits(runtime, given, spec.type, precision < 0 ? 6 : precision, spec.alternate);
    }
    if (!std::isfinite(given))
      return floatDigits(runtime, given, 'g', 6, false);
    if (precision < 0)
      return floatRepr(std::abs(given));
    // As 'g', but the fixed notation has a digit behind its point, and the
    // exponential one begins a digit earlier.
    const int64_t significant = std::max<int64_t>(precision, 1);
    std::string exponential = floatDigits(runtime, given, 'e', significant - 1, false);
    const int exponent = std::atoi(exponential.c_str() + exponential.find('e') + 1);
    if (exponent < -4 || exponent >= significant - 1) {
      std::string shown = floatDigits(runtime, given, 'e', significant - 1, spec.alternate);
      size_t e = shown.find('e');
      std::string mantissa = shown.substr(0, e);
      if (!spec.alternate && mantissa.find('.') != std::string::npos) {
        mantissa.resize(mantissa.find_last_not_of('0') + 1);
        if (mantissa.back() == '.')
          mantissa.pop_back();
      }
      return mantissa + shown.substr(e);
    }
    std::string shown = floatDigits(runtime, given, 'g', significant, spec.alternate);
    return shown.find('.') == std::string::npos ? shown + ".0" : shown;
  }

  /// Separators, and zeros up to the width where they are asked for.
  std::string finish(const std::string &head, std::string digits, const std::string &tail, size_t group) {
    const bool zeros = spec.fill == "0" && (spec.align == '=');
    if (spec.grouping) {
      const int64_t room = zeros ? spec.width - static_cast<int64_t>(head.size() + tail.size()) : 0;
      if (room > 0)
        checkLength(runtime, static_cast<uint64_t>(room));
      std::string grouped;
      size_t count = 0;
      for (size_t i = digits.size(); i > 0 || static_cast<int64_t>(grouped.size()) < room;) {
        if (count && count % group == 0)
          grouped += spec.grouping;
        grouped += i > 0 ? digits[--i] : '0';
        ++count;
      }
      digits.assign(grouped.rbegin(), grouped.rend());
    }
    return padded(runtime, head, digits + tail, spec.fill, spec.align ? spec.align : '>', spec.width);
  }

  Runtime &runtime;
  const Value &value;
  const std::string &text;
  Specification spec;
};

//===----------------------------------------------------------------------===//
// str.format
//===----------------------------------------------------------------------===//

class FieldFormatter {
public:
  FieldFormatter(Runtime &runtime, Args args, bool markup) : runtime(runtime), args(args), markup(markup) {}

  std::string run(const std::string &format, int depth) {
    if (depth < 0)
      bad("fields nested at most twice", format);
    std::string out;
    for (size_t i = 0; i < format.size();) {
      const char c = format[i];
      if ((c == '{' || c == '}') && i + 1 < format.size() && format[i + 1] == c) {
        out += c;
        i += 2;
      } else if (c == '}') {
        bad("'}' only after '{'", format);
      } else if (c == '{') {
        out += field(format, i, depth);
      } else {
        out += c;
        ++i;
      }
      checkLength(runtime, out.size());
    }
    return out;
  }

private:
  [[noreturn]] void bad(const char *what, const std::string &format) const {
    runtime.fail(std::string("format: expected ") + what + ", got '" + format + "'");
  }

  /// The field at `i`, which is moved behind it.
  std::string field(const std::string &format, size_t &i, int depth) {
    size_t start = ++i;
    char c = 0;
    while (i < format.size()) {
      c = format[i++];
      if (c == '{')
        bad("no '{' in the name of a field", format);
      if (c == '[')
        i = std::min(format.find(']', i), format.size());
      else if (c == '}' || c == ':' || c == '!')
        break;
    }
    if (i == start || (c != '}' && c != ':' && c != '!'))
      bad("'}' to end a field", format);
    std::string name = format.substr(start, i - 1 - start), specification;
    char conversion = 0;
    if (c == '!') {
      if (i >= format.size())
        bad("a conversion after '!'", format);
      conversion = format[i++];
      if (i >= format.size())
        bad("'}' to end a field", format);
      c = format[i++];
      if (c != '}' && c != ':')
        bad("':' after a conversion", format);
    }
    if (c == ':')
      specification = readSpecification(format, i);
    Value value = convert(lookUp(name), conversion, format);
    specification = run(specification, depth - 1);
    return shown(value, specification);
  }

  std::string readSpecification(const std::string &format, size_t &i) const {
    const size_t start = i;
    for (int open = 1; i < format.size();) {
      char c = format[i++];
      open += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (open == 0)
        return format.substr(start, i - 1 - start);
    }
    bad("'}' to end a field", format);
  }

  std::string shown(const Value &value, const std::string &specification) {
    if (!markup)
      return formatValue(runtime, value, specification);
    if (value.isMarkup() && !specification.empty())
      runtime.fail("format: expected no format specification for Markup, got '" + specification + "'");
    return value.isMarkup() ? *value.string() : escaped(runtime, Value(formatValue(runtime, value, specification)));
  }

  Value convert(Value value, char conversion, const std::string &format) {
    switch (conversion) {
    case 0: return value;
    case 's': return Value(runtime.str(value));
    case 'r': return Value(runtime.repr(value));
    case 'a': return Value(asciiRepr(runtime, value));
    default: bad("a conversion !s, !r or !a", format);
    }
  }

  static bool isIndex(const std::string &name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  }

  const Value &argument(const std::string &name) {
    if (isIndex(name)) {
      size_t index = name.size() > 6 ? SIZE_MAX : std::stoul(name);
      if (index < args.extra.size())
        return *args.extra[index];
    } else {
      for (const auto &[key, given] : args.named)
        if (key == name)
          return *given;
    }
    runtime.fail("format: expected an argument for {" + name + "}, got none");
  }

  Value lookUp(std::string name) {
    if (name.empty()) {
      if (manual)
        runtime.fail("format: expected all fields to be numbered or none");
      name = std::to_string(next++);
    } else if (isIndex(name)) {
      if (next)
        runtime.fail("format: expected all fields to be numbered or none");
      manual = true;
    }
    size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, end));
    while (end < name.size()) {
      const bool attribute = name[end] == '.';
      size_t start = end + 1;
      end = attribute ? std::min(name.find_first_of(".[", start), name.size()) : name.find(']', start);
      if (end == std::string::npos || end == start)
        runtime.fail("format: expected an attribute or item in {" + name + "}");
      std::string part = name.substr(start, end - start);
      if (attribute) {
        value = runtime.attribute(value, part);
        continue;
      }
      value = runtime.item(value, isIndex(part) ? Value::integer(*BigInt::parse(part, 10)) : Value(part));
      ++end;
      if (end < name.size() && name[end] != '.' && name[end] != '[')
        runtime.fail("format: expected '.' or '[' after ']' in {" + name + "}");
    }
    return value;
  }

  Runtime &runtime;
  Args args;
  const bool markup;
  size_t next = 0;
  bool manual = false;
};
} // namespace

std::string jinja::formatValue(Runtime &runtime, const Value &value, const std::string &specification) {
  return ValueFormatter(runtime, value, specification).run();
}

Value jinja::formatFields(Runtime &runtime, const Value &format, Args args) {
  return runtime.stringLike(format, FieldFormatter(runtime, args, format.isMarkup()).run(*format.string(), 2));
}
