//===- PrefixCache.h - full KV blocks, found by what they hold --*- C++ -*-===//
//
// What a block's keys and values are is decided by its ids and by all ids before
// them. So cached blocks form trees: a node is a full block, its parent the block
// before it, and a root belongs to one salt (a tenant's; prompts with different
// salts share nothing). A hash of (parent's hash, ids) only finds candidates: a hit
// compares salt, parent and ids themselves, so two texts of one hash never share.
//
// Blocks that no sequence holds are idle; the one that was in use longest ago is
// given up first, together with what is cached behind it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_ENGINE_PREFIXCACHE_H
#define LLMC_RUNTIME_ENGINE_PREFIXCACHE_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmc {

class PrefixCache {
public:
  static constexpr int32_t kNone = -1;
  /// Of a block's ids behind a prefix of hash `parent`.
  using Hash = uint64_t (*)(uint64_t parent, std::span<const int32_t> ids);

  /// `numBlocks` 0: nothing is ever cached. `hash`: for tests; null: a keyed one, whose key is new in every process.
  explicit PrefixCache(uint32_t numBlocks, Hash hash = nullptr);

  /// A place in a tree, where a text goes on. Goes stale when its block is dropped.
  struct Place {
    int32_t block = kNone; // none: before the first block
    uint64_t serial = 0;   // of the node
  };
  /// How far a text is in the cache.
  struct Cursor {
    size_t blocks = 0;
    Place place; // behind them
  };
  bool enabled() const { return !nodes_.empty(); }
  bool valid(Place place) const;
  /// The cached block that holds `ids` (a full block) behind `parent`, which is valid; kNone: none. `salt`: of the text; counts
  /// for its first block.
  int32_t find(Place parent, std::string_view salt, std::span<const int32_t> ids) const;
  /// Makes `block`, which is in use, findable as that. Where such a block is cached already, that one stays. Returns the
  /// place behind the one that is cached now.
  Place insert(Place parent, std::string_view salt, std::span<const int32_t> ids, int32_t block);
  Place placeOf(int32_t block) const { return {block, nodes_[size_t(block)].serial}; }

  bool holds(int32_t block) const { return enabled() && nodes_[size_t(block)].serial; }
  uint64_t cached() const { return index_.size(); }
  uint32_t idle() const { return idleCount_; }

  /// The last holder of a cached block has left it; or it has one again.
  void setIdle(int32_t block);
  void setInUse(int32_t block);
  /// Forgets a block and all behind it. Those of them that were idle are added to `freed`.
  void drop(int32_t block, std::vector<int32_t> &freed);
  /// Drops the block that has been idle longest; there is one.
  void evict(std::vector<int32_t> &freed);

private:
  struct Node {
    uint64_t serial = 0; // 0: not cached
    uint64_t hash = 0;
    int32_t parent = kNone;
    bool idle = false;
    int32_t before = kNone, after = kNone; // neighbours among the idle ones
    std::vector<int32_t> ids, children;
    std::string salt; // of a root
  };
  uint64_t hashOf(Place parent, std::string_view salt, std::span<const int32_t> ids) const;
  int32_t findHashed(uint64_t hash, Place parent, std::string_view salt, std::span<const int32_t> ids) const;
  void forget(int32_t block);

  Hash hash_;
  std::vector<Node> nodes_; // by block
  std::unordered_multimap<uint64_t, int32_t> index_;
  int32_t oldest_ = kNone, youngest_ = kNone; // idle blocks
  uint32_t idleCount_ = 0;
  uint64_t serials_ = 0;
};

} // namespace llmc

#endif // LLMC_RUNTIME_ENGINE_PREFIXCACHE_H
