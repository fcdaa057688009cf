//===- GrammarDfa.cpp - rules made deterministic ----------------*- C++ -*-===//
#include "runtime/grammar/GrammarCompiler.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace llmc {

namespace {
struct HashNodes {
  size_t operator()(const std::vector<uint32_t> &nodes) const {
    uint64_t hash = nodes.size();
    for (uint32_t node : nodes)
      hash = (hash ^ node) * 0x9E3779B97F4A7C15ull;
    return size_t(hash ^ hash >> 32);
  }
};
} // namespace

uint32_t GrammarCompiler::newState() {
  if (states_.size() >= kMaxGrammarStates)
    throw GrammarError("expected at most " + std::to_string(kMaxGrammarStates) + " states, got more");
  states_.emplace_back();
  return uint32_t(states_.size()) - 1;
}

/// The nodes that take a byte, call or end, reached from these before any byte; ascending. A call of what may be empty may be passed by.
std::vector<uint32_t> GrammarCompiler::closure(const std::vector<uint32_t> &nodes) {
  stamp_.resize(nfa_.size());
  ++stamps_;
  std::vector<uint32_t> open, out;
  auto reach = [&](uint32_t node) {
    if (node != kNone && stamp_[node] != stamps_) {
      stamp_[node] = stamps_;
      open.push_back(node);
    }
  };
  for (uint32_t node : nodes)
    reach(node);
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    ++work_;
    const NfaNode &node = nfa_[at];
    if (node.step == Step::Split) {
      reach(node.out);
      reach(node.other);
      continue;
    }
    out.push_back(at);
    if (node.step == Step::Call && rules_[node.rule].nullable)
      reach(node.out);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// What bytes make of these nodes: ranges apart from each other.
void GrammarCompiler::splitBytes(const std::vector<uint32_t> &nodes, Draft &draft, const StateOf &stateOf) {
  std::vector<uint32_t> readers;
  std::vector<bool> begins(257);
  for (uint32_t node : nodes)
    if (nfa_[node].step == Step::Bytes) {
      readers.push_back(node);
      begins[nfa_[node].first] = begins[nfa_[node].last + 1u] = true;
    }
  for (unsigned first = 0, last; first < 256; first = last + 1) {
    for (last = first; last < 255 && !begins[last + 1]; ++last)
      ;
    std::vector<uint32_t> targets;
    for (uint32_t node : readers)
      if (nfa_[node].first <= first && first <= nfa_[node].last)
        targets.push_back(nfa_[node].out);
    work_ += readers.size();
    if (targets.empty())
      continue;
    const uint32_t to = stateOf(targets);
    if (!draft.edges.empty() && draft.edges.back().to == to && draft.edges.back().last + 1u == first)
      draft.edges.back().last = uint8_t(last);
    else
      draft.edges.push_back({uint8_t(first), uint8_t(last), to});
  }
}

uint32_t GrammarCompiler::draftCall(const NfaNode &node, uint32_t to) {
  // Repetitions of what may be empty: as many empty ones as are missing have been passed by.
  calls_.push_back({node.rule, to, rules_[node.rule].nullable ? 1 : node.least, node.most});
  return uint32_t(calls_.size()) - 1;
}

/// Equal calls lead to one state, as equal bytes do.
void GrammarCompiler::splitCalls(const std::vector<uint32_t> &nodes, Draft &draft, const StateOf &stateOf) {
  std::map<std::array<uint32_t, 3>, std::vector<uint32_t>> groups;
  for (uint32_t node : nodes)
    if (const NfaNode &n = nfa_[node]; n.step == Step::Call)
      groups[{n.rule, n.least, n.most}].push_back(node);
  for (const auto &[call, callers] : groups) {
    std::vector<uint32_t> targets;
    for (uint32_t node : callers)
      targets.push_back(nfa_[node].out);
    draft.calls.push_back(draftCall(nfa_[callers[0]], stateOf(targets)));
  }
}

bool GrammarCompiler::makeDeterministic(Rule &rule) {
  const size_t statesBefore = states_.size(), callsBefore = calls_.size();
  const size_t most = std::min<size_t>(kMaxGrammarStates - statesBefore, 64 + 4 * rule.nodes);
  std::unordered_map<std::vector<uint32_t>, uint32_t, HashNodes> ids;
  std::vector<const std::vector<uint32_t> *> open; // by state
  bool tooMany = false;
  const StateOf stateOf = [&](const std::vector<uint32_t> &nodes) {
    if (tooMany)
      return kNone;
    auto [at, isNew] = ids.try_emplace(closure(nodes), kNone);
    if (isNew) {
      tooMany = open.size() >= most || work_ > kMaxCompileWork;
      if (tooMany)
        return kNone;
      at->second = newState();
      open.push_back(&at->first);
    }
    return at->second;
  };
  rule.dfa = stateOf({rule.start});
  for (size_t i = 0; i < open.size() && !tooMany; ++i) {
    Draft draft;
    splitBytes(*open[i], draft, stateOf);
    splitCalls(*open[i], draft, stateOf);
    draft.end = std::binary_search(open[i]->begin(), open[i]->end(), rule.end);
    states_[statesBefore + i] = std::move(draft);
  }
  if (tooMany) {
    states_.resize(statesBefore);
    calls_.resize(callsBefore);
  }
  return !tooMany;
}

void GrammarCompiler::keepNondeterministic(Rule &rule) {
  std::map<uint32_t, uint32_t> ids; // of nodes
  std::vector<uint32_t> open;
  auto stateOf = [&](uint32_t node) {
    auto [at, isNew] = ids.try_emplace(node, kNone);
    if (isNew) {
      at->second = newState();
      open.push_back(node);
    }
    return at->second;
  };
  rule.entry = rule.dfa = stateOf(rule.start);
  if (rule.nullable) { // calls begin with what the rule begins with, but for its end
    rule.entry = newState();
    for (uint32_t at : closure({rule.start})) {
      if (nfa_[at].step == Step::End)
        continue;
      const uint32_t state = newState();
      states_[rule.entry].jumps.push_back(state);
      const uint32_t next = stateOf(nfa_[at].out);
      if (nfa_[at].step == Step::Bytes)
        states_[state].edges = {{nfa_[at].first, nfa_[at].last, next}};
      else
        states_[state].calls = {draftCall(nfa_[at], next)};
    }
  }
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    const NfaNode &node = nfa_[at];
    Draft draft;
    if (node.step == Step::Bytes)
      draft.edges = {{node.first, node.last, stateOf(node.out)}};
    if (node.step == Step::Call)
      draft.calls = {draftCall(node, stateOf(node.out))};
    if (node.step == Step::Split || (node.step == Step::Call && rules_[node.rule].nullable))
      for (uint32_t next : {node.out, node.other})
        if (next != kNone)
          draft.jumps.push_back(stateOf(next));
    draft.end = node.step == Step::End;
    states_[ids[at]] = std::move(draft);
  }
}

void GrammarCompiler::makeAutomata() {
  for (uint32_t r : order_) {
    Rule &rule = rules_[r];
    if (rule.inlined)
      continue;
    if (!makeDeterministic(rule)) {
      keepNondeterministic(rule);
      continue;
    }
    rule.entry = rule.dfa;
    if (rule.nullable) { // calls begin as the rule does, but never are the empty text
      rule.entry = newState();
      states_[rule.entry] = states_[rule.dfa];
      states_[rule.entry].end = false;
    }
  }
}

} // namespace llmc
