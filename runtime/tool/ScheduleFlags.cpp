//===- ScheduleFlags.cpp --------------------------------------------------===//
#include "runtime/tool/ScheduleFlags.h"

namespace llmc {

void addScheduleFlags(CLI::App &app, ScheduleFlags &flags) {
  addChoice(app, "--policy", flags.policy, {"fcfs", "priority", "shortest-first"}, "whose tokens go first (default fcfs)");
  addChoice(app, "--batching", flags.batching, {"continuous", "static"},
            "static: nobody joins before all have finished, for comparison (default continuous)");
  addCount(app, "--max-running", flags.maxRunning, "requests that are worked on at a time, at most (default: the package's limit)", 1, 1 << 20);
  addCount(app, "--token-budget", flags.tokenBudget, "tokens of a step, at most (default: the package's limit)", 1, 1 << 30);
  addCount(app, "--chunk", flags.chunk, "prompt tokens of a request in a step, at most (default: --token-budget)", 1, 1 << 30);
  addCount(app, "--ageing", flags.ageing,
           "steps of waiting that count as much as 1 of priority, or as 256 tokens less of size (default 256)", 1, 1 << 30);
  addPrefixCacheFlag(app, flags.prefixCache, "off: compute common beginnings of prompts for each of them (default on)");
  for (const char *flag : {"--policy", "--batching", "--max-running", "--token-budget", "--chunk", "--ageing", "--prefix-cache"})
    app.get_option(flag)->group("Scheduling");
}

} // namespace llmc
