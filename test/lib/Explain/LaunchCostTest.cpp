// Formulas of llmc_cost_v1 against counting.
#include "TwoLayers.h"
#include "runtime/device/LaunchCost.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

llmc_launch_v1 launchOver(uint32_t rows) {
  llmc_launch_v1 launch{};
  launch.rows = rows;
  return launch;
}

TEST(LaunchCost, PairsAreCountedOneByOne) {
  for (uint32_t window : {0u, 1u, 7u, 16u, 100u})
    for (uint64_t tokens : {1, 2, 7, 16, 33})
      for (uint64_t context : {tokens, tokens + 1, tokens + 6, tokens + 15, tokens + 200}) {
        double pairs = 0;
        uint64_t oldest = context;
        for (uint64_t i = 0; i < tokens; ++i) {
          const uint64_t position = context - tokens + i, first = window && position + 1 > window ? position + 1 - window : 0;
          pairs += double(position - first + 1);
          oldest = std::min(oldest, first);
        }
        llmc_cost_v1 cost{};
        cost.window = window;
        cost.flops_per_pair = 3;
        cost.kv_read_bytes = 5;
        const LaunchWork work = workOf(cost, launchOver(LLMC_ROWS_QUERY_TILES), {2, tokens, context});
        EXPECT_EQ(work.flops, 2 * pairs * 3) << window << " " << tokens << " " << context;
        EXPECT_EQ(work.kvBytes, 2.0 * double(context - oldest) * 5) << window << " " << tokens << " " << context;
      }
}

TEST(LaunchCost, RowsAreThoseOfTheLaunch) {
  const llmc_cost_v1 cost = {LLMC_COST_F32, 0, 10, 0, 1000, 7, 3, 0, 2};
  const StepShape shape{3, 5, 50};
  const LaunchWork tokens = workOf(cost, launchOver(LLMC_ROWS_TOKENS), shape), logits = workOf(cost, launchOver(LLMC_ROWS_LOGITS), shape);
  EXPECT_EQ(tokens.flops, 150);
  EXPECT_EQ(tokens.weightBytes, 1000 + 15 * 7);
  EXPECT_EQ(tokens.activationBytes, 45);
  EXPECT_EQ(tokens.kvBytes, 30);
  EXPECT_EQ(tokens.bytes(), 1000 + 15 * 7 + 45 + 30);
  EXPECT_EQ(logits.flops, 30);
  EXPECT_EQ(logits.weightBytes, 1021);
}

TEST(LaunchCost, VariantsAreThoseThatTheRuntimeTakes) {
  auto kernel = [](const llmc_launch_v1 &launch, const StepShape &shape) { return std::string(formOf(launch, shape).variant->name); };
  EXPECT_EQ(kernel(two::kLaunches[0], {4, 1, 9}), "product_1");
  EXPECT_EQ(kernel(two::kLaunches[0], {5, 1, 9}), "product_16");
  EXPECT_EQ(formOf(two::kLaunches[0], {5, 4, 9}).units, 2u * 3);
  EXPECT_EQ(formOf(two::kLaunches[0], {5, 4, 9}).rowBlocks, 2u);
  // Query tiles: chosen by tokens, counted by tiles.
  EXPECT_EQ(kernel(two::kLaunches[1], {1, 1, 9}), "attention_1");
  EXPECT_EQ(kernel(two::kLaunches[1], {2, 1, 9}), "attention_1");
  const LaunchForm tiles = formOf(two::kLaunches[1], {2, 9, 9});
  EXPECT_EQ(tiles.rows, 6u);
  EXPECT_EQ(tiles.units, 12u);
  EXPECT_EQ(kernel(two::kLaunches[4], {8, 8, 9}), "head");
  EXPECT_EQ(formOf(two::kLaunches[4], {8, 8, 9}).rows, 8u);
}

TEST(LaunchCost, OpsWithoutTheirLayer) {
  EXPECT_EQ(opInLayer("blk.13.attn_output", 13), "attn_output");
  EXPECT_EQ(opInLayer("blk.13.attn_output", 1), "blk.13.attn_output");
  EXPECT_EQ(opInLayer("output", -1), "output");
  EXPECT_EQ(opInLayer("blk.1.", 1), "blk.1.");
}

TEST(LaunchCost, UnknownCosts) {
  const llmc_module_v1 module = two::module();
  EXPECT_EQ(costOf(module, two::kLaunches[0]), &two::kCosts[0]);
  EXPECT_EQ(costOf(module, two::kLaunches[4]), nullptr);
}

} // namespace
