//===- RandomSteps.h - ragged steps over a paged cache ----------*- C++ -*-===//
//
// Sequences that begin, continue over several steps, share full blocks of a common beginning and end; blocks
// in no order. Row counts of every size class that kernels have variants for, rarely a multiple of anything.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_RANDOMSTEPS_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_RANDOMSTEPS_H

#include "llmc/abi.h"

#include <cstdint>
#include <vector>

namespace llmc::kernel_check {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  /// least .. most, both included.
  uint32_t between(uint32_t least, uint32_t most) { return least + uint32_t(next() % (uint64_t(most) - least + 1)); }
  bool chance(uint32_t percent) { return next() % 100 < percent; }

private:
  uint64_t state_;
};

/// The arrays of one step.
struct RandomStep {
  std::vector<int32_t> ids, positions, slots, starts, lengths, rows, table;
  uint32_t stride = 0; // of the table
  bool generated = false; // not of prompts

  uint32_t tokens() const { return uint32_t(ids.size()); }
  uint32_t sequences() const { return uint32_t(lengths.size()); }
  /// Valid until the step changes or moves.
  llmc_step_v1 view();

private:
  llmc_kv_view_v1 kv_{};
};

class RandomSteps {
public:
  /// `maxTokens`: of one step, at most the module's.
  RandomSteps(const llmc_module_v1 &module, uint32_t numBlocks, uint32_t maxTokens, uint64_t seed);

  /// The next step; valid until the next call. It must be executed: the next one continues its sequences.
  RandomStep &next();

private:
  struct Sequence {
    uint32_t length = 0;
    std::vector<int32_t> blocks;
    bool used = false; // in the step under construction
  };

  uint32_t chooseTokens();
  std::vector<uint32_t> shares(uint32_t tokens);
  Sequence *chooseSequence(uint32_t tokens);
  Sequence *begin();
  void release(size_t sequence);
  bool reserve(Sequence &sequence, uint32_t tokens);
  void append(Sequence &sequence, uint32_t tokens);
  void chooseRows();
  void dropSlots();
  void writeTable(const std::vector<Sequence *> &members);

  uint32_t vocab_, maxSeqs_, maxLogits_, maxContext_, numBlocks_, maxTokens_;
  Random random_;
  bool phases_;       // prompts have kernels of their own
  uint32_t made_ = 0; // steps
  std::vector<Sequence *> members_;
  std::vector<Sequence> live_;
  std::vector<uint32_t> references_; // of each block
  std::vector<int32_t> free_;        // in no order
  RandomStep step_;
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_RANDOMSTEPS_H
