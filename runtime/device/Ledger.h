//===- Ledger.h - the memory that a loaded model uses, computed -*- C++ -*-===//
//
// The plan of decision "memory is a plan": every large allocation is an item, and
// the sum of the anonymous ones matches the process within 1 % + 16 MiB.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_LEDGER_H
#define LLMC_RUNTIME_DEVICE_LEDGER_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmc {

struct LedgerItem {
  std::string name;     // "weights (huge-page copy)", "kv pool", ...
  uint64_t bytes = 0;   // as allocated, page rounding included
  bool anonymous = true; // false: a file mapping, which the page cache holds
};

struct Ledger {
  std::vector<LedgerItem> items;

  void add(std::string name, uint64_t bytes, bool anonymous = true) {
    items.push_back({std::move(name), bytes, anonymous});
  }
  uint64_t anonymousBytes() const {
    uint64_t sum = 0;
    for (const LedgerItem &item : items)
      sum += item.anonymous ? item.bytes : 0;
    return sum;
  }
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_LEDGER_H
