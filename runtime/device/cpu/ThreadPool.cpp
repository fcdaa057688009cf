//===- ThreadPool.cpp -----------------------------------------------------===//
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/device/cpu/Processor.h"

#include <algorithm>
#include <fstream>
#include <pthread.h>
#include <sched.h>
#include <time.h>

namespace llmc {

std::vector<int> ThreadPool::affinity() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  return cpus;
}

unsigned ThreadPool::availableCpus() {
  unsigned cpus = std::max<size_t>(affinity().size(), 1);
  double quota, period; // "max 100000" does not parse: no quota
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  if (file >> quota >> period && period > 0)
    cpus = std::min(cpus, std::max(1u, unsigned(quota / period + 0.5)));
  return cpus;
}

ThreadPool::ThreadPool(unsigned threads, bool pin) : size_(std::max(threads, 1u)) {
  while ((1u << rounds_) < size_)
    ++rounds_;
  flags_ = std::make_unique<Line[]>(std::max(rounds_ * size_, 1u));
  epochs_ = std::make_unique<Line[]>(size_);
  std::vector<int> cpus = affinity();
  // With more threads than CPUs a spinning thread keeps the one it waits for from running.
  const bool crowded = size_ > availableCpus();
  spins_ = crowded ? 16 : 4000;
  for (unsigned t = 1; t < size_; ++t) {
    workers_.emplace_back([this, t] { work(t); });
    if (pin && !crowded && cpus.size() >= size_) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpus[t], &set);
      pthread_setaffinity_np(workers_.back().native_handle(), sizeof set, &set);
    }
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  start_.fetch_add(1, std::memory_order_release);
  start_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void ThreadPool::wait(const std::atomic<uint32_t> &flag, uint32_t epoch) const {
  auto arrived = [&] { return int32_t(flag.load(std::memory_order_acquire) - epoch) >= 0; };
  for (int i = 0; i < spins_; ++i) {
    if (arrived())
      return;
    relax();
  }
  for (int i = 0; !arrived(); ++i) {
    if (i < 20000) {
      sched_yield();
    } else { // some other thread has a long unit or has lost its CPU
      timespec pause{0, 50'000};
      nanosleep(&pause, nullptr);
    }
  }
}

void ThreadPool::barrier(unsigned thread) {
  const uint32_t epoch = epochs_[thread].value.load(std::memory_order_relaxed) + 1;
  epochs_[thread].value.store(epoch, std::memory_order_relaxed);
  for (unsigned r = 0; r < rounds_; ++r) {
    flags_[r * size_ + (thread + (1u << r)) % size_].value.store(epoch, std::memory_order_release);
    wait(flags_[r * size_ + thread].value, epoch);
  }
}

void ThreadPool::run(void (*body)(void *, unsigned), void *context) {
  const uint64_t saved = floatMode();
  setFloatMode(saved | kFlushDenormals);
  if (size_ > 1) {
    body_ = body;
    context_ = context;
    start_.fetch_add(1, std::memory_order_release);
    start_.notify_all();
  }
  body(context, 0);
  barrier(0);
  setFloatMode(saved);
}

void ThreadPool::work(unsigned thread) {
  setFloatMode(floatMode() | kFlushDenormals);
  uint32_t seen = 0;
  while (true) {
    // Steps follow each other closely while text is generated: stay awake for about 100 us, then sleep.
    for (int i = 0; i < spins_ && start_.load(std::memory_order_acquire) == seen; ++i)
      relax();
    start_.wait(seen, std::memory_order_acquire);
    if (stop_)
      return;
    ++seen; // one run at a time: start_ cannot be further
    body_(context_, thread);
    barrier(thread);
  }
}

} // namespace llmc
