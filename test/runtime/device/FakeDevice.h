// Loads FakeModule.cpp into a CPU device; shared by the tests of the runtime.
#ifndef LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H
#define LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H

#include "FakeModel.h"
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

/// A device over the fake module, with its weights in memory.
struct Loaded {
  explicit Loaded(llmc::DeviceOptions options = {}, const std::string &module = LLMC_FAKE_MODULE)
      : object(readFile(module)), fd(memfd_create("fake-weights", 0)) {
    const std::vector<uint8_t> bytes = weights();
    if (write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      throw std::runtime_error("memfd");
    device = llmc::makeCpuDevice(payload(), options);
  }
  ~Loaded() {
    device.reset();
    close(fd);
  }
  llmc::DevicePayload payload() const { return {{{"avx2", object}}, fd, 0, kWeightsBytes, "fake"}; }

  std::string object;
  int fd;
  std::unique_ptr<llmc::Device> device;
};

} // namespace fake

#endif // LLMC_TEST_RUNTIME_DEVICE_FAKEDEVICE_H
