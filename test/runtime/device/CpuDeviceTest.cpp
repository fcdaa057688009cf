#include "test/ErrorOf.h"
#include "FakeDevice.h"
#include "llmc/Support/Error.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/ModuleLoader.h"
#include "runtime/device/cpu/Processor.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/engine/Batch.h"
#include "runtime/engine/Score.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>

using namespace llmc;
using fake::Loaded;

namespace {

void expectError(const std::function<void()> &body, const std::string &part) {
  const std::string text = errorOf(body);
  EXPECT_NE(text.find(part), std::string::npos) << "got: " << text;
}

DeviceOptions threads(unsigned count) {
  DeviceOptions options;
  options.threads = count;
  return options;
}

std::vector<int32_t> someIds(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(int32_t((i * 37 + 11) % 250));
  return ids;
}

std::vector<float> allLogits(Device &device, const std::vector<int32_t> &ids, uint32_t chunk) {
  std::vector<float> all(ids.size() * fake::kVocab);
  scoreTokens(device, ids, chunk, [&](uint32_t first, uint32_t count, const float *logits) {
    std::copy_n(logits, size_t(count) * fake::kVocab, all.begin() + size_t(first) * fake::kVocab);
  });
  return all;
}

TEST(CpuDevice, ComputesTheModel) {
  Loaded loaded(threads(2));
  const std::vector<int32_t> ids = someIds(70);
  const std::vector<float> got = allLogits(*loaded.device, ids, 8);
  for (size_t t : {0u, 1u, 15u, 16u, 17u, 69u}) {
    const std::vector<float> want = fake::expectedLogits({ids.begin(), ids.begin() + t + 1});
    EXPECT_EQ(0, std::memcmp(want.data(), got.data() + t * fake::kVocab, want.size() * 4)) << "token " << t;
  }
}

TEST(CpuDevice, ChunksAndThreadsDoNotChangeBits) {
  const std::vector<int32_t> ids = someIds(70);
  Loaded one(threads(1));
  const std::vector<float> want = allLogits(*one.device, ids, 1);
  for (unsigned count : {1u, 2u, 3u, 5u}) {
    Loaded loaded(threads(count));
    for (uint32_t chunk : {1u, 7u, 16u, 32u})
      EXPECT_EQ(want, allLogits(*loaded.device, ids, chunk)) << count << " threads, chunks of " << chunk;
  }
}

TEST(CpuDevice, HugePageCopyServesTheSameBits) {
  Loaded loaded(threads(2));
  const std::vector<int32_t> ids = someIds(40);
  const std::vector<float> before = allLogits(*loaded.device, ids, 8);
  loaded.device->startBackground();
  loaded.device->finishBackground();
  EXPECT_EQ(before, allLogits(*loaded.device, ids, 8));
}

TEST(CpuDevice, ReferenceAgrees) {
  Loaded loaded(threads(2));
  const std::vector<int32_t> ids = someIds(30); // more than max_logits
  std::vector<float> logits(ids.size() * fake::kVocab);
  std::vector<std::string> seen;
  loaded.device->setObserver([&](const LaunchView &view) { seen.push_back(view.launch.op); });
  loaded.device->reference(ids, logits.data());
  loaded.device->setObserver(nullptr);
  EXPECT_EQ(seen.size(), 2 + 2 * 4u); // the body once, the head for four chunks of 8 rows
  const std::vector<float> got = allLogits(*loaded.device, ids, 8);
  for (size_t i = 0; i < logits.size(); ++i)
    ASSERT_NEAR(logits[i], got[i], 1e-4) << i;
}

TEST(CpuDevice, StopAfterOpLeavesTheRestAlone) {
  Loaded loaded(threads(2));
  Batch batch(*loaded.device);
  const int32_t ids[] = {1, 2, 3}, block = 0;
  batch.add(ids, 0, {&block, 1});
  batch.wantLogits(2);
  std::vector<float> logits(fake::kVocab, -7);
  llmc_step_v1 step = batch.step();
  step.out_logits = logits.data();
  for (int32_t stop = 0; stop < 4; ++stop) {
    std::vector<uint32_t> seen;
    loaded.device->setObserver([&](const LaunchView &view) { seen.push_back(view.launch.op_id); });
    step.stop_after_op = stop;
    loaded.device->step(step);
    EXPECT_EQ(seen.size(), size_t(stop) + 1);
    EXPECT_EQ(logits[0], -7) << "no output before the end";
  }
  loaded.device->setObserver(nullptr);
  step.stop_after_op = 4;
  loaded.device->step(step);
  EXPECT_NE(logits[0], -7);
}

TEST(CpuDevice, VariantFollowsTheRowCount) {
  Loaded loaded(threads(1));
  std::string variant;
  loaded.device->setObserver([&](const LaunchView &view) {
    if (view.launch.op_id == 2)
      variant = view.variant.name;
  });
  allLogits(*loaded.device, {5}, 1);
  EXPECT_EQ(variant, "attention_1");
  allLogits(*loaded.device, {5, 6}, 2);
  EXPECT_EQ(variant, "attention_4");
  Batch batch(*loaded.device); // a new token each of three sequences
  for (int32_t block : {0, 1, 2})
    batch.add(std::array{5}, 0, std::array{block});
  loaded.device->step(batch.step());
  EXPECT_EQ(variant, "attention_1");
  batch.clear();
  batch.add(std::array{5}, 0, std::array{0});
  batch.add(std::array{5, 6}, 0, std::array{1});
  loaded.device->step(batch.step());
  EXPECT_EQ(variant, "attention_4");
}

TEST(CpuDevice, RefusesIllFormedSteps) {
  Loaded loaded(threads(1));
  Batch batch(*loaded.device);
  const int32_t ids[] = {1, 2, 3}, block = 0;
  batch.add(ids, 0, {&block, 1});
  batch.wantLogits(1);
  auto with = [&](const std::function<void(llmc_step_v1 &)> &change, const std::string &part) {
    llmc_step_v1 step = batch.step();
    change(step);
    expectError([&] { loaded.device->step(step); }, part);
  };
  const int32_t badIds[] = {1, 260, 3}, badRows[] = {3}, badSlots[] = {0, 1, 1 << 20}, badLengths[] = {2}, badTable[96] = {77777};
  with([](auto &s) { s.version = 2; }, "expected version 1, got 2");
  with([](auto &s) { s.num_tokens = 33; }, "expected at most 32 tokens, got 33");
  with([](auto &s) { s.num_seqs = 5; }, "expected at most 4 sequences, got 5");
  with([](auto &s) { s.num_logits = 9; }, "rows of logits, got 9");
  with([&](auto &s) { s.token_ids = badIds; }, "expected token ids below 260, got 260");
  with([&](auto &s) { s.logits_rows = badRows; }, "not ascending token indices");
  with([&](auto &s) { s.kv_lengths = badLengths; }, "expected a KV length");
  with([](auto &s) { s.positions = nullptr; }, "an input is null");
  const int32_t farStarts[] = {0, 1 << 30, 3}, lengths[] = {3, 3};
  with([&](auto &s) { s.num_seqs = 2, s.seq_starts = farStarts, s.kv_lengths = lengths; }, "the sequence starts descend");
  const int32_t longLength[] = {97};
  with([&](auto &s) { s.kv_lengths = longLength; }, "at most 96, got 97");
  llmc_kv_view_v1 view{badTable, badSlots, 6, 0};
  with([&](auto &s) { s.kv = &view; }, "token 2");
  const int32_t slots[] = {0, 1, 2};
  view.slots = slots;
  with([&](auto &s) { s.kv = &view; }, "refers to a block that does not exist");
}

TEST(CpuDevice, RefusesTruncatedWeightsBeforeTouchingThem) {
  Loaded loaded(threads(1));
  DevicePayload payload = loaded.payload();
  ASSERT_EQ(0, ftruncate(loaded.fd, fake::kWeightsBytes - 1));
  expectError([&] { makeCpuDevice(payload, threads(1)); }, "fake: truncated: the weights end at byte");
  loaded.source.length -= 64;
  expectError([&] { makeCpuDevice(payload, threads(1)); }, "bytes of weights, got");
}

TEST(CpuDevice, ServesWeightsThatAreNoPartOfOneFile) {
  Loaded loaded(threads(2));
  loaded.source.plain = false;
  std::unique_ptr<Device> device = makeCpuDevice(loaded.payload(), threads(2));
  const std::vector<int32_t> ids = someIds(40);
  EXPECT_EQ(allLogits(*loaded.device, ids, 8), allLogits(*device, ids, 8));
  device->startBackground();
  device->finishBackground();
  EXPECT_EQ(allLogits(*loaded.device, ids, 8), allLogits(*device, ids, 8));
  EXPECT_EQ(0, std::memcmp(loaded.device->weights(), device->weights(), fake::kWeightsBytes));
  EXPECT_EQ(device->ledger().items[0].name, "weights");
}

TEST(CpuDevice, RefusesWhatIsNoModule) {
  Loaded loaded(threads(1));
  DevicePayload payload = loaded.payload();
  payload.modules[0].bytes = "not an ELF file";
  expectError([&] { makeCpuDevice(payload, threads(1)); }, "fake: module.avx2: cannot load the module");
  payload.modules[0].bytes = std::string_view(loaded.object).substr(0, loaded.object.size() / 2);
  expectError([&] { makeCpuDevice(payload, threads(1)); }, "cannot load the module");
}

TEST(CpuDevice, RefusesMemoryThatTheMachineDoesNotHave) {
  DeviceOptions options = threads(1);
  options.kvBytes = uint64_t(1) << 38;
  expectError([&] { Loaded loaded(options); }, "are available");
  options.kvBytes = 10;
  expectError([&] { Loaded loaded(options); }, "one block of 16 tokens");
}

TEST(CpuFeatures, ChoosesTheBestThatRuns) {
  const std::set<std::string> haswell = {"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "lzcnt", "movbe"};
  std::set<std::string> icelake = haswell;
  icelake.insert({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512vnni"});
  std::set<std::string> old = haswell;
  old.erase("avx2");
  const std::vector<std::string> both = {"avx2", "avx512vnni"};
  EXPECT_EQ(chooseIsa(both, "", icelake), "avx512vnni");
  EXPECT_EQ(chooseIsa(both, "", haswell), "avx2");
  EXPECT_EQ(chooseIsa(both, "avx2", icelake), "avx2");
  expectError([&] { chooseIsa(both, "avx512vnni", haswell); }, "this CPU cannot run avx512vnni: it lacks avx512f");
  expectError([&] { chooseIsa(both, "", old); }, "avx2 lacks avx2");
  expectError([&] { chooseIsa({"avx2"}, "avx512vnni", icelake); }, "the package has no code for avx512vnni");
  expectError([&] { chooseIsa(both, "mmx", icelake); }, "expected one of amxbf16, avx512bf16, avx512vnni, avx2, neon_dotprod, got 'mmx'");
  const std::vector<std::string> all = {"avx2", "avx512vnni", "avx512bf16"};
  std::set<std::string> zen4 = icelake;
  zen4.insert("avx512bf16");
  EXPECT_EQ(chooseIsa(all, "", zen4), "avx512bf16");
  EXPECT_EQ(chooseIsa(both, "", zen4), "avx512vnni");
  EXPECT_EQ(chooseIsa(all, "", icelake), "avx512vnni");
  std::set<std::string> sapphireRapids = zen4; // has it, but slower than what avx512vnni does instead
  sapphireRapids.insert("slow avx512bf16");
  EXPECT_EQ(chooseIsa(all, "", sapphireRapids), "avx512vnni");
  EXPECT_EQ(chooseIsa(all, "avx512bf16", sapphireRapids), "avx512bf16");
  const std::vector<std::string> phased = {"avx2", "avx512vnni", "avx512bf16", "amxbf16"};
  EXPECT_EQ(chooseIsa(phased, "", sapphireRapids), "avx512vnni"); // no permission to use tiles
  std::set<std::string> amx = sapphireRapids;
  amx.insert({"amx-tile", "amx-bf16"});
  EXPECT_EQ(chooseIsa(phased, "", amx), "amxbf16");
  EXPECT_EQ(chooseIsa(phased, "avx2", amx), "avx2");
  expectError([&] { chooseIsa(phased, "amxbf16", sapphireRapids); }, "this CPU cannot run amxbf16: it lacks amx-tile, amx-bf16");
  expectError([&] { chooseIsa(all, "avx512bf16", icelake); }, "this CPU cannot run avx512bf16: it lacks avx512bf16");
  EXPECT_EQ(chooseIsa({"neon_dotprod"}, "", {"asimd", "asimddp"}), "neon_dotprod");
  expectError([&] { chooseIsa({"neon_dotprod"}, "", {"asimd"}); }, "this CPU cannot run the package: neon_dotprod lacks asimddp");
  expectError([&] { chooseIsa({"neon_dotprod"}, "", icelake); }, "neon_dotprod lacks asimd, asimddp");
}

TEST(ModuleCheck, NamesTheLaunchAndArgument) {
  Loaded loaded(threads(1));
  llmc_module_v1 module = loaded.device->module();
  std::vector<llmc_launch_v1> launches(module.program.launches, module.program.launches + 5);
  module.program.launches = launches.data();
  checkModule(module, "m");
  llmc_arg_v1 args[] = {launches[0].args[0], {LLMC_ARG_WEIGHT, 0, fake::kWeightsBytes}, launches[0].args[2]};
  launches[0].args = args;
  expectError([&] { checkModule(module, "m"); }, "launch 0 (token_embd), argument 1: weight offset");
  args[1] = {LLMC_ARG_WEIGHT_F32, 0, 0};
  expectError([&] { checkModule(module, "m"); }, "reference program only");
  args[1] = {9, 0, 0};
  expectError([&] { checkModule(module, "m"); }, "unknown argument kind 9");
  args[1] = {LLMC_ARG_WEIGHT, 0, 0};
  llmc_variant_v1 variant = launches[0].variants[0];
  variant.max_rows = 4;
  launches[0].variants = &variant;
  expectError([&] { checkModule(module, "m"); }, "the last variant does not take every row count");
  module.version = 2;
  expectError([&] { checkModule(module, "m"); }, "expected module version 1");
}

TEST(ThreadPool, EveryThreadPassesEveryBarrier) {
  for (unsigned count : {1u, 2u, 3u, 4u, 7u}) {
    ThreadPool pool(count, false);
    std::atomic<int> sum{0};
    std::atomic<bool> wrong{false};
    for (int run = 0; run < 20; ++run) {
      sum = 0;
      auto body = [&](unsigned thread) {
        for (int round = 1; round <= 20; ++round) {
          ++sum;
          pool.barrier(thread);
          if (sum != round * int(count))
            wrong = true;
          pool.barrier(thread);
        }
      };
      pool.run(body);
    }
    EXPECT_FALSE(wrong) << count << " threads";
  }
}

TEST(ThreadPool, FlushesDenormalsInsideOnly) {
  ThreadPool pool(2, false);
  const uint64_t before = floatMode();
  std::atomic<int> flushed{0};
  auto body = [&](unsigned) { flushed += (floatMode() & kFlushDenormals) == kFlushDenormals; };
  pool.run(body);
  EXPECT_EQ(flushed, 2);
  EXPECT_EQ(floatMode(), before);
}

} // namespace
