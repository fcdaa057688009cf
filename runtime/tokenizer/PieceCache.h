//===- PieceCache.h - ids of pieces seen lately -----------------*- C++ -*-===//
//
// Text repeats its words: most pieces are found here and never reach the model.
// Direct mapped, an entry is one line of a CPU's cache; a new piece replaces the
// one in its place. Of one thread at a time.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_TOKENIZER_PIECECACHE_H
#define LLMC_RUNTIME_TOKENIZER_PIECECACHE_H

#include "runtime/tokenizer/Vocabulary.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace llmc {

class PieceCache {
public:
  static constexpr size_t kMaxBytes = 26, kMaxIds = 8;

  PieceCache() : entries(static_cast<Entry *>(std::calloc(kEntries, sizeof(Entry)))) { // touched as it fills
    if (!entries)
      throw std::bad_alloc();
  }

  static uint64_t hash(std::string_view piece) { return hashBytes(piece); }

  /// Appends the ids and returns true if `piece`, not empty, is there.
  bool find(std::string_view piece, uint64_t hash, std::vector<int32_t> &ids) const {
    const Entry &entry = entries[hash & (kEntries - 1)];
    if (entry.hash != static_cast<uint32_t>(hash >> 32) || entry.length != piece.size() ||
        std::memcmp(entry.bytes, piece.data(), piece.size()) != 0)
      return false;
    if (entry.count == 1)
      ids.push_back(entry.ids[0]);
    else
      ids.insert(ids.end(), entry.ids, entry.ids + entry.count);
    return true;
  }

  void store(std::string_view piece, uint64_t hash, const int32_t *ids, size_t count) {
    if (piece.size() > kMaxBytes || count > kMaxIds)
      return;
    Entry &entry = entries[hash & (kEntries - 1)];
    entry.hash = static_cast<uint32_t>(hash >> 32);
    entry.length = static_cast<uint8_t>(piece.size());
    entry.count = static_cast<uint8_t>(count);
    std::memcpy(entry.bytes, piece.data(), piece.size());
    std::copy(ids, ids + count, entry.ids);
  }

private:
  static constexpr size_t kEntries = 1u << 14;
  struct Entry {
    uint32_t hash;
    uint8_t length, count; // length 0: empty
    char bytes[kMaxBytes];
    int32_t ids[kMaxIds];
  };
  static_assert(sizeof(Entry) == 64);
  struct Free {
    void operator()(Entry *p) const { std::free(p); }
  };
  std::unique_ptr<Entry[], Free> entries;
};

} // namespace llmc

#endif // LLMC_RUNTIME_TOKENIZER_PIECECACHE_H
