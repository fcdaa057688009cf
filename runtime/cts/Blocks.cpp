//===- Blocks.cpp - the KV cache ------------------------------------------===//
#include "runtime/cts/Suite.h"

#include <algorithm>

namespace llmc::cts {

namespace {

// A permutation of [0, count).
Ids shuffled(int32_t count) {
  Ids ids = range(0, count);
  uint32_t x = 12345;
  for (size_t i = ids.size(); i > 1; --i) {
    x = x * 1664525u + 1013904223u;
    std::swap(ids[i - 1], ids[(x >> 8) % i]);
  }
  return ids;
}

void shuffledTable(Player &p) {
  const uint64_t length = p.length(p.quick ? 50 : 230);
  const auto used = int32_t((length + LLMC_KV_BLOCK - 1) / LLMC_KV_BLOCK);
  const Ids ids = p.text(length), straight = range(0, used);
  Ids random = shuffled(int32_t(p.blocks()));
  random.resize(size_t(used));
  p.device.zeroBlocks(range(0, int32_t(p.blocks()))); // what is behind the last token is compared, too
  const Row want = p.play({{ids, 0, straight}})[0];
  const auto cache = p.readBlocks(straight);
  p.device.zeroBlocks(range(0, int32_t(p.blocks())));
  p.same(p.play({{ids, 0, random}})[0], want, "blocks in another order");
  expect(p.readBlocks(random) == cache, "blocks in another order: other bytes");
  p.same(p.playChunked(ids, random, 16), p.playChunked(ids, straight, 16), "blocks in another order, in pieces");
}

// A step writes the slots that it names, and no other byte.
void writesOnlyItsSlots(Player &p) {
  if (p.blocks() < 4)
    return;
  p.play({{p.text(p.length(60), 9), 0, range(0, 4)}}); // something to destroy
  const auto before = p.readBlocks({0, 1, 2, 3});
  p.play({{p.text(p.length(20), 5), 0, {1, 3}}});
  expect(p.block(0) == before[0] && p.block(2) == before[2], "a block of another sequence has changed");

  const auto now = p.readBlocks({0, 1, 2, 3});
  llmc_step_v1 s = p.step({{p.text(3, 7), 0, {2}}});
  const Ids nowhere = {-1, -1, -1};
  llmc_kv_view_v1 view = s.kv[0];
  view.slots = nowhere.data();
  s.kv = &view;
  p.device.step(s);
  expect(p.readBlocks({0, 1, 2, 3}) == now, "tokens without a slot were written");
}

void zeroed(Player &p) {
  if (p.blocks() < 3)
    return;
  p.play({{p.text(p.length(40)), 0, {0, 1, 2}}});
  const auto before = p.readBlocks({0, 2});
  p.device.zeroBlocks(Ids{1});
  expect(p.block(1) == std::vector<std::byte>(p.device.blockBytes()), "expected a block of zeros");
  expect(p.readBlocks({0, 2}) == before, "zeroing changed another block");
  p.device.zeroBlocks({});
}

// Two sequences share a prefix; the copy of the last block makes them independent.
void forked(Player &p) {
  if (p.blocks() < 4 || p.length(21) < 21)
    return;
  const Ids prefix = p.text(20), one = p.text(1, 3), two = p.text(1, 4);
  auto with = [&](const Ids &last) {
    Ids ids = prefix;
    ids.push_back(last[0]);
    return ids;
  };
  p.play({{prefix, 0, {0, 1}}});
  const Row wantOne = p.play({{one, 20, {0, 1}}})[0];
  p.play({{prefix, 0, {0, 1}}});
  const Row wantTwo = p.play({{two, 20, {0, 1}}})[0];

  p.play({{prefix, 0, {0, 1}}});
  const std::pair<int32_t, int32_t> copy[] = {{1, 3}};
  p.device.copyBlocks(copy);
  expect(p.block(3) == p.block(1), "expected a copy of the block");
  p.same(p.play({{one, 20, {0, 1}}})[0], wantOne, "the original goes on");
  p.same(p.play({{two, 20, {0, 3}}})[0], wantTwo, "the fork goes on");
  p.close(p.play({{with(two), 0, {0, 2}}})[0], wantTwo, "the fork as one prompt");
  p.device.copyBlocks({});
}

// Chains of copies are done in order.
void copiedInOrder(Player &p) {
  if (p.blocks() < 4)
    return;
  p.play({{p.text(p.length(64)), 0, range(0, 4)}});
  const auto before = p.readBlocks(range(0, 4));
  const std::pair<int32_t, int32_t> copies[] = {{0, 1}, {1, 2}, {3, 0}};
  p.device.copyBlocks(copies);
  expect(p.block(1) == before[0] && p.block(2) == before[0] && p.block(0) == before[3], "expected copies one after the other");
}

// What a block held before, behind the sequence's last token and in blocks that it does not use, does not matter.
void staleBytes(Player &p) {
  const uint64_t length = p.length(21);
  const Ids ids = p.text(length), blocks = range(0, int32_t(std::min(p.blocks(), 8u)));
  p.device.zeroBlocks(range(0, int32_t(p.blocks())));
  const Row clean = p.play({{ids, 0, blocks}})[0];
  p.playChunked(p.text(std::min<uint64_t>(uint64_t(blocks.size()) * LLMC_KV_BLOCK, p.m.max_context), 77), blocks, p.m.max_tokens);
  p.same(p.play({{ids, 0, blocks}})[0], clean, "in blocks that held another sequence");
}

// The last block of the pool and a sequence that fills its blocks exactly.
void edges(Player &p) {
  const auto last = int32_t(p.blocks()) - 1;
  for (uint64_t wanted : {15, 16}) {
    const uint64_t length = p.length(wanted);
    p.same(p.play({{p.text(length), 0, {last}}})[0], p.play({{p.text(length), 0, {0}}})[0],
           std::to_string(length) + " tokens in the last block");
  }
  if (p.blocks() > 1 && p.length(17) == 17)
    p.close(p.play({{{p.text(17)[16]}, 16, {last, 0}}})[0], [&] {
      return p.play({{p.text(17), 0, {last, 0}}})[0];
    }(), "the first token of a second block");
}

} // namespace

void addBlocks(Checks &checks) {
  checks.push_back({"shuffled block tables", shuffledTable});
  checks.push_back({"a step writes its slots only", writesOnlyItsSlots});
  checks.push_back({"zeroBlocks", zeroed});
  checks.push_back({"copyBlocks forks a sequence", forked});
  checks.push_back({"copyBlocks in order", copiedInOrder});
  checks.push_back({"stale bytes do not matter", staleBytes});
  checks.push_back({"the edges of blocks and pool", edges});
}

} // namespace llmc::cts
