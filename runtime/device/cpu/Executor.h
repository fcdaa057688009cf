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
#include "runtime/device/StepBuffers.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace llmc {

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
  Executor(const llmc_program_v1 &program, const StepBuffers &buffers);
  /// Resolves every argument that does not belong to the step.
  void bind(const ProgramBases &bases);
  /// Executes launches [first, stopAfter] (all from `first` on if stopAfter is negative). `seconds`, by launch, gets what each
  /// took until all threads met behind it; not with hooks.
  void run(ThreadPool &pool, const LaunchHooks *hooks, int32_t stopAfter = -1, uint32_t first = 0, double *seconds = nullptr);

private:
  struct alignas(64) Counter {
    std::atomic<int64_t> next;
  };

  void bindStep(uint32_t launch, const llmc_variant_v1 &variant);
  void work(uint32_t launch, int64_t threads);

  const llmc_program_v1 &program_;
  const StepBuffers &buffers_;
  std::vector<void *> args_;         // of all launches, one after the other
  std::vector<uint32_t> firstArg_;   // per launch
  std::vector<LaunchPlan> plans_;
  std::unique_ptr<Counter[]> counters_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_EXECUTOR_H
