//===- GrammarBuilder.cpp -------------------------------------------------===//
#include "runtime/grammar/GrammarBuilder.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>

namespace llmc {

namespace {
constexpr uint32_t kMaxTreeDepth = 4 * kMaxGrammarDepth; // a group of a text is some nodes deep
constexpr size_t kMaxNodes = 400'000;
} // namespace

Expression GrammarBuilder::add(Node node) {
  for (uint32_t child : node.children)
    node.depth = std::max(node.depth, nodes_[node.kind == Kind::List ? child / 2 : child].depth + 1);
  if (node.depth > kMaxTreeDepth)
    throw GrammarError("grammar: expected parts in each other at most " + std::to_string(kMaxTreeDepth) + " deep, got more");
  if (nodes_.size() >= kMaxNodes)
    throw GrammarError("grammar: expected at most " + std::to_string(kMaxNodes) + " parts, got more");
  nodes_.push_back(std::move(node));
  return {uint32_t(nodes_.size()) - 1};
}

Expression GrammarBuilder::literal(std::string_view bytes) {
  texts_.emplace_back(bytes);
  return add({.kind = Kind::Literal, .value = uint32_t(texts_.size()) - 1, .children = {}});
}

Expression GrammarBuilder::character(const CharacterSet &set) {
  sets_.push_back(set);
  return add({.kind = Kind::Character, .value = uint32_t(sets_.size()) - 1, .children = {}});
}

static std::vector<uint32_t> indices(const std::vector<Expression> &expressions) {
  std::vector<uint32_t> out;
  for (Expression e : expressions)
    out.push_back(e.index);
  return out;
}

Expression GrammarBuilder::sequence(std::vector<Expression> parts) {
  return parts.size() == 1 ? parts[0] : add({.kind = Kind::Sequence, .children = indices(parts)});
}

Expression GrammarBuilder::choice(std::vector<Expression> alternatives) {
  return alternatives.size() == 1 ? alternatives[0] : add({.kind = Kind::Choice, .children = indices(alternatives)});
}

Expression GrammarBuilder::repeat(Expression body, uint32_t least, uint32_t most) {
  if (least > most)
    throw GrammarError("repetition: expected at most as many times as " + std::to_string(most) + ", got at least " + std::to_string(least));
  for (uint32_t bound : {least, most})
    if (bound != kUnbounded && bound > kMaxRepeats)
      throw GrammarError("repetition: expected at most " + std::to_string(kMaxRepeats) + " times, got " + std::to_string(bound));
  return add({.kind = Kind::Repeat, .least = least, .most = most, .children = {body.index}});
}

Expression GrammarBuilder::list(std::vector<Item> items, Expression separator) {
  Node node{.kind = Kind::List, .depth = nodes_[separator.index].depth + 1, .value = separator.index, .children = {}};
  for (Item item : items)
    node.children.push_back(item.body.index * 2 + item.required);
  return add(std::move(node));
}

Expression GrammarBuilder::rule(std::string name) {
  if (rules_.size() >= kMaxGrammarRules)
    throw GrammarError("grammar: expected at most " + std::to_string(kMaxGrammarRules) + " rules, got more");
  rules_.push_back({std::move(name), UINT32_MAX});
  return add({.kind = Kind::Rule, .value = uint32_t(rules_.size()) - 1, .children = {}});
}

void GrammarBuilder::define(Expression rule, Expression body) { rules_[nodes_[rule.index].value].body = body.index; }

bool GrammarBuilder::allowsText(Expression expression) const {
  const Node &node = nodes_[expression.index];
  const auto allows = [&](uint32_t child) { return allowsText({child}); };
  switch (node.kind) {
  case Kind::Literal:
  case Kind::Rule:
    return true;
  case Kind::Character:
    return !sets_[node.value].empty();
  case Kind::Sequence:
    return std::ranges::all_of(node.children, allows);
  case Kind::Choice:
    return std::ranges::any_of(node.children, allows);
  case Kind::Repeat:
    return node.least == 0 || allows(node.children[0]);
  case Kind::List:
    return std::ranges::all_of(node.children, [&](uint32_t child) { return child % 2 == 0 || allows(child / 2); });
  }
  return true;
}

bool GrammarBuilder::defined(Expression rule) const { return rules_[nodes_[rule.index].value].body != UINT32_MAX; }

} // namespace llmc
