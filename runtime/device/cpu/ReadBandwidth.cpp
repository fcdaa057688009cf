//===- ReadBandwidth.cpp --------------------------------------------------===//
#include "runtime/device/cpu/ReadBandwidth.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <immintrin.h>
#include <vector>

namespace llmc {

namespace {

constexpr size_t kLine = 64, kAhead = 4096; // bytes; as the products of one token (lib/Conversion/LMToTile/Schedule.cpp)

/// Any number that depends on every byte.
__attribute__((target("avx2"))) int64_t sumOf(const std::byte *from, size_t lines) {
  __m256i even = _mm256_setzero_si256(), odd = even;
  for (size_t i = 0; i < lines; ++i) {
    const auto *line = reinterpret_cast<const __m256i *>(from + i * kLine);
    _mm_prefetch(reinterpret_cast<const char *>(line) + kAhead, _MM_HINT_T0);
    even = _mm256_add_epi64(even, _mm256_loadu_si256(line));
    odd = _mm256_add_epi64(odd, _mm256_loadu_si256(line + 1));
  }
  even = _mm256_add_epi64(even, odd);
  return _mm256_extract_epi64(even, 0) + _mm256_extract_epi64(even, 1) + _mm256_extract_epi64(even, 2) + _mm256_extract_epi64(even, 3);
}

} // namespace

double readBandwidth(std::span<const std::byte> buffer, unsigned threads, unsigned rounds) {
  if (const std::string missing = missingFeatures("avx2", detectCpuFeatures()); !missing.empty())
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
