//===- GPUKernel.cpp - a compiled kernel as bytes -------------------------===//
//
// A magic, the numbers, the sizes of the parts, the parts. Read on the machine that wrote it: native byte order.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "llmc/Target/Cubin.h"

#include <cstring>

using namespace llmc;

namespace {
constexpr char kMagic[8] = {'l', 'l', 'm', 'c', 'g', 'p', 'u', '2'};

struct Header {
  char magic[8];
  uint32_t threads, sharedBytes, registers, tensorMaps, persistent, reserved;
  uint64_t cubinBytes, ptxBytes;
};
} // namespace

std::string GPUKernel::serialize() const {
  Header header = {{}, threads, sharedBytes, registers, uint32_t(tensorMaps.size()), persistent, 0, cubin.size(), ptx.size()};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof header);
  if (!tensorMaps.empty())
    bytes.append(reinterpret_cast<const char *>(tensorMaps.data()), tensorMaps.size() * sizeof tensorMaps[0]);
  return bytes + cubin + ptx;
}

GPUKernel GPUKernel::parse(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof header)
    throw Error("expected a compiled GPU kernel, got " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header, bytes.data(), sizeof header);
  uint64_t maps = uint64_t(header.tensorMaps) * sizeof(llmc_tensor_map_v1), left = bytes.size() - sizeof header;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || maps > left || header.cubinBytes > left - maps ||
      header.ptxBytes != left - maps - header.cubinBytes)
    throw Error("expected a compiled GPU kernel, got other bytes");
  GPUKernel kernel;
  kernel.threads = header.threads;
  kernel.sharedBytes = header.sharedBytes;
  kernel.registers = header.registers;
  kernel.persistent = header.persistent;
  kernel.tensorMaps.resize(header.tensorMaps);
  const char *at = bytes.data() + sizeof header;
  if (maps)
    std::memcpy(kernel.tensorMaps.data(), at, maps);
  kernel.cubin.assign(at + maps, header.cubinBytes);
  kernel.ptx.assign(at + maps + header.cubinBytes, header.ptxBytes);
  return kernel;
}
