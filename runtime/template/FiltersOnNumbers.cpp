//===- FiltersOnNumbers.cpp - int, float, round, ... -----------------------===//
#include "runtime/template/Characters.h"
#include "runtime/template/Filters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace llmc;
using namespace llmc::jinja;

/// Digits of all scripts as ASCII, without white space around; underscores only
/// between digits. Empty: no number.
static std::string plainDigits(const std::string &given) {
  std::string text;
  forEachCharacter(strip(given, nullptr, true, true), [&](uint32_t c, std::string_view bytes) {
    if (isDecimal(c))
      text += static_cast<char>('0' + digitValue(c));
    else
      text += c < 0x80 ? bytes : "?";
  });
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '_' && (i == 0 || i + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
                           !std::isalnum(static_cast<unsigned char>(text[i + 1]))))
      return "";
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  return text;
}

std::optional<BigInt> jinja::parseInteger(const std::string &given, unsigned base) {
  std::string text = plainDigits(given);
  bool minus = text.starts_with('-');
  std::string_view digits = text;
  if (minus || text.starts_with('+'))
    digits.remove_prefix(1);
  const char kind = digits.size() > 2 && digits[0] == '0' ? static_cast<char>(std::tolower(digits[1])) : '\0';
  const unsigned prefixed = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
  if (prefixed && (base == prefixed || base == 0)) {
    digits.remove_prefix(2);
    base = prefixed;
  } else if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string_view::npos)
      return std::nullopt;
    base = 10;
  }
  const bool powerOfTwo = (base & (base - 1)) == 0;
  if (digits.empty() || (!powerOfTwo && digits.size() > 4300))
    return std::nullopt;
  auto value = BigInt::parse(digits, base);
  return value && minus ? -*value : value;
}

std::optional<double> jinja::parseFloat(const std::string &given) {
  std::string text = plainDigits(given);
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+'))
    rest.remove_prefix(1);
  std::string word;
  for (char c : rest)
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word != "inf" && word != "infinity" && word != "nan") {
    size_t i = 0, digits = 0;
    auto skipDigits = [&] {
      for (; i < rest.size() && std::isdigit(static_cast<unsigned char>(rest[i])); ++i)
        ++digits;
    };
    skipDigits();
    if (i < rest.size() && rest[i] == '.')
      ++i, skipDigits();
    if (digits == 0)
      return std::nullopt;
    if (i < rest.size() && (rest[i] == 'e' || rest[i] == 'E')) {
      ++i;
      if (i < rest.size() && (rest[i] == '-' || rest[i] == '+'))
        ++i;
      digits = 0;
      skipDigits();
      if (digits == 0)
        return std::nullopt;
    }
    if (i != rest.size())
      return std::nullopt;
  }
  return std::strtod(text.c_str(), nullptr);
}

static Value truncated(Runtime &runtime, double value) { return runtime.integer(BigInt::truncate(value)); }

static Value filterInt(Runtime &runtime, const Value &self, Args args) {
  const Value fallback = args.given(0) ? *args[0] : Value(int64_t{0});
  const int64_t base = integerArgument(runtime, args, 1, 10);
  if (self.isInteger())
    return runtime.integer(toBigInt(self));
  if (auto *d = self.get<double>()) {
    if (std::isinf(*d))
      runtime.fail("int: expected a finite number, got " + floatRepr(*d));
    return std::isnan(*d) ? fallback : truncated(runtime, *d);
  }
  if (self.isUndefined())
    runtime.fail("int: expected " + undefinedName(self) + " to be defined");
  const std::string *text = self.string();
  if (!text)
    return fallback;
  runtime.charge(text->size() * text->size() / 64);
  if (base == 0 || (base >= 2 && base <= 36))
    if (auto value = parseInteger(*text, static_cast<unsigned>(base)))
      return runtime.integer(*value);
  auto real = parseFloat(*text);
  return real && std::isfinite(*real) ? truncated(runtime, *real) : fallback;
}

static Value filterFloat(Runtime &runtime, const Value &self, Args args) {
  if (self.isNumber()) {
    double value = toDouble(self);
    if (std::isinf(value) && self.isInteger())
      runtime.fail("float: expected an integer within the range of float, got more");
    return Value(value);
  }
  if (self.isUndefined())
    runtime.fail("float: expected " + undefinedName(self) + " to be defined");
  if (auto value = self.string() ? parseFloat(*self.string()) : std::nullopt)
    return Value(*value);
  return args.given(0) ? *args[0] : Value(0.0);
}

static void expectNumber(Runtime &runtime, const char *filter, const Value &value) {
  if (!value.isNumber())
    runtime.fail(std::string(filter) + ": expected a number, got " + value.typeName());
}

static Value filterAbs(Runtime &runtime, const Value &self, Args) {
  expectNumber(runtime, "abs", self);
  if (auto *d = self.get<double>())
    return Value(std::abs(*d));
  BigInt value = toBigInt(self);
  return runtime.integer(value.isNegative() ? -value : value);
}

/// round(integer, -digits): to a multiple of a power of ten, halves to even.
static Value roundInteger(Runtime &runtime, const Value &self, int64_t digits) {
  if (digits <= 0)
    return runtime.integer(toBigInt(self));
  if (digits > 4300)
    return Value(int64_t{0});
  Value unit = runtime.binary('p', Value(int64_t{10}), Value(digits));
  Value quotient = runtime.binary('f', self, unit), rest = runtime.binary('%', self, unit);
  int order = runtime.compare(runtime.binary('*', rest, Value(int64_t{2})), unit);
  if (order > 0 || (order == 0 && toBigInt(quotient).isOdd()))
    quotient = runtime.binary('+', quotient, Value(int64_t{1}));
  return runtime.binary('*', quotient, unit);
}

/// Python rounds the exact decimal expansion, halves to even, as printf does.
static double roundFloat(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 323)
    return value;
  char buffer[800];
  if (precision >= 0) {
    std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(precision), value);
    return std::strtod(buffer, nullptr);
  }
  if (precision < -400)
    return std::copysign(0.0, value);
  // Digits before the point that stay.
  std::snprintf(buffer, sizeof(buffer), "%.0f", std::abs(value));
  int exponent = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  std::snprintf(buffer, sizeof(buffer), "%.17e", std::abs(value));
  exponent = std::atoi(std::strchr(buffer, 'e') + 1);
  const int digits = exponent + 1 + static_cast<int>(precision);
  if (digits < 0)
    return std::copysign(0.0, value);
  if (digits == 0) { // more than half of the unit?
    std::string unit = "1e" + std::to_string(-precision);
    double whole = std::strtod(unit.c_str(), nullptr);
    return std::copysign(std::abs(value) > whole / 2 ? whole : 0.0, value);
  }
  std::snprintf(buffer, sizeof(buffer), "%.*e", digits - 1, value);
  return std::strtod(buffer, nullptr);
}

static Value filterRound(Runtime &runtime, const Value &self, Args args) {
  const std::string *method = args.given(1) ? args[1]->string() : nullptr;
  if (args.given(1) && (!method || (*method != "common" && *method != "ceil" && *method != "floor")))
    runtime.fail("round: expected the method common, ceil or floor, got " + runtime.repr(*args[1]));
  expectNumber(runtime, "round", self);
  const auto *real = self.get<double>();
  if (!method || *method == "common") {
    if (real && args.given(0) && args[0]->isNone())
      return std::isfinite(*real) ? truncated(runtime, std::nearbyint(*real))
                                  : (runtime.fail("round: expected a finite number"), Value());
    const int64_t precision = isGiven(args, 0) ? toInteger(runtime, *args[0]) : 0;
    if (!real)
      return roundInteger(runtime, self, precision == INT64_MIN ? INT64_MAX : -precision);
    double rounded = roundFloat(*real, precision);
    if (std::isinf(rounded) && std::isfinite(*real))
      runtime.fail("round: expected a result within the range of float, got more");
    return Value(rounded);
  }
  const Value precision = args.given(0) ? *args[0] : Value(int64_t{0});
  Value scale = runtime.binary('p', Value(int64_t{10}), precision), scaled = runtime.binary('*', self, scale);
  if (auto *d = scaled.get<double>()) {
    if (!std::isfinite(*d))
      runtime.fail("round: expected a finite number, got " + floatRepr(*d));
    scaled = truncated(runtime, *method == "ceil" ? std::ceil(*d) : std::floor(*d));
  }
  return runtime.binary('/', scaled, scale);
}

static Value filterFilesizeformat(Runtime &runtime, const Value &self, Args args) {
  std::optional<double> given = self.isNumber() ? std::optional(toDouble(self)) : self.string() ? parseFloat(*self.string()) : std::nullopt;
  if (!given)
    runtime.fail(std::string("filesizeformat: expected a number, got ") + self.typeName());
  const bool binary = flag(args, 0);
  const double base = binary ? 1024 : 1000;
  if (*given == 1)
    return Value("1 Byte");
  if (*given < base) {
    if (!std::isfinite(*given))
      runtime.fail("filesizeformat: expected a finite number, got " + floatRepr(*given));
    return runtime.string(BigInt::truncate(*given).toString() + " Bytes");
  }
  static constexpr std::string_view letters = "kMGTPEZY";
  double unit = base;
  size_t i = 0;
  for (; i < letters.size(); ++i) {
    unit = std::pow(base, static_cast<double>(i + 2));
    if (*given < unit)
      break;
  }
  char text[400];
  std::snprintf(text, sizeof(text), "%.1f ", base * *given / unit);
  std::string prefix = binary ? std::string(1, static_cast<char>(std::toupper(letters[std::min<size_t>(i, 7)]))) + "iB"
                              : std::string(1, letters[std::min<size_t>(i, 7)]) + "B";
  return runtime.string(text + prefix);
}

void jinja::addNumberFilters(std::vector<Builtin> &table) {
  const std::vector<Builtin> more = {
      {"int", {"default", "base"}, 0, filterInt},
      {"float", {"default"}, 0, filterFloat},
      {"abs", {}, 0, filterAbs},
      {"round", {"precision", "method"}, 0, filterRound},
      {"filesizeformat", {"binary"}, 0, filterFilesizeformat},
  };
  table.insert(table.end(), more.begin(), more.end());
}
