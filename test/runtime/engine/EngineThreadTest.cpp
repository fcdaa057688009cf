#include "FakeDevice.h"
#include "test/ErrorOf.h"
#include "runtime/engine/EngineThread.h"

#include <atomic>
#include <future>
#include <gtest/gtest.h>
#include <random>
#include <utility>

using namespace llmc;
using fake::Loaded;
using fake::pool;

namespace {

Request request(unsigned kind, uint64_t maxTokens) {
  Request r;
  for (unsigned i = 0; i < 10 + kind * 7 % 40; ++i)
    r.prompt.push_back(int32_t((i * 7 + (i > 16 ? kind : 0)) % 250));
  r.sampling.maxTokens = maxTokens;
  r.sampling.temperature = 0.8;
  r.sampling.seed = kind;
  return r;
}

struct Outcome {
  std::vector<int32_t> ids;
  Finish finish;
  std::string error;
};

std::future<Outcome> watched(Request &r) {
  auto promise = std::make_shared<std::promise<Outcome>>();
  r.onEnd = [promise](const Sequence &s) { promise->set_value({{s.output().begin(), s.output().end()}, s.finish, s.error}); };
  return promise->get_future();
}

TEST(EngineThread, AnswersAndCounts) {
  Loaded loaded(pool(160));
  EngineThread engine(*loaded.device, {.prefixCache = true});
  for (int i = 0; i < 3; ++i) {
    Request r = request(1, 5);
    auto outcome = watched(r);
    engine.submit(std::move(r));
    EXPECT_EQ(outcome.get().ids.size(), 5u);
  }
  Request none = request(1, 0);
  auto outcome = watched(none);
  engine.submit(std::move(none));
  EXPECT_EQ(outcome.get().finish, Finish::Length);
  EXPECT_ERROR(engine.submit(Request()), "expected at least one token");
  EngineMetrics m;
  do
    m = engine.metrics();
  while (m.finished < 4 || m.running);
  EXPECT_EQ(m.submitted, 4u);
  EXPECT_EQ(m.generatedTokens, 15u);
  EXPECT_EQ(m.promptTokens, 4u * 17);
  EXPECT_EQ(m.cachedTokens, 2u * 16);
  EXPECT_EQ(m.freeBlocks, m.blocks);
  EXPECT_EQ(m.blocks, 10u);
}

// B43: 8 clients submit, cancel (too early, in the middle, too late, twice, what never was) and read: what is not cancelled is
// answered as alone, and every block comes back.
TEST(EngineThread, ManyClients) {
  Loaded loaded(pool(160));
  std::vector<std::vector<int32_t>> alone;
  for (unsigned kind = 0; kind < 10; ++kind) {
    Engine engine(*loaded.device);
    auto s = engine.generate(request(kind, 12));
    alone.emplace_back(s->output().begin(), s->output().end());
  }
  EngineThread engine(*loaded.device, {.chunk = 9, .policy = Policy::Priority, .prefixCache = true});
  std::atomic<int> wrong{0}, cancelled{0};
  std::vector<std::thread> clients;
  for (unsigned client = 0; client < 8; ++client)
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int round = 0; round < 125; ++round) {
        const unsigned kind = random() % 10;
        Request r = request(kind, 12);
        r.priority = int64_t(random() % 3);
        auto outcome = watched(r);
        const EngineThread::Ticket ticket = engine.submit(std::move(r));
        const unsigned what = random() % 4;
        if (what == 0)
          engine.cancel(ticket);
        if (what == 1) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
          engine.cancel(ticket);
          engine.cancel(ticket);
        }
        engine.cancel(1 << 30);
        const Outcome got = outcome.get();
        engine.cancel(ticket);
        if (got.finish == Finish::Cancelled)
          ++cancelled;
        else
          wrong += got.ids != alone[kind] || got.finish != Finish::Length;
      }
    });
  for (std::thread &client : clients)
    client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cancelled, 20);
  EngineMetrics m;
  do
    m = engine.metrics();
  while (m.finished + m.cancelled < 1000);
  EXPECT_EQ(m.freeBlocks, m.blocks);
  EXPECT_EQ(m.running + m.waiting, 0u);
}

TEST(EngineThread, ShutdownEndsWhatIsLeft) {
  Loaded loaded(pool(160));
  std::vector<std::future<Outcome>> outcomes;
  {
    EngineThread engine(*loaded.device, {});
    for (unsigned i = 0; i < 20; ++i) {
      Request r = request(i, 40);
      outcomes.push_back(watched(r));
      engine.submit(std::move(r));
    }
  }
  for (auto &outcome : outcomes) {
    const Finish finish = outcome.get().finish;
    EXPECT_TRUE(finish == Finish::Cancelled || finish == Finish::Length) << toString(finish);
  }
}

TEST(EngineThread, CallbacksMayCall) {
  Loaded loaded(pool(160));
  EngineThread engine(*loaded.device, {});
  Request second = request(2, 3);
  auto outcome = watched(second);
  Request first = request(1, 40);
  std::promise<EngineThread::Ticket> ticket; // all tokens could be there before submit() has returned it
  first.onToken = [&, called = false](const SampledToken &) mutable {
    if (!std::exchange(called, true)) {
      engine.cancel(ticket.get_future().get());
      engine.submit(second);
    }
    return true;
  };
  auto ended = watched(first);
  ticket.set_value(engine.submit(std::move(first)));
  EXPECT_EQ(outcome.get().ids.size(), 3u);
  EXPECT_EQ(ended.get().finish, Finish::Cancelled);
}

TEST(EngineThread, ALostDeviceEndsAll) {
  Loaded loaded(pool(160));
  loaded.device->setObserver([](const LaunchView &) { throw Error("the device is lost"); });
  EngineThread engine(*loaded.device, {});
  Request a = request(1, 5);
  auto outcome = watched(a);
  engine.submit(std::move(a));
  const Outcome got = outcome.get();
  EXPECT_EQ(got.finish, Finish::Error);
  EXPECT_EQ(got.error, "the device is lost");
  EXPECT_ERROR(engine.submit(request(1, 5)), "the device is lost");
}

} // namespace
