//===- PrefixCache.cpp ----------------------------------------------------===//
#include "runtime/engine/PrefixCache.h"

#include <algorithm>
#include <cassert>
#include <random>

namespace llmc {

namespace {

// Of the process: nobody outside can make up texts that fall together.
uint64_t key() {
  static const uint64_t value = [] {
    std::random_device random;
    return uint64_t(random()) << 32 | random();
  }();
  return value;
}

uint64_t mixed(uint64_t x) { // splitmix64 (Steele, Lea and Flood 2014)
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

uint64_t keyedHash(uint64_t parent, std::span<const int32_t> ids) {
  uint64_t hash = mixed(parent ^ key());
  for (int32_t id : ids)
    hash = mixed(hash ^ uint32_t(id));
  return hash;
}

} // namespace

PrefixCache::PrefixCache(uint32_t numBlocks, Hash hash) : hash_(hash ? hash : keyedHash), nodes_(numBlocks) {}

bool PrefixCache::valid(Place place) const {
  return place.block == kNone || nodes_[size_t(place.block)].serial == place.serial;
}

uint64_t PrefixCache::hashOf(Place parent, std::string_view salt, std::span<const int32_t> ids) const {
  return hash_(parent.block == kNone ? std::hash<std::string_view>()(salt) : nodes_[size_t(parent.block)].hash, ids);
}

int32_t PrefixCache::findHashed(uint64_t hash, Place parent, std::string_view salt, std::span<const int32_t> ids) const {
  for (auto [at, end] = index_.equal_range(hash); at != end; ++at) {
    const Node &node = nodes_[size_t(at->second)];
    if (node.parent == parent.block && std::equal(ids.begin(), ids.end(), node.ids.begin(), node.ids.end()) &&
        (parent.block != kNone || node.salt == salt))
      return at->second;
  }
  return kNone;
}

int32_t PrefixCache::find(Place parent, std::string_view salt, std::span<const int32_t> ids) const {
  assert(valid(parent));
  return !enabled() ? kNone : findHashed(hashOf(parent, salt, ids), parent, salt, ids);
}

PrefixCache::Place PrefixCache::insert(Place parent, std::string_view salt, std::span<const int32_t> ids, int32_t block) {
  assert(valid(parent) && !holds(block));
  const uint64_t hash = hashOf(parent, salt, ids);
  if (const int32_t there = findHashed(hash, parent, salt, ids); there != kNone)
    return placeOf(there);
  Node &node = nodes_[size_t(block)];
  node.serial = ++serials_;
  node.hash = hash;
  node.parent = parent.block;
  node.ids.assign(ids.begin(), ids.end());
  if (parent.block == kNone)
    node.salt = salt;
  else
    nodes_[size_t(parent.block)].children.push_back(block);
  index_.emplace(hash, block);
  return placeOf(block);
}

void PrefixCache::setIdle(int32_t block) {
  Node &node = nodes_[size_t(block)];
  assert(node.serial && !node.idle);
  node.idle = true;
  node.before = youngest_;
  node.after = kNone;
  (youngest_ == kNone ? oldest_ : nodes_[size_t(youngest_)].after) = block;
  youngest_ = block;
  ++idleCount_;
}

void PrefixCache::setInUse(int32_t block) {
  Node &node = nodes_[size_t(block)];
  assert(node.idle);
  node.idle = false;
  (node.before == kNone ? oldest_ : nodes_[size_t(node.before)].after) = node.after;
  (node.after == kNone ? youngest_ : nodes_[size_t(node.after)].before) = node.before;
  --idleCount_;
}

void PrefixCache::forget(int32_t block) {
  Node &node = nodes_[size_t(block)];
  for (auto [at, end] = index_.equal_range(node.hash); at != end; ++at)
    if (at->second == block) {
      index_.erase(at);
      break;
    }
  node.serial = 0;
  node.children.clear();
  node.salt.clear();
}

void PrefixCache::drop(int32_t block, std::vector<int32_t> &freed) {
  if (const int32_t parent = nodes_[size_t(block)].parent; parent != kNone)
    std::erase(nodes_[size_t(parent)].children, block);
  // What is behind a forgotten block can be found no more, be it in use or not.
  std::vector<int32_t> tree{block};
  while (!tree.empty()) {
    const int32_t next = tree.back();
    tree.pop_back();
    const Node &node = nodes_[size_t(next)];
    tree.insert(tree.end(), node.children.begin(), node.children.end());
    if (node.idle) {
      setInUse(next);
      freed.push_back(next);
    }
    forget(next);
  }
}

void PrefixCache::evict(std::vector<int32_t> &freed) {
  assert(oldest_ != kNone);
  drop(oldest_, freed);
}

} // namespace llmc
