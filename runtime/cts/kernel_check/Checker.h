//===- Checker.h - every launch of a step against its reference -*- C++ -*-===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_CHECKER_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_CHECKER_H

#include "runtime/cts/kernel_check/Report.h"

#include <map>
#include <vector>

namespace llmc::kernel_check {

class Checker {
public:
  /// Both outlive the checker. Installs itself as the device's observer.
  Checker(Device &device, Report &report);
  ~Checker() { device_.setObserver(nullptr); }
  Checker(const Checker &) = delete;

  /// Executes the step and compares what every launch has made of what it read, then the whole KV pool. Throws Error where the
  /// device does, or where a launch has no reference.
  void run(RandomStep &step);

private:
  void see(const LaunchView &view);
  Launch resolve(const LaunchView &view) const;
  void compareCache(const Launch &launch, const std::vector<CacheElement> &elements, Deviation &deviation);
  void comparePool();
  void keepResults(const LaunchView &view);

  Device &device_;
  Report &report_;
  Weights weights_;
  KVMirror cache_;
  std::vector<std::byte> arena_;             // results of the launches so far
  std::map<uint64_t, llmc_value_v1> values_; // by offset, the latest
  RandomStep *step_ = nullptr;
  uint32_t stepNumber_ = 0;
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_CHECKER_H
