#include "FakeDevice.h"
#include "runtime/engine/Perplexity.h"
#include "runtime/engine/Score.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace llmc;
using fake::Loaded;

namespace {

std::vector<int32_t> text(size_t count) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(int32_t(i * 37 % 251));
  return ids;
}

double expected(const std::vector<int32_t> &ids, size_t at) {
  const std::vector<float> logits = fake::expectedLogits({ids.begin(), ids.begin() + ptrdiff_t(at)});
  double sum = 0;
  for (float x : logits)
    sum += std::exp(double(x));
  return std::log(sum) - logits[size_t(ids[at])];
}

TEST(Perplexity, StridedWindowsScoreEveryTokenButTheFirstOnce) {
  for (size_t tokens : {2, 3, 9, 10, 11, 15, 40, 41})
    for (size_t stride : {1, 3, 5, 9}) {
      size_t next = 1;
      for (const PerplexityWindow &w : stridedWindows(tokens, 10, stride)) {
        EXPECT_EQ(w.scored, next) << tokens << " " << stride;
        EXPECT_LT(w.begin, w.scored);
        EXPECT_LT(w.scored, w.end);
        EXPECT_LE(w.end - w.begin, 10u);
        next = w.end;
      }
      EXPECT_EQ(next, tokens);
    }
  EXPECT_TRUE(stridedWindows(0, 10, 5).empty());
  EXPECT_TRUE(stridedWindows(1, 10, 5).empty());
  const std::vector<PerplexityWindow> apart = stridedWindows(25, 10, 10); // side by side: first tokens are not scored
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_EQ(apart[1].scored, 11u);
  EXPECT_EQ(apart[2].end, 25u);
  EXPECT_EQ(stridedWindows(21, 10, 10).size(), 2u) << "one token left over tells nothing";
}

TEST(Perplexity, HalvedWindowsAsLlamaPerplexity) {
  const std::vector<PerplexityWindow> windows = halvedWindows(1100, 512);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[1].begin, 512u);
  EXPECT_EQ(windows[1].scored, 512u + 257u);
  EXPECT_EQ(windows[1].end, 1024u);
  EXPECT_TRUE(halvedWindows(511, 512).empty());
}

TEST(Perplexity, SumsTheModelsLogProbabilities) {
  DeviceOptions options;
  options.threads = 2;
  Loaded loaded(options);
  const std::vector<int32_t> ids = text(70);
  for (size_t scored : {1, 2, 20, 33, 40, 41, 69}) { // steps of 8 rows: whole chunks and parts of one are skipped
    double want = 0;
    for (size_t at = scored; at < ids.size(); ++at)
      want += expected(ids, at);
    const PerplexityTally got = scoreWindow(*loaded.device, ids, {0, scored, ids.size()});
    EXPECT_EQ(got.count, ids.size() - scored);
    EXPECT_NEAR(got.sum, want, 1e-4 * double(got.count)) << scored;
  }
  std::vector<int32_t> replaced(ids.begin() + 10, ids.begin() + 30);
  replaced[0] = 256;
  const PerplexityTally got = scoreWindow(*loaded.device, ids, {10, 15, 30}, 256);
  double want = 0;
  for (size_t at = 5; at < 20; ++at)
    want += expected(replaced, at);
  EXPECT_NEAR(got.sum, want, 1e-3);
}

TEST(Perplexity, NonFiniteLogitsAreAnError) {
  Loaded loaded{DeviceOptions{}};
  std::vector<int32_t> ids = text(20);
  ids[4] = fake::kNanToken;
  EXPECT_THROW(scoreWindow(*loaded.device, ids, {0, 1, 20}), Error);
}

TEST(Perplexity, StandardErrorAndMean) {
  PerplexityTally tally;
  EXPECT_EQ(tally.standardError(), 0);
  for (double nll : {1.0, 2.0, 3.0})
    tally.add({1, nll, nll * nll});
  EXPECT_NEAR(tally.perplexity(), std::exp(2.0), 1e-12);
  EXPECT_NEAR(tally.standardError(), std::exp(2.0) * std::sqrt(2.0 / 3.0 / 2.0), 1e-12);
}

TEST(Perplexity, LogProbability) {
  const float rows[] = {1000, 999, -1000};
  EXPECT_NEAR(logProbability(rows, 1), -1 - std::log(1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(logProbability(rows, 2), -2000 - std::log(1 + std::exp(-1.0)), 1e-3);
}

} // namespace
