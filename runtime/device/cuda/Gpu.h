//===- Gpu.h - one GPU: its context, stream and memory ----------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_CUDA_GPU_H
#define LLMC_RUNTIME_DEVICE_CUDA_GPU_H

#include "runtime/device/cuda/Driver.h"

#include <string>
#include <utility>

namespace llmc::cuda {

/// A compute capability that a module was compiled for.
struct Architecture {
  int major = 0, minor = 0;
  char suffix = 0; // 'a': this capability only; 'f': this major; 0: newer minors, too

  /// "sm_90a". Throws Error naming `isa`.
  static Architecture parse(const std::string &isa);
  bool runsOn(int deviceMajor, int deviceMinor) const;
};

/// "model is compiled for cuda:sm_90a"
inline std::string purposeOf(const std::string &path, const std::string &isa) { return path + " is compiled for cuda:" + isa; }

/// A GPU in use: its primary context and one stream. Released by the destructor.
class Gpu {
public:
  /// Throws Error: no driver's device, a number past the last, a card that cannot run `isa`. `path`: of the package.
  Gpu(const Driver &driver, unsigned index, const std::string &isa, const std::string &path);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const Driver &driver() const { return driver_; }
  Stream stream() const { return stream_; }
  const std::string &name() const { return name_; }
  int multiprocessors() const { return multiprocessors_; }
  int sharedMemoryLimit() const { return sharedLimit_; } // bytes of a CTA
  std::string driverVersion() const;
  /// Any thread may use the context after this.
  void makeCurrent() const { driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
  void synchronize() const { driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"); }
  /// Bytes free and in all.
  std::pair<uint64_t, uint64_t> memory() const;

private:
  const Driver &driver_;
  Ordinal device_ = 0;
  Context context_ = nullptr;
  Stream stream_ = nullptr;
  std::string name_;
  int multiprocessors_ = 0, sharedLimit_ = 0;
};

/// Device memory; freed by the destructor, which needs the Gpu.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// `what` names it in the Error.
  DeviceMemory(const Gpu &gpu, uint64_t bytes, const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept { *this = static_cast<DeviceMemory &&>(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  Pointer address() const { return address_; }
  void zero() const; // asynchronous
  uint64_t bytes() const { return bytes_; }

private:
  const Gpu *gpu_ = nullptr;
  Pointer address_ = 0;
  uint64_t bytes_ = 0;
};

/// Host memory that the GPU copies from and to without a detour.
class PinnedMemory {
public:
  PinnedMemory() = default;
  PinnedMemory(const Gpu &gpu, uint64_t bytes, const std::string &what);
  PinnedMemory(PinnedMemory &&other) noexcept { *this = static_cast<PinnedMemory &&>(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  std::byte *data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

private:
  const Gpu *gpu_ = nullptr;
  std::byte *data_ = nullptr;
  uint64_t bytes_ = 0;
};

class EventHandle {
public:
  EventHandle(const Gpu &gpu, unsigned flags) : gpu_(gpu) {
    gpu_.driver().check(gpu_.driver().cuEventCreate(&event_, flags), "cuEventCreate");
  }
  ~EventHandle() { gpu_.driver().cuEventDestroy(event_); }
  EventHandle(const EventHandle &) = delete;
  EventHandle &operator=(const EventHandle &) = delete;

  void record() const { gpu_.driver().check(gpu_.driver().cuEventRecord(event_, gpu_.stream()), "cuEventRecord"); }
  void synchronize() const { gpu_.driver().check(gpu_.driver().cuEventSynchronize(event_), "cuEventSynchronize"); }
  /// Seconds from `start` to this event; both have happened.
  double since(const EventHandle &start) const {
    float milliseconds = 0;
    gpu_.driver().check(gpu_.driver().cuEventElapsedTime(&milliseconds, start.event_, event_), "cuEventElapsedTime");
    return milliseconds * 1e-3;
  }

private:
  const Gpu &gpu_;
  Event event_ = nullptr;
};

} // namespace llmc::cuda

#endif // LLMC_RUNTIME_DEVICE_CUDA_GPU_H
