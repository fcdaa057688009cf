// Spans of the cache: what the runtime hands to kernels, and what the cost model says about it.
#include "runtime/device/KVSpans.h"
#include "runtime/device/LaunchCost.h"
#include "runtime/device/StepBuffers.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

using namespace llmc;

namespace {

constexpr uint32_t kTile = 16, kRoom = 1024;
constexpr llmc_variant_v1 kForms[] = {{8 * kTile, kTile, 2, kRoom | LLMC_SPAN_GROUPS, nullptr, "spans"}, {UINT32_MAX, 32, 2, 0, nullptr, "tiles"}};
constexpr llmc_variant_v1 kWideForms[] = {{kTile, kTile, 2, kRoom, nullptr, "spans"}, {UINT32_MAX, 32, 2, 0, nullptr, "tiles"}};
constexpr llmc_arg_v1 kArgs[] = {{LLMC_ARG_STEP, 0, LLMC_FIELD_KV_SPANS}};
constexpr llmc_launch_v1 launchOf(const llmc_variant_v1 *forms) {
  return {0, LLMC_ROWS_QUERY_TILES, 0, 2, 1, 0, forms, kArgs, nullptr, "attention", 0, 0};
}
/// Spans are segments or groups of them; of kWide only segments.
constexpr llmc_launch_v1 kLaunch = launchOf(kForms), kWide = launchOf(kWideForms);

constexpr llmc_variant_v1 kLeftOut[] = {{4, 1, 0, LLMC_FUSED, nullptr, "norm"}, {UINT32_MAX, 1, 1, 0, nullptr, "norm"}};
constexpr llmc_variant_v1 kFused[] = {{1, 8, 3, LLMC_FUSED, nullptr, "one"}, {4, 8, 3, LLMC_FUSED, nullptr, "four"}, {UINT32_MAX, 16, 3, 0, nullptr, "many"}};
constexpr llmc_launch_v1 ofTokens(const llmc_variant_v1 *forms, uint32_t count) {
  return {0, LLMC_ROWS_TOKENS, 0, count, 0, 0, forms, nullptr, nullptr, "product", 0, 0};
}
constexpr llmc_launch_v1 kNorm = ofTokens(kLeftOut, 2), kProduct = ofTokens(kFused, 3);

/// A step of sequences with (new tokens, context) each; slots and ids do not matter here.
struct Step {
  std::vector<int32_t> ids, positions, starts{0}, lengths, table, slots;
  llmc_kv_view_v1 kv{};
  llmc_program_v1 program{};
  llmc_module_v1 module{};
  const llmc_launch_v1 &launch;
  std::optional<StepBuffers> buffers;

  explicit Step(const std::vector<std::pair<int32_t, int32_t>> &sequences, const llmc_launch_v1 &launch = kLaunch) : launch(launch) {
    for (auto [tokens, context] : sequences) {
      for (int32_t t = context - tokens; t < context; ++t)
        positions.push_back(t);
      starts.push_back(int32_t(positions.size()));
      lengths.push_back(context);
    }
    ids.assign(positions.size(), 0);
    slots.assign(positions.size(), -1);
    const uint32_t stride = 200000 / LLMC_KV_BLOCK;
    table.assign(sequences.size() * stride, 0);
    kv = {table.data(), slots.data(), stride, 0};
    program.num_launches = 1;
    program.launches = &launch;
    module.max_tokens = 512, module.max_seqs = 200, module.max_logits = 200, module.max_context = 200000;
    buffers.emplace(module, program, StepBufferShape{16, true, 1});
    llmc_step_v1 s{};
    s.num_tokens = uint32_t(positions.size()), s.num_seqs = uint32_t(sequences.size()), s.num_kv_groups = 1;
    s.token_ids = ids.data(), s.positions = positions.data(), s.seq_starts = starts.data(), s.kv_lengths = lengths.data();
    s.kv = &kv;
    buffers->fill(s, {});
    EXPECT_LE(buffers->used(), buffers->capacity());
  }
  LaunchPlan plan() const { return buffers->plan(launch); }
  std::span<const llmc_kv_span> spans() const {
    return {static_cast<const llmc_kv_span *>(buffers->field(LLMC_FIELD_KV_SPANS, kTile)), plan().rows};
  }
};

/// Segments that a token sees: where each begins, and its end as far as it is seen.
std::vector<std::pair<int32_t, int32_t>> segmentsOf(const Step &step, int32_t token, int32_t position) {
  std::vector<std::pair<int32_t, int32_t>> result;
  for (const llmc_kv_span &span : step.spans())
    if (token >= span.first_token && token < span.first_token + span.count)
      for (int32_t begin = span.begin; begin < std::min(span.end, position + 1); begin += span.segment)
        result.push_back({begin, std::min({begin + span.segment, span.end, position + 1})});
  return result;
}

/// Many sequences, so that spans are groups.
std::vector<std::pair<int32_t, int32_t>> hundred(int32_t tokens, int32_t context) { return {100, {tokens, context}}; }

// The launches of few rows become one, in both the same; watched, they stay apart.
TEST(StepBuffers, FusesLaunchesOfFewRows) {
  for (int32_t rows : {1, 2, 4, 5}) {
    Step norm({{rows, 20}}, kNorm), product({{rows, 20}}, kProduct);
    EXPECT_EQ(norm.plan().units, rows <= 4 ? 0 : rows);
    EXPECT_STREQ(product.plan().variant->name, rows == 1 ? "one" : rows <= 4 ? "four" : "many");
    for (Step *step : {&norm, &product})
      step->buffers->keepApart(true);
    EXPECT_EQ(norm.plan().units, rows);
    EXPECT_STREQ(product.plan().variant->name, "many");
  }
}

TEST(KVSpans, CoverEveryContextOnce) {
  const Step step({{1, 1}, {1, 256}, {1, 257}, {5, 700}, {16, 8200}, {3, 100000}});
  ASSERT_STREQ(step.plan().variant->name, "spans");
  EXPECT_EQ(step.plan().units, int64_t(step.spans().size()) * 2);
  for (size_t token = 0; token < step.positions.size(); ++token) {
    int32_t end = 0;
    for (auto [from, to] : segmentsOf(step, int32_t(token), step.positions[token])) {
      EXPECT_EQ(from, end) << token;
      end = to;
    }
    EXPECT_EQ(end, step.positions[token] + 1) << token;
  }
}

TEST(KVSpans, AreAFunctionOfThePosition) {
  // Around the places where segments grow, a token has the segments that it has alone.
  for (int32_t context : {10, 127, 128, 256, 257, 1022, 1024, 1025, 1030, 8190, 8192, 8193, 8200, 16384, 16390, 131080}) {
    const int32_t tokens = std::min(context, 16);
    const Step many({{3, 50}, {tokens, context}});
    for (int32_t i = 0; i < tokens; ++i) {
      const int32_t position = context - tokens + i;
      const Step alone({{1, position + 1}});
      EXPECT_EQ(segmentsOf(many, 3 + i, position), segmentsOf(alone, 0, position)) << context << " " << i;
      EXPECT_LE(alone.spans().size(), size_t(LLMC_KV_SEGMENTS));
    }
  }
}

TEST(KVSpans, OfATileFollowEachOther) {
  const Step step({{16, 8200}, {2, 600}, {1, 30}});
  int32_t slot = 0;
  std::vector<int32_t> spans;
  for (size_t i = 0; i < step.spans().size(); i += size_t(spans.back())) {
    const llmc_kv_span &first = step.spans()[i];
    for (int32_t part = 0; part < first.spans; ++part) {
      const llmc_kv_span &span = step.spans()[i + size_t(part)];
      EXPECT_EQ(span.spans, first.spans);
      EXPECT_EQ(span.first_slot, slot);
      EXPECT_EQ(span.slot, slot + part * first.count);
      EXPECT_EQ(span.begin, part * span.segment);
      EXPECT_EQ(span.tile, int32_t(spans.size()));
    }
    spans.push_back(first.spans);
    slot += first.spans > 1 ? first.spans * first.count : 0; // a tile's only span needs no place
  }
  // 8184 .. 8191 have 32 segments of 256 tokens, 8192 .. 8199 17 of 512.
  EXPECT_EQ(spans, (std::vector<int32_t>{32, 17, 5, 1}));
  EXPECT_EQ(slot, 8 * 32 + 8 * 17 + 2 * 5);
  const auto *arrivals = static_cast<const int32_t *>(step.buffers->field(LLMC_FIELD_ARRIVALS, kTile));
  for (int i = 0; i < 4 * 2; ++i)
    EXPECT_EQ(arrivals[i], 0);
}

TEST(KVSpans, AreGroupsWhereTheyFillACard) {
  const Step few({{1, 3000}}), filled(hundred(1, 3000)), wide(hundred(1, 3000), kWide);
  EXPECT_EQ(few.spans().size(), 12u);
  ASSERT_EQ(filled.spans().size(), 200u);
  EXPECT_EQ(filled.spans()[1].begin, 8 * 256);
  EXPECT_EQ(filled.spans()[1].end, 3000);
  EXPECT_EQ(segmentsOf(filled, 7, 2999), segmentsOf(few, 0, 2999));
  EXPECT_STREQ(wide.plan().variant->name, "tiles"); // 1200 places
  // A tile's only span needs no place.
  const Step whole(hundred(5, 2048));
  EXPECT_EQ(whole.spans().size(), 100u);
  EXPECT_EQ(whole.spans()[99].spans, 1);
  // Segments that have no room.
  EXPECT_EQ(Step({{16, 16384}, {16, 16384}, {16, 16384}}).spans().size(), 3 * 4u);
}

TEST(KVSpans, WhatHasNoRoomTakesAnotherVariant) {
  EXPECT_STREQ(Step({{17, 17}, {1, 100}}).plan().variant->name, "tiles"); // more than a tile
  EXPECT_STREQ(Step({{17, 8000}}, kWide).plan().variant->name, "tiles");
  EXPECT_STREQ(Step({{16, 16384}, {16, 16384}, {1, 1}}, kWide).plan().variant->name, "spans"); // 2 * 16 * 32 = 1024
  const Step full({{16, 16384}, {16, 16384}, {1, 300}}, kWide);
  EXPECT_STREQ(full.plan().variant->name, "tiles");
  EXPECT_EQ(full.plan().units, 3 * 2);
  EXPECT_STREQ(Step({{1, 1}, {0, 50}}).plan().variant->name, "spans"); // a sequence with nothing new
}

// Steps of prompts and of single tokens: spans for these, tiles for the prompts, in either order.
TEST(KVSpans, OfSingleTokensBesidePrompts) {
  std::vector<std::pair<int32_t, int32_t>> sequences{{100, 100}};
  for (int32_t i = 0; i < 9; ++i)
    sequences.push_back({1, 200 + 100 * (i % 4)});
  sequences.push_back({40, 500});
  const Step step(sequences);
  ASSERT_STREQ(step.plan().variant->name, "spans");
  std::vector<bool> seen(step.positions.size());
  for (size_t i = 0; i < step.spans().size(); ++i) {
    const llmc_kv_span &span = step.spans()[i];
    EXPECT_EQ(span.count, 1);
    seen[size_t(span.first_token)] = true;
    if (i && !span.begin) // the first of a tile: the longest contexts first
      EXPECT_LE(span.position, step.spans()[i - 1].position);
  }
  const LaunchPlan rest = step.buffers->rest(kLaunch);
  EXPECT_STREQ(rest.variant->name, "tiles");
  EXPECT_EQ(rest.units, int64_t(rest.rows) * rest.variant->col_blocks);
  const auto *tiles = static_cast<const llmc_query_tile *>(step.buffers->field(LLMC_FIELD_QUERY_TILES, rest.variant->row_block));
  for (uint32_t t = 0; t < rest.rows; ++t)
    for (int32_t k = 0; k < tiles[t].count; ++k) {
      EXPECT_FALSE(seen[size_t(tiles[t].first_token + k)]) << "computed twice";
      seen[size_t(tiles[t].first_token + k)] = true;
    }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 149) << "every token once";
  sequences.resize(6); // five single tokens are not worth a launch
  const Step few(sequences);
  EXPECT_STREQ(few.plan().variant->name, "tiles");
  EXPECT_EQ(few.buffers->rest(kLaunch).units, 0);
  EXPECT_NE(few.buffers->form(), step.buffers->form());
}

TEST(KVSpans, AreForManyTokensWhereTheirTilesAreFewAndLong) {
  const Step step({{100, 8000}});
  EXPECT_STREQ(step.plan().variant->name, "spans");
  EXPECT_EQ(segmentsOf(step, 50, 7950), segmentsOf(Step({{1, 7951}}), 0, 7950));
  EXPECT_STREQ(Step({{100, 2048}}).plan().variant->name, "tiles");            // a group each
  EXPECT_STREQ(Step({{129, 8000}}).plan().variant->name, "tiles");            // more than eight tiles
  EXPECT_STREQ(Step({{100, 8000}, {100, 8000}, {100, 8000}, {100, 8000}, {100, 8000}}).plan().variant->name, "tiles"); // 40 units
}

TEST(KVSpans, GrowWithinAForm) {
  const Step now({{1, 256}, {1, 300}}), next({{1, 257}, {1, 301}}), later({{1, 258}, {1, 302}});
  EXPECT_EQ(now.buffers->form(), next.buffers->form()) << "a graph of one step is one of the other";
  EXPECT_NE(now.buffers->contexts(), next.buffers->contexts()) << "but for the launches that have a unit more";
  EXPECT_EQ(next.buffers->contexts(), later.buffers->contexts());
  EXPECT_NE(now.buffers->form(), Step({{2, 257}, {0, 300}}).buffers->form());
  const Step fits({{16, 16384}, {16, 100}, {16, 100}}, kWide), full({{16, 16384}, {16, 16384}, {16, 16384}}, kWide);
  EXPECT_NE(fits.buffers->form(), full.buffers->form()) << "another variant";
  EXPECT_TRUE(StepBuffers::readsContexts(kLaunch));
}

TEST(KVSpans, TheCostModelCountsTheSame) {
  for (uint64_t sequences : {1, 3, 120})
    for (uint64_t tokens : {1, 4, 16, 20, 100, 130})
      for (uint64_t context : {20, 300, 6400, 8200, 100000}) {
        if (sequences * tokens > 512 || tokens > context)
          continue;
        const Step step(std::vector<std::pair<int32_t, int32_t>>(sequences, {int32_t(tokens), int32_t(context)}));
        const LaunchForm form = formOf(kLaunch, {sequences, tokens, context});
        EXPECT_STREQ(form.variant->name, step.plan().variant->name) << sequences << " " << tokens << " " << context;
        EXPECT_EQ(int64_t(form.units), step.plan().units) << sequences << " " << tokens << " " << context;
      }
}

} // namespace
