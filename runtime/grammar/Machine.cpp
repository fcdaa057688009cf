//===- Machine.cpp --------------------------------------------------------===//
#include "runtime/grammar/Machine.h"
#include "runtime/grammar/GrammarBuilder.h"
#include "runtime/grammar/GrammarLimits.h"

#include <algorithm>

namespace llmc {

namespace {

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ b * 0x9E3779B97F4A7C15ull) * 0xD6E8FEB86659FD93ull;
  return x ^ x >> 32;
}

} // namespace

Machine::Machine(const Grammar &grammar) : grammar_(&grammar), classes_(grammar.byteClasses()) {
  frames_.push_back({0, 0, 0, 0}); // the bottom
  sets_.push_back({0, 0, false});  // dead
  next_.assign(classes_, kDead);
}

uint32_t Machine::push(uint32_t call, uint32_t count, uint32_t parent) {
  const Frame frame{call, count, parent, frames_[parent].depth + 1};
  const uint64_t hash = mix(mix(call, count), parent);
  for (auto [at, end] = frameIds_.equal_range(hash); at != end; ++at)
    if (frames_[at->second] == frame)
      return at->second;
  frames_.push_back(frame);
  frameIds_.emplace(hash, uint32_t(frames_.size()) - 1);
  return uint32_t(frames_.size()) - 1;
}

void Machine::begin() {
  open_.clear();
  made_.clear();
  seen_.clear();
  if (!manySeen_.empty())
    manySeen_.clear();
  accepting_ = false;
}

/// Unless it has been there, or too many calls would be in each other before the end.
void Machine::enter(uint32_t state, uint32_t frame) {
  const uint32_t depth = frames_[frame].depth + grammar_->state(state).height;
  highest_ = std::max(highest_, depth);
  if (depth > kMaxCallDepth)
    return;
  if (++work_ > kMaxMaskWork)
    throw GrammarError("the grammar can be read in too many ways here (over " + std::to_string(kMaxMaskWork) + " steps)");
  const Configuration c{state, frame};
  if (seen_.size() < kFewSeen ? std::find(seen_.begin(), seen_.end(), c) != seen_.end() : !manySeen_.insert(uint64_t(state) << 32 | frame).second)
    return;
  seen_.push_back(c);
  if (seen_.size() == kFewSeen)
    for (const Configuration &s : seen_)
      manySeen_.insert(uint64_t(s.state) << 32 | s.frame);
  open_.push_back(c);
}

/// The call of `frame` has ended once more.
void Machine::leave(uint32_t frame) {
  if (frame == kBottom) {
    accepting_ = true;
    return;
  }
  const Frame f = frames_[frame];
  const Grammar::Call &call = grammar_->call(f.call);
  const uint32_t count = f.count + 1;
  if (count < call.most)
    enter(call.entry, push(f.call, count, f.parent));
  if (count >= call.least)
    enter(call.to, f.parent);
}

/// Follows calls, ends and jumps up to states that take a byte.
void Machine::settle() {
  while (!open_.empty()) {
    const auto [state, frame] = open_.back();
    open_.pop_back();
    if (!grammar_->edges(state).empty()) {
      made_.push_back({state, frame});
      if (made_.size() > kMaxConfigurations)
        throw GrammarError("the grammar can be read in more than " + std::to_string(kMaxConfigurations) + " ways here");
    }
    for (uint32_t jump : grammar_->jumps(state))
      enter(jump, frame);
    for (uint32_t c : grammar_->calls(state)) {
      const Grammar::Call &call = grammar_->call(c);
      const uint32_t needs = frames_[frame].depth + std::max(grammar_->state(call.entry).height + 1, grammar_->state(call.to).height);
      highest_ = std::max(highest_, needs);
      if (grammar_->isTailCall(call))
        enter(call.entry, frame);
      else if (needs <= kMaxCallDepth)
        enter(call.entry, push(c, 0, frame));
    }
    if (grammar_->state(state).end)
      leave(frame);
  }
}

uint32_t Machine::intern() {
  if (made_.empty() && !accepting_)
    return kDead;
  std::sort(made_.begin(), made_.end());
  uint64_t hash = accepting_;
  for (const Configuration &c : made_)
    hash = mix(hash, uint64_t(c.state) << 32 | c.frame);
  for (auto [at, end] = setIds_.equal_range(hash); at != end; ++at)
    if (const Set &s = sets_[at->second]; s.accepting == accepting_ && std::ranges::equal(configurations(at->second), made_))
      return at->second;
  sets_.push_back({uint32_t(configurations_.size()), uint32_t(made_.size()), accepting_});
  configurations_.insert(configurations_.end(), made_.begin(), made_.end());
  next_.resize(next_.size() + classes_, kUnknown);
  setIds_.emplace(hash, uint32_t(sets_.size()) - 1);
  return uint32_t(sets_.size()) - 1;
}

uint32_t Machine::start() { return setOf({grammar_->start(), kBottom}); }

uint32_t Machine::setOf(const Configuration &configuration) {
  begin();
  enter(configuration.state, configuration.frame);
  settle();
  return intern();
}

uint32_t Machine::afterReturn(uint32_t frame) {
  begin();
  leave(frame);
  settle();
  return intern();
}

uint32_t Machine::compute(uint32_t set, uint8_t byte) {
  begin();
  const Set from = sets_[set];
  for (uint32_t i = from.first; i < from.first + from.count; ++i) {
    const auto [state, frame] = configurations_[i];
    for (const Grammar::Edge &edge : grammar_->edges(state))
      if (edge.first <= byte && byte <= edge.last)
        enter(edge.to, frame);
  }
  settle();
  const uint32_t to = intern();
  next_[size_t(set) * classes_ + grammar_->byteClass(byte)] = to;
  return to;
}

size_t Machine::bytes() const {
  return (frames_.size() + sets_.size()) * 48 + configurations_.size() * sizeof(Configuration) + next_.size() * sizeof(uint32_t);
}

uint32_t Machine::keepOnly(uint32_t set) {
  Machine fresh(*grammar_);
  std::unordered_map<uint32_t, uint32_t> moved{{kBottom, kBottom}};
  fresh.begin();
  fresh.accepting_ = accepting(set);
  for (Configuration c : configurations(set)) {
    std::vector<uint32_t> path; // from the top down to what has moved
    for (uint32_t f = c.frame; !moved.contains(f); f = frames_[f].parent)
      path.push_back(f);
    for (; !path.empty(); path.pop_back()) {
      const Frame &f = frames_[path.back()];
      moved[path.back()] = fresh.push(f.call, f.count, moved[f.parent]);
    }
    fresh.made_.push_back({c.state, moved[c.frame]});
  }
  const uint32_t kept = fresh.intern();
  *this = std::move(fresh);
  return kept;
}

} // namespace llmc
