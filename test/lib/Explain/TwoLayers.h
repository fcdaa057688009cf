// A module of two layers by hand, with round numbers: a product, attention over a window, a head that the compiler told nothing
// about.
#ifndef LLMC_TEST_LIB_EXPLAIN_TWOLAYERS_H
#define LLMC_TEST_LIB_EXPLAIN_TWOLAYERS_H

#include "llmc/abi.h"
#include "runtime/package/Profile.h"

namespace two {

inline constexpr llmc_cost_v1 kProduct = {LLMC_COST_BF16, 0, 2000, 0, 1000, 0, 100, 0, 0};
inline constexpr llmc_cost_v1 kAttention = {LLMC_COST_F32, 0, 0, 40, 0, 0, 60, 16, 0};
inline constexpr llmc_cost_v1 kCosts[] = {kProduct, kAttention};
inline constexpr llmc_variant_v1 kProductForms[] = {{4, 1, 3, 0, nullptr, "product_1"}, {UINT32_MAX, 16, 3, 0, nullptr, "product_16"}};
inline constexpr llmc_variant_v1 kAttentionForms[] = {{1, 1, 2, 0, nullptr, "attention_1"}, {UINT32_MAX, 4, 2, 0, nullptr, "attention_4"}};
inline constexpr llmc_variant_v1 kHeadForms[] = {{UINT32_MAX, 1, 1, 0, nullptr, "head"}};
inline constexpr llmc_launch_v1 kLaunches[] = {
    {0, LLMC_ROWS_TOKENS, 0, 2, 0, 0, kProductForms, nullptr, nullptr, "blk.0.attn_qkv", 0, 0},
    {1, LLMC_ROWS_QUERY_TILES, 0, 2, 0, 0, kAttentionForms, nullptr, nullptr, "blk.0.attention", 1, 0},
    {2, LLMC_ROWS_TOKENS, 1, 2, 0, 0, kProductForms, nullptr, nullptr, "blk.1.attn_qkv", 0, 0},
    {3, LLMC_ROWS_QUERY_TILES, 1, 2, 0, 0, kAttentionForms, nullptr, nullptr, "blk.1.attention", 1, 0},
    {4, LLMC_ROWS_LOGITS, -1, 1, 0, 0, kHeadForms, nullptr, nullptr, "output<&>", UINT32_MAX, 0}};

inline llmc_module_v1 module() {
  llmc_module_v1 m{};
  m.target = "cuda";
  m.isa = "sm_90a";
  m.max_tokens = 64;
  m.max_seqs = 8;
  m.max_logits = 8;
  m.max_context = 1000;
  m.num_costs = 2;
  m.costs = kCosts;
  m.program.num_launches = 5;
  m.program.launches = kLaunches;
  return m;
}

/// Launch i took i + 1 ms.
inline llmc::Profile::Step measuredStep() {
  llmc::Profile::Step step{1, 1, 100, 3, 0.02, {}};
  const char *kernels[] = {"product_1", "attention_1", "product_1", "attention_1", "head"};
  for (uint32_t i = 0; i < 5; ++i)
    step.launches.push_back({kLaunches[i].op, kernels[i], kLaunches[i].layer, 1e-3 * (i + 1)});
  return step;
}

} // namespace two

#endif // LLMC_TEST_LIB_EXPLAIN_TWOLAYERS_H
