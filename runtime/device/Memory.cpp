//===- Memory.cpp ---------------------------------------------------------===//
#include "runtime/device/Memory.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <unistd.h>

namespace llmc {

namespace {

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

[[noreturn]] void fail(const std::string &what, uint64_t bytes) {
  throw Error(what + ": cannot map " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
}

bool readNumber(const char *path, uint64_t &value) {
  std::ifstream file(path);
  return bool(file >> value);
}

} // namespace

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  if (this != &other) {
    reset();
    std::swap(data_, other.data_);
    std::swap(base_, other.base_);
    std::swap(length_, other.length_);
    std::swap(footprint_, other.footprint_);
  }
  return *this;
}

void Mapping::reset() {
  if (base_)
    munmap(base_, length_);
  data_ = nullptr;
  base_ = nullptr;
  length_ = footprint_ = 0;
}

Mapping Mapping::anonymous(uint64_t bytes, const std::string &what) {
  Mapping m;
  if (bytes == 0)
    return m;
  const bool huge = bytes >= kHugePage;
  const uint64_t page = huge ? kHugePage : uint64_t(sysconf(_SC_PAGESIZE));
  if (bytes > UINT64_MAX / 4)
    throw Error(what + ": " + std::to_string(bytes) + " bytes are not addressable");
  m.footprint_ = roundUp(bytes, page);
  // Room to align the start; the untouched rest costs address space only.
  m.length_ = m.footprint_ + (huge ? page : 0);
  void *base = mmap(nullptr, m.length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    m.length_ = 0;
    fail(what, bytes);
  }
  m.base_ = base;
  m.data_ = reinterpret_cast<std::byte *>(roundUp(reinterpret_cast<uint64_t>(base), page));
  if (huge)
    madvise(m.data_, m.footprint_, MADV_HUGEPAGE); // only a wish: small pages work too
  return m;
}

Mapping Mapping::file(int fd, uint64_t offset, uint64_t bytes, const std::string &what) {
  Mapping m;
  if (bytes == 0)
    return m;
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t start = offset / page * page;
  const uint64_t length = bytes + (offset - start);
  void *base = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, off_t(start));
  if (base == MAP_FAILED)
    fail(what, bytes);
  m.base_ = base;
  m.length_ = length;
  m.footprint_ = roundUp(length, page);
  m.data_ = static_cast<std::byte *>(base) + (offset - start);
  return m;
}

void Mapping::populate(const std::atomic<bool> &cancel) const {
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
  // In pieces, so that page faults of the step are not held up behind one long call. Kernels before
  // 5.14 do not know the call: pages then come when first touched.
  constexpr uint64_t piece = 8 * kHugePage;
  for (uint64_t at = 0; at < footprint_ && !cancel; at += piece)
    if (madvise(data_ + at, std::min(piece, footprint_ - at), MADV_POPULATE_WRITE) != 0)
      return;
}

uint64_t availableMemory() {
  uint64_t available = UINT64_MAX;
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  uint64_t kib;
  while (info >> key >> kib) {
    std::getline(info, unit);
    if (key == "MemAvailable:")
      available = kib * 1024;
  }
  uint64_t limit, used;
  if (readNumber("/sys/fs/cgroup/memory.max", limit) && readNumber("/sys/fs/cgroup/memory.current", used))
    available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

} // namespace llmc
