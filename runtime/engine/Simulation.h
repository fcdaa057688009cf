//===- Simulation.h - the scheduler against a model of time -----*- C++ -*-===//
//
// The engine's own Scheduler, BlockManager and PrefixCache; in the place of a device
// a function that says how long a step takes. A day of requests takes seconds.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_SIMULATION_H
#define LLMC_RUNTIME_ENGINE_SIMULATION_H

#include "runtime/engine/Scheduler.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace llmc {

struct SimulatedRequest {
  double arrival = 0; // seconds
  uint64_t prompt = 1, output = 1; // tokens
  int64_t priority = 0;
  /// Requests with the same name have the same first `prefixTokens` of the prompt.
  std::string prefix;
  uint64_t prefixTokens = 0;
  std::string salt;
  std::vector<int32_t> ids; // of the prompt; empty: any, equal where prefixes say so
};

/// Ids of prompts that have none, below `vocab` (0: any): equal where two prefixes are, otherwise new ones.
class PromptIds {
public:
  explicit PromptIds(uint32_t vocab = 0) : vocab_(vocab) {}
  std::vector<int32_t> operator()(const SimulatedRequest &request);

private:
  uint32_t vocab_, next_ = 0;
};

/// Seconds of a step: between the points (tokens, seconds) linear, behind the last one with the last slope; and for each token in
/// the cache of a sequence of the step.
struct StepCost {
  std::vector<std::pair<double, double>> points; // at least one, tokens ascending
  double perCachedToken = 0;

  double operator()(uint64_t tokens, uint64_t cachedTokens) const;
  /// "1=0.0033,64=0.004,512=0.02". Throws Error.
  static std::vector<std::pair<double, double>> parsePoints(const std::string &text);
};

/// Of values added in any order.
class Percentiles {
public:
  void add(double value) { values_.push_back(float(value)); }
  size_t count() const { return values_.size(); }
  /// The smallest value that `share` (0 to 1) of all do not exceed; 0 of none.
  double at(double share) const;
  double mean() const;

private:
  mutable std::vector<float> values_;
};

struct SimulationResult {
  Percentiles queue, firstToken, interToken; // seconds: until a request's first step, its first token, from token to token
  uint64_t finished = 0, refused = 0, cut = 0; // cut: by the pool, as Finish::CacheFull
  uint64_t steps = 0, preemptions = 0;
  uint64_t promptTokens = 0, cachedTokens = 0, outputTokens = 0; // cached: of the prompts
  uint64_t computedTokens = 0; // with those of preempted requests again
  double seconds = 0, busy = 0; // of the whole; with a step running
  double poolUsed = 0;          // mean share of the pool that requests hold while steps run
  double saturated = 0, poolUsedSaturated = 0; // seconds of steps while requests wait for a place, and the share then

  /// A step of `seconds` with so many blocks of the pool held and requests waiting; the shares are sums until finish().
  void count(double stepSeconds, const BlockManager &blocks, size_t waiting);
  void finish();
};

/// `requests` in order of arrival. Throws Error where they are not.
SimulationResult simulate(std::span<const SimulatedRequest> requests, const SchedulerOptions &options, uint32_t blocks, bool prefixCache,
                          const StepCost &cost);

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SIMULATION_H
