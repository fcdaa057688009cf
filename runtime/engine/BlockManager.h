//===- BlockManager.h - who holds which KV block ----------------*- C++ -*-===//
//
// Blocks are numbers; the device owns the bytes. A block may be held by several
// sequences (a shared prefix); it is written only by its sole holder, so a
// holder that wants to write a shared one first takes a copy (makeWritable).
// With the prefix cache full blocks stay findable when their last holder leaves,
// until their place is needed.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H
#define LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H

#include "runtime/engine/PrefixCache.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace llmc {

class BlockManager {
public:
  /// `hash`: of the prefix cache, for tests.
  explicit BlockManager(uint32_t numBlocks, bool prefixCache = false, PrefixCache::Hash hash = nullptr);

  uint32_t total() const { return uint32_t(counts_.size()); }
  /// Blocks that nobody holds: free ones and cached ones.
  uint32_t available() const { return uint32_t(free_.size()) + cache_.idle(); }
  uint32_t references(int32_t block) const { return counts_.at(size_t(block)); }
  const PrefixCache &cache() const { return cache_; }

  /// Appends `count` fresh blocks to `table`; false (and nothing taken) if there are too few. Free blocks go first, then the
  /// cached ones that were in use longest ago.
  bool take(uint32_t count, std::vector<int32_t> &table);
  /// Adds a holder.
  void share(int32_t block);
  /// Removes a holder; true if it was the last.
  bool release(int32_t block);
  void releaseAll(std::vector<int32_t> &table);

  /// Makes `block` exclusive to its caller and takes it out of the cache. Returns (from, to) if the bytes must be copied; sets
  /// `ok` to false if no block was free.
  std::optional<std::pair<int32_t, int32_t>> makeWritable(int32_t &block, bool &ok);

  /// Appends to the empty `table` the cached blocks that hold `ids` from their start on, as its holder; whole blocks only.
  /// Returns the place behind them, for publish().
  PrefixCache::Cursor attach(std::string_view salt, std::span<const int32_t> ids, std::vector<int32_t> &table);
  /// The blocks of `table` hold `ids`: makes the full ones from `cursor` on findable and moves it behind them.
  void publish(std::string_view salt, std::span<const int32_t> ids, std::span<const int32_t> table, PrefixCache::Cursor &cursor);
  /// What was cached of a block and behind it is found no more.
  void unpublish(int32_t block);
  /// A held block has numbers in it that must not reach its next holder: unpublished at once, and its last holder leaves it
  /// to takeSpoiled().
  void spoil(int32_t block);
  /// Spoiled blocks without a holder; they are free once their caller has zeroed them, which is at once.
  std::vector<int32_t> takeSpoiled();

private:
  std::vector<uint32_t> counts_; // holders by block
  std::vector<int32_t> free_;    // the last is taken first
  std::vector<bool> bad_;        // spoiled, by block
  std::vector<int32_t> spoiled_; // without a holder
  PrefixCache cache_;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H
