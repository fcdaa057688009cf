//===- GrammarBuilder.h - a grammar put together of parts -------*- C++ -*-===//
//
// What regular expressions, GBNF and JSON schemas become, and what may be put
// around them:
//
//   GrammarBuilder g;
//   Expression call = g.sequence({g.literal("<tool_call>"), addJsonSchema(g, schema), g.literal("</tool_call>")});
//   std::shared_ptr<const Grammar> grammar = g.build(g.repeat(call, 1));
//
// Expressions are of bytes; a part that is used in several places is spelled out in
// each, but for rules, which are called. Everything is bounded (GrammarLimits.h), so
// that hostile input is refused in time.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_GRAMMARBUILDER_H
#define LLMC_RUNTIME_GRAMMAR_GRAMMARBUILDER_H

#include "llmc/Support/Error.h"
#include "runtime/grammar/CharacterSet.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

class Grammar;

/// A grammar, expression or schema that is wrong, not supported or over a bound.
struct GrammarError : Error {
  using Error::Error;
};

/// A part of the grammar of the builder that made it.
struct Expression {
  uint32_t index;
};

class GrammarBuilder {
public:
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  Expression literal(std::string_view bytes);
  /// One character of the set, in UTF-8.
  Expression character(const CharacterSet &set);
  Expression sequence(std::vector<Expression> parts);
  /// One of them; of none: no text at all.
  Expression choice(std::vector<Expression> alternatives);
  /// Throws GrammarError for least > most or more than kMaxRepeats.
  Expression repeat(Expression body, uint32_t least, uint32_t most = kUnbounded);
  Expression optional(Expression body) { return repeat(body, 0, 1); }

  struct Item {
    Expression body;
    bool required;
  };
  /// The items in this order with the separator between them; those not required may be left out.
  Expression list(std::vector<Item> items, Expression separator);

  /// A rule that is called by name and may call itself. `name` is for messages.
  Expression rule(std::string name);
  void define(Expression rule, Expression body);
  bool defined(Expression rule) const;
  /// False for what is a choice of nothing, or cannot do without one; rules are not looked into.
  bool allowsText(Expression expression) const;

  /// Throws GrammarError for rules that are not defined, call themselves before any text, or for a grammar that allows no text
  /// or is over a bound.
  std::shared_ptr<const Grammar> build(Expression root) const;

private:
  friend class GrammarCompiler;
  enum class Kind : uint8_t { Literal, Character, Sequence, Choice, Repeat, List, Rule };
  struct Node {
    Kind kind;
    uint32_t depth = 1;  // of the tree below, rules not entered
    uint32_t value = 0;  // of texts_, sets_, rules_; of a list its separator
    uint32_t least = 1, most = 1;
    std::vector<uint32_t> children; // list: index * 2 + required
  };
  struct RuleBody {
    std::string name;
    uint32_t body = UINT32_MAX;
  };
  Expression add(Node node);

  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
  std::vector<CharacterSet> sets_;
  std::vector<RuleBody> rules_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_GRAMMARBUILDER_H
