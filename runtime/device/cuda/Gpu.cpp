//===- Gpu.cpp ------------------------------------------------------------===//
#include "runtime/device/cuda/Gpu.h"

#include <cstdlib>

namespace llmc::cuda {

Architecture Architecture::parse(const std::string &isa) {
  Architecture a;
  char *end = nullptr;
  const long number = isa.rfind("sm_", 0) == 0 ? std::strtol(isa.c_str() + 3, &end, 10) : 0;
  if (number < 10 || number > 999 || (*end && *end != 'a' && *end != 'f') || (*end && end[1]))
    throw Error("expected a GPU architecture such as sm_90a, got '" + isa + "'");
  a.major = int(number / 10);
  a.minor = int(number % 10);
  a.suffix = *end;
  return a;
}

bool Architecture::runsOn(int deviceMajor, int deviceMinor) const {
  if (suffix == 'a')
    return deviceMajor == major && deviceMinor == minor;
  return deviceMajor == major && deviceMinor >= minor; // cubins do not cross major versions
}

Gpu::Gpu(const Driver &driver, unsigned index, const std::string &isa, const std::string &path) : driver_(driver) {
  const std::string needs = "; " + purposeOf(path, isa);
  if (Result result = driver_.cuInit(0); result != kSuccess)
    throw DriverError((result == kNoDevice ? "no CUDA device on this machine: " : "") + driver_.describe(result, "cuInit") +
                          needs,
                      result);
  int count = 0;
  driver_.check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (count == 0)
    throw Error("no CUDA device on this machine" + needs);
  if (index >= unsigned(count))
    throw Error("--device: expected a number below " + std::to_string(count) + " (the GPUs of this machine), got " +
                std::to_string(index));
  driver_.check(driver_.cuDeviceGet(&device_, int(index)), "cuDeviceGet");
  char name[256] = "";
  driver_.check(driver_.cuDeviceGetName(name, sizeof name - 1, device_), "cuDeviceGetName");
  name_ = name;
  int major = 0, minor = 0;
  driver_.check(driver_.cuDeviceGetAttribute(&major, kComputeCapabilityMajor, device_), "cuDeviceGetAttribute");
  driver_.check(driver_.cuDeviceGetAttribute(&minor, kComputeCapabilityMinor, device_), "cuDeviceGetAttribute");
  const Architecture wanted = Architecture::parse(isa);
  if (!wanted.runsOn(major, minor))
    throw Error("device " + std::to_string(index) + " is an " + name_ + " (compute capability " + std::to_string(major) + "." +
                std::to_string(minor) + "); " + path + " is compiled for " + isa + " (" + std::to_string(wanted.major) + "." +
                std::to_string(wanted.minor) + ")");
  driver_.check(driver_.cuDeviceGetAttribute(&multiprocessors_, kMultiprocessorCount, device_), "cuDeviceGetAttribute");
  driver_.check(driver_.cuDeviceGetAttribute(&sharedLimit_, kMaxSharedMemoryPerBlockOptin, device_), "cuDeviceGetAttribute");
  driver_.check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  try {
    makeCurrent();
    driver_.check(driver_.cuStreamCreate(&stream_, kStreamNonBlocking), "cuStreamCreate");
  } catch (...) {
    driver_.cuDevicePrimaryCtxRelease(device_);
    throw;
  }
}

// Errors of releasing are of no use to anyone: the process ends, or the device is lost anyway.
Gpu::~Gpu() {
  driver_.cuStreamDestroy(stream_);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

std::string Gpu::driverVersion() const {
  int version = 0;
  driver_.check(driver_.cuDriverGetVersion(&version), "cuDriverGetVersion");
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::pair<uint64_t, uint64_t> Gpu::memory() const {
  size_t free = 0, total = 0;
  driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return {free, total};
}

DeviceMemory::DeviceMemory(const Gpu &gpu, uint64_t bytes, const std::string &what) : gpu_(&gpu), bytes_(bytes) {
  if (bytes == 0)
    return;
  if (Result result = gpu.driver().cuMemAlloc(&address_, bytes); result != kSuccess)
    throw DriverError(what + ": cannot allocate " + std::to_string(bytes) + " bytes on " + gpu.name() + ": " +
                          gpu.driver().describe(result, "cuMemAlloc"),
                      result);
}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_)
    gpu_->driver().cuMemFree(address_);
}

void DeviceMemory::zero() const {
  if (address_)
    gpu_->driver().check(gpu_->driver().cuMemsetD8Async(address_, 0, bytes_, gpu_->stream()), "cuMemsetD8Async");
}

PinnedMemory::PinnedMemory(const Gpu &gpu, uint64_t bytes, const std::string &what) : gpu_(&gpu), bytes_(bytes) {
  void *data = nullptr;
  if (Result result = gpu.driver().cuMemHostAlloc(&data, bytes, 0); result != kSuccess)
    throw DriverError(what + ": cannot pin " + std::to_string(bytes) + " bytes of host memory: " +
                          gpu.driver().describe(result, "cuMemHostAlloc"),
                      result);
  data_ = static_cast<std::byte *>(data);
}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (data_)
    gpu_->driver().cuMemFreeHost(data_);
}

} // namespace llmc::cuda
