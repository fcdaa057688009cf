//===- Scheduler.h - which tokens of whom are in the next step --*- C++ -*-===//
//
// Iteration-level scheduling (Orca: Yu et al., OSDI 2022) over paged blocks: before
// every step finished jobs have left, and waiting ones join while a step has room.
// A step takes, of a budget of tokens,
//   1. the next token of every running job that generates,
//   2. chunks of the prompts of running jobs,
//   3. the first chunks of waiting jobs (Sarathi: Agrawal et al., OSDI 2024),
// each in the order of the policy. A job is admitted when the blocks of all its ids are
// free beside what the running ones are about to need. Where a running job finds no
// block, the lowest-ranked one gives all of its blocks back and waits again; its keys and
// values are computed anew later, or wait in host memory (preemption by recompute, by swap).
//
// No device and no clock: plain data in, plain data out, so that `simulate` and the tests
// run this very code. Waiting is counted in steps.
//
// Why it always goes on: the job of the highest rank can take blocks from all others that
// are not in the step, and these finish a token each; a job that does not fit the pool
// alone is refused before it gets here.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_SCHEDULER_H
#define LLMC_RUNTIME_ENGINE_SCHEDULER_H

#include "runtime/device/KVBlocks.h"
#include "runtime/engine/BlockManager.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmc {

enum class Policy {
  FCFS,         ///< in order of arrival
  Priority,     ///< the highest Job::priority first
  ShortestFirst ///< the least Job::size first
};
enum class Batching {
  Continuous,
  Static ///< as many as find room begin together, and nobody joins before all have finished: for comparison
};

enum class KVLayout {
  Paged,
  Contiguous ///< a job takes the room of the longest one when it is admitted, in one piece: for comparison
};

const char *toString(Policy policy);
/// Throws Error for a name that is none of "fcfs", "priority", "shortest-first".
Policy policyNamed(std::string_view name);
/// "continuous", "static"
Batching batchingNamed(std::string_view name);
/// "paged", "contiguous"
KVLayout kvLayoutNamed(std::string_view name);

struct SchedulerOptions {
  Policy policy = Policy::FCFS;
  Batching batching = Batching::Continuous;
  uint32_t tokenBudget = 0; // tokens of a step
  uint32_t maxRunning = 0;  // jobs that have blocks at a time
  uint32_t chunk = 0;       // tokens of a job in a step
  /// Steps of waiting that count as much as 1 of priority, or as kAgeingTokens less of size: nobody waits for ever.
  uint32_t ageing = 256;
  /// Blocks that a job takes when it is admitted (KVLayout::Contiguous); 0: as it needs them. As everybody takes and gives back as
  /// many, and what is given back last is taken first, they follow each other.
  uint64_t reserve = 0;
  /// Places in host memory for blocks of preempted jobs, and the tokens that take as long to compute as a block to go there and
  /// come back: where a job's tokens are more, and there is room, it is swapped instead of computed anew.
  uint32_t swapSlots = 0, swapCost = 4;
  /// Prompts have another arithmetic than generated ids: a part of a step is of one of them, and the prefix cache has prompts alone.
  bool phases = false;
};

/// `wanted`, where 0 stands for as many as a step takes, within what a step takes.
SchedulerOptions within(SchedulerOptions wanted, uint32_t maxTokens, uint32_t maxSeqs, uint32_t maxLogits);

/// A sequence as the scheduler sees it. Whoever adds a job keeps it where it is until it is removed.
struct Job {
  static constexpr uint64_t kAgeingTokens = 256;

  std::vector<int32_t> ids; // prompt, then generated; its owner appends to it
  uint64_t promptLength = 0;
  uint64_t size = 0; // ids at its end, as far as the request tells
  int64_t priority = 0;
  std::string cacheSalt; // prompts with different salts share no cached blocks: a tenant's name

  // The scheduler's from add() to remove():
  std::vector<int32_t> blocks;   // block table
  PrefixCache::Cursor published; // of blocks, in the prefix cache
  std::vector<int32_t> slots;    // in host memory, where its blocks are while it waits
  uint64_t computed = 0;         // ids whose keys and values are in the cache, those of the planned step included
  uint64_t cached = 0;           // of the prompt, found in the cache
  uint32_t preemptions = 0;

  // Its owner's, who may plan a step before the one before has ended:
  uint32_t pending = 0; // ids behind those, of steps under way
  bool closing = false; // the last of them ends the job: nothing more is planned, its blocks stay until remove()

  uint64_t length() const { return ids.size() + pending; }
  uint64_t left() const { return length() - computed; }
  bool generating() const { return left() == 1 && length() > promptLength; }

private:
  friend class Scheduler;
  enum class State { Outside, Waiting, Running } state = State::Outside;
  uint64_t arrival = 0, waited = 0, joined = 0; // number; steps before `joined`; step of the last time that it came to wait
  int64_t rank = 0;                             // of a running job, less is better: as it was when it was admitted
  bool planned = false;
};

struct StepPart {
  Job *job;
  uint64_t first; // ids [first, first + count)
  uint32_t count;
  bool last; // the id behind the last one is to be chosen

  bool generated() const { return first >= job->promptLength; }
};

struct StepPlan {
  std::vector<StepPart> parts;
  // Before the step, in this order: blocks to slots, blocks to blocks, slots to blocks.
  std::vector<std::pair<int32_t, int32_t>> swapOuts, copies, swapIns;
  uint32_t tokens = 0, preempted = 0;
  /// The first of all jobs, if nobody can go on: blocks are held by others than jobs.
  Job *stuck = nullptr;
};

class Scheduler {
public:
  /// `blocks` outlives it.
  Scheduler(BlockManager &blocks, const SchedulerOptions &options);

  /// The job waits from now on. It may bring blocks in which its first `computed` ids are.
  void add(Job &job);
  /// Takes a job out; `keepBlocks`: they stay with it.
  void remove(Job &job, bool keepBlocks = false);
  /// Chooses the next step and counts it as executed: Job::computed, and full blocks are in the prefix cache, so that jobs of
  /// this very step share them (a step writes all its keys and values of a layer before it reads any).
  const StepPlan &plan();
  /// Takes the last plan back, or the parts of earlier ones, later ones first: the step failed.
  void undo() { undo(plan_.parts); }
  void undo(std::span<const StepPart> parts);

  bool empty() const { return running_.empty() && waiting_.empty(); }
  size_t running() const { return running_.size(); }
  size_t waiting() const { return waiting_.size(); }
  uint64_t steps() const { return step_; }
  uint64_t preemptions() const { return preemptions_; } // by swapping, too
  uint64_t swaps() const { return swaps_; }
  size_t freeSlots() const { return freeSlots_.size() + leftSlots_.size(); }

private:
  struct Before {
    bool operator()(const Job *a, const Job *b) const;
  };
  int64_t weight(const Job &job) const;
  bool outranks(const Job &waiting, const Job &running) const;
  void makeRoomForUrgent();
  void planRunning(bool generating);
  void admit();
  bool enter(Job &job);
  uint64_t blocksToEnter(const Job &job) const;
  uint64_t blocksFor(const Job &job, uint64_t tokens) const;
  uint64_t shareable(const Job &job, uint64_t ids) const { return options_.phases ? std::min(ids, job.promptLength) : ids; }
  uint64_t promised() const;
  bool makeFree(Job &job);
  bool add(Job &job, uint32_t count);
  void publish(Job &job);
  Job *victimOf(const Job &job) const;
  bool stripWaiting(const Job &job);
  void giveBack(Job &job);
  bool swapOut(Job &job);
  void swapIn(Job &job);
  void preempt(Job &job);
  void wait(Job &job);

  BlockManager &blocks_;
  SchedulerOptions options_;
  std::vector<Job *> running_;      // by rank
  std::set<Job *, Before> waiting_; // likewise
  size_t bringers_ = 0;             // waiting jobs that have blocks
  bool closed_ = false;             // Batching::Static: nobody joins
  StepPlan plan_;
  uint64_t step_ = 0, arrivals_ = 0, preemptions_ = 0, swaps_ = 0;
  std::vector<int32_t> freeSlots_, leftSlots_; // left in this plan, whose first copies are to slots: free for the next
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_SCHEDULER_H
