//===- Traces.h - random requests through an engine -------------*- C++ -*-===//
//
// A trace is an engine with options at random (policy, chunks, budget, pool, caches,
// overlap) and requests that come, fork and are cancelled at random. Every answer must be
// the one that the same request gets alone in an engine without any of this.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_CTS_TRACES_H
#define LLMC_RUNTIME_CTS_TRACES_H

#include "runtime/engine/Engine.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace llmc::cts {

struct TraceOptions {
  uint64_t longestPrompt = 60, mostTokens = 30;
  int32_t badToken = -1; // one after which no logits are finite; -1: there is none
  bool exact = true;     // ids are compared, not only that every request ends
};

struct TraceCounts {
  uint64_t requests = 0, tokens = 0; // tokens: generated
  uint64_t cached = 0, preempted = 0, swapped = 0, failed = 0, cancelled = 0;
};

class Traces {
public:
  Traces(unsigned seed, const TraceOptions &options) : options_(options), random_(seed) {}

  uint64_t below(uint64_t n) { return random_() % n; }
  /// One trace. Throws Error that says which request got another answer, or what was left behind.
  void play(Device &device);
  const TraceCounts &counts() const { return counts_; }

private:
  struct Asked {
    Request request;
    std::shared_ptr<Sequence> sequence;
  };
  Request request(uint64_t room, uint32_t vocab);
  EngineOptions engineOptions(const Device &device);
  void ask(Engine &engine, std::vector<Asked> &asked);
  void compare(Engine &alone, const Asked &asked) const;

  TraceOptions options_;
  std::mt19937 random_;
  TraceCounts counts_;
  unsigned played_ = 0;
};

} // namespace llmc::cts

#endif // LLMC_RUNTIME_CTS_TRACES_H
