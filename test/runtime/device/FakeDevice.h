// Loads FakeModule.cpp into a CPU device; shared by the tests of the runtime.
#ifndef LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H
#define LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H

#include "FakeModel.h"
#include "llmc/Support/Error.h"
#include "runtime/device/Device.h"

#include <fstream>
#include <iterator>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Weights that are one span of an open file.
struct FileWeights : llmc::WeightSource {
  FileWeights(int fd, uint64_t bytes) : file(fd), length(bytes) {}
  uint64_t size() const override { return length; }
  void read(uint64_t offset, void *to, uint64_t bytes) const override {
    if (pread(file, to, bytes, off_t(offset)) != ssize_t(bytes))
      throw llmc::Error("fake weights: cannot read");
  }
  int fd() const override { return plain ? file : -1; }
  std::string describe() const override { return "fake"; }

  int file;
  uint64_t length;
  bool plain = true; // false: as if it came in shards
};

/// One thread and room for so many tokens.
inline llmc::DeviceOptions pool(uint64_t kvTokens) {
  llmc::DeviceOptions options;
  options.threads = 1;
  options.kvTokens = kvTokens;
  return options;
}

/// A device over the fake module, with its weights in memory.
struct Loaded {
  explicit Loaded(llmc::DeviceOptions options = {}, const std::string &module = LLMC_FAKE_MODULE)
      : object(readFile(module)), fd(memfd_create("fake-weights", 0)), source(fd, kWeightsBytes) {
    const std::vector<uint8_t> bytes = weights();
    if (write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      throw std::runtime_error("memfd");
    device = llmc::makeCpuDevice(payload(), options);
  }
  ~Loaded() {
    device.reset();
    close(fd);
  }
  llmc::DevicePayload payload() const { return {{{"avx2", object}}, &source, "fake"}; }

  std::string object;
  int fd;
  FileWeights source;
  std::unique_ptr<llmc::Device> device;
};

} // namespace fake

#endif // LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H
