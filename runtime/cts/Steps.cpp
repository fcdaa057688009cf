//===- Steps.cpp - what is executed, what is refused ----------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/Suite.h"
#include "runtime/device/StepPhases.h"

#include <algorithm>

namespace llmc::cts {

namespace {

/// Counts launches while it lives.
class Watch {
public:
  explicit Watch(Device &device) : device_(device) {
    device_.setObserver([this](const LaunchView &view) { seen.push_back(view.launch.op_id); });
  }
  ~Watch() { device_.setObserver(nullptr); }
  std::vector<uint32_t> seen;

private:
  Device &device_;
};

void emptyStep(Player &p) {
  p.device.step(p.step({}));
  p.play({{p.text(3), 0, {0}}}); // and the device goes on
}

void sequenceWithoutTokens(Player &p) {
  if (p.m.max_seqs < 2)
    return;
  const Row want = p.play({{p.text(5), 0, {0}}})[0];
  p.same(p.play({{{}, 0, {1}}, {p.text(5), 0, {0}}})[0], want, "beside a sequence without new tokens");
}

void oneToken(Player &p) {
  const Ids ids = p.text(2);
  const Row first = p.play({{{ids[0]}, 0, {0}}})[0];
  p.same(p.play({{{ids[0]}, 0, {1}}})[0], first, "one token in another block");
  p.play({{{ids[1]}, 1, {0}}});
}

// Launches that become one for a few tokens give the bits of those that stay apart where somebody watches.
void watched(Player &p) {
  for (uint64_t wanted : {1, 2, 3, 4, 5, 8, 9, 16}) {
    const uint64_t length = p.length(wanted);
    const std::vector<Part> parts{{p.text(length), 0, {0, 1}}};
    const std::string what = std::to_string(length) + " tokens, watched";
    const Row plain = p.play(parts)[0];
    const auto cache = p.readBlocks({0});
    Watch watch(p.device);
    p.same(p.play(parts)[0], plain, what);
    expect(p.readBlocks({0}) == cache, what + ": another cache");
  }
}

// Every change makes the step ill-formed; nothing may run, nothing in the cache may change.
void refused(Player &p) {
  const Ids ids = p.text(3), table = {0};
  const auto before = p.readBlocks({0, 1});
  Watch watch(p.device);
  auto refuse = [&](const std::string &what, const std::function<void(llmc_step_v1 &)> &change) {
    llmc_step_v1 s = p.step({{ids, 0, table}});
    change(s);
    try {
      p.device.step(s);
    } catch (const Error &) {
      return expect(watch.seen.empty(), what + ": refused, but launches ran");
    }
    fail("expected a step with " + what + " to be refused");
  };
  const Ids many(uint64_t(p.m.max_tokens) + 1, 0), badIds = {0, int32_t(p.m.vocab), 0}, noSlot = {0, -2 - int32_t(p.m.max_logits), 0};
  const Ids badRows = {3}, descending = {1, 1}, farSlot = {0, 1, int32_t(p.blocks()) * LLMC_KV_BLOCK};
  const Ids badPositions = {0, 2, 1}, shortLength = {2}, farTable(p.m.max_context / LLMC_KV_BLOCK + 1, int32_t(p.blocks()));
  const Ids badStarts = {0, 1 << 29, 3}, twoLengths = {3, 3};
  refuse("another version", [](auto &s) { s.version += 1; });
  refuse("another size", [](auto &s) { s.struct_size -= 8; });
  refuse("too many tokens", [&](auto &s) { s.num_tokens = p.m.max_tokens + 1, s.token_ids = many.data(); });
  refuse("too many sequences", [&](auto &s) { s.num_seqs = p.m.max_seqs + 1; });
  refuse("too many rows of logits", [&](auto &s) { s.num_logits = p.m.max_logits + 1; });
  refuse("another number of KV groups", [](auto &s) { s.num_kv_groups = 0; });
  refuse("an id beyond the vocabulary", [&](auto &s) { s.token_ids = badIds.data(); });
  refuse("an output slot that does not exist", [&](auto &s) { s.token_ids = noSlot.data(); });
  refuse("a row that is no token", [&](auto &s) { s.logits_rows = badRows.data(); });
  if (p.m.max_logits > 1)
    refuse("rows that do not ascend", [&](auto &s) { s.num_logits = 2, s.logits_rows = descending.data(); });
  refuse("positions out of order", [&](auto &s) { s.positions = badPositions.data(); });
  refuse("a KV length below the new tokens", [&](auto &s) { s.kv_lengths = shortLength.data(); });
  if (p.m.max_seqs > 1)
    refuse("starts that descend", [&](auto &s) { s.num_seqs = 2, s.seq_starts = badStarts.data(), s.kv_lengths = twoLengths.data(); });
  refuse("no ids", [](auto &s) { s.token_ids = nullptr; });
  llmc_kv_view_v1 view{};
  auto cache = [&](const std::string &what, const Ids *blockTable, const Ids *slots) {
    refuse(what, [&](llmc_step_v1 &s) {
      view = s.kv[0];
      view.block_table = blockTable ? blockTable->data() : view.block_table;
      view.slots = slots ? slots->data() : view.slots;
      s.kv = &view;
    });
  };
  cache("a slot beyond the pool", nullptr, &farSlot);
  cache("a block beyond the pool", &farTable, nullptr);
  expect(p.readBlocks({0, 1}) == before, "a refused step changed the cache");
}

void blocksRefused(Player &p) {
  const Ids bad = {int32_t(p.blocks())};
  const std::pair<int32_t, int32_t> copy[] = {{0, -1}};
  std::vector<std::byte> bytes(p.device.blockBytes());
  auto refuse = [](const std::string &what, const std::function<void()> &body) {
    try {
      body();
    } catch (const Error &) {
      return;
    }
    fail("expected " + what + " to be refused");
  };
  refuse("zeroing a block that does not exist", [&] { p.device.zeroBlocks(bad); });
  refuse("copying to a block that does not exist", [&] { p.device.copyBlocks(copy); });
  refuse("reading a block that does not exist", [&] { p.device.readBlock(bad[0], bytes.data()); });
}

void stopAfterOp(Player &p) {
  const uint32_t count = promptProgram(p.m).num_launches;
  for (uint32_t stop : {0u, 1u, count / 2, count - 1}) {
    if (stop >= count)
      continue;
    Watch watch(p.device);
    Row logits(p.m.vocab, -7);
    llmc_step_v1 s = p.step({{p.text(5), 0, {0}}});
    s.out_logits = logits.data();
    s.stop_after_op = int32_t(stop);
    p.device.step(s);
    expect(watch.seen.size() == stop + 1 && watch.seen.back() == stop,
           "expected the launches up to op " + std::to_string(stop) + ", got " + std::to_string(watch.seen.size()));
    expect((logits == Row(p.m.vocab, -7)) == (stop + 1 < count), "expected outputs of a whole step only");
  }
}

// Watching does not change what is computed, and what is seen of the logits is what comes out.
void observing(Player &p) {
  const Ids ids = p.text(9);
  const Row want = p.play({{ids, 0, {0}}})[0];
  Row seen;
  p.device.setObserver([&](const LaunchView &view) {
    for (uint32_t v = 0; v < view.launch.num_values; ++v)
      if (view.launch.values[v].offset == promptProgram(p.m).logits_offset && view.launch.values[v].element == LLMC_F32) {
        auto *row = reinterpret_cast<const float *>(view.arena + view.launch.values[v].offset);
        seen.assign(row, row + p.m.vocab);
      }
  });
  Row got;
  try {
    got = p.play({{ids, 0, {0}}})[0];
  } catch (...) {
    p.device.setObserver(nullptr);
    throw;
  }
  p.device.setObserver(nullptr);
  p.same(got, want, "observed");
  if (!seen.empty())
    p.same(seen, want, "what the observer saw");
}

} // namespace

void addSteps(Checks &checks) {
  checks.push_back({"an empty step", emptyStep});
  checks.push_back({"a sequence without new tokens", sequenceWithoutTokens});
  checks.push_back({"sequences of one token", oneToken});
  checks.push_back({"ill-formed steps are refused unexecuted", refused});
  checks.push_back({"blocks that do not exist are refused", blocksRefused});
  checks.push_back({"stop_after_op", stopAfterOp});
  checks.push_back({"observing changes nothing", observing});
  checks.push_back({"watched steps have the same bits", watched});
}

} // namespace llmc::cts
