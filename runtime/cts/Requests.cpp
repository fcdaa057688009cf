//===- Requests.cpp - many requests at a time and each alone --------------===//
#include "runtime/cts/Suite.h"
#include "runtime/cts/Traces.h"

#include <cstdio>

namespace llmc::cts {

namespace {

// On a GPU steps of other sizes round differently (Suite.h): there every request must end and give its blocks back.
void traces(Player &p) {
  TraceOptions options;
  options.exact = p.onCpu();
  if (!p.quick)
    options.longestPrompt = 240;
  Traces traces(5, options);
  for (unsigned i = 0; i < p.traces; ++i)
    traces.play(p.device);
  const TraceCounts &c = traces.counts();
  std::printf("     %u traces, %llu requests (%llu cancelled), %llu tokens generated, %llu prompt tokens cached, %llu preemptions, %llu by swapping\n",
              p.traces, static_cast<unsigned long long>(c.requests), static_cast<unsigned long long>(c.cancelled),
              static_cast<unsigned long long>(c.tokens), static_cast<unsigned long long>(c.cached),
              static_cast<unsigned long long>(c.preempted), static_cast<unsigned long long>(c.swapped));
}

} // namespace

void addRequests(Checks &checks) { checks.push_back({"many requests and each alone", traces}); }

} // namespace llmc::cts
