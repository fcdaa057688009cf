//===- GrammarNfa.cpp - rules as nondeterministic automata ------*- C++ -*-===//
#include "runtime/grammar/GrammarCompiler.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>

namespace llmc {

static constexpr size_t kMaxNfaNodes = 4 * size_t(kMaxGrammarStates);

uint32_t GrammarCompiler::newNode(NfaNode node) {
  if (nfa_.size() >= kMaxNfaNodes)
    throw GrammarError("expected at most " + std::to_string(kMaxNfaNodes) + " states before simplification, got more");
  node.owner = owner_;
  nfa_.push_back(node);
  return uint32_t(nfa_.size()) - 1;
}

GrammarCompiler::Fragment GrammarCompiler::empty() {
  const uint32_t node = newNode({});
  return {node, node};
}

GrammarCompiler::Fragment GrammarCompiler::join(Fragment a, Fragment b) {
  nfa_[a.out].out = b.in;
  return {a.in, b.out};
}

GrammarCompiler::Fragment GrammarCompiler::callOf(uint32_t rule, uint32_t least, uint32_t most) {
  const uint32_t out = newNode({});
  return {newNode({.step = Step::Call, .out = out, .rule = rule, .least = least, .most = most}), out};
}

GrammarCompiler::Fragment GrammarCompiler::buildLiteral(const std::string &bytes) {
  Fragment all = empty();
  for (char c : bytes) {
    const uint32_t out = newNode({});
    all = join(all, {newNode({.step = Step::Bytes, .first = uint8_t(c), .last = uint8_t(c), .out = out}), out});
  }
  return all;
}

GrammarCompiler::Fragment GrammarCompiler::buildCharacter(const CharacterSet &set) {
  std::vector<Fragment> ways;
  for (const ByteRanges &ranges : utf8Spellings(set)) {
    const uint32_t out = newNode({});
    uint32_t next = out;
    for (unsigned i = ranges.length; i-- > 0;)
      next = newNode({.step = Step::Bytes, .first = ranges.bytes[i].first, .last = ranges.bytes[i].second, .out = next});
    ways.push_back({next, out});
  }
  return either(ways);
}

/// Of none: what has no way on.
GrammarCompiler::Fragment GrammarCompiler::either(const std::vector<Fragment> &ways) {
  const uint32_t out = newNode({});
  uint32_t in = newNode({});
  const uint32_t first = in;
  for (size_t i = 0; i < ways.size(); ++i) {
    nfa_[ways[i].out].out = out;
    nfa_[in].out = ways[i].in;
    if (i + 1 < ways.size())
      in = nfa_[in].other = newNode({});
  }
  return {first, out};
}

GrammarCompiler::Fragment GrammarCompiler::buildChoice(const Node &node) {
  std::vector<Fragment> ways;
  for (uint32_t child : node.children)
    ways.push_back(build(child));
  return either(ways);
}

GrammarCompiler::Fragment GrammarCompiler::buildRepeat(const Node &node) {
  const bool unbounded = node.most == GrammarBuilder::kUnbounded, written = writtenOut(node);
  const uint32_t body = node.children[0];
  Fragment all = empty();
  if (written)
    for (uint32_t i = 0; i < node.least; ++i)
      all = join(all, build(body));
  else if (unbounded)
    all = join(all, callOf(bodyRule(body), node.least, node.least));
  else if (node.least)
    return join(all, callOf(bodyRule(body), node.least, node.most));
  else
    return either({empty(), callOf(bodyRule(body), 1, node.most)});
  const uint32_t end = newNode({});
  if (unbounded) {
    const Fragment loop = build(body);
    const uint32_t split = newNode({.out = loop.in, .other = end});
    nfa_[loop.out].out = split;
    return {join(all, {split, split}).in, end};
  }
  for (uint32_t i = node.least; i < node.most; ++i) {
    const Fragment more = build(body);
    all = join(all, {newNode({.out = more.in, .other = end}), more.out});
  }
  nfa_[all.out].out = end;
  return {all.in, end};
}

/// Two lanes: nothing has been there yet, or something has; the second has separators.
GrammarCompiler::Fragment GrammarCompiler::buildList(const Node &node) {
  uint32_t none = newNode({}), some = newNode({});
  const uint32_t in = none;
  for (uint32_t child : node.children) {
    const Fragment separator = build(node.value), body = build(child / 2);
    const bool required = child % 2;
    const uint32_t nextSome = newNode({}), nextNone = newNode({});
    nfa_[none].out = body.in;
    nfa_[some].out = separator.in;
    nfa_[separator.out].out = body.in;
    nfa_[body.out].out = nextSome;
    if (!required) {
      nfa_[none].other = nextNone;
      nfa_[some].other = nextSome;
    }
    none = nextNone; // behind a required one it has no way in
    some = nextSome;
  }
  const uint32_t out = newNode({});
  nfa_[none].out = nfa_[some].out = out;
  return {in, out};
}

GrammarCompiler::Fragment GrammarCompiler::build(uint32_t expression) {
  const Node &node = builder_.nodes_[expression];
  switch (node.kind) {
  case Kind::Literal:
    return buildLiteral(builder_.texts_[node.value]);
  case Kind::Character:
    return buildCharacter(builder_.sets_[node.value]);
  case Kind::Sequence: {
    Fragment all = empty();
    for (uint32_t child : node.children)
      all = join(all, build(child));
    return all;
  }
  case Kind::Choice:
    return buildChoice(node);
  case Kind::Repeat:
    return buildRepeat(node);
  case Kind::List:
    return buildList(node);
  case Kind::Rule:
    return rules_[node.value].inlined ? build(rules_[node.value].body) : callOf(node.value, 1, 1);
  }
  return empty();
}

/// The rule whose repetitions are counted.
uint32_t GrammarCompiler::bodyRule(uint32_t expression) {
  const auto [at, isNew] = bodyRules_.try_emplace(expression, uint32_t(rules_.size()));
  if (isNew)
    order_.push_back(addRule("of a repetition", expression));
  return at->second;
}

void GrammarCompiler::buildNfas() {
  for (size_t i = 0; i < order_.size(); ++i) { // grows by the bodies of repetitions
    const uint32_t rule = order_[i];
    if (rules_[rule].inlined)
      continue;
    owner_ = rule;
    const size_t before = nfa_.size();
    const Fragment all = build(rules_[rule].body);
    const uint32_t end = newNode({.step = Step::End});
    nfa_[all.out].out = end;
    rules_[rule].start = all.in;
    rules_[rule].end = end;
    rules_[rule].nodes = nfa_.size() - before;
  }
}

//===----------------------------------------------------------------------===//
// What happens before any byte
//===----------------------------------------------------------------------===//

void GrammarCompiler::findNullable() {
  std::vector<std::vector<uint32_t>> waiting(rules_.size()); // calls of a rule that were reached
  std::vector<bool> seen(nfa_.size());
  std::vector<uint32_t> open;
  auto reach = [&](uint32_t node) {
    if (node != kNone && !seen[node]) {
      seen[node] = true;
      open.push_back(node);
    }
  };
  for (uint32_t rule : order_)
    reach(rules_[rule].start);
  while (!open.empty()) {
    const NfaNode &node = nfa_[open.back()];
    open.pop_back();
    if (node.step == Step::Split) {
      reach(node.out);
      reach(node.other);
    } else if (node.step == Step::Call) {
      if (rules_[node.rule].nullable)
        reach(node.out);
      else
        waiting[node.rule].push_back(node.out);
    } else if (node.step == Step::End) {
      rules_[node.owner].nullable = true;
      for (uint32_t out : waiting[node.owner])
        reach(out);
    }
  }
}

void GrammarCompiler::refuseLeftRecursion() {
  std::vector<std::vector<uint32_t>> callees(rules_.size());
  for (uint32_t rule : order_)
    if (rules_[rule].start != kNone)
      for (uint32_t node : closure({rules_[rule].start}))
        if (nfa_[node].step == Step::Call)
          callees[rule].push_back(nfa_[node].rule);
  enum Mark : uint8_t { Unseen, Open, Done };
  std::vector<Mark> marks(rules_.size(), Unseen);
  for (uint32_t root : order_) {
    std::vector<uint32_t> stack{root};
    while (!stack.empty()) {
      const uint32_t rule = stack.back();
      if (marks[rule] == Unseen)
        marks[rule] = Open;
      if (callees[rule].empty()) {
        marks[rule] = Done;
        stack.pop_back();
        continue;
      }
      const uint32_t callee = callees[rule].back();
      callees[rule].pop_back();
      if (marks[callee] == Open)
        throw GrammarError("rule " + rules_[callee].name + ": expected some text before it calls itself, got none");
      if (marks[callee] == Unseen)
        stack.push_back(callee);
    }
  }
}

} // namespace llmc
