//===- Memory.h - the few large mappings of a device ------------*- C++ -*-===//
#ifndef LLMC_RUNTIME_DEVICE_MEMORY_H
#define LLMC_RUNTIME_DEVICE_MEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace llmc {

constexpr uint64_t kHugePage = 2u << 20;

/// One mmap; unmapped by the destructor.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept { *this = static_cast<Mapping &&>(other); }
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping() { reset(); }

  /// Zeroed private memory; from 2 MiB on, aligned to huge pages, asked for and rounded to
  /// them. `what` names it in the Error thrown when the kernel refuses.
  static Mapping anonymous(uint64_t bytes, const std::string &what);
  /// Read-only bytes [offset, offset + bytes) of a file; the caller has compared them with the file's size.
  static Mapping file(int fd, uint64_t offset, uint64_t bytes, const std::string &what);

  std::byte *data() const { return data_; }
  /// Bytes of memory that the mapping takes once touched (rounded to pages).
  uint64_t footprint() const { return footprint_; }
  /// Touches every page without changing it, so that nothing is allocated later; ends early once `cancel` is set.
  void populate(const std::atomic<bool> &cancel) const;
  void reset();

private:
  std::byte *data_ = nullptr; // inside [base_, base_ + length_)
  void *base_ = nullptr;
  uint64_t length_ = 0, footprint_ = 0;
};

/// Bytes that this process may still allocate without swapping or being killed:
/// MemAvailable, or what the control group leaves, whichever is less. UINT64_MAX: unknown.
uint64_t availableMemory();

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_MEMORY_H
