//===- Replicas.h - several engines behind one server -----------*- C++ -*-===//
//
// Each has its own device, on its own share of the CPUs that this process may use:
// threads of different replicas never wait for each other.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_SERVER_REPLICAS_H
#define LLMC_RUNTIME_SERVER_REPLICAS_H

#include "runtime/engine/EngineThread.h"

namespace llmc {

class Replicas {
public:
  using MakeDevice = std::function<std::unique_ptr<Device>()>;

  /// `makeDevice` is called for each, on a thread that has its CPUs only. Throws Error as it does.
  Replicas(size_t count, const MakeDevice &makeDevice, const EngineOptions &options);

  /// Threads of each of `count` replicas where all of them have `threads` (0: one for each CPU). Throws Error if there are too few.
  static uint64_t threadsOfEach(uint64_t count, uint64_t threads);

  /// The one for a request: that whose cache has seen the beginning of its prompt, unless it has much more to do than the others;
  /// else the one with the least to do.
  EngineThread &choose(const Request &request);
  /// For what all have in common: check(), room().
  const Engine &common() const { return replicas_.front()->engine.engine(); }
  /// Of all together.
  EngineMetrics metrics() const;
  /// Of the first that has failed.
  std::string failure() const;

private:
  struct Replica {
    Replica(std::unique_ptr<Device> made, const EngineOptions &options) : device(std::move(made)), engine(*device, options) {}
    std::unique_ptr<Device> device;
    EngineThread engine; // goes first
  };
  std::vector<std::unique_ptr<Replica>> replicas_;

  std::mutex mutex_; // of seen_
  std::unordered_map<uint64_t, size_t> seen_; // beginnings of prompts, by their hash: whose cache has them
};

} // namespace llmc

#endif // LLMC_RUNTIME_SERVER_REPLICAS_H
