//===- MaskCache.cpp ------------------------------------------------------===//
#include "runtime/grammar/MaskCache.h"
#include "runtime/grammar/GrammarBuilder.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>

namespace llmc {

namespace {

constexpr size_t kMostBytes = 6 << 20;     // of what is remembered; over that it is forgotten
constexpr size_t kMostKeyLength = 4096;
constexpr size_t kMachineBytes = 2 << 20;
constexpr uint32_t kMostCallsLookedAt = 2000;

/// Calls each(node, set) for the nodes below `root`, as far as the machine gets from `set`, in preorder.
template <typename Each> void walkTrie(Machine &machine, const TokenTrie &trie, uint32_t root, uint32_t set, Each each) {
  const uint32_t top = trie.node(root).depth;
  uint32_t sets[GrammarTokens::kLongest + 1]; // by depth
  sets[top] = set;
  for (uint32_t n = root + 1; n < trie.node(root).end;) {
    const TokenTrie::Node &node = trie.node(n);
    const uint32_t next = sets[node.depth] = machine.step(sets[node.depth - 1], node.byte);
    if (next == Machine::kDead) {
      n = node.end;
      continue;
    }
    each(n, next);
    ++n;
  }
}

void allow(std::span<uint32_t> mask, int32_t id) {
  if (size_t(id) / 32 < mask.size())
    mask[size_t(id) / 32] |= 1u << (id % 32);
}

size_t longestOf(GrammarTokens::Length length) { return length == GrammarTokens::Short ? GrammarTokens::kShort : GrammarTokens::kLongest; }

// What is left of repetitions, as far as a token of this many bytes can tell.
uint32_t within(uint32_t left, size_t longest) { return std::min(left, uint32_t(longest) + 1); }

} // namespace

MaskCache::MaskCache(const Grammar &grammar, const GrammarTokens &tokens) : grammar_(grammar), tokens_(tokens), behindCalls_(~ByteSketch(0)), relative_(grammar) {
  behindCalls_ = bytesBehindCalls();
}

/// Most nodes of the tree at which a rule may end have nothing below that any caller goes on with.
ByteSketch MaskCache::bytesBehindCalls() {
  if (grammar_.callCount() > kMostCallsLookedAt)
    return ~ByteSketch(0);
  ByteSketch bytes = 0;
  bool returns = false; // a caller may end with the call, and its own caller goes on
  const auto add = [&](uint32_t state) {
    relative_.startWork();
    const uint32_t set = relative_.setOf({state, Machine::kBottom});
    returns |= relative_.accepting(set);
    for (const Machine::Configuration &from : relative_.configurations(set))
      for (const Grammar::Edge &edge : grammar_.edges(from.state))
        for (uint32_t byte = edge.first; byte <= edge.last; ++byte)
          bytes |= sketchOf(uint8_t(byte));
  };
  try {
    for (bool counts : {false, true}) // repetitions are followed in here, but for those of callers
      for (uint32_t c = 0; c < grammar_.callCount() && (!counts || returns); ++c)
        if (const Grammar::Call &call = grammar_.call(c); call.counts() == counts && !grammar_.isTailCall(call)) {
          add(call.to);
          if (counts)
            add(call.entry);
        }
  } catch (const GrammarError &) { // too many ways: a mask says so if it gets there
    bytes = ~ByteSketch(0);
  }
  relative_ = Machine(grammar_);
  return bytes;
}

/// The state, then its frames from the top down: those of repetitions; `whole`: all of them.
MaskCache::Key MaskCache::keyOf(const Machine &machine, const Machine::Configuration &from, size_t longest, bool whole) const {
  Key key{from.state};
  for (uint32_t f = from.frame; f != Machine::kBottom; f = machine.frame(f).parent) {
    const Machine::Frame &frame = machine.frame(f);
    const Grammar::Call &call = grammar_.call(frame.call);
    if (!call.counts() && !whole)
      break;
    key.push_back(frame.call);
    if (call.counts()) {
      key.push_back(within(call.least > frame.count ? call.least - frame.count : 0, longest));
      key.push_back(within(call.most - frame.count, longest));
    }
  }
  return key;
}

MaskCache::Local MaskCache::walk(const Machine &machine, const Machine::Configuration &from, const TokenTrie &trie) {
  std::vector<Machine::Frame> frames; // of repetitions, from the top down
  for (uint32_t f = from.frame; f != Machine::kBottom && grammar_.call(machine.frame(f).call).counts(); f = machine.frame(f).parent)
    frames.push_back(machine.frame(f));
  uint32_t frame = Machine::kBottom;
  for (auto f = frames.rbegin(); f != frames.rend(); ++f)
    frame = relative_.push(f->call, f->count, frame);
  Local local;
  walkTrie(relative_, trie, 0, relative_.setOf({from.state, frame}), [&](uint32_t n, uint32_t set) {
    for (int32_t id : trie.tokens(n))
      local.ids.push_back(id);
    if (relative_.accepting(set) && trie.nextBytes(n) & behindCalls_)
      local.leaves.push_back(n);
  });
  local.highest = relative_.highest();
  const size_t words = (tokens_.vocabulary() + 31) / 32;
  if (local.ids.size() > words) {
    local.words.resize(words);
    for (int32_t id : local.ids)
      allow(local.words, id);
    local.ids = {};
  }
  return local;
}

const MaskCache::Local &MaskCache::local(const Machine &machine, const Machine::Configuration &from, GrammarTokens::Length length, bool first) {
  Key key = keyOf(machine, from, longestOf(length), false);
  key.push_back(uint32_t(length) * 2 + (first && tokens_.firstDiffers()));
  if (auto at = locals_.find(key); at != locals_.end())
    return at->second;
  if (relative_.bytes() > kMachineBytes)
    relative_ = Machine(grammar_);
  relative_.startWork();
  Local made = walk(machine, from, tokens_.trie(length, first));
  bytes_ += 200 + 4 * (key.size() + made.words.size() + made.ids.size() + made.leaves.size());
  return locals_.emplace(std::move(key), std::move(made)).first->second;
}

void MaskCache::compose(Machine &machine, uint32_t set, GrammarTokens::Length length, bool first, std::span<uint32_t> mask) {
  machine.startWork();
  const auto all = machine.configurations(set);
  const std::vector<Machine::Configuration> configurations(all.begin(), all.end()); // the machine's move as it learns
  for (const Machine::Configuration &from : configurations)
    compose(machine, from, tokens_.trie(length, first), local(machine, from, length, first), mask);
}

void MaskCache::compose(Machine &machine, const Machine::Configuration &from, const TokenTrie &trie, const Local &l, std::span<uint32_t> mask) {
  const auto allowAll = [&](uint32_t n, uint32_t) {
    for (int32_t id : trie.tokens(n))
      allow(mask, id);
  };
  uint32_t caller = from.frame;
  while (caller != Machine::kBottom && grammar_.call(machine.frame(caller).call).counts())
    caller = machine.frame(caller).parent;
  if (machine.frame(caller).depth + l.highest > kMaxCallDepth) // what is allowed depends on the depth
    return walkTrie(machine, trie, 0, machine.setOf(from), allowAll);
  for (size_t i = 0; i < std::min(mask.size(), l.words.size()); ++i)
    mask[i] |= l.words[i];
  for (int32_t id : l.ids)
    allow(mask, id);
  if (caller == Machine::kBottom || l.leaves.empty())
    return; // nothing follows
  const uint32_t behind = machine.afterReturn(caller);
  for (uint32_t leaf : l.leaves)
    walkTrie(machine, trie, leaf, behind, allowAll);
}

void MaskCache::forgetIfLarge() {
  if (bytes_ <= kMostBytes)
    return;
  locals_.clear();
  masks_.clear();
  bytes_ = 0;
}

void MaskCache::add(Machine &machine, uint32_t set, bool first, std::span<uint32_t> mask) {
  const std::lock_guard lock(mutex_);
  forgetIfLarge();
  for (GrammarTokens::Length length : {GrammarTokens::Short, GrammarTokens::Long}) // short ones, nearly all, tell fewer counters apart
    add(machine, set, length, first, mask);
}

void MaskCache::add(Machine &machine, uint32_t set, GrammarTokens::Length length, bool first, std::span<uint32_t> mask) {
  Key key{uint32_t(length) * 2 + (first && tokens_.firstDiffers()), uint32_t(mask.size())};
  for (const Machine::Configuration &from : machine.configurations(set)) {
    const Key part = keyOf(machine, from, longestOf(length), true);
    key.push_back(uint32_t(part.size()));
    key.insert(key.end(), part.begin(), part.end());
    if (key.size() > kMostKeyLength)
      return compose(machine, set, length, first, mask);
  }
  auto at = masks_.find(key);
  if (at == masks_.end()) {
    std::vector<uint32_t> made(mask.size());
    compose(machine, set, length, first, made);
    bytes_ += 200 + 4 * (key.size() + made.size());
    at = masks_.emplace(std::move(key), std::move(made)).first;
  }
  for (size_t i = 0; i < mask.size(); ++i)
    mask[i] |= at->second[i];
}

} // namespace llmc
