//===- ScheduleFlags.h - how requests share the machine ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_SCHEDULEFLAGS_H
#define LLMC_RUNTIME_TOOL_SCHEDULEFLAGS_H

#include "runtime/engine/Scheduler.h"
#include "runtime/tool/Flags.h"

namespace llmc {

/// docs/scheduling.md.
struct ScheduleFlags {
  std::string policy = "fcfs", batching = "continuous";
  uint64_t maxRunning = 0, tokenBudget = 0, chunk = 0; // 0: the package's limits
  uint64_t ageing = 256;
  bool prefixCache = true;

  /// All but the prefix cache, to EngineOptions or SchedulerOptions.
  template <typename Options> void applyTo(Options &options) const {
    options.policy = policyNamed(policy);
    options.batching = batchingNamed(batching);
    options.maxRunning = uint32_t(maxRunning);
    options.tokenBudget = uint32_t(tokenBudget);
    options.chunk = uint32_t(chunk);
    options.ageing = uint32_t(ageing);
  }
};

void addScheduleFlags(CLI::App &app, ScheduleFlags &flags);

} // namespace llmc

#endif // LLMC_RUNTIME_TOOL_SCHEDULEFLAGS_H
