//===- Ledger.h - the memory that a loaded model uses, computed -*- C++ -*-===//
//
// The plan of decision "memory is a plan": every large allocation is an item. The sum of
// the anonymous ones matches the process within 1 % + 16 MiB; those on a GPU are exact.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_LEDGER_H
#define LLMC_RUNTIME_DEVICE_LEDGER_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

enum class MemoryKind {
  Anonymous, // of the process
  File,      // a mapping, which the page cache holds
  Pinned,    // host memory that a GPU reads and writes
  Device     // of the GPU
};

inline const char *toString(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::Anonymous:
    return "anonymous";
  case MemoryKind::File:
    return "file";
  case MemoryKind::Pinned:
    return "pinned";
  case MemoryKind::Device:
    return "device";
  }
  return "?";
}

/// What a printed ledger says behind the number.
inline const char *memoryNote(MemoryKind kind) {
  switch (kind) {
  case MemoryKind::File:
    return " (page cache)";
  case MemoryKind::Pinned:
    return " (pinned)";
  case MemoryKind::Device:
    return " (GPU)";
  default:
    return "";
  }
}

struct LedgerItem {
  std::string name;   // "weights (huge-page copy)", "kv pool", ...
  uint64_t bytes = 0; // as allocated, page rounding included
  MemoryKind kind = MemoryKind::Anonymous;
};

struct Ledger {
  std::vector<LedgerItem> items;

  void add(std::string name, uint64_t bytes, MemoryKind kind = MemoryKind::Anonymous) {
    items.push_back({std::move(name), bytes, kind});
  }
  uint64_t bytesOf(MemoryKind kind) const {
    uint64_t sum = 0;
    for (const LedgerItem &item : items)
      sum += item.kind == kind ? item.bytes : 0;
    return sum;
  }
  uint64_t anonymousBytes() const { return bytesOf(MemoryKind::Anonymous); }
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_LEDGER_H
