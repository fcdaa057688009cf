//===- Histogram.h - how often something took how long ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_ENGINE_HISTOGRAM_H
#define LLMC_RUNTIME_ENGINE_HISTOGRAM_H

#include <algorithm>
#include <array>
#include <cstdint>

namespace llmc {

/// Counts of durations by upper bound, as Prometheus has them. One thread at a time.
struct Histogram {
  static constexpr std::array<double, 17> kBounds{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                  0.5,    1,     2,     5,     10,   30,   60,   120}; // seconds

  std::array<uint64_t, kBounds.size() + 1> counts{}; // the last: above all bounds
  double sum = 0;

  void add(double seconds) {
    ++counts[size_t(std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin())];
    sum += seconds;
  }
  Histogram &operator+=(const Histogram &other) {
    for (size_t i = 0; i < counts.size(); ++i)
      counts[i] += other.counts[i];
    sum += other.sum;
    return *this;
  }
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_HISTOGRAM_H
