//===- JsonText.cpp -------------------------------------------------------===//
#include "runtime/grammar/JsonText.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

namespace llmc {

namespace {
const CharacterSet kControls{{0, 0x1F}};
const CharacterSet kEscaped = kControls | CharacterSet::of("\"\\");
const CharacterSet kHex{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
// Of controls the short ones, and of " and \.
constexpr std::pair<char, const char *> kShort[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}};
} // namespace

Expression JsonText::once(std::optional<Expression> &rule, const char *name, const std::function<Expression()> &body) {
  if (!rule) {
    rule = g_.rule(name);
    g_.define(*rule, body());
  }
  return *rule;
}

Expression JsonText::space() {
  return once(space_, "white space", [&] {
    const Expression indent = g_.repeat(g_.character(CharacterSet::of(" \t")), 0, 20);
    return g_.optional(g_.choice({g_.literal(" "), g_.sequence({g_.literal("\n"), indent})}));
  });
}

Expression JsonText::comma() { return g_.sequence({g_.literal(","), space()}); }

Expression JsonText::quoted(Expression characters) { return g_.sequence({g_.literal("\""), characters, g_.literal("\"")}); }

/// Pairs of \u escapes count as one character; halves of pairs are none.
Expression JsonText::anyCharacter() {
  return once(character_, "character", [&] {
    auto hex = [&](uint32_t count) { return g_.repeat(g_.character(kHex), count, count); };
    auto of = [&](const char *characters) { return g_.character(CharacterSet::of(characters)); };
    const Expression plain = g_.choice({g_.sequence({of("0123456789abcefABCEF"), hex(3)}), g_.sequence({of("dD"), of("01234567"), hex(2)})});
    const Expression pair = g_.sequence({of("dD"), of("89abAB"), hex(2), g_.literal("\\u"), of("dD"), of("cdefCDEF"), hex(2)});
    const Expression unicode = g_.sequence({g_.literal("u"), g_.choice({plain, pair})});
    return g_.choice({g_.character(kEscaped.complement()), g_.sequence({g_.literal("\\"), g_.choice({of("\"\\/bfnrt"), unicode})})});
  });
}

Expression JsonText::string() {
  return once(string_, "string", [&] { return quoted(g_.repeat(anyCharacter(), 0)); });
}

Expression JsonText::string(uint32_t least, uint32_t most) {
  if (least == 0 && most == GrammarBuilder::kUnbounded)
    return string();
  const auto [at, isNew] = strings_.try_emplace({least, most}, Expression{0});
  if (isNew) {
    at->second = g_.rule("string of some length");
    g_.define(at->second, quoted(g_.repeat(anyCharacter(), least, most)));
  }
  return at->second;
}

Expression JsonText::character(const CharacterSet &set) {
  std::vector<Expression> ways;
  if (const CharacterSet plain = set & kEscaped.complement(); !plain.empty())
    ways.push_back(g_.character(plain));
  for (auto [c, spelling] : kShort)
    if (set.contains(uint32_t(c)))
      ways.push_back(g_.literal(spelling));
  if (!ways.empty())
    return g_.choice(std::move(ways)); // other controls are left out where there is something else
  for (auto [first, last] : set.ranges())
    for (uint32_t c = first; c <= last; ++c) {
      char spelling[8];
      std::snprintf(spelling, sizeof spelling, "\\u%04x", c);
      ways.push_back(g_.literal(spelling));
    }
  return g_.choice(std::move(ways));
}

Expression JsonText::integer() {
  return once(integer_, "integer", [&] {
    const Expression digits = g_.repeat(g_.character({{'0', '9'}}), 0, 17);
    return g_.choice({g_.literal("0"), g_.sequence({g_.optional(g_.literal("-")), g_.character({{'1', '9'}}), digits})});
  });
}

Expression JsonText::number() {
  return once(number_, "number", [&] {
    const Expression digit = g_.character({{'0', '9'}});
    const Expression whole = g_.choice({g_.literal("0"), g_.sequence({g_.character({{'1', '9'}}), g_.repeat(digit, 0, 17)})});
    const Expression fraction = g_.sequence({g_.literal("."), g_.repeat(digit, 1, 17)});
    const Expression exponent = g_.sequence({g_.character(CharacterSet::of("eE")), g_.optional(g_.character(CharacterSet::of("+-"))), g_.repeat(digit, 1, 2)});
    return g_.sequence({g_.optional(g_.literal("-")), whole, g_.optional(fraction), g_.optional(exponent)});
  });
}

Expression JsonText::member(Expression key, Expression value) { return g_.sequence({key, g_.literal(":"), space(), value}); }

Expression JsonText::between(const char *open, Expression inner, const char *close, bool mayBeEmpty) {
  const Expression spaced = g_.sequence({inner, space()});
  return g_.sequence({g_.literal(open), space(), mayBeEmpty ? g_.optional(spaced) : spaced, g_.literal(close)});
}

Expression JsonText::braces(Expression members, bool mayBeEmpty) { return between("{", members, "}", mayBeEmpty); }
Expression JsonText::brackets(Expression items, bool mayBeEmpty) { return between("[", items, "]", mayBeEmpty); }

Expression JsonText::value() {
  if (value_)
    return *value_;
  value_ = g_.rule("value");
  const Expression items = g_.sequence({*value_, g_.repeat(g_.sequence({comma(), *value_}), 0)});
  g_.define(*value_, g_.choice({object(), brackets(items, true), string(), number(), g_.literal("true"), g_.literal("false"), g_.literal("null")}));
  return *value_;
}

Expression JsonText::object() {
  if (object_)
    return *object_;
  object_ = g_.rule("object");
  const Expression pair = member(string(), value());
  g_.define(*object_, braces(g_.sequence({pair, g_.repeat(g_.sequence({comma(), pair}), 0)}), true));
  return *object_;
}

//===----------------------------------------------------------------------===//
// Keys that are none of some names
//===----------------------------------------------------------------------===//

/// The rest of a key that so far is a beginning of these names.
Expression JsonText::keyBeside(std::vector<std::u32string> names, size_t at) {
  const CharacterSet plain = kEscaped.complement();
  std::map<char32_t, std::vector<std::u32string>> next;
  bool isName = false;
  for (std::u32string &name : names)
    if (name.size() == at)
      isName = true;
    else
      next[name[at]].push_back(std::move(name));
  std::vector<CharacterSet::Range> taken;
  for (const auto &[c, rest] : next)
    taken.push_back({c, c});
  const Expression others = g_.character(plain & CharacterSet(std::move(taken)).complement());
  const Expression rest = once(keyRest_, "rest of a key", [&] { return g_.repeat(g_.character(plain), 0); });
  std::vector<Expression> ways{g_.sequence({others, rest})};
  for (auto &[c, longer] : next)
    ways.push_back(g_.sequence({g_.character({{c, c}}), keyBeside(std::move(longer), at + 1)}));
  const Expression more = g_.choice(std::move(ways));
  return isName ? more : g_.optional(more);
}

Expression JsonText::otherKey(const std::vector<std::string> &names) {
  std::vector<std::u32string> spelled;
  for (const std::string &name : names) {
    std::u32string characters;
    for (std::string_view rest = name; !rest.empty();) {
      const utf8::Decoded c = utf8::decode(rest);
      characters += char32_t(c.codePoint);
      rest.remove_prefix(c.length);
    }
    constexpr size_t kMostCharacters = 100; // the expression is as deep
    if (characters.size() > kMostCharacters)
      throw GrammarError("expected names of at most 100 characters beside other properties, got one of " + std::to_string(characters.size()));
    if (std::ranges::none_of(characters, [](char32_t c) { return kEscaped.contains(c); }))
      spelled.push_back(std::move(characters));
  }
  return quoted(keyBeside(std::move(spelled), 0));
}

} // namespace llmc
