//===- Executor.h - walks a program's launch list ---------------*- C++ -*-===//
//
// A program (llmc_program_v1) is a list of launches; each is executed by all
// threads, which take shares of its units from an atomic counter, and is complete
// before the next. Units are independent, so the result does not depend on who
// computes which. Arguments become pointers once, at load; only the pointers into
// the step change.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_EXECUTOR_H
#define LLMC_RUNTIME_DEVICE_CPU_EXECUTOR_H

#include "llmc/abi.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace llmc {

/// The inputs of a step that kernels index, copied and padded to LLMC_ROW_PAD rows: token id 0,
/// position 0, slot -1 (nowhere), logits row 0 beyond the end. Allocated once.
class StepBuffers {
public:
  StepBuffers(const llmc_module_v1 &module, uint32_t maxTokens);
  void fill(const llmc_step_v1 &step);
  /// The query tiles of the step for a row block; `rowBlock` was passed to addRowBlock().
  const std::vector<llmc_query_tile> &tiles(uint32_t rowBlock) const { return tiles_.at(rowBlock); }
  void addRowBlock(uint32_t rowBlock);

  uint32_t tokens = 0, sequences = 0, logitsRows = 0;
  std::vector<int32_t> ids, positions, slots, rows;
  const int32_t *blockTable = nullptr;
  const float *embeddings = nullptr;

private:
  uint32_t maxTokens_;
  std::map<uint32_t, std::vector<llmc_query_tile>> tiles_;
};

struct ProgramBases {
  std::byte *arena = nullptr;
  const std::byte *weights = nullptr;
  std::vector<std::byte *> kv; // block 0, per KV group
};

/// Around every launch; slower than running without.
struct LaunchHooks {
  /// May replace pointers of the launch's arguments.
  std::function<void(const llmc_launch_v1 &, void **args)> before;
  std::function<void(const llmc_launch_v1 &, const llmc_variant_v1 &, uint32_t rows, double seconds)> after;
};

class Executor {
public:
  Executor(const llmc_program_v1 &program, StepBuffers &buffers);
  /// Resolves every argument that does not belong to the step.
  void bind(const ProgramBases &bases);
  /// Executes launches [first, stopAfter] (all from `first` on if stopAfter is negative).
  void run(ThreadPool &pool, const LaunchHooks *hooks, int32_t stopAfter = -1, uint32_t first = 0);

private:
  struct Plan { // of one launch in this step
    const llmc_variant_v1 *variant;
    uint32_t rows;
    int64_t units;
  };
  struct alignas(64) Counter {
    std::atomic<int64_t> next;
  };

  Plan plan(const llmc_launch_v1 &launch) const;
  void bindStep(uint32_t launch, const llmc_variant_v1 &variant);
  void work(uint32_t launch, int64_t threads);

  const llmc_program_v1 &program_;
  StepBuffers &buffers_;
  std::vector<void *> args_;         // of all launches, one after the other
  std::vector<uint32_t> firstArg_;   // per launch
  std::vector<Plan> plans_;
  std::unique_ptr<Counter[]> counters_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_EXECUTOR_H
