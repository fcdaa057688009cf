//===- BlockManager.cpp ---------------------------------------------------===//
#include "runtime/engine/BlockManager.h"

#include <cassert>

namespace llmc {

BlockManager::BlockManager(uint32_t numBlocks) : counts_(numBlocks, 0) {
  for (uint32_t b = numBlocks; b > 0; --b)
    free_.push_back(int32_t(b - 1));
}

bool BlockManager::take(uint32_t count, std::vector<int32_t> &table) {
  if (count > free_.size())
    return false;
  for (; count > 0; --count) {
    const int32_t block = free_.back();
    free_.pop_back();
    counts_[size_t(block)] = 1;
    table.push_back(block);
  }
  return true;
}

void BlockManager::share(int32_t block) {
  assert(counts_.at(size_t(block)) > 0 && "a free block has no holder to share it");
  ++counts_[size_t(block)];
}

bool BlockManager::release(int32_t block) {
  assert(counts_.at(size_t(block)) > 0 && "released twice");
  if (--counts_[size_t(block)] > 0)
    return false;
  free_.push_back(block);
  return true;
}

void BlockManager::releaseAll(std::vector<int32_t> &table) {
  for (int32_t block : table)
    release(block);
  table.clear();
}

std::optional<std::pair<int32_t, int32_t>> BlockManager::makeWritable(int32_t &block, bool &ok) {
  ok = true;
  if (references(block) == 1)
    return std::nullopt;
  std::vector<int32_t> fresh;
  if (!(ok = take(1, fresh)))
    return std::nullopt;
  const std::pair<int32_t, int32_t> copy{block, fresh[0]};
  release(block);
  block = fresh[0];
  return copy;
}

} // namespace llmc
