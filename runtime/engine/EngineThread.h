//===- EngineThread.h - an engine that many threads may ask -----*- C++ -*-===//
//
// The engine and its device belong to one thread, which steps while there is work
// and sleeps otherwise. Everybody else leaves orders; nobody waits for a step. What a
// request's callbacks do is done on that thread and delays all: they should hand on
// and return. Every function may be called from any thread, callbacks included.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_ENGINETHREAD_H
#define LLMC_RUNTIME_ENGINE_ENGINETHREAD_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/Histogram.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace llmc {

/// Since the start, but for what is said to be now.
struct EngineMetrics {
  uint64_t submitted = 0, finished = 0, cancelled = 0, failed = 0; // requests; finished: by stop or length
  uint64_t promptTokens = 0, cachedTokens = 0, generatedTokens = 0; // of ended requests; cached: of the prompts
  uint64_t steps = 0, preemptions = 0;
  Histogram stepSeconds;
  uint64_t running = 0, waiting = 0;               // now
  uint64_t blocks = 0, freeBlocks = 0, cached = 0; // now; free: nobody holds them; cached: in the prefix cache

  /// Of two engines together.
  EngineMetrics &operator+=(const EngineMetrics &other);
};

class EngineThread {
public:
  using Ticket = uint64_t;

  /// `device` outlives it and is used by nobody else.
  EngineThread(Device &device, const EngineOptions &options);
  /// Cancels what is left; every request's end has been told.
  ~EngineThread();

  /// Throws Error as Engine::submit does, and if the device has failed; then no callback is called. request.onEnd is called once.
  Ticket submit(Request request);
  /// Does nothing for a request that has ended, or never was.
  void cancel(Ticket ticket);
  EngineMetrics metrics() const;
  /// Why the device has failed; empty while it works.
  std::string failure() const;
  const Engine &engine() const { return engine_; } // what does not change: context(), room()

private:
  struct Order {
    Ticket ticket;
    std::optional<Request> request; // none: cancel
  };
  void loop();
  void obey(std::vector<Order> &orders);
  void ended(Ticket ticket, const Sequence &sequence);
  void fail(const std::string &message);
  void count();

  Engine engine_;
  std::unordered_map<Ticket, std::shared_ptr<Sequence>> active_; // the thread's own, as engine_
  EngineMetrics now_;                                            // likewise

  mutable std::mutex mutex_; // of all below
  std::condition_variable work_;
  std::vector<Order> orders_;
  EngineMetrics metrics_;
  std::string failure_; // of the device
  Ticket next_ = 1;
  bool stop_ = false;

  std::thread thread_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_ENGINETHREAD_H
