#include "test/ErrorOf.h"
#include "llmc/abi.h"
#include "runtime/engine/Simulation.h"

#include <chrono>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

SchedulerOptions options(uint32_t budget = 512, uint32_t running = 64) {
  SchedulerOptions o;
  o.tokenBudget = o.chunk = budget;
  o.maxRunning = running;
  return o;
}

const StepCost kCost{{{1, 0.01}, {101, 0.02}, {201, 0.04}}, 0};

TEST(StepCost, IsLinearBetweenPoints) {
  EXPECT_DOUBLE_EQ(kCost(1, 0), 0.01);
  EXPECT_DOUBLE_EQ(kCost(51, 0), 0.015);
  EXPECT_DOUBLE_EQ(kCost(101, 0), 0.02);
  EXPECT_DOUBLE_EQ(kCost(301, 0), 0.06) << "the last slope goes on";
  StepCost flat{{{8, 0.5}}, 1e-3};
  EXPECT_DOUBLE_EQ(flat(1, 0), 0.5);
  EXPECT_DOUBLE_EQ(flat(100, 20), 0.52);
  EXPECT_EQ(StepCost::parsePoints("1=0.01,101=2e-2"), (std::vector<std::pair<double, double>>{{1, 0.01}, {101, 0.02}}));
  for (const char *bad : {"", "1", "1=", "1=x", "1=0.1,", "2=0.1,1=0.2", "0=1", "1=-1", "1=0.1;2=0.2", "1=nan"})
    EXPECT_ERROR(StepCost::parsePoints(bad), "expected TOKENS=SECONDS");
}

TEST(Percentiles, AreValuesThatCame) {
  Percentiles p;
  EXPECT_EQ(p.at(0.5), 0);
  for (int i = 100; i >= 1; --i)
    p.add(i);
  EXPECT_EQ(p.at(0.5), 50);
  EXPECT_EQ(p.at(0.99), 99);
  EXPECT_EQ(p.at(1), 100);
  EXPECT_EQ(p.at(0), 1);
  EXPECT_DOUBLE_EQ(p.mean(), 50.5);
}

// By hand: a prompt of 101 tokens takes 20 ms and gives the first token, each further one 10 ms; the second request comes at
// 25 ms, in a step that ends at 30 ms.
TEST(Simulation, TwoRequests) {
  const SimulatedRequest requests[] = {{1.0, 101, 3, 0, "", 0, ""}, {1.025, 1, 1, 0, "", 0, ""}};
  const SimulationResult r = simulate(requests, options(), 64, false, kCost);
  EXPECT_EQ(r.finished, 2u);
  EXPECT_EQ(r.outputTokens, 4u);
  EXPECT_EQ(r.steps, 3u);
  EXPECT_NEAR(r.firstToken.at(1), 0.02, 1e-6);
  EXPECT_NEAR(r.queue.at(1), 0.005, 1e-6);
  EXPECT_NEAR(r.interToken.at(0), 0.01, 1e-6);
  EXPECT_NEAR(r.interToken.at(1), 0.0101, 1e-6) << "two tokens in a step";
  EXPECT_NEAR(r.seconds, 0.0401, 1e-9);
}

TEST(Simulation, RefusesAndCuts) {
  const SimulatedRequest requests[] = {{0, 65, 1, 0, "", 0, ""}, {0, 60, 100, 0, "", 0, ""}};
  const SimulationResult r = simulate(requests, options(), 4, false, kCost);
  EXPECT_EQ(r.refused, 1u);
  EXPECT_EQ(r.cut, 1u);
  EXPECT_EQ(r.outputTokens, 5u) << "the last one needs no place";
  const SimulatedRequest wrong[] = {{2, 1, 1, 0, "", 0, ""}, {1, 1, 1, 0, "", 0, ""}};
  EXPECT_ERROR(simulate(wrong, options(), 4, false, kCost), "in order of arrival, got request 2");
}

// A hundred users of one system prompt: the cache computes it once.
TEST(Simulation, SharedPrefixes) {
  std::vector<SimulatedRequest> requests;
  for (int i = 0; i < 100; ++i)
    requests.push_back({i * 0.01, 2010, 5, 0, "system", 2000, ""});
  const SimulationResult off = simulate(requests, options(), 1 << 14, false, kCost), on = simulate(requests, options(), 1 << 14, true, kCost);
  EXPECT_EQ(off.cachedTokens, 0u);
  EXPECT_EQ(on.cachedTokens, 99u * 2000);
  EXPECT_LT(on.busy, off.busy / 5);
}

TEST(Simulation, ContinuousBeatsStaticOnMixedLengths) {
  std::mt19937 random(1);
  std::vector<SimulatedRequest> requests;
  for (int i = 0; i < 300; ++i)
    requests.push_back({0, 10 + random() % 100, 1 + random() % 300, 0, "", 0, ""});
  SchedulerOptions o = options(512, 32);
  const double continuous = simulate(requests, o, 1 << 12, false, kCost).seconds;
  o.batching = Batching::Static;
  EXPECT_GT(simulate(requests, o, 1 << 12, false, kCost).seconds, 1.5 * continuous);
}

// 86,400 seconds, some 17,000 requests, 1.7 million tokens.
TEST(Simulation, ADayTakesSeconds) {
  std::mt19937 random(2);
  std::exponential_distribution<double> gap(0.2);
  std::vector<SimulatedRequest> requests;
  for (double t = gap(random); t < 86400; t += gap(random))
    requests.push_back({t, 1 + random() % 500, 1 + random() % 200, 0, "", 0, ""});
  const auto start = std::chrono::steady_clock::now();
  const SimulationResult r = simulate(requests, options(), 1 << 13, true, kCost);
  EXPECT_EQ(r.finished, requests.size());
  EXPECT_GT(r.seconds, 86000);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 60);
}

TEST(Simulation, TenThousandRandomTraces) {
  std::mt19937 random(3);
  auto below = [&](uint64_t n) { return random() % n; };
  uint64_t preempted = 0;
  for (int trace = 0; trace < 10000; ++trace) {
    const auto pool = uint32_t(2 + below(20));
    SchedulerOptions o = options(uint32_t(1 + below(60)));
    o.chunk = uint32_t(1 + below(60));
    o.maxRunning = uint32_t(1 + below(std::min(8u, o.tokenBudget)));
    o.policy = Policy(below(3));
    o.batching = below(8) ? Batching::Continuous : Batching::Static;
    const bool cache = below(2);
    std::vector<SimulatedRequest> requests(1 + below(12));
    uint64_t outputs = 0, refused = 0, cut = 0, prompts = 0;
    double t = 0;
    for (SimulatedRequest &r : requests) {
      t += double(below(100)) * 1e-3;
      r = {t, below(100), 1 + below(40), int64_t(below(3)), below(2) ? "a" : "", below(80), below(4) ? "" : "salt"};
      if (r.prompt == 0 || r.prompt > pool * LLMC_KV_BLOCK) {
        ++refused;
        continue;
      }
      prompts += r.prompt;
      cut += r.prompt + r.output > pool * LLMC_KV_BLOCK + 1;
      outputs += std::min(r.output, pool * LLMC_KV_BLOCK + 1 - r.prompt);
    }
    const SimulationResult r = simulate(requests, o, pool, cache, kCost);
    ASSERT_EQ(r.refused, refused) << trace;
    ASSERT_EQ(r.cut, cut) << trace;
    ASSERT_EQ(r.finished, requests.size() - refused - cut) << trace;
    ASSERT_EQ(r.outputTokens, outputs) << trace;
    ASSERT_EQ(r.promptTokens, prompts) << trace;
    ASSERT_EQ(r.firstToken.count(), r.finished + r.cut);
    ASSERT_EQ(r.queue.count(), r.firstToken.count());
    ASSERT_EQ(r.interToken.count(), outputs - r.firstToken.count());
    ASSERT_GE(r.firstToken.at(0.5), r.queue.at(0.5));
    ASSERT_LE(r.busy, r.seconds + 1e-9);
    if (!r.preemptions)
      ASSERT_EQ(r.computedTokens, prompts - r.cachedTokens + outputs - r.firstToken.count()) << trace;
    ASSERT_LE(r.poolUsed, 1);
    const SimulationResult again = simulate(requests, o, pool, cache, kCost);
    ASSERT_EQ(again.seconds, r.seconds) << "a function of its input";
    ASSERT_EQ(again.steps, r.steps);
    preempted += r.preemptions;
  }
  EXPECT_GT(preempted, 1000u);
}

} // namespace
