//===- ScheduleFlags.h - how requests share the machine ---------*- C++ -*-===//
#ifndef LLMC_RUNTIME_TOOL_SCHEDULEFLAGS_H
#define LLMC_RUNTIME_TOOL_SCHEDULEFLAGS_H

#include "runtime/engine/Engine.h"
#include "runtime/tool/Flags.h"

namespace llmc {

/// docs/scheduling.md.
struct ScheduleFlags {
  std::string policy = "fcfs", batching = "continuous", kv = "paged", overlap = "auto";
  uint64_t maxRunning = 0, tokenBudget = 0, chunk = 0; // 0: the package's limits
  uint64_t ageing = 256;
  uint64_t kvTokens = 0; // of the pool, used at most; 0: all
  bool prefixCache = true;

  EngineOptions engineOptions() const;
  /// For a model with contexts of `maxContext` tokens.
  SchedulerOptions schedulerOptions(uint64_t maxContext) const;
  /// Whether there is one: not with --kv=contiguous.
  bool hasPrefixCache() const { return prefixCache && kv == "paged"; }

private:
  /// What EngineOptions and SchedulerOptions have both.
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
