//===- GrammarMeasure.cpp - how large rules are -----------------*- C++ -*-===//
//
// Rules of short texts (a character, a digit) are put where they are called: a call costs
// more than they do. So are small repetitions; large ones are counted as the text comes.
//
//===----------------------------------------------------------------------===//
#include "runtime/grammar/GrammarCompiler.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>

namespace llmc {

namespace {

constexpr uint64_t kInlinedBytes = 16, kInlinedStates = 200, kInlinedDepth = 50, kWrittenOutStates = 512;

uint64_t plus(uint64_t a, uint64_t b) { return std::min(a + b, uint64_t(1) << 40); }
uint64_t times(uint64_t a, uint64_t b) {
  constexpr uint64_t kHuge = uint64_t(1) << 40;
  return a && b > kHuge / a ? kHuge : a * b;
}

} // namespace

void GrammarCompiler::rulesOf(uint32_t expression, std::vector<uint32_t> &out) const {
  std::vector<uint32_t> open{expression};
  std::vector<bool> seen(builder_.nodes_.size());
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (seen[at])
      continue;
    seen[at] = true;
    const Node &node = builder_.nodes_[at];
    if (node.kind == Kind::Rule)
      out.push_back(node.value);
    if (node.kind == Kind::List)
      open.push_back(node.value);
    for (uint32_t child : node.children)
      open.push_back(node.kind == Kind::List ? child / 2 : child);
  }
}

/// Callees first, where they do not call back. Rules that are not called are left out.
void GrammarCompiler::orderRules(uint32_t root) {
  struct Visit {
    uint32_t rule;
    std::vector<uint32_t> callees;
  };
  std::vector<bool> seen(rules_.size());
  std::vector<Visit> stack;
  auto visit = [&](uint32_t rule) {
    if (seen[rule])
      return;
    seen[rule] = true;
    if (rules_[rule].body == kNone)
      throw GrammarError("rule " + rules_[rule].name + ": expected a definition, got none");
    stack.push_back({rule, {}});
    rulesOf(rules_[rule].body, stack.back().callees);
  };
  visit(root);
  while (!stack.empty()) {
    if (stack.back().callees.empty()) {
      order_.push_back(stack.back().rule);
      stack.pop_back();
      continue;
    }
    const uint32_t callee = stack.back().callees.back();
    stack.back().callees.pop_back();
    visit(callee);
  }
  for (uint32_t rule : order_) {
    Rule &r = rules_[rule];
    const Measure m = measure(r.body);
    if (m.expanded > kMaxExpandedParts)
      throw GrammarError("expected at most " + std::to_string(kMaxExpandedParts) + " characters with repetitions written out, got more");
    r.inlined = rule != root && m.bytes <= kInlinedBytes && m.states <= kInlinedStates && m.depth <= kInlinedDepth;
    r.measure = m;
  }
}

bool GrammarCompiler::writtenOut(const Node &node) {
  const uint64_t copies = node.most == GrammarBuilder::kUnbounded ? node.least : node.most;
  return copies <= 1 || times(copies, measure(node.children[0]).states) <= kWrittenOutStates;
}

GrammarCompiler::Measure GrammarCompiler::measureRepeat(const Node &node) {
  const Measure body = measure(node.children[0]);
  const bool unbounded = node.most == GrammarBuilder::kUnbounded;
  const uint64_t copies = unbounded ? uint64_t(node.least) + 1 : node.most;
  return {writtenOut(node) ? plus(2, times(copies, plus(body.states, 1))) : 4, times(copies, body.expanded),
          unbounded ? Measure::kHuge : times(node.most, body.bytes), body.depth + 1};
}

/// Of a rule that is not inlined, or not known yet: a call.
GrammarCompiler::Measure GrammarCompiler::measureCall(uint32_t rule) const {
  if (!rules_[rule].inlined)
    return {2, 1, Measure::kHuge, 1};
  Measure m = *rules_[rule].measure;
  ++m.depth;
  return m;
}

GrammarCompiler::Measure GrammarCompiler::measure(uint32_t expression) {
  if (isMeasured_[expression])
    return measured_[expression];
  const Node &node = builder_.nodes_[expression];
  Measure m{0, 0, 0, 1};
  auto add = [&](const Measure &part) {
    m = {plus(m.states, part.states), plus(m.expanded, part.expanded), plus(m.bytes, part.bytes), std::max(m.depth, part.depth + 1)};
  };
  switch (node.kind) {
  case Kind::Literal:
    m.states = m.expanded = m.bytes = builder_.texts_[node.value].size();
    break;
  case Kind::Character:
    for (const ByteRanges &ranges : utf8Spellings(builder_.sets_[node.value])) {
      m.states += ranges.length;
      m.bytes = std::max<uint64_t>(m.bytes, ranges.length);
    }
    m.expanded = 1;
    break;
  case Kind::Sequence:
    for (uint32_t child : node.children)
      add(measure(child));
    break;
  case Kind::Choice: {
    uint64_t longest = 0;
    for (uint32_t child : node.children) {
      longest = std::max(longest, measure(child).bytes);
      add(measure(child));
    }
    m.bytes = longest;
    break;
  }
  case Kind::Repeat:
    m = measureRepeat(node);
    break;
  case Kind::List:
    for (uint32_t child : node.children) {
      add(measure(child / 2));
      add(measure(node.value));
    }
    break;
  case Kind::Rule:
    m = measureCall(node.value);
    break;
  }
  isMeasured_[expression] = true;
  return measured_[expression] = m;
}

} // namespace llmc
