//===- UploadWeights.cpp --------------------------------------------------===//
#include "runtime/device/cuda/UploadWeights.h"

#include <algorithm>

namespace llmc::cuda {

namespace {

constexpr uint64_t kBuffer = 32u << 20;

// No buffer is freed while the GPU still reads it, whatever is thrown.
struct Drain {
  const Gpu &gpu;
  ~Drain() { gpu.driver().cuStreamSynchronize(gpu.stream()); }
};

} // namespace

void uploadWeights(const Gpu &gpu, const WeightSource &source, Pointer to, unsigned threads,
                   const std::function<void(uint64_t, uint64_t)> &onProgress) {
  const uint64_t total = source.size();
  const uint64_t size = std::min(kBuffer, total);
  if (size == 0)
    return;
  if (onProgress)
    onProgress(0, total);
  const PinnedMemory buffers[2] = {PinnedMemory(gpu, size, "weights"), PinnedMemory(gpu, size, "weights")};
  const EventHandle copied[2] = {{gpu, kEventDisableTiming}, {gpu, kEventDisableTiming}};
  const Drain drain{gpu};
  const Driver &driver = gpu.driver();
  for (uint64_t at = 0, piece = 0; at < total; at += size, ++piece) {
    const unsigned b = piece % 2;
    const uint64_t bytes = std::min(size, total - at);
    if (piece >= 2)
      copied[b].synchronize();
    source.readParallel(at, buffers[b].data(), bytes, threads);
    driver.check(driver.cuMemcpyHtoDAsync(to + at, buffers[b].data(), bytes, gpu.stream()), "cuMemcpyHtoDAsync");
    copied[b].record();
    if (onProgress)
      onProgress(at + bytes, total);
  }
  gpu.synchronize();
}

} // namespace llmc::cuda
