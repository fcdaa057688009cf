//===- Gbnf.cpp -----------------------------------------------------------===//
#include "runtime/grammar/Gbnf.h"
#include "llmc/Support/HexDigit.h"
#include "runtime/grammar/GrammarLimits.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <unordered_map>

namespace llmc {

namespace {

class GbnfParser {
public:
  GbnfParser(GrammarBuilder &builder, std::string_view text) : builder_(builder), text_(text) {
    if (text.size() > kMaxGrammarBytes)
      throw GrammarError("grammar: expected at most " + std::to_string(kMaxGrammarBytes) + " bytes, got " + std::to_string(text.size()));
    at_ = utf8::firstInvalid(text);
    if (at_ != text.size())
      fail("expected UTF-8");
    at_ = 0;
  }

  Expression parse() {
    for (skip(true); !ended(); skip(true))
      rule();
    for (const auto &[name, use] : uses_)
      if (!builder_.defined(use.rule)) {
        at_ = use.at;
        fail("expected a rule " + name + ", got none");
      }
    const auto root = uses_.find("root");
    if (root == uses_.end())
      fail("expected a rule root, got none");
    return root->second.rule;
  }

private:
  struct Use {
    Expression rule;
    size_t at;
  };

  [[noreturn]] void fail(const std::string &what) const {
    const auto lines = std::count(text_.begin(), text_.begin() + ptrdiff_t(std::min(at_, text_.size())), '\n');
    throw GrammarError("grammar, line " + std::to_string(lines + 1) + ": " + what);
  }
  bool ended() const { return at_ == text_.size(); }
  char peek() const { return ended() ? '\0' : text_[at_]; }
  std::string here() const { return ended() ? "the end" : peek() == '\n' ? "the end of the line" : "'" + std::string(text_.substr(at_, utf8::decode(text_.substr(at_)).length)) + "'"; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what))
      return false;
    at_ += what.size();
    return true;
  }
  void skip(bool lines) {
    for (; !ended(); ++at_)
      if (peek() == '#')
        at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
      else if (peek() != ' ' && peek() != '\t' && !(lines && (peek() == '\n' || peek() == '\r')))
        return;
  }

  std::string name() {
    const size_t start = at_;
    auto isName = [](char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '_'; };
    while (!ended() && isName(peek()))
      ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  Expression use(const std::string &name, size_t at) {
    auto known = uses_.find(name);
    if (known == uses_.end())
      known = uses_.emplace(name, Use{builder_.rule(name), at}).first;
    return known->second.rule;
  }

  void rule() {
    const size_t start = at_;
    const std::string name = this->name();
    if (name.empty())
      fail("expected the name of a rule, got " + here());
    skip(false);
    if (!take("::="))
      fail("expected ::= behind " + name + ", got " + here());
    const Expression rule = use(name, start);
    if (builder_.defined(rule))
      fail("expected one rule " + name + ", got a second one");
    skip(true);
    builder_.define(rule, alternatives());
    if (!ended() && peek() != '\n' && peek() != '\r')
      fail("expected the end of the line, got " + here());
  }

  Expression alternatives() {
    std::vector<Expression> all;
    do {
      skip(!all.empty() || depth_ > 0);
      all.push_back(sequence());
    } while (take("|"));
    return builder_.choice(std::move(all));
  }

  Expression sequence() {
    std::vector<Expression> parts;
    for (;;) {
      skip(depth_ > 0);
      if (ended() || peek() == '|' || peek() == ')' || peek() == '\n' || peek() == '\r')
        return builder_.sequence(std::move(parts));
      Expression item = this->item();
      uint32_t least, most;
      for (skip(depth_ > 0); repetition(least, most); skip(depth_ > 0))
        try {
          item = builder_.repeat(item, least, most);
        } catch (const GrammarError &error) {
          fail(error.what());
        }
      parts.push_back(item);
    }
  }

  Expression item() {
    if (take("\""))
      return literal();
    if (take("["))
      return builder_.character(characterClass());
    if (take("."))
      return builder_.character(CharacterSet::all());
    if (take("("))
      return group();
    const size_t start = at_;
    const std::string name = this->name();
    if (name.empty())
      fail("expected \"text\", a class, a rule or a group, got " + here());
    return use(name, start);
  }

  Expression group() {
    if (++depth_ > kMaxGrammarDepth)
      fail("expected groups in each other at most " + std::to_string(kMaxGrammarDepth) + " deep, got more");
    const Expression body = alternatives();
    if (!take(")"))
      fail("expected ), got " + here());
    --depth_;
    return body;
  }

  Expression literal() {
    std::string bytes;
    while (!take("\"")) {
      if (ended() || peek() == '\n')
        fail("expected \" at the end of a text, got " + here());
      utf8::append(bytes, character());
    }
    return builder_.literal(bytes);
  }

  CharacterSet characterClass() {
    const bool negated = take("^");
    std::vector<CharacterSet::Range> ranges;
    while (!take("]")) {
      const uint32_t first = character();
      uint32_t last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = character();
      }
      if (first > last)
        fail("expected a range in ascending order");
      ranges.push_back({first, last});
    }
    const CharacterSet set(std::move(ranges));
    return negated ? set.complement() : set;
  }

  uint32_t character() {
    if (ended())
      fail("expected a character, got the end");
    const utf8::Decoded c = utf8::decode(text_.substr(at_));
    at_ += c.length;
    if (c.codePoint != '\\')
      return c.codePoint;
    switch (ended() ? '\0' : text_[at_++]) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '\\': return '\\';
    case '"': return '"';
    case '[': return '[';
    case ']': return ']';
    case '^': return '^';
    case '-': return '-';
    case 'x': return hex(2);
    case 'u': return hex(4);
    case 'U': return hex(8);
    default: --at_;
    }
    fail("expected one of \\n \\r \\t \\\\ \\\" \\[ \\] \\^ \\- \\xHH \\uHHHH \\UHHHHHHHH");
  }

  uint32_t hex(unsigned digits) {
    const std::optional<uint32_t> value = readHex(text_, at_, digits);
    if (!value)
      fail("expected " + std::to_string(digits) + " hexadecimal digits");
    if (*value > 0x10FFFF || (*value >= 0xD800 && *value <= 0xDFFF))
      fail("expected a Unicode character");
    return *value;
  }

  bool repetition(uint32_t &least, uint32_t &most) {
    most = GrammarBuilder::kUnbounded;
    if (take("*"))
      least = 0;
    else if (take("+"))
      least = 1;
    else if (take("?"))
      least = 0, most = 1;
    else if (take("{"))
      braces(least, most);
    else
      return false;
    return true;
  }

  void braces(uint32_t &least, uint32_t &most) {
    skip(false);
    least = most = number();
    skip(false);
    if (take(",")) {
      skip(false);
      most = peek() == '}' ? GrammarBuilder::kUnbounded : number();
      skip(false);
    }
    if (!take("}"))
      fail("expected } of a repetition, got " + here());
  }
  uint32_t number() {
    if (peek() < '0' || peek() > '9')
      fail("expected a number, got " + here());
    uint64_t n = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      n = std::min<uint64_t>(n * 10 + uint64_t(peek() - '0'), 1'000'000'000);
    return uint32_t(n);
  }

  GrammarBuilder &builder_;
  std::string_view text_;
  size_t at_ = 0;
  uint32_t depth_ = 0;
  std::unordered_map<std::string, Use> uses_;
};

} // namespace

Expression addGbnf(GrammarBuilder &builder, std::string_view text) { return GbnfParser(builder, text).parse(); }

} // namespace llmc
