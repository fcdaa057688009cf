//===- BlockManager.h - who holds which KV block ----------------*- C++ -*-===//
//
// Blocks are numbers; the device owns the bytes. A block may be held by several
// sequences (a shared prefix); it is written only by its sole holder, so a
// holder that wants to write a shared one first takes a copy (makeWritable).
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H
#define LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace llmc {

class BlockManager {
public:
  explicit BlockManager(uint32_t numBlocks);

  uint32_t total() const { return uint32_t(counts_.size()); }
  uint32_t available() const { return uint32_t(free_.size()); }
  uint32_t references(int32_t block) const { return counts_.at(size_t(block)); }

  /// Appends `count` fresh blocks to `table`; false (and nothing taken) if there are too few.
  bool take(uint32_t count, std::vector<int32_t> &table);
  /// Adds a holder.
  void share(int32_t block);
  /// Removes a holder; true if it was the last and the block is free now.
  bool release(int32_t block);
  void releaseAll(std::vector<int32_t> &table);

  /// Makes `block` exclusive to its caller. Returns (from, to) if the bytes must be copied; sets
  /// `ok` to false if no block was free.
  std::optional<std::pair<int32_t, int32_t>> makeWritable(int32_t &block, bool &ok);

private:
  std::vector<uint32_t> counts_; // holders by block
  std::vector<int32_t> free_;    // the last is taken first
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_BLOCKMANAGER_H
