//===- JsonText.h - JSON's own parts as expressions -------------*- C++ -*-===//
//
// White space is allowed where people write it (behind { [ , : and before } ]): a space, or
// a line end and at most 20 spaces or tabs. Numbers have at most 18 digits before the point, 17
// behind it and two of an exponent, so that every reader takes them; a character of
// a string is plain or escaped in any way.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_JSONTEXT_H
#define LLMC_RUNTIME_GRAMMAR_JSONTEXT_H

#include "runtime/grammar/GrammarBuilder.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

class JsonText {
public:
  explicit JsonText(GrammarBuilder &builder) : g_(builder) {}

  Expression space();
  Expression comma();
  /// Of any value, object; rules.
  Expression value();
  Expression object();
  Expression string();
  /// Of so many characters.
  Expression string(uint32_t least, uint32_t most);
  /// Whose characters, without the quotes, are this expression.
  Expression quoted(Expression characters);
  /// One character of the set inside a string: as it is, or escaped where it must be.
  Expression character(const CharacterSet &set);
  Expression integer();
  Expression number();
  /// `"name": value`
  Expression member(Expression key, Expression value);
  /// A key without escapes that is none of these.
  Expression otherKey(const std::vector<std::string> &names);
  Expression braces(Expression members, bool mayBeEmpty);
  Expression brackets(Expression items, bool mayBeEmpty);

private:
  Expression between(const char *open, Expression inner, const char *close, bool mayBeEmpty);
  Expression once(std::optional<Expression> &rule, const char *name, const std::function<Expression()> &body);
  Expression anyCharacter();
  Expression keyBeside(std::vector<std::u32string> names, size_t at);

  GrammarBuilder &g_;
  std::optional<Expression> space_, value_, object_, string_, integer_, number_, character_, keyRest_;
  std::map<std::pair<uint32_t, uint32_t>, Expression> strings_;
};

/// A bound of a number, as decimal digits.
struct NumberBound {
  bool negative = false;
  std::string integer = "0", fraction; // without zeros in front and behind
  bool strict = false;                 // the bound itself is outside
};
/// The numbers from `least` to `most`, without exponents; `whole`: integers.
Expression numberRange(GrammarBuilder &g, const std::optional<NumberBound> &least, const std::optional<NumberBound> &most, bool whole);

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_JSONTEXT_H
