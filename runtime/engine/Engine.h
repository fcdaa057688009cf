//===- Engine.h - generates tokens for requests -----------------*- C++ -*-===//
//
// Requests become sequences, the scheduler says which tokens of which sequences the
// next step has, the device executes it. A token does not depend on what else was in
// its batch, nor on what of its prompt was found in the cache. Ids only: text is the
// caller's.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_ENGINE_H
#define LLMC_RUNTIME_ENGINE_ENGINE_H

#include "runtime/device/Device.h"
#include "runtime/engine/Batch.h"
#include "runtime/engine/BlockManager.h"
#include "runtime/engine/Sampler.h"
#include "runtime/engine/SamplingParams.h"
#include "runtime/engine/Scheduler.h"
#include "runtime/grammar/Constraint.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

enum class Finish { None, Stop, Length, CacheFull, Cancelled, Error };
const char *toString(Finish finish);

struct SampledToken {
  int32_t id;
  std::span<const TokenProbability> probabilities; // as SamplingParams::logprobs asks: its own first, then the likeliest
};

struct Sequence;
enum class Overlap { Auto, Off, On };

/// Its callbacks do not call the engine.
struct Request {
  std::vector<int32_t> prompt;
  SamplingParams sampling;     // its stop strings are the caller's business (onToken)
  std::vector<int32_t> eosIds; // the model's; end the sequence unless sampling.ignoreEos; not part of the output
  int32_t stopAfterOp = -1;    // for bisection: every step ends behind this op, nothing is sampled
  /// The blocks stay with the sequence when it ends, for a later submit() or release().
  bool keepCache = false;
  std::string cacheSalt; // prompts with different salts share no cached blocks: a tenant's name
  int64_t priority = 0;  // of the policy `priority`: higher goes first
  /// The answer is a text of its grammar, and ends when nothing can follow; null: any.
  std::shared_ptr<Constraint> constraint;
  /// Called with every generated token as it comes; returning false ends the request (Finish::Stop).
  std::function<bool(const SampledToken &)> onToken;
  /// Called once when the sequence has ended, however; in submit() already, where there is nothing to generate.
  std::function<void(const Sequence &)> onEnd;
};

struct Sequence : Job {
  Request request;
  Finish finish = Finish::None;
  std::string error;  // for Finish::Error
  int32_t stopId = -1; // the id that ended it, for Finish::Stop

  uint64_t generated() const { return ids.size() - request.prompt.size(); }
  std::span<const int32_t> output() const { return std::span(ids).subspan(request.prompt.size()); }

  // What the engine samples by.
  llmc_sampler_v1 sampler{};
  std::vector<int32_t> stopIds;   // of the model (unless ignored) and of the request
  std::vector<int32_t> biasIds;   // of the request, then stopIds
  uint32_t row = 0;               // of logits in the step that was started last, that chooses its pending token
  std::optional<Matcher> matcher;      // of the request's constraint
  std::vector<uint32_t> tokenMask;     // for the pending token
  std::vector<float> biasValues;  // for stopIds -infinity; they count before the least number of tokens is there
};

struct EngineOptions {
  uint32_t chunk = 0;   // prompt tokens of a sequence in a step, at most; 0: the module's limit
  uint64_t context = 0; // longest sequence; 0: the model's
  uint32_t tokenBudget = 0, maxRunning = 0; // tokens and sequences of a step, at most; 0: the module's limits
  Policy policy = Policy::FCFS;
  Batching batching = Batching::Continuous;
  uint32_t ageing = 256;    // SchedulerOptions::ageing
  uint32_t swapCost = 4;    // SchedulerOptions::swapCost; swapping needs a device with DeviceOptions::swapBytes
  KVLayout kv = KVLayout::Paged;
  uint64_t kvTokens = 0;    // of the device's pool, used at most; 0: all
  bool prefixCache = false; // blocks of equal text are computed once and stay findable (PrefixCache.h)
  /// Steps are planned and started while the one before runs (Auto: where the device returns before it has ended). What a step turns
  /// out to have computed for a sequence that had just ended is thrown away. Changes no token.
  Overlap overlap = Overlap::Auto;
  PrefixCache::Hash hash = nullptr; // of the prefix cache, for tests
};

class Engine {
public:
  explicit Engine(Device &device, const EngineOptions &options = {});
  /// Waits for what is under way.
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Throws Error for a prompt that is empty, has an id outside the vocabulary or can never fit, and for parameters out
  /// of range. `earlier`: an ended sequence that kept its blocks. They are taken over, with the keys and values of the
  /// longest prefix that it shares with the prompt; the last prompt token is always computed anew, for its logits.
  std::shared_ptr<Sequence> submit(Request request, const std::shared_ptr<Sequence> &earlier = nullptr);
  /// Another answer to the prompt of a sequence that is not at its end yet: shares the blocks of what is computed of it. All but
  /// the prompt may differ.
  std::shared_ptr<Sequence> fork(const Sequence &parent, Request request);
  /// Ends one step, and with overlap starts the next before that; false if no sequence is waiting or running.
  bool step();
  /// Submits and steps until this one has finished.
  std::shared_ptr<Sequence> generate(Request request, const std::shared_ptr<Sequence> &earlier = nullptr);
  /// Ends a sequence that is not at its end yet (Finish::Cancelled); does nothing otherwise.
  void cancel(const std::shared_ptr<Sequence> &sequence);
  /// Ends it with this error (Finish::Error); what it has computed is forgotten.
  void fail(const std::shared_ptr<Sequence> &sequence, const std::string &error);
  /// Gives the blocks of an ended sequence back.
  void release(Sequence &sequence);
  /// Throws Error for what submit() refuses. Reads only what does not change.
  void check(const Request &request) const;

  Device &device() { return device_; }
  const BlockManager &blocks() const { return blocks_; }
  const Scheduler &scheduler() const { return scheduler_; }
  uint64_t context() const { return context_; }
  /// Tokens of the longest sequence that context and cache can hold.
  uint64_t room() const;
  /// Sequences ended by logits that were not finite.
  uint64_t badRows() const { return badRows_; }
  /// What steps have spent in calls of the device, in all: to start them, and to wait for them.
  double startSeconds() const { return startSeconds_; }
  double waitSeconds() const { return waitSeconds_; }

private:
  std::shared_ptr<Sequence> prepare(Request request) const;
  std::shared_ptr<Sequence> start(std::shared_ptr<Sequence> sequence);
  /// A step under way.
  struct Flight {
    explicit Flight(const Device &device) : batch(device) {}
    Batch batch;
    llmc_step_v1 step{};
    std::vector<StepPart> parts;
    std::vector<Sequence *> constrained;          // choose a token by a mask
    std::vector<std::shared_ptr<Sequence>> ended; // meanwhile: kept until it has landed
    bool known = true; // the next step can take its tokens from the device
  };
  bool depart();
  void fill(Flight &flight, const StepPlan &plan);
  void start(Flight &flight, const StepPlan &plan);
  void fillMasks(Flight &flight);
  bool follow(Sequence &sequence, int32_t id);
  void expect(Flight &flight);
  void land();
  void rollBack();
  llmc_sampler_v1 samplerOf(const Sequence &sequence) const;
  void takeOver(Sequence &earlier, Sequence &sequence);
  void accept(Flight &flight, Sequence &sequence, uint32_t row);
  void end(Sequence &sequence, Finish finish);
  void endSpoiled(Sequence &sequence, const std::string &error);
  bool zeroSpoiled();

  Device &device_;
  uint64_t context_;
  BlockManager blocks_;
  Scheduler scheduler_;
  bool overlap_;
  bool contiguous_;
  Flight flights_[2];
  uint32_t first_ = 0, flying_ = 0; // flights_[first_] was started first
  std::map<const Job *, std::shared_ptr<Sequence>> active_;
  uint64_t badRows_ = 0;
  double startSeconds_ = 0, waitSeconds_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_ENGINE_H
