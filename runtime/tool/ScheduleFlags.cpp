//===- ScheduleFlags.cpp --------------------------------------------------===//
#include "runtime/tool/ScheduleFlags.h"

namespace llmc {

EngineOptions ScheduleFlags::engineOptions() const {
  EngineOptions options;
  applyTo(options);
  options.kv = kvLayoutNamed(kv);
  options.kvTokens = kvTokens;
  options.overlap = overlap == "auto" ? Overlap::Auto : overlap == "on" ? Overlap::On : Overlap::Off;
  options.prefixCache = hasPrefixCache();
  return options;
}

SchedulerOptions ScheduleFlags::schedulerOptions(uint64_t maxContext) const {
  SchedulerOptions options;
  applyTo(options);
  if (kvLayoutNamed(kv) == KVLayout::Contiguous)
    options.reserve = blocksOf(maxContext);
  return options;
}

void addScheduleFlags(CLI::App &app, ScheduleFlags &flags) {
  addChoice(app, "--policy", flags.policy, {"fcfs", "priority", "shortest-first"}, "whose tokens go first (default fcfs)");
  addChoice(app, "--batching", flags.batching, {"continuous", "static"},
            "static: nobody joins before all have finished, for comparison (default continuous)");
  addChoice(app, "--kv", flags.kv, {"paged", "contiguous"},
            "contiguous: a request takes the room of the longest one, in one piece and without a prefix cache, for comparison (default paged)");
  addCount(app, "--kv-tokens", flags.kvTokens, "tokens of the KV cache that are used, at most (default: all)", 1, 1ull << 36);
  addCount(app, "--max-running", flags.maxRunning, "requests that are worked on at a time, at most (default: the package's limit)", 1, 1 << 20);
  addCount(app, "--token-budget", flags.tokenBudget, "tokens of a step, at most (default: the package's limit)", 1, 1 << 30);
  addCount(app, "--chunk", flags.chunk, "prompt tokens of a request in a step, at most (default: --token-budget)", 1, 1 << 30);
  addCount(app, "--ageing", flags.ageing,
           "steps of waiting that count as much as 1 of priority, or as 256 tokens less of size (default 256)", 1, 1 << 30);
  addChoice(app, "--overlap", flags.overlap, {"auto", "off", "on"},
            "start a step before the host has the tokens of the one before; auto: on GPUs (default auto)");
  addPrefixCacheFlag(app, flags.prefixCache, "off: compute common beginnings of prompts for each of them (default on)");
  for (const char *flag : {"--policy", "--batching", "--kv", "--kv-tokens", "--max-running", "--token-budget", "--chunk", "--ageing", "--overlap", "--prefix-cache"})
    app.get_option(flag)->group("Scheduling");
}

} // namespace llmc
