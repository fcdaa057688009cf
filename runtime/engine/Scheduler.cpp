//===- Scheduler.cpp ------------------------------------------------------===//
#include "runtime/engine/Scheduler.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cassert>

namespace llmc {

const char *toString(Policy policy) {
  return policy == Policy::FCFS ? "fcfs" : policy == Policy::Priority ? "priority" : "shortest-first";
}

Policy policyNamed(std::string_view name) {
  for (Policy policy : {Policy::FCFS, Policy::Priority, Policy::ShortestFirst})
    if (name == toString(policy))
      return policy;
  throw Error("policy: expected fcfs, priority or shortest-first, got '" + std::string(name) + "'");
}

Batching batchingNamed(std::string_view name) {
  if (name != "continuous" && name != "static")
    throw Error("batching: expected continuous or static, got '" + std::string(name) + "'");
  return name == "static" ? Batching::Static : Batching::Continuous;
}

KVLayout kvLayoutNamed(std::string_view name) {
  if (name != "paged" && name != "contiguous")
    throw Error("kv: expected paged or contiguous, got '" + std::string(name) + "'");
  return name == "paged" ? KVLayout::Paged : KVLayout::Contiguous;
}

SchedulerOptions within(SchedulerOptions wanted, uint32_t maxTokens, uint32_t maxSeqs, uint32_t maxLogits) {
  auto limit = [](uint32_t most, uint32_t value) { return value ? std::min(most, value) : most; };
  wanted.tokenBudget = limit(maxTokens, wanted.tokenBudget);
  wanted.maxRunning = limit(std::min({maxSeqs, maxLogits, wanted.tokenBudget}), wanted.maxRunning); // each finds a place in a step
  wanted.chunk = limit(maxTokens, wanted.chunk);
  return wanted;
}

Scheduler::Scheduler(BlockManager &blocks, const SchedulerOptions &options) : blocks_(blocks), options_(options) {
  for (uint32_t slot = options.swapSlots; slot > 0; --slot)
    freeSlots_.push_back(int32_t(slot - 1));
}

// A job's rank at step s is weight - (steps waited until s). While two jobs wait both lose one a step, so their order is that
// of weight - waited + joined, which stays.
int64_t Scheduler::weight(const Job &job) const {
  switch (options_.policy) {
  case Policy::FCFS:
    return 0;
  case Policy::Priority:
    return -job.priority * int64_t(options_.ageing);
  case Policy::ShortestFirst:
    return int64_t(job.size * options_.ageing / Job::kAgeingTokens);
  }
  return 0;
}

bool Scheduler::Before::operator()(const Job *a, const Job *b) const {
  return a->rank != b->rank ? a->rank < b->rank : a->arrival < b->arrival;
}

void Scheduler::add(Job &job) {
  assert(job.state == Job::State::Outside);
  job.arrival = arrivals_++;
  job.waited = 0;
  wait(job);
}

// The rank of a waiting job is meant at step 0, when it had not waited yet.
void Scheduler::wait(Job &job) {
  job.state = Job::State::Waiting;
  job.joined = step_;
  job.rank = options_.policy == Policy::FCFS ? 0 : weight(job) - int64_t(job.waited) + int64_t(job.joined);
  waiting_.insert(&job);
  bringers_ += !job.blocks.empty();
}

void Scheduler::remove(Job &job, bool keepBlocks) {
  if (job.state == Job::State::Waiting) {
    waiting_.erase(&job);
    bringers_ -= !job.blocks.empty();
  } else if (job.state == Job::State::Running) {
    std::erase(running_, &job);
    publish(job);
  }
  job.state = Job::State::Outside;
  freeSlots_.insert(freeSlots_.end(), job.slots.begin(), job.slots.end());
  job.slots.clear();
  if (!keepBlocks)
    blocks_.releaseAll(job.blocks);
}

void Scheduler::giveBack(Job &job) {
  blocks_.releaseAll(job.blocks);
  job.computed = 0;
  job.published = {};
}

// Its blocks go to host memory, if that is the cheaper way and there is room.
bool Scheduler::swapOut(Job &job) {
  const uint64_t count = blocksOf(job.computed);
  if (count > freeSlots_.size() || count * options_.swapCost >= job.computed)
    return false;
  for (uint64_t i = 0; i < count; ++i) {
    job.slots.push_back(freeSlots_.back());
    freeSlots_.pop_back();
    plan_.swapOuts.emplace_back(job.blocks[i], job.slots.back());
  }
  blocks_.releaseAll(job.blocks);
  job.published = {};
  ++swaps_;
  return true;
}

// There are blocks for all that it had.
void Scheduler::swapIn(Job &job) {
  if (job.blocks.size() < job.slots.size())
    blocks_.take(uint32_t(job.slots.size() - job.blocks.size()), job.blocks);
  for (size_t i = 0; i < job.slots.size(); ++i)
    plan_.swapIns.emplace_back(job.slots[i], job.blocks[i]);
  leftSlots_.insert(leftSlots_.end(), job.slots.begin(), job.slots.end());
  job.slots.clear();
}

void Scheduler::preempt(Job &job) {
  std::erase(running_, &job);
  if (!swapOut(job))
    giveBack(job);
  ++job.preemptions;
  ++preemptions_;
  ++plan_.preempted;
  wait(job);
}

// Blocks that the job must take before its next `tokens` ids can be computed.
uint64_t Scheduler::blocksFor(const Job &job, uint64_t tokens) const {
  const uint64_t all = blocksOf(job.computed + tokens), have = job.blocks.size();
  const bool copies = job.computed % LLMC_KV_BLOCK && have && blocks_.references(job.blocks[job.computed / LLMC_KV_BLOCK]) > 1;
  return (all > have ? all - have : 0) + copies;
}

// What running jobs need for the ids they have and for the next one.
uint64_t Scheduler::promised() const {
  uint64_t sum = 0;
  for (const Job *job : running_)
    sum += job->closing ? 0 : blocksFor(*job, job->left() + 1);
  return sum;
}

// The lowest-ranked running job behind `job` that is not in the step.
Job *Scheduler::victimOf(const Job &job) const {
  for (size_t i = running_.size(); i > 0 && running_[i - 1] != &job; --i)
    if (!running_[i - 1]->planned && !running_[i - 1]->closing)
      return running_[i - 1];
  return nullptr;
}

// The lowest-ranked waiting job but `job` that has blocks loses them. False: there is none.
bool Scheduler::stripWaiting(const Job &job) {
  for (auto at = waiting_.rbegin(); bringers_ && at != waiting_.rend(); ++at)
    if (*at != &job && !(*at)->blocks.empty()) {
      giveBack(**at);
      --bringers_;
      return true;
    }
  return false;
}

// Blocks for one more id of the job.
bool Scheduler::makeFree(Job &job) {
  while (blocks_.available() < blocksFor(job, 1)) { // fewer, once nobody shares the block to write
    if (stripWaiting(job))
      continue;
    Job *victim = victimOf(job);
    if (!victim)
      return false;
    preempt(*victim);
  }
  return true;
}

// Puts the next `count` ids in the step, fewer where blocks are short. False: none.
bool Scheduler::add(Job &job, uint32_t count) {
  if (!makeFree(job))
    return false;
  if (options_.phases && job.computed < job.promptLength)
    count = uint32_t(std::min<uint64_t>(count, job.promptLength - job.computed));
  while (blocksFor(job, count) > blocks_.available()) // to the end of the block before
    count -= uint32_t((job.computed + count - 1) % LLMC_KV_BLOCK + 1);
  if (job.computed % LLMC_KV_BLOCK) {
    bool ok = true;
    if (auto copy = blocks_.makeWritable(job.blocks[job.computed / LLMC_KV_BLOCK], ok))
      plan_.copies.push_back(*copy);
    assert(ok);
  }
  if (const uint64_t all = blocksOf(job.computed + count); all > job.blocks.size()) {
    [[maybe_unused]] const bool taken = blocks_.take(uint32_t(all - job.blocks.size()), job.blocks);
    assert(taken);
  }
  plan_.parts.push_back({&job, job.computed, count, count == job.left()});
  plan_.tokens += count;
  job.planned = true;
  job.computed += count;
  publish(job);
  return true;
}

// What is computed of the ids that are known.
void Scheduler::publish(Job &job) {
  blocks_.publish(job.cacheSalt, std::span(job.ids).first(shareable(job, std::min<uint64_t>(job.computed, job.ids.size()))), job.blocks, job.published);
}

void Scheduler::planRunning(bool generating) {
  for (size_t i = 0; i < running_.size() && plan_.tokens < options_.tokenBudget; ++i) { // victims are behind i
    Job &job = *running_[i];
    if (!job.planned && !job.closing && job.generating() == generating)
      add(job, uint32_t(std::min<uint64_t>({options_.tokenBudget - plan_.tokens, options_.chunk, job.left()})));
  }
}

// Blocks that it must take to be admitted.
uint64_t Scheduler::blocksToEnter(const Job &job) const {
  const uint64_t have = job.blocks.size();
  return std::max(blocksFor(job, job.left()), options_.reserve > have ? options_.reserve - have : 0);
}

// Blocks for all its ids, the cached ones shared. False, and nothing taken, where running jobs would be left without.
bool Scheduler::enter(Job &job) {
  const bool brings = !job.blocks.empty();
  const bool swapped = !job.slots.empty();
  if (!brings && !swapped) {
    // At least one id is computed anew, for its logits.
    job.published = blocks_.attach(job.cacheSalt, std::span(job.ids).first(shareable(job, job.ids.size() - 1)), job.blocks);
    job.computed = job.blocks.size() * LLMC_KV_BLOCK;
  }
  bool fits;
  do
    fits = promised() + blocksToEnter(job) <= blocks_.available();
  while (!fits && stripWaiting(job));
  if (fits && options_.reserve > job.blocks.size())
    blocks_.take(uint32_t(options_.reserve - job.blocks.size()), job.blocks);
  if (fits && swapped)
    swapIn(job);
  if (swapped)
    return fits;
  if (!fits && !brings)
    giveBack(job);
  else if (fits && !brings && job.preemptions == 0)
    job.cached = job.computed;
  return fits;
}

void Scheduler::admit() {
  while (!waiting_.empty() && plan_.tokens < options_.tokenBudget && running_.size() < options_.maxRunning) {
    Job &job = **waiting_.begin();
    const bool brings = !job.blocks.empty();
    if (!enter(job))
      return; // nobody overtakes it, or it might wait for ever
    waiting_.erase(waiting_.begin());
    bringers_ -= brings;
    job.waited += step_ - job.joined;
    job.rank = weight(job) - int64_t(job.waited);
    job.state = Job::State::Running;
    running_.insert(std::upper_bound(running_.begin(), running_.end(), &job, Before()), &job);
    add(job, uint32_t(std::min<uint64_t>({options_.tokenBudget - plan_.tokens, options_.chunk, job.left()})));
  }
}

// True if its priority alone is above what the running job had come to when it was admitted: who has waited for his place
// keeps it.
bool Scheduler::outranks(const Job &waiting, const Job &running) const { return weight(waiting) < running.rank; }

// A job of higher priority takes the place of the lowest running ones, where that is enough.
void Scheduler::makeRoomForUrgent() {
  if (options_.policy != Policy::Priority || waiting_.empty())
    return;
  const Job &urgent = **waiting_.begin();
  auto fits = [&](size_t left, uint64_t promised, uint64_t available) {
    return left < options_.maxRunning && promised + std::max(blocksOf(urgent.ids.size()), options_.reserve) <= available;
  };
  uint64_t kept = promised(), free = blocks_.available();
  size_t left = running_.size();
  for (; left > 0 && !fits(left, kept, free) && outranks(urgent, *running_[left - 1]); --left) {
    const Job &job = *running_[left - 1];
    if (job.closing) // it is about to go anyhow
      return;
    kept -= blocksFor(job, job.left() + 1);
    for (int32_t block : job.blocks)
      free += blocks_.references(block) == 1;
  }
  if (fits(left, kept, free))
    while (running_.size() > left)
      preempt(*running_.back());
}

const StepPlan &Scheduler::plan() {
  plan_.parts.clear();
  plan_.swapOuts.clear();
  plan_.copies.clear();
  plan_.swapIns.clear();
  freeSlots_.insert(freeSlots_.end(), leftSlots_.begin(), leftSlots_.end());
  leftSlots_.clear();
  plan_.tokens = plan_.preempted = 0;
  plan_.stuck = nullptr;
  ++step_;
  if (options_.batching == Batching::Continuous)
    makeRoomForUrgent();
  closed_ &= !running_.empty();
  const uint32_t urgent = plan_.preempted;
  planRunning(true);
  planRunning(false);
  if (!closed_ && plan_.preempted == urgent) // who has just given its blocks back does not take them again
    admit();
  if (options_.batching == Batching::Static) // only what the step's budget has kept out joins later
    closed_ = waiting_.empty() || plan_.tokens < options_.tokenBudget;
  if (plan_.parts.empty() && !empty())
    plan_.stuck = running_.empty() ? *waiting_.begin() : running_.front();
  for (const StepPart &part : plan_.parts)
    part.job->planned = false;
  return plan_;
}

void Scheduler::undo(std::span<const StepPart> parts) {
  for (const StepPart &part : parts) {
    for (size_t i = part.first / LLMC_KV_BLOCK; i < part.job->blocks.size(); ++i)
      blocks_.unpublish(part.job->blocks[i]);
    part.job->computed = part.first;
    part.job->published = {};
  }
}

} // namespace llmc
