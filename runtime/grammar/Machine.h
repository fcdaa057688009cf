//===- Machine.h - a grammar made deterministic as it is used ---*- C++ -*-===//
//
// All ways in which the bytes so far may be read: a set of configurations, each a state of
// the grammar and a stack of calls. Stacks share their frames; sets that have been met
// have numbers, and what a byte makes of one is computed once.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_GRAMMAR_MACHINE_H
#define LLMC_RUNTIME_GRAMMAR_MACHINE_H

#include "runtime/grammar/Grammar.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace llmc {

class Machine {
public:
  static constexpr uint32_t kDead = 0; // the set without configurations
  static constexpr uint32_t kBottom = 0; // the frame below all

  /// A call that is under way.
  struct Frame {
    uint32_t call, count; // repetitions that have ended
    uint32_t parent, depth;
    bool operator==(const Frame &) const = default;
  };
  /// A state with edges, and the calls that led there.
  struct Configuration {
    uint32_t state, frame;
    auto operator<=>(const Configuration &) const = default;
  };

  explicit Machine(const Grammar &grammar);

  /// What can be read at the grammar's start.
  uint32_t start();
  uint32_t setOf(const Configuration &configuration);
  /// Where the rule that `frame` has called has ended.
  uint32_t afterReturn(uint32_t frame);
  uint32_t step(uint32_t set, uint8_t byte) {
    const size_t at = size_t(set) * classes_ + grammar_->byteClass(byte);
    return next_[at] != kUnknown ? next_[at] : compute(set, byte);
  }

  std::span<const Configuration> configurations(uint32_t set) const {
    return {configurations_.data() + sets_[set].first, sets_[set].count};
  }
  /// The text may end: the rule at the bottom has ended.
  bool accepting(uint32_t set) const { return sets_[set].accepting; }
  const Frame &frame(uint32_t f) const { return frames_[f]; }
  uint32_t push(uint32_t call, uint32_t count, uint32_t parent);

  /// Of what is remembered.
  size_t bytes() const;
  /// Forgets all but this set, and returns its new number.
  uint32_t keepOnly(uint32_t set);
  /// At least the depth of calls that any text met so far needs up to its end.
  uint32_t highest() const { return highest_; }
  /// kMaxMaskWork counts from here.
  void startWork() { work_ = 0; }

private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  struct Set {
    uint32_t first, count;
    bool accepting;
  };
  uint32_t compute(uint32_t set, uint8_t byte);
  void begin();
  void enter(uint32_t state, uint32_t frame);
  void settle();
  void leave(uint32_t frame);
  uint32_t intern();

  const Grammar *grammar_;
  uint32_t classes_;
  std::vector<Frame> frames_;
  std::unordered_multimap<uint64_t, uint32_t> frameIds_, setIds_; // by hash
  std::vector<Set> sets_;
  std::vector<Configuration> configurations_;
  std::vector<uint32_t> next_; // [sets, classes]
  uint64_t work_ = 0;
  uint32_t highest_ = 0;

  // Of the set that is being made:
  static constexpr size_t kFewSeen = 24; // are looked through; more are hashed
  std::vector<Configuration> open_, made_, seen_;
  std::unordered_set<uint64_t> manySeen_;
  bool accepting_ = false;
};

} // namespace llmc

#endif // LLMC_RUNTIME_GRAMMAR_MACHINE_H
