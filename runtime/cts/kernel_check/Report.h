//===- Report.h - the verdicts of the check ---------------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_CTS_KERNEL_CHECK_REPORT_H
#define LLMC_RUNTIME_CTS_KERNEL_CHECK_REPORT_H

#include "runtime/cts/kernel_check/Compare.h"

#include <cstdio>
#include <map>
#include <string>

namespace llmc::kernel_check {

/// A case is a kernel in a step: however many layers launch it, all of them have to be right.
class Report {
public:
  struct Kernel {
    uint64_t cases = 0, failed = 0, launches = 0;
    Deviation worst; // the largest of each figure; texts of the first failure
    Bounds bounds;   // the loosest of the launches'
    uint32_t lastStep = UINT32_MAX;
    bool lastFailed = false;
  };

  /// `where`: of the launch, for messages.
  void add(const std::string &kernel, uint32_t step, const std::string &where, const Deviation &deviation, const Bounds &bounds);
  /// A failure that belongs to no launch.
  void fail(const std::string &what);

  uint64_t cases() const;
  uint64_t failed() const;
  const std::map<std::string, Kernel> &kernels() const { return kernels_; }

  void print(FILE *to) const;
  /// {"kernels": [...], "cases": n, "failed": n, ...}
  std::string json(const std::string &package, const std::string &device, uint64_t seed, uint64_t steps) const;

private:
  static constexpr uint64_t kMostMessages = 20;
  void complain(const std::string &what);

  std::map<std::string, Kernel> kernels_; // by name
  uint64_t otherFailures_ = 0, messages_ = 0;
};

} // namespace llmc::kernel_check

#endif // LLMC_RUNTIME_CTS_KERNEL_CHECK_REPORT_H
