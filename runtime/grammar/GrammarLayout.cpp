//===- GrammarLayout.cpp - the states that lead somewhere -------*- C++ -*-===//
#include "runtime/grammar/GrammarCompiler.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>
#include <queue>
#include <set>

namespace llmc {

/// Calls in each other on the way to the end that has the fewest; kNone: no way. Knuth's generalisation of Dijkstra's algorithm
/// (1977): a call costs one more than what it calls, and a way as much as its costliest call.
std::vector<uint32_t> GrammarCompiler::heights() const {
  struct Use {
    uint32_t state, call;
  };
  std::vector<std::vector<uint32_t>> before(states_.size()); // states with an edge or jump here
  std::vector<std::vector<Use>> uses(states_.size());        // calls that begin here or go on here
  for (uint32_t s = 0; s < states_.size(); ++s) {
    for (const Grammar::Edge &edge : states_[s].edges)
      before[edge.to].push_back(s);
    for (uint32_t jump : states_[s].jumps)
      before[jump].push_back(s);
    for (uint32_t call : states_[s].calls) {
      uses[rules_[calls_[call].rule].entry].push_back({s, call});
      uses[calls_[call].to].push_back({s, call});
    }
  }
  std::vector<uint32_t> height(states_.size(), kNone);
  using Item = std::pair<uint32_t, uint32_t>; // height, state
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  auto reach = [&](uint32_t s, uint32_t h) {
    if (h < height[s]) {
      height[s] = h;
      open.push({h, s});
    }
  };
  for (uint32_t s = 0; s < states_.size(); ++s)
    if (states_[s].end)
      reach(s, 0);
  while (!open.empty()) {
    const auto [h, s] = open.top();
    open.pop();
    if (h != height[s])
      continue;
    for (uint32_t b : before[s])
      reach(b, h);
    for (const Use &use : uses[s]) {
      const uint32_t inside = height[rules_[calls_[use.call].rule].entry], behind = height[calls_[use.call].to];
      if (inside != kNone && behind != kNone)
        reach(use.state, std::max(inside + 1, behind));
    }
  }
  return height;
}

std::shared_ptr<const Grammar> GrammarCompiler::layOut() {
  const std::vector<uint32_t> height = heights();
  const uint32_t start = rules_[root_].dfa;
  if (height[start] == kNone)
    throw GrammarError("expected a grammar that allows some text, got one that allows none");
  if (height[start] > kMaxCallDepth)
    throw GrammarError("expected rules in each other at most " + std::to_string(kMaxCallDepth) + " deep in the shortest text, got " +
                       std::to_string(height[start]));
  auto alive = [&](const DraftCall &call) { return height[rules_[call.rule].entry] != kNone && height[call.to] != kNone; };
  std::vector<uint32_t> order{start}, number(states_.size(), kNone); // of those that can be reached
  number[start] = 0;
  auto reach = [&](uint32_t s) {
    if (height[s] != kNone && number[s] == kNone) {
      number[s] = uint32_t(order.size());
      order.push_back(s);
    }
  };
  auto result = std::make_shared<Grammar>();
  Grammar &g = *result;
  std::vector<uint32_t> callNumber(calls_.size(), kNone), callOrder;
  auto place = [&](const Draft *draft, uint32_t h) {
    Grammar::State &state = g.states_.emplace_back();
    state.edges = uint32_t(g.edges_.size());
    state.calls = uint32_t(g.callsOf_.size());
    state.jumps = uint32_t(g.jumps_.size());
    state.height = h;
    state.end = draft && draft->end;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const Draft &draft = states_[order[i]];
    place(&draft, height[order[i]]);
    for (const Grammar::Edge &edge : draft.edges)
      if (reach(edge.to); number[edge.to] != kNone)
        g.edges_.push_back({edge.first, edge.last, number[edge.to]});
    for (uint32_t jump : draft.jumps)
      if (reach(jump); number[jump] != kNone)
        g.jumps_.push_back(number[jump]);
    for (uint32_t call : draft.calls)
      if (alive(calls_[call])) {
        reach(rules_[calls_[call].rule].entry);
        reach(calls_[call].to);
        if (callNumber[call] == kNone) {
          callNumber[call] = uint32_t(callOrder.size());
          callOrder.push_back(call);
        }
        g.callsOf_.push_back(callNumber[call]);
      }
  }
  place(nullptr, 0);
  for (uint32_t call : callOrder)
    g.calls_.push_back({number[rules_[calls_[call].rule].entry], number[calls_[call].to], calls_[call].least, calls_[call].most});
  for (uint32_t s = 0; s < g.size(); ++s)
    g.isBareEnd_.push_back(g.state(s).end && g.edges(s).empty() && g.calls(s).empty() && g.jumps(s).empty());
  findByteClasses(g);
  return result;
}

void GrammarCompiler::findByteClasses(Grammar &grammar) const {
  // Of bytes so far alike, those in a range part from those outside it.
  std::set<std::pair<uint8_t, uint8_t>> ranges;
  for (const Grammar::Edge &edge : grammar.edges_)
    ranges.insert({edge.first, edge.last});
  std::array<bool, 257> begins{};
  for (auto [first, last] : ranges)
    begins[first] = begins[last + 1u] = true;
  uint32_t count = 0;
  for (unsigned b = 0; b < 256; ++b) {
    count += b > 0 && begins[b];
    grammar.byteClass_[b] = uint8_t(count);
  }
  grammar.byteClasses_ = count + 1;
}

uint32_t GrammarCompiler::addRule(const std::string &name, uint32_t body) {
  Rule &rule = rules_.emplace_back();
  rule.name = name;
  rule.body = body;
  return uint32_t(rules_.size()) - 1;
}

std::shared_ptr<const Grammar> GrammarCompiler::compile(Expression root) {
  for (const GrammarBuilder::RuleBody &body : builder_.rules_)
    addRule(body.name, body.body);
  root_ = addRule("root", root.index);
  measured_.resize(builder_.nodes_.size());
  isMeasured_.resize(builder_.nodes_.size());
  orderRules(root_);
  buildNfas();
  findNullable();
  refuseLeftRecursion();
  makeAutomata();
  return layOut();
}

std::shared_ptr<const Grammar> GrammarBuilder::build(Expression root) const { return GrammarCompiler(*this).compile(root); }

} // namespace llmc
