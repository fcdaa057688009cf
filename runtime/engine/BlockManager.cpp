//===- BlockManager.cpp ---------------------------------------------------===//
#include "runtime/engine/BlockManager.h"
#include "llmc/abi.h"

#include <cassert>
#include <utility>

namespace llmc {

BlockManager::BlockManager(uint32_t numBlocks, bool prefixCache, PrefixCache::Hash hash)
    : counts_(numBlocks, 0), bad_(numBlocks, false), cache_(prefixCache ? numBlocks : 0, hash) {
  for (uint32_t b = numBlocks; b > 0; --b)
    free_.push_back(int32_t(b - 1));
}

bool BlockManager::take(uint32_t count, std::vector<int32_t> &table) {
  if (count > available())
    return false;
  for (; count > 0; --count) {
    if (free_.empty())
      cache_.evict(free_);
    const int32_t block = free_.back();
    free_.pop_back();
    counts_[size_t(block)] = 1;
    table.push_back(block);
  }
  return true;
}

void BlockManager::share(int32_t block) {
  if (counts_.at(size_t(block))++ > 0)
    return;
  assert(cache_.holds(block) && "a free block has no holder to share it");
  cache_.setInUse(block);
}

bool BlockManager::release(int32_t block) {
  assert(counts_.at(size_t(block)) > 0 && "released twice");
  if (--counts_[size_t(block)] > 0)
    return false;
  if (bad_[size_t(block)])
    spoiled_.push_back(block);
  else if (cache_.holds(block))
    cache_.setIdle(block);
  else
    free_.push_back(block);
  return true;
}

// From the end: of one text, the cache gives up its end first.
void BlockManager::releaseAll(std::vector<int32_t> &table) {
  for (; !table.empty(); table.pop_back())
    release(table.back());
}

std::optional<std::pair<int32_t, int32_t>> BlockManager::makeWritable(int32_t &block, bool &ok) {
  ok = true;
  if (references(block) == 1) {
    unpublish(block);
    return std::nullopt;
  }
  std::vector<int32_t> fresh;
  if (!(ok = take(1, fresh)))
    return std::nullopt;
  const std::pair<int32_t, int32_t> copy{block, fresh[0]};
  release(block);
  block = fresh[0];
  return copy;
}

static std::span<const int32_t> idsOf(std::span<const int32_t> ids, size_t block) {
  return ids.subspan(block * LLMC_KV_BLOCK, LLMC_KV_BLOCK);
}

PrefixCache::Cursor BlockManager::attach(std::string_view salt, std::span<const int32_t> ids, std::vector<int32_t> &table) {
  assert(table.empty());
  PrefixCache::Cursor cursor;
  for (; cursor.blocks < ids.size() / LLMC_KV_BLOCK; ++cursor.blocks) {
    const int32_t block = cache_.find(cursor.place, salt, idsOf(ids, cursor.blocks));
    if (block == PrefixCache::kNone)
      break;
    share(block);
    table.push_back(block);
    cursor.place = cache_.placeOf(block);
  }
  return cursor;
}

void BlockManager::publish(std::string_view salt, std::span<const int32_t> ids, std::span<const int32_t> table,
                           PrefixCache::Cursor &cursor) {
  const size_t count = ids.size() / LLMC_KV_BLOCK;
  if (cursor.blocks >= count || !cache_.enabled())
    return;
  if (!cache_.valid(cursor.place)) // given up meanwhile: from the start
    cursor = {};
  for (; cursor.blocks < count && !bad_[size_t(table[cursor.blocks])]; ++cursor.blocks) {
    const int32_t block = table[cursor.blocks];
    cursor.place = cache_.holds(block) ? cache_.placeOf(block) : cache_.insert(cursor.place, salt, idsOf(ids, cursor.blocks), block);
  }
}

void BlockManager::unpublish(int32_t block) {
  if (cache_.holds(block))
    cache_.drop(block, free_);
}

void BlockManager::spoil(int32_t block) {
  unpublish(block);
  bad_[size_t(block)] = true;
}

std::vector<int32_t> BlockManager::takeSpoiled() {
  for (int32_t block : spoiled_) {
    bad_[size_t(block)] = false;
    free_.push_back(block);
  }
  return std::exchange(spoiled_, {});
}

} // namespace llmc
