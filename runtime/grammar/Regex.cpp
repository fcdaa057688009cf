//===- Regex.cpp ----------------------------------------------------------===//
#include "runtime/grammar/Regex.h"
#include "llmc/Support/HexDigit.h"
#include "runtime/grammar/GrammarLimits.h"
#include "runtime/tokenizer/Utf8.h"

#include <optional>

namespace llmc {

namespace {

const CharacterSet kDigits{{'0', '9'}};
const CharacterSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharacterSet kSpace{{'\t', '\r'}, {' ', ' '}};
// Space by ECMAScript or Python: in none of them part of \S.
const CharacterSet kAnySpace{{0x09, 0x0D}, {0x1C, 0x20}, {0x85, 0x85}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
                             {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharacterSet kLineEnds{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class RegexParser {
public:
  RegexParser(GrammarBuilder &builder, std::string_view text, const RegexOptions &options) : builder_(builder), text_(text), options_(options) {
    if (text.size() > kMaxGrammarBytes)
      throw GrammarError("regex: expected at most " + std::to_string(kMaxGrammarBytes) + " bytes, got " + std::to_string(text.size()));
    if (const size_t bad = utf8::firstInvalid(text); bad != text.size())
      throw GrammarError("regex, byte " + std::to_string(bad) + ": expected UTF-8");
  }

  Expression parse() {
    std::vector<Expression> alternatives;
    do
      alternatives.push_back(alternative());
    while (take('|'));
    if (!ended())
      fail("expected the end of the expression, got " + here());
    return builder_.choice(std::move(alternatives));
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw GrammarError("regex, byte " + std::to_string(at_) + ": " + what); }
  bool ended() const { return at_ == text_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (ended() || peek() != c)
      return false;
    ++at_;
    return true;
  }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what))
      return false;
    at_ += what.size();
    return true;
  }
  std::string here() const { return ended() ? "the end" : "'" + std::string(text_.substr(at_, utf8::decode(text_.substr(at_)).length)) + "'"; }
  uint32_t character() {
    if (ended())
      fail("expected a character, got the end");
    const utf8::Decoded c = utf8::decode(text_.substr(at_));
    at_ += c.length;
    return c.codePoint;
  }
  Expression spell(const CharacterSet &set) const { return options_.spell ? options_.spell(set) : builder_.character(set); }
  Expression anything() { return builder_.repeat(spell(CharacterSet::all()), 0); }

  /// Of the whole expression: the only place where ^ and $ mean something.
  Expression alternative() {
    std::vector<Expression> parts;
    const bool begins = take('^');
    if (options_.search && !begins)
      parts.push_back(anything());
    parts.push_back(sequence());
    const bool ends = peek() == '$' && (at_ + 1 == text_.size() || peek(1) == '|');
    at_ += ends;
    if (options_.search && !ends)
      parts.push_back(anything());
    return builder_.sequence(std::move(parts));
  }

  Expression alternatives() {
    std::vector<Expression> all;
    do
      all.push_back(sequence());
    while (take('|'));
    return builder_.choice(std::move(all));
  }

  Expression sequence() {
    std::vector<Expression> parts;
    while (!ended() && peek() != '|' && peek() != ')') {
      if (peek() == '$' && depth_ == 0 && (at_ + 1 == text_.size() || peek(1) == '|'))
        break;
      parts.push_back(quantified(atom()));
    }
    return builder_.sequence(std::move(parts));
  }

  Expression atom() {
    switch (peek()) {
    case '(':
      return group();
    case '[':
      ++at_;
      return spell(characterClass());
    case '.':
      ++at_;
      return spell(kLineEnds.complement());
    case '\\':
      ++at_;
      return spell(escape(false));
    case '^':
    case '$':
      fail("expected ^ and $ at the ends of the expression only");
    case '*':
    case '+':
    case '?':
      fail("expected something to repeat before " + here());
    default:
      const uint32_t c = character();
      return spell({{c, c}});
    }
  }

  Expression group() {
    const size_t start = at_++;
    if (++depth_ > kMaxGrammarDepth)
      fail("expected groups in each other at most " + std::to_string(kMaxGrammarDepth) + " deep, got more");
    if (take('?') && !take(':'))
      groupName(start);
    const Expression body = alternatives();
    if (!take(')'))
      fail("expected ) of the group at byte " + std::to_string(start) + ", got " + here());
    --depth_;
    return body;
  }

  // Behind "(?": "<name>" or "P<name>".
  void groupName(size_t start) {
    const bool named = (peek() == '<' && peek(1) != '=' && peek(1) != '!') || (peek() == 'P' && peek(1) == '<');
    const size_t end = named ? text_.find('>', at_) : std::string_view::npos;
    if (end == std::string_view::npos)
      fail("expected a group that captures or not, got " + std::string(text_.substr(start, 4)) + ", which is not supported");
    at_ = end + 1;
  }

  Expression quantified(Expression body) {
    uint32_t least, most;
    if (take('*'))
      least = 0, most = GrammarBuilder::kUnbounded;
    else if (take('+'))
      least = 1, most = GrammarBuilder::kUnbounded;
    else if (take('?'))
      least = 0, most = 1;
    else if (!braces(least, most))
      return body;
    if (peek() == '+')
      fail("expected a repetition that is not possessive, which is not supported");
    take('?'); // lazy: the same texts
    if (uint32_t a, b; !ended() && (peek() == '*' || peek() == '+' || peek() == '?' || bracesAhead(a, b)))
      fail("expected one repetition, got a second one");
    try {
      return builder_.repeat(body, least, most);
    } catch (const GrammarError &error) {
      fail(error.what());
    }
  }

  // {m}, {m,}, {m,n}; anything else is text.
  bool braces(uint32_t &least, uint32_t &most) {
    const size_t before = at_;
    if (!take('{'))
      return false;
    std::optional<uint32_t> first = number(), second = first;
    if (first && take(','))
      second = peek() == '}' ? GrammarBuilder::kUnbounded : number();
    if (!first || !second || !take('}')) {
      at_ = before;
      return false;
    }
    least = *first;
    most = *second;
    return true;
  }
  bool bracesAhead(uint32_t &least, uint32_t &most) {
    const size_t before = at_;
    const bool there = braces(least, most);
    at_ = before;
    return there;
  }
  std::optional<uint32_t> number() {
    if (peek() < '0' || peek() > '9')
      return std::nullopt;
    uint64_t n = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      n = std::min<uint64_t>(n * 10 + uint64_t(peek() - '0'), 1'000'000'000);
    return uint32_t(n);
  }

  CharacterSet characterClass() {
    const bool negated = take('^');
    CharacterSet set;
    if (peek() == ']')
      fail("expected a class that is not empty; ] inside is written \\]");
    while (!take(']')) {
      if (peek() == '[' && (peek(1) == ':' || peek(1) == '.' || peek(1) == '='))
        fail("expected no POSIX class, got " + std::string(text_.substr(at_, 2)) + ", which is not supported");
      CharacterSet first = classItem();
      if (peek() == '-' && peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        first = range(first, classItem());
      }
      set = set | first;
    }
    return negated ? set.complement() : set;
  }

  CharacterSet classItem() {
    if (take('\\'))
      return escape(true);
    const uint32_t c = character();
    return {{c, c}};
  }

  CharacterSet range(const CharacterSet &first, const CharacterSet &last) {
    auto one = [&](const CharacterSet &set) {
      if (set.ranges().size() != 1 || set.ranges()[0].first != set.ranges()[0].second)
        fail("expected a range of characters, got a class as its end");
      return set.ranges()[0].first;
    };
    const uint32_t from = one(first), to = one(last);
    if (from > to)
      fail("expected a range in ascending order");
    return {{from, to}};
  }

  uint32_t hex(unsigned digits) {
    const std::optional<uint32_t> value = readHex(text_, at_, digits);
    if (!value)
      fail("expected " + std::to_string(digits) + " hexadecimal digits");
    return *value;
  }

  CharacterSet escape(bool inClass) {
    const uint32_t c = character();
    auto one = [](uint32_t code) { return CharacterSet{{code, code}}; };
    switch (c) {
    case 'd': return kDigits;
    case 'D': return kDigits.complement();
    case 'w': return kWord;
    case 'W': return kWord.complement();
    case 's': return kSpace;
    case 'S': return kAnySpace.complement();
    case 't': return one('\t');
    case 'n': return one('\n');
    case 'r': return one('\r');
    case 'f': return one('\f');
    case 'v': return one('\v');
    case 'x': return one(hex(2));
    case 'u': return one(unicodeEscape());
    case '0':
      if (peek() < '0' || peek() > '9')
        return one(0);
      break;
    case 'b':
      if (inClass)
        return one('\b');
      break;
    default:
      if (c >= 0x80 || !kWord.contains(c))
        return one(c);
    }
    at_ -= 2;
    fail("\\" + std::string(1, char(c)) + " is not supported");
  }

  // Of a pair of surrogates one character.
  uint32_t unicodeEscape() {
    const uint32_t c = hex(4);
    if (c < 0xD800 || c > 0xDFFF)
      return c;
    if (c < 0xDC00 && take("\\u"))
      if (const uint32_t low = hex(4); low >= 0xDC00 && low <= 0xDFFF)
        return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    fail("expected a pair of surrogates");
  }

  GrammarBuilder &builder_;
  std::string_view text_;
  const RegexOptions &options_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
};

} // namespace

Expression addRegex(GrammarBuilder &builder, std::string_view pattern, const RegexOptions &options) {
  return RegexParser(builder, pattern, options).parse();
}

} // namespace llmc
