//===- ThreadPool.h - resident threads that run a step together -*- C++ -*-===//
//
// All threads execute the same launch list and meet in a barrier between
// launches (about 150 per step), so a barrier must cost some 200 ns: threads spin
// on a cache line of their own first, and give up the CPU only after that.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_CPU_THREADPOOL_H
#define LLMC_RUNTIME_DEVICE_CPU_THREADPOOL_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace llmc {

class ThreadPool {
public:
  /// `threads` >= 1, the caller of run() being one of them. Workers are pinned to the CPUs
  /// of this process's affinity mask if there are enough.
  ThreadPool(unsigned threads, bool pin);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  unsigned size() const { return size_; }

  /// Calls body(context, thread) on every thread, thread 0 being the caller, and
  /// returns when all are done. Denormals are flushed (MXCSR FTZ and DAZ) inside. The body does not throw.
  void run(void (*body)(void *, unsigned), void *context);
  template <typename Body> void run(Body &body) {
    run([](void *context, unsigned thread) { (*static_cast<Body *>(context))(thread); }, &body);
  }

  /// Inside a body: waits until every thread has come here.
  void barrier(unsigned thread);

  /// Numbers of the CPUs in the calling thread's affinity mask, ascending; none: the system does not say.
  static std::vector<int> affinity();
  /// CPUs that this process may use (affinity mask and control-group quota), at least 1.
  static unsigned availableCpus();

private:
  struct alignas(64) Line {
    std::atomic<uint32_t> value{0};
  };

  void work(unsigned thread);
  void wait(const std::atomic<uint32_t> &flag, uint32_t epoch) const;

  unsigned size_, rounds_ = 0;
  int spins_;
  // Dissemination barrier (Hensgen, Finkel, Manber 1988): in round r thread t tells thread
  // t + 2^r; flags_[r * size_ + t] is what t waits on. With two threads that is one pairwise flag.
  std::unique_ptr<Line[]> flags_;
  std::unique_ptr<Line[]> epochs_; // barriers passed, per thread (only its own reads it)
  alignas(64) std::atomic<uint32_t> start_{0};
  void (*body_)(void *, unsigned) = nullptr;
  void *context_ = nullptr;
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_CPU_THREADPOOL_H
