//===- ReadBandwidth.cpp --------------------------------------------------===//
#include "runtime/device/cpu/ReadBandwidth.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace llmc {

namespace {

constexpr size_t kLine = 64, kAhead = 4096; // bytes; as the products of one token (lib/Conversion/LMToTile/Schedule.cpp)

using Half = int64_t __attribute__((vector_size(kLine / 2), aligned(1), may_alias)); // of a line

/// Any number that depends on every byte.
#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
int64_t sumOf(const std::byte *from, size_t lines) {
  Half even{}, odd{};
  for (size_t i = 0; i < lines; ++i) {
    const auto *line = reinterpret_cast<const Half *>(from + i * kLine);
    __builtin_prefetch(from + i * kLine + kAhead);
    even += line[0];
    odd += line[1];
  }
  even += odd;
  return even[0] + even[1] + even[2] + even[3];
}

} // namespace

double readBandwidth(std::span<const std::byte> buffer, unsigned threads, unsigned rounds) {
  if (const std::string missing = missingFeatures(leastIsa(), detectCpuFeatures()); !missing.empty())
    throw Error("reading bandwidth: this CPU lacks " + missing);
  const size_t lines = buffer.size() / kLine / std::max(threads, 1u);
  if (!lines)
    throw Error("reading bandwidth: expected at least 64 bytes a thread, got " + std::to_string(buffer.size()));
  ThreadPool pool(threads, /*pin=*/true);
  std::vector<int64_t> sums(pool.size());
  auto body = [&](unsigned thread) { sums[thread] += sumOf(buffer.data() + thread * lines * kLine, lines); };
  pool.run(body);
  std::vector<double> speeds;
  for (unsigned round = 0; round < std::max(rounds, 1u); ++round) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(body);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    speeds.push_back(double(lines * kLine * pool.size()) / seconds.count());
  }
  volatile int64_t used = sums[0]; // the readings are not for nothing
  (void)used;
  std::nth_element(speeds.begin(), speeds.begin() + long(speeds.size() / 2), speeds.end());
  return speeds[speeds.size() / 2];
}

} // namespace llmc
