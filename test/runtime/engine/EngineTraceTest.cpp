// Random traces of requests through an engine: what is generated is what the same request gives alone.
#include "FakeDevice.h"
#include "runtime/cts/Traces.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace llmc;
using fake::Loaded;
using fake::pool;

namespace {

std::vector<int32_t> out(const Sequence &s) { return {s.output().begin(), s.output().end()}; }

struct Answer {
  std::vector<int32_t> ids;
  Finish finish;
  int32_t stopId;
  bool operator==(const Answer &) const = default;
};

Answer answerOf(const Sequence &s) { return {out(s), s.finish, s.stopId}; }

void PrintTo(const Answer &a, std::ostream *stream) {
  *stream << toString(a.finish) << " " << a.stopId << ":";
  for (int32_t id : a.ids)
    *stream << " " << id;
}

// The same pool and context, nobody else, no cache.
Answer alone(const Loaded &loaded, const Request &request) {
  Engine engine(*loaded.device);
  return answerOf(*engine.generate(request));
}

TEST(EngineTraces, EveryRequestIsAnsweredAsAlone) {
  cts::TraceOptions options;
  options.badToken = fake::kNanToken;
  cts::Traces traces(11, options);
  for (int trace = 0; trace < 2000; ++trace) {
    DeviceOptions deviceOptions = pool(16 * 16);
    deviceOptions.swapBytes = traces.below(2) * traces.below(8) * fake::kBlockBytes;
    Loaded loaded(deviceOptions);
    ASSERT_NO_THROW(traces.play(*loaded.device));
  }
  // The traces do come to what they are made for.
  EXPECT_GT(traces.counts().cached, 2000u);
  EXPECT_GT(traces.counts().preempted, 200u);
  EXPECT_GT(traces.counts().swapped, 20u);
  EXPECT_GT(traces.counts().failed, 50u);
  EXPECT_GT(traces.counts().cancelled, 50u);
}

Request plain(size_t length, uint64_t maxTokens, int32_t last = -1) {
  Request r;
  for (size_t i = 0; i < length; ++i)
    r.prompt.push_back(int32_t(i * 7 % 250));
  if (last >= 0)
    r.prompt.back() = last;
  r.sampling.maxTokens = maxTokens;
  r.sampling.logprobs = 5;
  return r;
}

// B40: prompts around the borders of blocks, each twice, one at a time and with a miss beside it.
TEST(EngineTraces, AHitChangesNothing) {
  for (size_t length : {1, 15, 16, 17, 32, 33, 48}) {
    Loaded loaded(pool(256));
    Engine engine(*loaded.device, {.prefixCache = true});
    std::vector<std::vector<TokenProbability>> rows[2];
    auto asking = [&](int which) {
      Request r = plain(length, 6);
      r.onToken = [&rows, which](const SampledToken &token) {
        rows[which].emplace_back(token.probabilities.begin(), token.probabilities.end());
        return true;
      };
      return r;
    };
    const Answer cold = answerOf(*engine.generate(asking(0)));
    auto miss = engine.submit(plain(length, 6, 249)), hit = engine.submit(asking(1));
    while (engine.step())
      ;
    EXPECT_EQ(answerOf(*hit), cold) << length;
    EXPECT_EQ(answerOf(*miss), alone(loaded, plain(length, 6, 249)));
    EXPECT_EQ(hit->cached, (length - 1) / 16 * 16) << "whole blocks, and at least one token is computed anew";
    ASSERT_EQ(rows[0].size(), rows[1].size());
    for (size_t t = 0; t < rows[0].size(); ++t)
      for (size_t k = 0; k < rows[0][t].size(); ++k) {
        EXPECT_EQ(rows[0][t][k].id, rows[1][t][k].id);
        EXPECT_EQ(rows[0][t][k].logProbability, rows[1][t][k].logProbability) << "bits";
      }
  }
}

TEST(EngineTraces, AHitAfterTheBlockWasGivenUp) {
  Loaded loaded(pool(64));
  Engine engine(*loaded.device, {.prefixCache = true});
  const Answer cold = answerOf(*engine.generate(plain(33, 4)));
  Request other = plain(60, 3);
  std::reverse(other.prompt.begin(), other.prompt.end());
  engine.generate(other); // takes all blocks
  auto again = engine.generate(plain(33, 4));
  EXPECT_EQ(again->cached, 0u);
  EXPECT_EQ(answerOf(*again), cold);
  EXPECT_EQ(engine.generate(plain(33, 4))->cached, 32u);
}

// B51, B43: what was not finite, or was cancelled in the middle of its prompt, leaves nothing wrong in the cache.
TEST(EngineTraces, OnlyWhatIsComputedIsCached) {
  Loaded loaded(pool(256));
  Engine engine(*loaded.device, {.chunk = 8, .prefixCache = true});
  Request bad = plain(40, 4);
  bad.prompt[20] = fake::kNanToken;
  EXPECT_EQ(engine.generate(bad)->finish, Finish::Error);
  EXPECT_EQ(engine.blocks().cache().cached(), 0u) << "nor is the good block before";
  auto s = engine.submit(plain(60, 4));
  engine.step();
  engine.step();
  engine.step();
  engine.cancel(s);
  EXPECT_EQ(engine.blocks().cache().cached(), 1u) << "24 tokens were computed";
  auto again = engine.generate(plain(60, 4));
  EXPECT_EQ(again->cached, 16u);
  EXPECT_EQ(answerOf(*again), alone(loaded, plain(60, 4)));
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

// B41: what can never fit is refused at once, with the numbers, and stands in nobody's way.
TEST(EngineTraces, WhatNeverFitsIsRefused) {
  Loaded loaded(pool(64)); // the context is 96
  Engine engine(*loaded.device, {.prefixCache = true});
  std::string message;
  try {
    engine.submit(plain(70, 1));
  } catch (const Error &error) {
    message = error.what();
  }
  EXPECT_EQ(message, "prompt: expected at most 64 tokens (the KV cache, see --kv-memory), got 70");
  EXPECT_EQ(engine.generate(plain(10, 5))->finish, Finish::Length);
  auto grows = engine.generate(plain(50, 40));
  EXPECT_EQ(grows->finish, Finish::CacheFull);
  EXPECT_EQ(grows->ids.size(), 65u);
  EXPECT_EQ(engine.generate(plain(64, 5))->generated(), 1u);
}

// Who is ended by a token that was not known yet has one step too many under way: it is for nobody, and nothing of it stays.
TEST(EngineTraces, WhatIsStartedBehindTheEndIsThrownAway) {
  Loaded loaded(pool(96));
  const Answer whole = alone(loaded, plain(20, 12));
  Request r = plain(20, 12);
  r.sampling.logprobs = SamplingParams::kNoLogprobs;
  size_t at = 4; // the first one that has not come before
  while (std::count(whole.ids.begin(), whole.ids.begin() + ptrdiff_t(at), whole.ids[at]))
    ++at;
  r.eosIds = {whole.ids[at]};
  r.keepCache = true;
  Engine engine(*loaded.device, {.prefixCache = true, .overlap = Overlap::On});
  auto s = engine.generate(r);
  EXPECT_EQ(s->finish, Finish::Stop);
  EXPECT_EQ(out(*s), std::vector<int32_t>(whole.ids.begin(), whole.ids.begin() + ptrdiff_t(at)));
  EXPECT_EQ(s->computed, s->ids.size());
  Request next = plain(20, 5); // the conversation goes on in its blocks
  next.prompt = s->ids;
  next.prompt.push_back(3);
  auto second = engine.generate(next, s);
  EXPECT_EQ(second->cached, s->ids.size());
  EXPECT_EQ(answerOf(*second), alone(loaded, next));
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

TEST(EngineTraces, ForksShareThePromptAndCopyOnWrite) {
  Loaded loaded(pool(96));
  Engine engine(*loaded.device);
  auto parent = engine.submit(plain(40, 20));
  for (int i = 0; i < 5; ++i)
    engine.step();
  const uint32_t before = engine.blocks().available();
  Request r = plain(40, 20);
  r.sampling.temperature = 1;
  r.sampling.seed = 3;
  auto child = engine.fork(*parent, r);
  EXPECT_EQ(engine.blocks().available(), before) << "nothing is copied yet";
  EXPECT_EQ(child->cached, 39u);
  engine.step();
  EXPECT_EQ(engine.blocks().available(), before - 1) << "the last block only";
  while (engine.step())
    ;
  EXPECT_EQ(answerOf(*child), alone(loaded, r));
  EXPECT_EQ(answerOf(*parent), alone(loaded, plain(40, 20)));
  EXPECT_EQ(engine.blocks().available(), engine.blocks().total());
}

// A device that fails in a step: what it should have written is not found afterwards.
TEST(EngineTraces, AFailedStepCachesNothing) {
  Loaded loaded(pool(96));
  Engine engine(*loaded.device, {.prefixCache = true});
  loaded.device->setObserver([](const LaunchView &) { throw Error("lost"); });
  auto s = engine.submit(plain(33, 3));
  EXPECT_THROW(engine.step(), Error);
  loaded.device->setObserver(nullptr);
  EXPECT_EQ(engine.blocks().cache().cached(), 0u);
  while (engine.step())
    ;
  EXPECT_EQ(answerOf(*s), alone(loaded, plain(33, 3)));
}

} // namespace
