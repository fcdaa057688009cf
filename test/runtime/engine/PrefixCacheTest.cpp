#include "llmc/abi.h"
#include "runtime/engine/BlockManager.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llmc;

namespace {

using Ids = std::vector<int32_t>;

uint64_t constantHash(uint64_t, std::span<const int32_t>) { return 7; }

Ids text(int32_t first, size_t blocks) {
  Ids ids;
  for (size_t i = 0; i < blocks * LLMC_KV_BLOCK; ++i)
    ids.push_back(first + int32_t(i));
  return ids;
}

struct Holder {
  Ids ids, table;
  PrefixCache::Cursor cursor;
  std::string salt;
};

// As the scheduler does it: what is cached, then fresh blocks for the rest.
bool enter(BlockManager &blocks, Holder &h) {
  h.cursor = blocks.attach(h.salt, h.ids, h.table);
  const auto fresh = uint32_t(h.ids.size() / LLMC_KV_BLOCK - h.table.size());
  if (!blocks.take(fresh, h.table)) {
    blocks.releaseAll(h.table);
    return false;
  }
  blocks.publish(h.salt, h.ids, h.table, h.cursor);
  return true;
}

size_t hits(BlockManager &blocks, const Ids &ids, const std::string &salt = "") {
  Ids table;
  blocks.attach(salt, ids, table);
  const size_t count = table.size();
  blocks.releaseAll(table);
  return count;
}

TEST(PrefixCache, FindsTheLongestPrefix) {
  BlockManager blocks(8, true);
  Holder a{text(0, 3), {}, {}, ""};
  ASSERT_TRUE(enter(blocks, a));
  Ids longer = a.ids;
  longer.insert(longer.end(), 20, 5);
  EXPECT_EQ(hits(blocks, longer), 3u) << "while it is in use";
  EXPECT_EQ(blocks.available(), 5u);
  blocks.releaseAll(a.table);
  EXPECT_EQ(blocks.available(), 8u) << "cached blocks can be taken";
  EXPECT_EQ(hits(blocks, longer), 3u) << "and afterwards";
  Ids other = a.ids;
  other[20] = 999;
  EXPECT_EQ(hits(blocks, other), 1u);
  EXPECT_EQ(hits(blocks, Ids(a.ids.begin(), a.ids.begin() + 31)), 1u) << "whole blocks only";
  other = a.ids;
  other[0] = 999;
  EXPECT_EQ(hits(blocks, other), 0u) << "the same block behind another one is another block";
  BlockManager off(8, false);
  ASSERT_TRUE(enter(off, a = {text(0, 3), {}, {}, ""}));
  EXPECT_EQ(hits(off, longer), 0u);
}

TEST(PrefixCache, SaltsShareNothing) {
  BlockManager blocks(8, true);
  Holder a{text(0, 2), {}, {}, "anna"};
  ASSERT_TRUE(enter(blocks, a));
  EXPECT_EQ(hits(blocks, a.ids, "anna"), 2u);
  EXPECT_EQ(hits(blocks, a.ids, "bert"), 0u);
  EXPECT_EQ(hits(blocks, a.ids), 0u);
}

// B38: with one hash for everything a hit still means equal ids behind equal blocks of the same salt.
TEST(PrefixCache, HashesAreNotTrusted) {
  BlockManager blocks(16, true, constantHash);
  Holder a{text(0, 2), {}, {}, ""}, b{text(500, 2), {}, {}, ""}, c{text(0, 2), {}, {}, "c"};
  for (Holder *h : {&a, &b, &c}) {
    EXPECT_EQ(hits(blocks, h->ids, h->salt), 0u);
    ASSERT_TRUE(enter(blocks, *h));
  }
  EXPECT_EQ(hits(blocks, a.ids), 2u);
  Ids mixed = a.ids; // a's first block, b's second
  std::copy(b.ids.begin() + 16, b.ids.end(), mixed.begin() + 16);
  EXPECT_EQ(hits(blocks, mixed), 1u);
}

TEST(PrefixCache, GivesUpWhatWasUsedLongestAgoFromItsEnd) {
  BlockManager blocks(5, true);
  Holder a{text(0, 3), {}, {}, ""}, b{text(500, 2), {}, {}, ""};
  ASSERT_TRUE(enter(blocks, a) && enter(blocks, b));
  blocks.releaseAll(a.table);
  blocks.releaseAll(b.table);
  Ids table;
  for (const auto &[ofA, ofB] : {std::pair(2u, 2u), {1u, 2u}, {0u, 2u}, {0u, 1u}, {0u, 0u}}) {
    ASSERT_TRUE(blocks.take(1, table));
    // Looked at without attach(), which would count as a use.
    PrefixCache::Place place;
    for (const auto &[ids, want] : {std::pair(&a.ids, ofA), {&b.ids, ofB}}) {
      size_t found = 0;
      place = {};
      for (; found < ids->size() / 16; ++found) {
        const int32_t block = blocks.cache().find(place, "", std::span(*ids).subspan(found * 16, 16));
        if (block == PrefixCache::kNone)
          break;
        place = blocks.cache().placeOf(block);
      }
      EXPECT_EQ(found, want);
    }
  }
  EXPECT_FALSE(blocks.take(1, table));
}

// Two computed the same text at once: the second one's blocks are not found, but what it adds to the text is.
TEST(PrefixCache, TwinsGoOnInOneTree) {
  BlockManager blocks(12, true);
  Holder a{text(0, 2), {}, {}, ""}, b{text(0, 2), {}, {}, ""};
  ASSERT_TRUE(blocks.take(2, a.table) && blocks.take(2, b.table));
  blocks.publish("", a.ids, a.table, a.cursor);
  blocks.publish("", b.ids, b.table, b.cursor);
  EXPECT_EQ(blocks.cache().cached(), 2u);
  b.ids = text(0, 4);
  ASSERT_TRUE(blocks.take(2, b.table));
  blocks.publish("", b.ids, b.table, b.cursor);
  EXPECT_EQ(hits(blocks, b.ids), 4u);
  // The shared part is given up while b still runs: its end is found no more, and its blocks stay its own.
  blocks.releaseAll(a.table);
  Ids rest;
  ASSERT_TRUE(blocks.take(blocks.available(), rest));
  EXPECT_EQ(hits(blocks, b.ids), 0u);
  for (int32_t block : b.table)
    EXPECT_EQ(blocks.references(block), 1u);
  // Behind the next block all of it is findable again, now as b's own.
  blocks.releaseAll(rest);
  b.ids = text(0, 5);
  ASSERT_TRUE(blocks.take(1, b.table));
  blocks.publish("", b.ids, b.table, b.cursor);
  EXPECT_EQ(hits(blocks, b.ids), 5u);
}

TEST(PrefixCache, SpoiledBlocksAreForgottenAndZeroedBeforeTheyAreTaken) {
  BlockManager blocks(4, true);
  Holder a{text(0, 2), {}, {}, ""}, b{text(0, 3), {}, {}, ""};
  ASSERT_TRUE(enter(blocks, a) && enter(blocks, b));
  ASSERT_EQ(a.table[1], b.table[1]);
  for (int32_t block : a.table)
    blocks.spoil(block);
  blocks.releaseAll(a.table);
  EXPECT_EQ(hits(blocks, b.ids), 0u);
  EXPECT_TRUE(blocks.takeSpoiled().empty()) << "b still holds them";
  b.cursor = {};
  blocks.publish("", b.ids, b.table, b.cursor);
  EXPECT_EQ(hits(blocks, b.ids), 0u) << "they do not come back";
  blocks.releaseAll(b.table);
  EXPECT_EQ(blocks.available(), 2u);
  EXPECT_EQ(blocks.takeSpoiled().size(), 2u);
  EXPECT_EQ(blocks.available(), 4u);
}

TEST(PrefixCache, AWrittenBlockIsFoundNoMore) {
  BlockManager blocks(4, true);
  Holder a{text(0, 2), {}, {}, ""};
  ASSERT_TRUE(enter(blocks, a));
  bool ok;
  EXPECT_FALSE(blocks.makeWritable(a.table[0], ok));
  EXPECT_EQ(hits(blocks, a.ids), 0u) << "nor what is behind it";
}

// Random holders of texts with common prefixes, against what each block was last written with.
TEST(PrefixCache, ManyTextsInASmallPool) {
  std::mt19937 random(1);
  auto below = [&](size_t n) { return size_t(random() % n); };
  for (int round = 0; round < 200; ++round) {
    const uint32_t total = uint32_t(2 + below(14));
    BlockManager blocks(total, true, round % 2 ? constantHash : nullptr);
    std::map<int32_t, std::pair<std::string, Ids>> written; // block: the whole text up to its end
    std::vector<Holder> holders;
    size_t found = 0;
    for (int i = 0; i < 300; ++i) {
      if (below(3) && !holders.empty()) {
        const size_t who = below(holders.size());
        blocks.releaseAll(holders[who].table);
        holders.erase(holders.begin() + ptrdiff_t(who));
      } else {
        Holder h;
        h.salt = below(4) ? "" : "s";
        for (size_t b = 1 + below(5); b > 0; --b) {
          const Ids piece = text(int32_t(below(2)) * 100, 1);
          h.ids.insert(h.ids.end(), piece.begin(), piece.end());
        }
        h.cursor = blocks.attach(h.salt, h.ids, h.table);
        for (size_t b = 0; b < h.table.size(); ++b, ++found)
          ASSERT_EQ(written.at(h.table[b]), std::pair(h.salt, Ids(h.ids.begin(), h.ids.begin() + ptrdiff_t(b + 1) * 16)));
        const size_t kept = h.table.size();
        if (!blocks.take(uint32_t(h.ids.size() / 16 - kept), h.table)) {
          blocks.releaseAll(h.table);
          continue;
        }
        for (size_t b = kept; b < h.table.size(); ++b) {
          ASSERT_EQ(blocks.references(h.table[b]), 1u);
          written[h.table[b]] = {h.salt, Ids(h.ids.begin(), h.ids.begin() + ptrdiff_t(b + 1) * 16)};
        }
        blocks.publish(h.salt, h.ids, h.table, h.cursor);
        holders.push_back(std::move(h));
      }
      std::vector<uint32_t> counts(total, 0);
      for (const Holder &h : holders)
        for (int32_t block : h.table)
          ++counts[size_t(block)];
      for (uint32_t b = 0; b < total; ++b)
        ASSERT_EQ(blocks.references(int32_t(b)), counts[b]);
      ASSERT_EQ(blocks.available(), uint32_t(std::count(counts.begin(), counts.end(), 0u)));
    }
    EXPECT_TRUE(found > 0 || total < 4);
    for (Holder &h : holders)
      blocks.releaseAll(h.table);
    EXPECT_EQ(blocks.available(), total);
  }
}

} // namespace
