//===- Replicas.cpp -------------------------------------------------------===//
#include "runtime/server/Replicas.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <sched.h>

namespace llmc {

static constexpr size_t kStride = 64, kMostKeys = 128;  // tokens between beginnings that are remembered; of a prompt, at most
static constexpr size_t kMostSeen = 1 << 16;            // beginnings
static constexpr uint64_t kSlack = 4;                   // requests more than the least, for which a cached beginning makes up

namespace {

/// For its lifetime this thread, and threads that it starts, have part `index` of `count` of the CPUs.
class CpuShare {
public:
  CpuShare(size_t index, size_t count) {
    if (count == 1 || sched_getaffinity(0, sizeof before_, &before_) != 0)
      return;
    const std::vector<int> cpus = ThreadPool::affinity();
    cpu_set_t share;
    CPU_ZERO(&share);
    for (size_t i = index * cpus.size() / count; i < (index + 1) * cpus.size() / count; ++i)
      CPU_SET(cpus[i], &share);
    changed_ = sched_setaffinity(0, sizeof share, &share) == 0;
  }
  ~CpuShare() {
    if (changed_)
      sched_setaffinity(0, sizeof before_, &before_);
  }

private:
  cpu_set_t before_;
  bool changed_ = false;
};

// Of the beginnings of a prompt, the shortest first. Requests with different salts share nothing.
std::vector<uint64_t> keysOf(const Request &request) {
  std::vector<uint64_t> keys;
  uint64_t hash = std::hash<std::string>()(request.cacheSalt) ^ 0xcbf29ce484222325ull;
  for (size_t i = 0; i < request.prompt.size() && keys.size() < kMostKeys; ++i) {
    hash = (hash ^ uint32_t(request.prompt[i])) * 0x100000001b3ull;
    if ((i + 1) % kStride == 0)
      keys.push_back(hash);
  }
  return keys;
}

uint64_t load(const EngineThread &engine) {
  const EngineMetrics m = engine.metrics();
  return m.submitted - m.finished - m.cancelled - m.failed;
}

} // namespace

uint64_t Replicas::threadsOfEach(uint64_t count, uint64_t threads) {
  if (count == 1)
    return threads;
  const uint64_t cpus = ThreadPool::availableCpus(), all = threads ? threads : cpus;
  if (count > cpus || count > all)
    throw Error("--replicas: expected at most " + std::to_string(std::min(cpus, all)) + " (" + (all < cpus ? "--threads" : "CPUs that this process may use") +
                "), got " + std::to_string(count));
  return all / count;
}

Replicas::Replicas(size_t count, const MakeDevice &makeDevice, const EngineOptions &options) {
  for (size_t i = 0; i < count; ++i) {
    const CpuShare share(i, count);
    replicas_.push_back(std::make_unique<Replica>(makeDevice(), options));
  }
}

EngineThread &Replicas::choose(const Request &request) {
  if (replicas_.size() == 1)
    return replicas_.front()->engine;
  std::vector<uint64_t> loads;
  for (const auto &replica : replicas_)
    loads.push_back(load(replica->engine));
  size_t chosen = size_t(std::min_element(loads.begin(), loads.end()) - loads.begin());
  const std::vector<uint64_t> keys = keysOf(request);
  std::lock_guard lock(mutex_);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key)
    if (const auto seen = seen_.find(*key); seen != seen_.end()) {
      if (loads[seen->second] <= loads[chosen] + kSlack)
        chosen = seen->second;
      break;
    }
  if (seen_.size() > kMostSeen)
    seen_.clear();
  for (uint64_t key : keys)
    seen_[key] = chosen;
  return replicas_[chosen]->engine;
}

EngineMetrics Replicas::metrics() const {
  EngineMetrics all = replicas_.front()->engine.metrics();
  for (size_t i = 1; i < replicas_.size(); ++i)
    all += replicas_[i]->engine.metrics();
  return all;
}

std::string Replicas::failure() const {
  for (const auto &replica : replicas_)
    if (std::string failure = replica->engine.failure(); !failure.empty())
      return failure;
  return "";
}

} // namespace llmc
