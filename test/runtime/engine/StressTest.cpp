// Clients that submit, cancel, ask for several answers and read slowly, more than the pool holds, for LLMC_STRESS_SECONDS (2); then
// everything is idle: every block is back and memory has not grown.
#include "FakeDevice.h"
#include "runtime/engine/EngineThread.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kKinds = 40, kClients = 8;

Request requestOf(unsigned kind) {
  std::mt19937 random(kind);
  Request r;
  for (unsigned i = 0, length = 1 + random() % 70; i < length; ++i) // a few long beginnings that many share
    r.prompt.push_back(int32_t((i * 7 + (i > 20 ? kind / 4 : 0)) % 250));
  if (kind % 13 == 5)
    r.prompt.back() = fake::kNanToken;
  r.sampling.maxTokens = 1 + random() % 40;
  r.sampling.temperature = kind % 3 ? 0 : 0.8;
  r.sampling.seed = kind;
  r.sampling.repetitionPenalty = kind % 5 ? 1 : 1.3;
  for (unsigned k = 0; k < kind % 7; ++k)
    r.eosIds.push_back(int32_t(random() % 250));
  r.priority = int64_t(kind % 3);
  return r;
}

/// What a callback leaves and a client reads when it likes.
class Mailbox {
public:
  void put(int32_t id) {
    std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }
  void close(Finish finish) {
    std::lock_guard lock(mutex_);
    finish_ = finish;
    changed_.notify_one();
  }
  Finish wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finish_ != Finish::None; });
    return finish_;
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return ids_.size();
  }
  std::vector<int32_t> ids() {
    std::lock_guard lock(mutex_);
    return {ids_.begin(), ids_.end()};
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int32_t> ids_;
  Finish finish_ = Finish::None;
};

/// One after the other: a request or several answers to it, read to the end, cancelled at some point, or twice, or never read.
class Client {
public:
  Client(EngineThread &engine, const std::vector<std::pair<std::vector<int32_t>, Finish>> &alone, unsigned seed)
      : engine_(engine), alone_(alone), random_(seed) {}

  void run(Clock::time_point end) {
    while (Clock::now() < end)
      one();
  }
  uint64_t finished = 0, cancelled = 0, wrong = 0;

private:
  uint64_t below(uint64_t n) { return random_() % n; }

  void one() {
    const unsigned kind = unsigned(below(kKinds));
    const size_t answers = below(6) ? 1 : 1 + below(4);
    std::vector<std::shared_ptr<Mailbox>> boxes;
    std::vector<EngineThread::Ticket> tickets;
    for (size_t i = 0; i < answers; ++i) {
      auto box = boxes.emplace_back(std::make_shared<Mailbox>());
      Request r = requestOf(kind);
      r.onToken = [box](const SampledToken &token) { return box->put(token.id), true; };
      r.onEnd = [box](const Sequence &s) { box->close(s.finish); };
      tickets.push_back(engine_.submit(std::move(r)));
    }
    const bool cancels = below(3) == 0;
    if (cancels) {
      const size_t after = below(12);
      for (int looks = 0; boxes[0]->size() < after && looks < 20; ++looks)
        std::this_thread::yield();
      for (EngineThread::Ticket ticket : tickets)
        engine_.cancel(ticket);
      if (below(2))
        engine_.cancel(tickets[0]);
      engine_.cancel(1u << 30); // nobody's
    }
    if (below(8) == 0) // a reader who is away
      std::this_thread::sleep_for(std::chrono::milliseconds(below(20)));
    for (const auto &box : boxes)
      look(kind, box->wait(), box->ids(), cancels);
  }

  void look(unsigned kind, Finish finish, const std::vector<int32_t> &ids, bool cancels) {
    const auto &[want, how] = alone_[kind];
    if (finish == Finish::Cancelled) {
      ++cancelled;
      wrong += !cancels || ids.size() > want.size() || !std::equal(ids.begin(), ids.end(), want.begin());
    } else {
      ++finished;
      wrong += finish != how || ids != want;
    }
  }

  EngineThread &engine_;
  const std::vector<std::pair<std::vector<int32_t>, Finish>> &alone_;
  std::mt19937 random_;
};

uint64_t residentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::stoull(line.substr(6));
  return 0;
}

void stress(Overlap overlap, double seconds) {
  DeviceOptions options = fake::pool(16 * 20); // some five requests
  options.swapBytes = 12 * fake::kBlockBytes;
  fake::Loaded loaded(options);
  std::vector<std::pair<std::vector<int32_t>, Finish>> alone;
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    Engine engine(*loaded.device);
    const auto s = engine.generate(requestOf(kind));
    alone.push_back({{s->output().begin(), s->output().end()}, s->finish});
  }
  EngineThread engine(*loaded.device, {.policy = Policy::Priority, .prefixCache = true, .overlap = overlap});
  std::deque<Client> clients;
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  const auto after = [&](double share) { return start + std::chrono::microseconds(int64_t(1e6 * seconds * share)); };
  for (unsigned i = 0; i < kClients; ++i) {
    Client &client = clients.emplace_back(engine, alone, i);
    threads.emplace_back([&client, end = after(1)] { client.run(end); });
  }
  std::this_thread::sleep_until(after(0.5));
  const uint64_t before = residentKiB();
  for (std::thread &thread : threads)
    thread.join();
  const uint64_t at = residentKiB();
  EngineMetrics m;
  do
    m = engine.metrics();
  while (m.running || m.waiting || m.finished + m.cancelled + m.failed < m.submitted);
  EXPECT_EQ(m.freeBlocks, m.blocks);
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) // which keep what is freed
  EXPECT_LT(at, before + before / 10 + 8192) << "KiB";
#endif
  uint64_t finished = 0, cancelled = 0;
  for (const Client &client : clients) {
    EXPECT_EQ(client.wrong, 0u);
    finished += client.finished;
    cancelled += client.cancelled;
  }
  EXPECT_GT(finished, 10u);
  EXPECT_GT(cancelled, 1u);
  std::printf("%llu finished, %llu cancelled, %llu steps, %llu preemptions, %llu of %llu prompt tokens cached, %llu KiB after %llu\n",
              static_cast<unsigned long long>(finished), static_cast<unsigned long long>(cancelled), static_cast<unsigned long long>(m.steps),
              static_cast<unsigned long long>(m.preemptions), static_cast<unsigned long long>(m.cachedTokens),
              static_cast<unsigned long long>(m.promptTokens), static_cast<unsigned long long>(at), static_cast<unsigned long long>(before));
}

TEST(Stress, EveryBlockComesBack) {
  const char *text = std::getenv("LLMC_STRESS_SECONDS");
  const double seconds = text ? std::atof(text) : 2;
  for (Overlap overlap : {Overlap::Off, Overlap::On})
    stress(overlap, seconds / 2);
}

} // namespace
