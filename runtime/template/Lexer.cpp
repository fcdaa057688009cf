#include "runtime/template/Lexer.h"

#include "runtime/template/Characters.h"

#include <algorithm>
#include <cctype>

using namespace llmc;
using namespace llmc::jinja;

void jinja::failAt(Position at, const std::string &message) {
  throw Error("chat template:" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + message);
}

/// CRLF and CR become LF; a single newline at the end goes.
static std::string normalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n')
      ++i;
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

namespace {
class Lexer {
public:
  explicit Lexer(std::string source) : source(std::move(source)) {}

  std::vector<Token> run() {
    size_t bad = utf8::firstInvalid(source);
    if (bad != source.size()) {
      moveTo(bad);
      failAt(position, "expected UTF-8, got a malformed byte sequence");
    }
    while (at < source.size())
      lexData();
    push(Token::Kind::End, "");
    return std::move(tokens);
  }

private:
  using Kind = Token::Kind;

  void push(Kind kind, std::string text) { tokens.push_back({kind, std::move(text), position}); }

  /// Advances to byte offset `to`, counting lines and columns.
  void moveTo(size_t to) {
    for (; at < to; ++at)
      if (source[at] == '\n')
        ++position.line, position.column = 1;
      else if (!utf8::isContinuation(source[at]))
        ++position.column;
  }

  bool startsWith(std::string_view s, size_t from) const { return source.compare(from, s.size(), s) == 0; }
  char charAt(size_t i) const { return i < source.size() ? source[i] : '\0'; }

  size_t skipSpaces(size_t i) const {
    while (i < source.size()) {
      utf8::Decoded d = utf8::decode(std::string_view(source).substr(i));
      if (!isSpace(d.codePoint))
        break;
      i += d.length;
    }
    return i;
  }

  size_t nextTag() const {
    for (size_t i = source.find('{', at); i != std::string::npos; i = source.find('{', i + 1))
      if (char c = charAt(i + 1); c == '%' || c == '{' || c == '#')
        return i;
    return std::string::npos;
  }

  /// The text before a tag at `tag`, stripped as its sign and lstrip_blocks say.
  std::string_view textBefore(size_t from, size_t tag, char sign, bool variable) const {
    std::string_view text = std::string_view(source).substr(from, tag - from);
    if (sign == '-')
      return strip(text, nullptr, false, true);
    if (sign == '+' || variable)
      return text;
    size_t line = text.rfind('\n') + 1;
    if ((line > 0 || lineStarting) && strip(text.substr(line), nullptr, true, false).empty())
      return text.substr(0, line);
    return text;
  }

  void pushText(std::string_view text) {
    if (!text.empty())
      push(Kind::Text, std::string(text));
  }

  /// Ends a tag whose closing delimiter begins at `end` ("%}", "#}" or "}}", with
  /// an optional sign before it that `signAt` points to).
  void closeTag(size_t end, char sign, bool trimNewline) {
    size_t next = end + 2;
    if (sign == '-')
      next = skipSpaces(next);
    else if (sign != '+' && trimNewline && charAt(next) == '\n')
      ++next;
    moveTo(next);
    lineStarting = source[next - 1] == '\n';
  }

  void lexData() {
    const size_t start = at;
    size_t tag = nextTag();
    if (tag == std::string::npos) {
      pushText(std::string_view(source).substr(start));
      moveTo(source.size());
      return;
    }
    const char kind = source[tag + 1];
    char sign = charAt(tag + 2);
    if (sign != '-' && sign != '+')
      sign = 0;
    pushText(textBefore(start, tag, sign, kind == '{'));
    moveTo(tag);
    size_t body = tag + 2 + (sign ? 1 : 0);
    if (kind == '#')
      return lexComment(body);
    if (kind == '%' && lexRaw(body))
      return;
    push(kind == '%' ? Kind::BlockBegin : Kind::VariableBegin, "");
    moveTo(body);
    lexExpression(kind == '%');
  }

  void lexComment(size_t body) {
    size_t end = source.find("#}", body);
    if (end == std::string::npos)
      failAt(position, "expected '#}' to end the comment, got the end of the template");
    char sign = end > body ? source[end - 1] : 0;
    closeTag(end, sign, true);
  }

  /// {% raw %} ... {% endraw %}
  bool lexRaw(size_t body) {
    size_t i = skipSpaces(body);
    if (!startsWith("raw", i))
      return false;
    i = skipSpaces(i + 3);
    char sign = charAt(i) == '-' ? '-' : 0;
    if (!startsWith("%}", i + (sign ? 1 : 0)))
      return false;
    const Position opened = position;
    closeTag(i + (sign ? 1 : 0), sign, false);
    for (size_t tag = source.find("{%", at); tag != std::string::npos; tag = source.find("{%", tag + 2)) {
      size_t j = tag + 2;
      char open = charAt(j) == '-' || charAt(j) == '+' ? source[j++] : 0;
      j = skipSpaces(j);
      if (!startsWith("endraw", j))
        continue;
      j = skipSpaces(j + 6);
      char close = charAt(j) == '-' || charAt(j) == '+' ? source[j++] : 0;
      if (!startsWith("%}", j))
        continue;
      pushText(textBefore(at, tag, open, false));
      closeTag(j, close, true);
      return true;
    }
    failAt(opened, "expected {% endraw %}, got the end of the template");
  }

  void lexExpression(bool block) {
    const char *closing = block ? "%}" : "}}";
    const Position opened = position;
    std::vector<char> brackets;
    for (;;) {
      moveTo(skipSpaces(at));
      if (at >= source.size())
        failAt(opened, std::string("expected '") + closing + "' to end the tag, got the end of the template");
      if (brackets.empty()) {
        char sign = source[at] == '-' || (block && source[at] == '+') ? source[at] : 0;
        size_t end = at + (sign ? 1 : 0);
        if (startsWith(closing, end)) {
          push(block ? Kind::BlockEnd : Kind::VariableEnd, "");
          return closeTag(end, sign, block);
        }
      }
      lexToken(brackets);
    }
  }

  void lexToken(std::vector<char> &brackets) {
    char c = source[at];
    if (c == '"' || c == '\'')
      return lexString(c);
    if (std::isdigit(static_cast<unsigned char>(c)))
      return lexNumber();
    if (isWord(utf8::decode(std::string_view(source).substr(at)).codePoint))
      return lexName();
    lexOperator(brackets);
  }

  void lexName() {
    size_t end = at;
    while (end < source.size()) {
      utf8::Decoded d = utf8::decode(std::string_view(source).substr(end));
      if (!isWord(d.codePoint))
        break;
      end += d.length;
    }
    push(Kind::Name, source.substr(at, end - at));
    moveTo(end);
  }

  /// Digits of a base with single underscores between them.
  template <typename F> size_t digitsFrom(size_t i, F isDigit) const {
    while (isDigit(charAt(i)) || (charAt(i) == '_' && isDigit(charAt(i + 1))))
      ++i;
    return i;
  }

  static bool isDecimalDigit(char c) { return c >= '0' && c <= '9'; }

  void pushNumber(Kind kind, size_t end) {
    std::string text = source.substr(at, end - at);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    push(kind, text);
    moveTo(end);
  }

  /// 0x1f, 0o17, 0b11
  bool lexPrefixedInteger() {
    const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(charAt(at + 1))));
    if (source[at] != '0' || (kind != 'x' && kind != 'o' && kind != 'b'))
      return false;
    size_t end = digitsFrom(at + 2, [&](char c) {
      return kind == 'x' ? isHex(c) : c >= '0' && c <= (kind == 'o' ? '7' : '1');
    });
    if (end == at + 2)
      return false;
    pushNumber(Kind::Integer, end);
    return true;
  }

  void lexNumber() {
    // "1.x" stays an attribute access, and "x.0.1" is two of them.
    const bool afterDot = at > 0 && source[at - 1] == '.';
    size_t end = digitsFrom(at, isDecimalDigit);
    const size_t integer = end;
    if (!afterDot && charAt(end) == '.' && isDecimalDigit(charAt(end + 1)))
      end = digitsFrom(end + 1, isDecimalDigit);
    if (!afterDot && (charAt(end) == 'e' || charAt(end) == 'E')) {
      const size_t e = end + 1 + (charAt(end + 1) == '+' || charAt(end + 1) == '-');
      if (isDecimalDigit(charAt(e)))
        end = digitsFrom(e, isDecimalDigit);
    }
    if (end != integer)
      return pushNumber(Kind::Float, end);
    if (lexPrefixedInteger())
      return;
    // A number that begins with 0 has no other digits.
    pushNumber(Kind::Integer, source[at] == '0' ? digitsFrom(at, [](char c) { return c == '0'; }) : end);
  }

  static bool isHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)); }

  /// A Python escape after the backslash at `i`; returns the offset behind it.
  size_t lexEscape(size_t i, std::string &out) {
    const char c = charAt(i + 1);
    static constexpr std::string_view from = "\\'\"abfnrtv", to = "\\'\"\a\b\f\n\r\t\v";
    if (size_t k = from.find(c); k != std::string_view::npos && c) {
      out += to[k];
      return i + 2;
    }
    if (c == '\n')
      return i + 2;
    if (c == 'N')
      failAt(position, "expected no \\N escape in a string, which is not supported");
    if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      size_t j = i + 1;
      for (; j < i + 4 && charAt(j) >= '0' && charAt(j) <= '7'; ++j)
        value = value * 8 + static_cast<uint32_t>(charAt(j) - '0');
      utf8::append(out, value);
      return j;
    }
    size_t want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!want) { // unknown escapes stay as they are
      out += '\\';
      return i + 1;
    }
    uint32_t value = 0;
    for (size_t j = i + 2; j < i + 2 + want; ++j) {
      if (!isHex(charAt(j)))
        failAt(position, std::string("expected ") + std::to_string(want) + " hexadecimal digits after \\" + c);
      value = value * 16 + static_cast<uint32_t>(std::stoi(std::string(1, charAt(j)), nullptr, 16));
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      failAt(position, "expected a Unicode character in the escape, got another number");
    utf8::append(out, value);
    return i + 2 + want;
  }

  void lexString(char quote) {
    std::string text;
    size_t i = at + 1;
    while (i < source.size() && source[i] != quote)
      if (source[i] == '\\')
        i = lexEscape(i, text);
      else
        text += source[i++];
    if (i >= source.size())
      failAt(position, std::string("expected ") + quote + " to end the string, got the end of the template");
    push(Kind::String, std::move(text));
    moveTo(i + 1);
  }

  void lexOperator(std::vector<char> &brackets) {
    static constexpr std::string_view two[] = {"//", "**", "==", "!=", ">=", "<="};
    for (std::string_view op : two)
      if (startsWith(op, at)) {
        push(Kind::Operator, std::string(op));
        return moveTo(at + 2);
      }
    const char c = source[at];
    static constexpr std::string_view opening = "([{", closing = ")]}";
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      size_t n = utf8::decode(std::string_view(source).substr(at)).length;
      failAt(position, "expected an expression, got the character '" + source.substr(at, n) + "'");
    }
    if (opening.find(c) != std::string_view::npos) {
      brackets.push_back(closing[opening.find(c)]);
    } else if (closing.find(c) != std::string_view::npos) {
      if (brackets.empty() || brackets.back() != c)
        failAt(position, std::string("expected ") +
                             (brackets.empty() ? std::string("no closing bracket") : std::string("'") + brackets.back() + "'") +
                             ", got '" + c + "'");
      brackets.pop_back();
    }
    push(Kind::Operator, std::string(1, c));
    moveTo(at + 1);
  }

  std::string source;
  size_t at = 0;
  Position position;
  bool lineStarting = true;
  std::vector<Token> tokens;
};
} // namespace

std::vector<Token> jinja::tokenize(std::string_view source) { return Lexer(normalizeNewlines(source)).run(); }
