#include "test/ErrorOf.h"
#include "FakeDevice.h"
#include "llmc/Support/Error.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Verify.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace llmc;
using fake::Loaded;

namespace {

DeviceOptions options(uint64_t kvTokens = 0) {
  DeviceOptions o;
  o.threads = 2;
  o.kvTokens = kvTokens;
  return o;
}

Request request(std::vector<int32_t> prompt, uint64_t maxTokens) {
  Request r;
  r.prompt = std::move(prompt);
  r.sampling.maxTokens = maxTokens;
  return r;
}

std::vector<int32_t> greedy(std::vector<int32_t> ids, size_t count) {
  const size_t start = ids.size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<float> logits = fake::expectedLogits(ids);
    ids.push_back(int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return {ids.begin() + start, ids.end()};
}

std::vector<int32_t> out(const Sequence &s) { return {s.output().begin(), s.output().end()}; }

TEST(BlockManager, SharesAndCopiesOnWrite) {
  BlockManager blocks(3);
  std::vector<int32_t> a, b;
  ASSERT_TRUE(blocks.take(2, a));
  EXPECT_FALSE(blocks.take(2, b));
  EXPECT_TRUE(b.empty());
  b = a;
  for (int32_t block : b)
    blocks.share(block);
  bool ok;
  auto copy = blocks.makeWritable(b[1], ok);
  ASSERT_TRUE(copy && ok);
  EXPECT_EQ(copy->first, a[1]);
  EXPECT_EQ(copy->second, b[1]);
  EXPECT_EQ(blocks.references(a[1]), 1u);
  EXPECT_FALSE(blocks.makeWritable(a[1], ok)) << "the sole holder needs no copy";
  EXPECT_TRUE(ok);
  blocks.makeWritable(b[0], ok);
  EXPECT_FALSE(ok) << "no block left";
  blocks.releaseAll(a);
  EXPECT_EQ(blocks.available(), 1u) << "a[0] still has a holder";
  blocks.releaseAll(b);
  EXPECT_EQ(blocks.available(), 3u);
}

TEST(Engine, GeneratesWhatTheModelSays) {
  const std::vector<int32_t> prompt = {72, 101, 108, 108, 111};
  const std::vector<int32_t> want = greedy(prompt, 40);
  for (uint32_t chunk : {0u, 1u, 2u}) {
    Loaded loaded(options());
    Engine engine(*loaded.device, {.chunk = chunk});
    auto s = engine.generate(request(prompt, 40));
    EXPECT_EQ(out(*s), want) << chunk;
    EXPECT_EQ(s->finish, Finish::Length);
    EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
  }
}

TEST(Engine, LongPromptIsPrefilledInChunks) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < 80; ++i)
    prompt.push_back(i * 7 % 250);
  Loaded loaded(options());
  Engine engine(*loaded.device);
  EXPECT_EQ(out(*engine.generate(request(prompt, 5))), greedy(prompt, 5));
}

// Completion length equals what was asked.
TEST(Engine, CountsTokens) {
  Loaded loaded(options());
  Engine engine(*loaded.device);
  for (uint64_t n : {0, 1, 2, 17}) {
    auto s = engine.generate(request({1, 2, 3}, n));
    EXPECT_EQ(s->generated(), n);
    EXPECT_EQ(s->finish, Finish::Length);
  }
  for (uint64_t n : {uint64_t(1) << 31, uint64_t(1) << 63, UINT64_MAX}) {
    auto s = engine.generate(request({1, 2, 3}, n));
    EXPECT_EQ(s->ids.size(), fake::kMaxContext) << "clipped to the context";
    EXPECT_EQ(s->finish, Finish::Length);
  }
}

TEST(Engine, StopsAtStopIds) {
  const std::vector<int32_t> prompt = {1, 2, 3}, want = greedy(prompt, 10);
  Loaded loaded(options());
  Engine engine(*loaded.device);
  Request r = request(prompt, 10);
  r.eosIds = {want[4]};
  const size_t at = size_t(std::find(want.begin(), want.end(), want[4]) - want.begin());
  auto s = engine.generate(r);
  EXPECT_EQ(s->finish, Finish::Stop);
  EXPECT_EQ(s->stopId, want[4]);
  EXPECT_EQ(s->generated(), at);
}

TEST(Engine, EndsWhenTheCacheIsFull) {
  Loaded loaded(options(32));
  Engine engine(*loaded.device);
  auto s = engine.generate(request({1, 2, 3}, 90));
  EXPECT_EQ(s->finish, Finish::CacheFull);
  EXPECT_EQ(s->ids.size(), 33u) << "the last token needs no place in the cache";
  EXPECT_NE(errorOf([&] { engine.submit(request(std::vector<int32_t>(33, 1), 1)); }).find("expected at most 32 tokens"), std::string::npos);
  EXPECT_EQ(engine.blocks().available(), 2u);
}

TEST(Engine, RefusesBadPrompts) {
  Loaded loaded(options());
  Engine engine(*loaded.device);
  EXPECT_NE(errorOf([&] { engine.submit(request({}, 1)); }).find("at least one token"), std::string::npos);
  EXPECT_NE(errorOf([&] { engine.submit(request({260}, 1)); }).find("below 260, got 260"), std::string::npos);
  EXPECT_NE(errorOf([&] { engine.submit(request({-1}, 1)); }).find("got -1"), std::string::npos);
  EXPECT_NE(errorOf([&] { engine.submit(request(std::vector<int32_t>(97, 1), 1)); }).find("the context length"), std::string::npos);
}

TEST(Engine, BatchDoesNotChangeTokens) {
  std::vector<std::vector<int32_t>> prompts = {{5, 6, 7}, {}, {100}, {42, 43}, {9, 8, 7, 6}, {200, 1}};
  for (int i = 0; i < 50; ++i)
    prompts[1].push_back(i * 3);
  for (float temperature : {0.0f, 0.9f}) {
    std::vector<std::vector<int32_t>> alone;
    auto make = [&](size_t i) {
      Request r = request(prompts[i], 12);
      r.sampling.temperature = temperature;
      r.sampling.seed = i;
      return r;
    };
    Loaded loaded(options(300));
    for (size_t i = 0; i < prompts.size(); ++i) {
      Engine engine(*loaded.device);
      alone.push_back(out(*engine.generate(make(i))));
    }
    Engine engine(*loaded.device);
    std::vector<std::shared_ptr<Sequence>> together;
    for (size_t i = 0; i < prompts.size(); ++i)
      together.push_back(engine.submit(make(i)));
    while (engine.step())
      ;
    for (size_t i = 0; i < prompts.size(); ++i)
      EXPECT_EQ(out(*together[i]), alone[i]) << i;
  }
}

// One request of three gets NaN logits: it ends with an error, the others do not notice, and its
// blocks carry nothing over to their next holder.
TEST(Engine, BadLogitsEndTheirRequestOnly) {
  for (float temperature : {0.0f, 0.9f}) {
    Loaded loaded(options(64)); // few blocks: they are reused at once
    auto make = [&](std::vector<int32_t> prompt) {
      Request r = request(std::move(prompt), 10);
      r.sampling.temperature = temperature;
      return r;
    };
    Engine engine(*loaded.device);
    const std::vector<int32_t> a = out(*engine.generate(make({1, 2, 3}))), b = out(*engine.generate(make({9})));
    auto first = engine.submit(make({1, 2, 3})), bad = engine.submit(make({4, fake::kNanToken, 5})), last = engine.submit(make({9}));
    while (engine.step())
      ;
    EXPECT_EQ(bad->finish, Finish::Error);
    EXPECT_NE(bad->error.find("not finite"), std::string::npos);
    EXPECT_EQ(bad->generated(), 0u);
    EXPECT_EQ(engine.badRows(), 1u);
    EXPECT_EQ(out(*first), a);
    EXPECT_EQ(out(*last), b);
    EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
    std::vector<float> block(fake::kBlockBytes / 4);
    for (uint32_t i = 0; i < loaded.device->numBlocks(); ++i) {
      loaded.device->readBlock(int32_t(i), block.data());
      for (float x : block)
        ASSERT_TRUE(std::isfinite(x)) << "block " << i;
    }
    EXPECT_EQ(out(*engine.generate(make({1, 2, 3}))), a);
  }
}

// A prompt as long as the context leaves no room, one token less leaves room for one (B59).
TEST(Engine, PromptsAtTheLimit) {
  Loaded loaded(options());
  Engine engine(*loaded.device, {.context = 64});
  auto s = engine.generate(request(std::vector<int32_t>(63, 7), 100));
  EXPECT_EQ(s->generated(), 1u);
  EXPECT_EQ(s->finish, Finish::Length);
  s = engine.generate(request(std::vector<int32_t>(64, 7), 100));
  EXPECT_EQ(s->generated(), 0u);
  EXPECT_EQ(s->finish, Finish::Length);
  for (size_t size : {65, 10000})
    EXPECT_EQ(errorOf([&] { engine.submit(request(std::vector<int32_t>(size, 7), 100)); }),
              "prompt: expected at most 64 tokens (the context length), got " + std::to_string(size));
  EXPECT_EQ(engine.generate(request({1, 2}, 5))->generated(), 5u) << "the next request is served";
}

TEST(Engine, RefusesBadParameters) {
  Loaded loaded(options());
  Engine engine(*loaded.device);
  Request r = request({1}, 1);
  r.sampling.topP = 1.5;
  EXPECT_EQ(errorOf([&] { engine.submit(r); }), "top_p: expected a number from 0 to 1, got 1.5");
}

TEST(Engine, IgnoresEndOfSequenceAndKeepsStopIds) {
  const std::vector<int32_t> prompt = {1, 2, 3}, want = greedy(prompt, 10);
  Loaded loaded(options());
  Engine engine(*loaded.device);
  Request r = request(prompt, 10);
  r.eosIds = want; // every token ends the text, if the first one does
  EXPECT_EQ(engine.generate(r)->generated(), 0u);
  r.sampling.ignoreEos = true;
  EXPECT_EQ(out(*engine.generate(r)), want);
  r.sampling.stopIds = {want[5]};
  auto s = engine.generate(r);
  EXPECT_EQ(s->stopId, want[5]);
  EXPECT_LE(s->generated(), 5u);
}

// Before the least number of tokens the ids that end a text are not chosen, at any temperature.
TEST(Engine, MinTokens) {
  Loaded loaded(options());
  Engine engine(*loaded.device);
  const std::vector<int32_t> prompt = {1, 2, 3}, want = greedy(prompt, 1);
  for (double temperature : {0.0, 1.0}) {
    Request r = request(prompt, 20);
    r.sampling.temperature = temperature;
    r.eosIds = want;
    r.sampling.minTokens = 7;
    auto s = engine.generate(r);
    EXPECT_GE(s->generated(), 7u);
    for (size_t i = 0; i < 7; ++i)
      EXPECT_NE(s->output()[i], want[0]);
  }
}

TEST(Engine, LogProbabilitiesOfMixedRequests) {
  Loaded loaded(options(300));
  Engine engine(*loaded.device);
  std::vector<std::vector<TokenProbability>> got[3];
  std::shared_ptr<Sequence> sequences[3];
  for (int i = 0; i < 3; ++i) { // none, the chosen one, and four more
    Request r = request({i + 1, 2, 3}, 6);
    r.sampling.logprobs = i == 0 ? -1 : i == 1 ? 0 : 4;
    r.onToken = [&got, i](const SampledToken &token) {
      got[i].emplace_back(token.probabilities.begin(), token.probabilities.end());
      return true;
    };
    sequences[i] = engine.submit(std::move(r));
  }
  while (engine.step())
    ;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(got[i].size(), 6u);
    std::vector<int32_t> ids = sequences[i]->request.prompt;
    for (size_t t = 0; t < 6; ++t) {
      ASSERT_EQ(got[i][t].size(), i == 0 ? 0u : i == 1 ? 1u : 5u);
      const std::vector<float> logits = fake::expectedLogits(ids);
      double sum = 0;
      for (float x : logits)
        sum += std::exp(double(x));
      for (const TokenProbability &p : got[i][t])
        EXPECT_NEAR(p.logProbability, logits[size_t(p.id)] - std::log(sum), 1e-4);
      if (i)
        EXPECT_EQ(got[i][t][0].id, sequences[i]->output()[t]);
      ids.push_back(sequences[i]->output()[t]);
    }
  }
}

// A conversation: whatever prefix the next prompt shares with what is cached, the answer is that of a cold cache.
TEST(Engine, KeptCacheDoesNotChangeTokens) {
  Loaded loaded(options()), cold(options());
  Engine engine(*loaded.device), reference(*cold.device);
  std::shared_ptr<Sequence> last;
  std::vector<int32_t> prompt;
  for (int i = 0; i < 17; ++i)
    prompt.push_back(i * 13 % 250);
  const size_t cuts[] = {0, 0, 1, 15, 16, 17, 0, 3}; // tokens that the next prompt takes back, then two new ones
  for (size_t cut : cuts) {
    Request r = request(prompt, 4);
    const std::vector<int32_t> want = out(*reference.generate(r));
    r.keepCache = true;
    auto s = engine.generate(r, last);
    EXPECT_EQ(out(*s), want) << cut;
    if (last) {
      EXPECT_LT(s->cached, prompt.size());
      EXPECT_TRUE(last->blocks.empty());
    }
    last = s;
    prompt = s->ids;
    prompt.resize(prompt.size() - std::min(cut, prompt.size() - 1));
    prompt.push_back(int32_t(cut) + 100);
    prompt.push_back(5);
  }
  Request same = request(last->request.prompt, 4);
  same.keepCache = true;
  auto again = engine.generate(same, last);
  EXPECT_EQ(again->cached, same.prompt.size() - 1) << "all but the token whose logits are needed";
  EXPECT_EQ(out(*again), out(*last));
  engine.release(*again);
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

TEST(Engine, CancelIsIdempotent) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < 80; ++i)
    prompt.push_back(i * 7 % 250);
  Loaded loaded(options());
  Engine engine(*loaded.device, {.chunk = 16});
  for (int steps : {0, 1, 3, 5, 7}) { // before anything, in the middle of the prompt, while generating
    auto s = engine.submit(request(prompt, 10)), other = engine.submit(request({4, 5}, 3));
    for (int i = 0; i < steps; ++i)
      engine.step();
    engine.cancel(s);
    engine.cancel(s);
    EXPECT_EQ(s->finish, Finish::Cancelled) << steps;
    while (engine.step())
      ;
    EXPECT_EQ(out(*other), greedy({4, 5}, 3));
    engine.cancel(other);
    EXPECT_EQ(other->finish, Finish::Length);
    EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
  }
  EXPECT_EQ(out(*engine.generate(request(prompt, 5))), greedy(prompt, 5));
}

TEST(Engine, MemoryMatchesTheLedger) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer's own memory is not in the ledger";
#endif
  auto anonymous = [] {
    std::ifstream file("/proc/self/smaps_rollup");
    std::string line;
    uint64_t bytes = 0;
    while (std::getline(file, line))
      if (line.rfind("Anonymous:", 0) == 0)
        bytes = std::strtoull(line.c_str() + 10, nullptr, 10) * 1024;
    return bytes;
  };
  const uint64_t before = anonymous();
  DeviceOptions o = options();
  o.kvBytes = 300 << 20;
  Loaded loaded(o);
  Engine engine(*loaded.device);
  engine.generate(request({1, 2, 3}, 20));
  loaded.device->startBackground();
  loaded.device->finishBackground();
  const double planned = double(loaded.device->ledger().anonymousBytes()), real = double(anonymous() - before);
  EXPECT_GE(planned, 300 << 20);
  EXPECT_LE(std::abs(planned - real), 0.01 * planned + (16 << 20)) << planned << " planned, " << real << " used";
}

TEST(Verify, AgreesWithTheOracle) {
  Loaded loaded(options());
  std::vector<int32_t> ids;
  for (int i = 0; i < 30; ++i)
    ids.push_back(i * 11 % 250);
  const VerifyReport report = verifyModel(*loaded.device, ids);
  ASSERT_EQ(report.values.size(), 3u);
  EXPECT_EQ(report.values[0].value, "embedding");
  EXPECT_EQ(report.values[0].relative, 0);
  EXPECT_EQ(report.values[1].op, "blk.0.attention");
  EXPECT_EQ(report.values[1].layer, 0);
  EXPECT_EQ(report.firstBeyond(1e-5), nullptr);
  EXPECT_LT(report.meanKl, 1e-9);
  EXPECT_EQ(report.top1, 1);
}

TEST(Verify, NamesTheFaultyKernel) {
  Loaded loaded(options(), LLMC_FAKE_MODULE_FAULT);
  std::vector<int32_t> ids;
  for (int i = 0; i < 30; ++i)
    ids.push_back(i * 11 % 250);
  const VerifyReport report = verifyModel(*loaded.device, ids);
  ASSERT_NE(report.firstBeyond(1e-3), nullptr);
  EXPECT_EQ(report.firstBeyond(1e-3)->op, "blk.0.attention");
  EXPECT_GT(report.maxKl, 1e-3);
}

TEST(Verify, KlIsZeroForShiftedLogits) {
  const std::vector<float> p = {1, 2, 3}, q = {11, 12, 13}, r = {3, 2, 1};
  EXPECT_NEAR(klDivergence(p, q), 0, 1e-12);
  EXPECT_NEAR(klDivergence(p, r), 1.1504207, 1e-6); // numpy
}

} // namespace
