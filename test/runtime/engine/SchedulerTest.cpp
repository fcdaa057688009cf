#include "test/ErrorOf.h"
#include "llmc/abi.h"
#include "runtime/engine/Scheduler.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>

using namespace llmc;

namespace {

struct Task : Job {
  uint64_t outputs = 1;   // tokens that it generates
  uint64_t doneAt = 0;    // step
  uint64_t firstAt = 0;
};

SchedulerOptions options(uint32_t budget = 32, uint32_t running = 4, uint32_t chunk = 32) {
  SchedulerOptions o;
  o.tokenBudget = budget;
  o.maxRunning = running;
  o.chunk = chunk;
  return o;
}

std::unique_ptr<Task> task(std::vector<int32_t> prompt, uint64_t outputs, int64_t priority = 0) {
  auto t = std::make_unique<Task>();
  t->ids = std::move(prompt);
  t->promptLength = t->ids.size();
  t->size = t->promptLength + outputs;
  t->outputs = outputs;
  t->priority = priority;
  return t;
}

// The part of engine and device: what a step would write in the cache, and the check that a step reads what it should.
// A token's keys and values are stood for by a hash of all ids up to it, and where prompts have an arithmetic of their own by which had which.
class Machine {
public:
  Machine(BlockManager &blocks, const SchedulerOptions &options)
      : options_(options), blocks_(blocks), scheduler(blocks, options), cache_(blocks.total() * LLMC_KV_BLOCK),
        host_(options.swapSlots * LLMC_KV_BLOCK) {}

  /// One step with all invariants of a plan. False: nothing is left.
  bool step() {
    if (scheduler.empty())
      return false;
    const StepPlan &plan = scheduler.plan();
    EXPECT_EQ(plan.stuck, nullptr);
    EXPECT_FALSE(plan.parts.empty()) << "every step moves someone";
    EXPECT_LE(scheduler.running(), options_.maxRunning);
    auto copy = [](const auto &pairs, const auto &source, auto &target) {
      for (auto [from, to] : pairs)
        std::copy_n(source.begin() + from * LLMC_KV_BLOCK, LLMC_KV_BLOCK, target.begin() + to * LLMC_KV_BLOCK);
    };
    copy(plan.swapOuts, cache_, host_);
    copy(plan.copies, cache_, cache_);
    copy(plan.swapIns, host_, cache_);
    uint64_t tokens = 0;
    for (const StepPart &part : plan.parts) {
      tokens += part.count;
      if (options_.phases && !part.generated())
        EXPECT_LE(part.first + part.count, part.job->promptLength);
      EXPECT_LE(part.count, options_.chunk);
      EXPECT_LE(part.job->computed, part.job->ids.size());
      EXPECT_EQ(part.last, part.job->computed == part.job->ids.size());
    }
    EXPECT_EQ(tokens, plan.tokens);
    EXPECT_LE(tokens, options_.tokenBudget);
    EXPECT_GT(tokens, 0u);
    // All writes, then all reads; with phases those of prompts come first.
    if (!(options_.phases ? run(plan, false) && run(plan, true) : run(plan, {})))
      return false;
    const std::vector<StepPart> parts = plan.parts;
    for (const StepPart &part : parts)
      if (part.last)
        generate(static_cast<Task &>(*part.job));
    return true;
  }

  Scheduler &operator*() { return scheduler; }

private:
  /// The parts of one phase, or all. False: one reads what is not its own.
  bool run(const StepPlan &plan, std::optional<bool> generated) {
    auto takes = [&](const StepPart &part) { return !generated || part.generated() == *generated; };
    for (const StepPart &part : plan.parts)
      for (uint64_t p = part.first; takes(part) && p < part.first + part.count; ++p) {
        const int32_t block = part.job->blocks.at(p / LLMC_KV_BLOCK);
        if (p < part.first + part.count - 1 || part.job->computed % LLMC_KV_BLOCK) // full blocks are shared at once
          EXPECT_GE(blocks_.references(block), 1u);
        cache_[size_t(block) * LLMC_KV_BLOCK + p % LLMC_KV_BLOCK] = upTo(*part.job, p);
      }
    for (const StepPart &part : plan.parts)
      for (uint64_t p = 0; takes(part) && p < part.job->computed; ++p)
        if (cache_[size_t(part.job->blocks.at(p / LLMC_KV_BLOCK)) * LLMC_KV_BLOCK + p % LLMC_KV_BLOCK] != upTo(*part.job, p)) {
          ADD_FAILURE() << "position " << p << " holds another text";
          return false;
        }
    return true;
  }
  uint64_t upTo(const Job &job, uint64_t p) {
    uint64_t hash = std::hash<std::string>()(job.cacheSalt);
    for (uint64_t i = 0; i <= p; ++i)
      hash = hash * 6364136223846793005ull + uint64_t(job.ids[i]) + 1 + (options_.phases && i >= job.promptLength ? 1000 : 0);
    return hash;
  }
  void generate(Task &t) {
    if (!t.firstAt)
      t.firstAt = scheduler.steps();
    t.ids.push_back(int32_t(upTo(t, t.ids.size() - 1) % 3));
    if (t.ids.size() - t.promptLength < t.outputs)
      return;
    t.doneAt = scheduler.steps();
    scheduler.remove(t);
  }

  SchedulerOptions options_;
  BlockManager &blocks_;

public:
  Scheduler scheduler;

private:
  std::vector<uint64_t> cache_, host_;
};

std::vector<int32_t> prompt(size_t length, int32_t start = 0) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < length; ++i)
    ids.push_back(start + int32_t(i));
  return ids;
}

TEST(Scheduler, MixesChunksWithGeneratedTokens) {
  BlockManager blocks(64);
  Machine machine(blocks, options(16, 4, 16));
  auto a = task(prompt(4), 20), b = task(prompt(40), 2);
  machine.scheduler.add(*a);
  machine.step();
  machine.scheduler.add(*b);
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = a->ids.size();
    machine.step();
    EXPECT_EQ(a->ids.size(), before + 1) << "a long prompt delays nobody";
  }
  EXPECT_EQ(b->ids.size(), 41u) << "15 + 15 + 10";
  while (machine.step())
    ;
  EXPECT_EQ(blocks.available(), 64u);
}

// The order in which jobs that come at once get their first token, one running at a time.
std::vector<size_t> order(SchedulerOptions o, std::vector<std::unique_ptr<Task>> &tasks) {
  BlockManager blocks(64);
  o.maxRunning = 1;
  Machine machine(blocks, o);
  for (auto &t : tasks)
    machine.scheduler.add(*t);
  while (machine.step())
    ;
  std::vector<size_t> result(tasks.size());
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = i;
  std::sort(result.begin(), result.end(), [&](size_t x, size_t y) { return tasks[x]->firstAt < tasks[y]->firstAt; });
  return result;
}

TEST(Scheduler, Policies) {
  auto make = [] {
    std::vector<std::unique_ptr<Task>> tasks;
    tasks.push_back(task(prompt(30), 9, 0));
    tasks.push_back(task(prompt(10), 3, 1));
    tasks.push_back(task(prompt(20), 2, 7));
    tasks.push_back(task(prompt(10), 3, 1));
    return tasks;
  };
  auto tasks = make();
  EXPECT_EQ(order(options(), tasks), (std::vector<size_t>{0, 1, 2, 3}));
  SchedulerOptions o = options();
  o.policy = Policy::Priority;
  tasks = make();
  EXPECT_EQ(order(o, tasks), (std::vector<size_t>{2, 1, 3, 0}));
  o.policy = Policy::ShortestFirst;
  tasks = make();
  EXPECT_EQ(order(o, tasks), (std::vector<size_t>{1, 3, 2, 0}));
}

// An endless stream of urgent or short jobs does not keep the others waiting for ever.
TEST(Scheduler, WaitingCounts) {
  for (Policy policy : {Policy::Priority, Policy::ShortestFirst}) {
    SchedulerOptions o = options(32, 1);
    o.policy = policy;
    o.ageing = 8;
    BlockManager blocks(64);
    Machine machine(blocks, o);
    auto poor = task(prompt(300), 2, 0);
    machine.scheduler.add(*poor);
    std::vector<std::unique_ptr<Task>> stream;
    for (int i = 0; i < 300 && !poor->doneAt; ++i) {
      stream.push_back(task(prompt(5), 2, 3));
      machine.scheduler.add(*stream.back());
      machine.step();
      machine.step();
    }
    EXPECT_GT(poor->doneAt, 8u) << toString(policy) << ": the others went first for a while";
    EXPECT_LT(poor->doneAt, 200u) << toString(policy);
    while (machine.step())
      ;
  }
}

TEST(Scheduler, UrgentJobsTakeARunningOnesPlace) {
  SchedulerOptions o = options(32, 1);
  o.policy = Policy::Priority;
  BlockManager blocks(64);
  Machine machine(blocks, o);
  auto slow = task(prompt(10), 100, 0), equal = task(prompt(10), 1, 0), urgent = task(prompt(10), 3, 5);
  machine.scheduler.add(*slow);
  for (int i = 0; i < 5; ++i)
    machine.step();
  machine.scheduler.add(*equal);
  machine.step();
  EXPECT_EQ(slow->preemptions, 0u) << "only more priority does";
  machine.scheduler.add(*urgent);
  for (int i = 0; i < 3; ++i)
    machine.step();
  EXPECT_GT(urgent->doneAt, 0u);
  EXPECT_EQ(slow->preemptions, 1u);
  while (machine.step())
    ;
  EXPECT_EQ(slow->ids.size(), 110u);
}

TEST(Scheduler, StaticBatchesWaitForTheirLast) {
  SchedulerOptions o = options();
  o.batching = Batching::Static;
  BlockManager blocks(64);
  Machine machine(blocks, o);
  auto a = task(prompt(3), 2), b = task(prompt(3), 10), c = task(prompt(3), 1);
  machine.scheduler.add(*a);
  machine.scheduler.add(*b);
  machine.step();
  machine.scheduler.add(*c);
  while (machine.step())
    ;
  EXPECT_GT(c->firstAt, b->doneAt);
}

// A batch is as large as places and blocks allow, however few tokens a step takes.
TEST(Scheduler, AStaticBatchFormsOverSeveralSteps) {
  SchedulerOptions o = options(16, 3);
  o.batching = Batching::Static;
  BlockManager blocks(64);
  Machine machine(blocks, o);
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 5; ++i) {
    tasks.push_back(task(prompt(15, i * 100), 8));
    machine.scheduler.add(*tasks.back());
  }
  while (machine.step())
    ;
  for (int i : {1, 2})
    EXPECT_LT(tasks[i]->firstAt, tasks[0]->doneAt) << i;
  for (int i : {3, 4})
    EXPECT_GT(tasks[i]->firstAt, std::max({tasks[0]->doneAt, tasks[1]->doneAt, tasks[2]->doneAt})) << i;
}

// Whoever is admitted has the room of the longest, in one piece, whoever left before.
TEST(Scheduler, ContiguousBlocksAreRuns) {
  SchedulerOptions o = options();
  o.reserve = 4;
  BlockManager blocks(14);
  Machine machine(blocks, o);
  std::vector<std::unique_ptr<Task>> tasks;
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    tasks.push_back(task(prompt(1 + random() % 40, i * 100), 1 + random() % 24));
    machine.scheduler.add(*tasks.back());
  }
  size_t most = 0;
  while (machine.step()) {
    size_t running = 0;
    for (const auto &t : tasks)
      if (!t->blocks.empty()) {
        ++running;
        ASSERT_EQ(t->blocks.size(), 4u);
        for (int k = 1; k < 4; ++k)
          ASSERT_EQ(t->blocks[k], t->blocks[0] + k);
      }
    most = std::max(most, running);
  }
  EXPECT_EQ(most, 3u) << "14 blocks have room for three times four";
  EXPECT_EQ(machine.scheduler.preemptions(), 0u);
  EXPECT_EQ(blocks.available(), 14u);
}

// Who gives way with many tokens comes back without computing them again; with few, or without room, they are computed.
TEST(Scheduler, SwapsInsteadOfComputingAnew) {
  for (uint32_t slots : {0u, 2u, 16u}) {
    SchedulerOptions o = options();
    o.swapSlots = slots;
    BlockManager blocks(6);
    Machine machine(blocks, o);
    auto a = task(prompt(30), 60), b = task(prompt(30, 500), 60);
    machine.scheduler.add(*a);
    machine.scheduler.add(*b);
    while (machine.step())
      ;
    EXPECT_GT(machine.scheduler.preemptions(), 0u);
    EXPECT_EQ(machine.scheduler.swaps() > 0, slots == 16) << slots;
    EXPECT_EQ(machine.scheduler.freeSlots(), slots);
    EXPECT_EQ(a->ids.size() + b->ids.size(), 180u);
  }
}

// The pool holds three prompts but not what they grow to: the youngest gives way, all end, and none more than once a block.
TEST(Scheduler, PreemptsTheYoungestWhenThePoolIsFull) {
  BlockManager blocks(6);
  Machine machine(blocks, options());
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.push_back(task(prompt(15, i * 100), 60));
    machine.scheduler.add(*tasks.back());
  }
  uint64_t steps = 0;
  while (machine.step())
    ++steps;
  EXPECT_EQ(tasks[0]->preemptions, 0u);
  EXPECT_GT(tasks[2]->preemptions, 0u);
  EXPECT_LE(machine.scheduler.preemptions(), 4u);
  EXPECT_LT(steps, 190u);
  EXPECT_EQ(blocks.available(), 6u);
}

// What a preempted job had generated is computed anew as generated ids, in parts of their own, and shared with nobody.
TEST(Scheduler, PhasesStayApart) {
  BlockManager blocks(6, true);
  SchedulerOptions o = options();
  o.phases = true;
  Machine machine(blocks, o);
  auto a = task(prompt(15), 60), b = task(prompt(15), 60);
  machine.scheduler.add(*a);
  machine.scheduler.add(*b);
  while (machine.step())
    ;
  EXPECT_GT(b->preemptions, 0u);
  std::vector<int32_t> ids(a->ids.begin(), a->ids.begin() + 60);
  auto reader = task(std::move(ids), 1);
  machine.scheduler.add(*reader);
  while (machine.step())
    ;
  EXPECT_EQ(reader->cached, 0u) << "15 ids of a prompt are no block";
}

// Users of one system prompt who come at once: it is computed once.
TEST(Scheduler, JobsOfAStepShareWhatItComputes) {
  BlockManager blocks(200, true);
  Machine machine(blocks, options(512, 100, 512));
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 100; ++i) {
    std::vector<int32_t> ids = prompt(2000);
    ids.push_back(5000 + i);
    tasks.push_back(task(std::move(ids), 1));
    machine.scheduler.add(*tasks.back());
  }
  uint64_t steps = 0;
  while (machine.step())
    ++steps;
  EXPECT_EQ(tasks[0]->cached, 0u);
  for (int i = 1; i < 100; ++i)
    EXPECT_EQ(tasks[size_t(i)]->cached, 2000u);
  EXPECT_LE(steps, 5u);
}

TEST(Scheduler, UndoTakesAPlanBack) {
  BlockManager blocks(8, true);
  Scheduler scheduler(blocks, options());
  auto a = task(prompt(33), 2);
  scheduler.add(*a);
  scheduler.plan();
  scheduler.undo();
  EXPECT_EQ(a->computed, 0u);
  EXPECT_EQ(blocks.cache().cached(), 0u) << "what was not computed is not found";
  scheduler.remove(*a);
  EXPECT_EQ(blocks.available(), 8u);
}

TEST(Scheduler, BlocksHeldOutsideLeaveItStuck) {
  BlockManager blocks(2);
  std::vector<int32_t> held;
  ASSERT_TRUE(blocks.take(1, held));
  Scheduler scheduler(blocks, options());
  auto a = task(prompt(20), 2);
  scheduler.add(*a);
  EXPECT_EQ(scheduler.plan().stuck, a.get());
  blocks.releaseAll(held);
  EXPECT_EQ(scheduler.plan().stuck, nullptr);
  EXPECT_EQ(scheduler.running(), 1u);
  scheduler.remove(*a);
}

TEST(Scheduler, Names) {
  EXPECT_EQ(policyNamed("shortest-first"), Policy::ShortestFirst);
  EXPECT_EQ(errorOf([] { policyNamed("lifo"); }), "policy: expected fcfs, priority or shortest-first, got 'lifo'");
  EXPECT_EQ(batchingNamed("static"), Batching::Static);
  EXPECT_EQ(errorOf([] { batchingNamed(""); }), "batching: expected continuous or static, got ''");
  EXPECT_EQ(kvLayoutNamed("contiguous"), KVLayout::Contiguous);
  EXPECT_EQ(errorOf([] { kvLayoutNamed("flat"); }), "kv: expected paged or contiguous, got 'flat'");
}

// Arrivals, cancels, pools, budgets, chunks and policies at random: every invariant of Machine holds in every step, all jobs
// end, and every block comes back.
TEST(Scheduler, TenThousandRandomTraces) {
  std::mt19937 random(7);
  auto below = [&](uint64_t n) { return random() % n; };
  uint64_t preempted = 0, cached = 0, swapped = 0;
  for (int trace = 0; trace < 10000; ++trace) {
    const uint32_t pool = uint32_t(2 + below(20));
    SchedulerOptions o = options(uint32_t(1 + below(40)), 1, uint32_t(1 + below(40)));
    o.maxRunning = uint32_t(1 + below(std::min(6u, o.tokenBudget)));
    o.policy = Policy(below(3));
    o.batching = below(8) ? Batching::Continuous : Batching::Static;
    o.ageing = uint32_t(1 + below(50));
    o.swapSlots = uint32_t(below(2) * below(20));
    o.swapCost = uint32_t(below(8));
    o.phases = trace % 3 == 0;
    BlockManager blocks(pool, below(2));
    Machine machine(blocks, o);
    std::vector<std::unique_ptr<Task>> tasks;
    const size_t count = 1 + below(10);
    uint64_t steps = 0, work = 0;
    while (tasks.size() < count || !machine.scheduler.empty()) {
      while (tasks.size() < count && below(3) == 0) {
        const uint64_t most = pool * LLMC_KV_BLOCK, length = 1 + below(std::min<uint64_t>(most, 70));
        std::vector<int32_t> ids(length, int32_t(below(2))); // long common prefixes
        ids.back() = int32_t(below(3));
        tasks.push_back(task(std::move(ids), 1 + below(std::min<uint64_t>(most - length + 1, 40)), int64_t(below(4))));
        if (below(4) == 0)
          tasks.back()->cacheSalt = "other";
        work += tasks.back()->size;
        machine.scheduler.add(*tasks.back());
      }
      if (!tasks.empty() && below(20) == 0) {
        Task &t = *tasks[below(tasks.size())];
        if (!t.doneAt) {
          machine.scheduler.remove(t);
          t.doneAt = machine.scheduler.steps() + 1;
        }
      }
      machine.step();
      if (HasFailure())
        FAIL() << "trace " << trace << ", step " << steps;
      ASSERT_LT(++steps, 200 + 60 * work) << "trace " << trace << " does not end";
    }
    for (auto &t : tasks) {
      ASSERT_GT(t->doneAt, 0u) << trace;
      cached += t->cached;
    }
    ASSERT_EQ(blocks.available(), pool) << trace;
    ASSERT_EQ(machine.scheduler.freeSlots(), o.swapSlots) << trace;
    swapped += machine.scheduler.swaps();
    preempted += machine.scheduler.preemptions();
  }
  EXPECT_GT(preempted, 1000u);
  EXPECT_GT(swapped, 200u);
  EXPECT_GT(cached, 10000u);
}

} // namespace
