//===- LaunchCost.cpp -----------------------------------------------------===//
#include "runtime/device/LaunchCost.h"
#include "runtime/device/KVSpans.h"

#include <algorithm>

namespace llmc {

std::string describe(const StepShape &shape) {
  auto count = [](uint64_t n, const std::string &what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
  return count(shape.sequences, "sequence") + " of " + count(shape.tokens, "new token") + ", " + std::to_string(shape.context) +
         " in the cache";
}

LaunchWork &LaunchWork::operator+=(const LaunchWork &other) {
  flops += other.flops;
  weightBytes += other.weightBytes;
  activationBytes += other.activationBytes;
  kvBytes += other.kvBytes;
  return *this;
}

template <typename Body> static void forEachTile(const StepShape &shape, uint32_t rowBlock, Body body) {
  forEachSpannedTile(int64_t(shape.context) - int64_t(shape.tokens), int64_t(shape.tokens), rowBlock,
                     [&](int64_t, int64_t count, int64_t, int64_t segments) { body(count, segments); });
}

static SpanTotals spanTotals(const StepShape &shape, uint32_t rowBlock) {
  SpanTotals totals;
  forEachTile(shape, rowBlock, [&](int64_t count, int64_t segments) { totals.add(count, segments, shape.sequences); });
  return totals;
}

/// Spans of the cache that a variant works on.
static uint64_t spansOf(const StepShape &shape, const llmc_variant_v1 &variant) {
  const bool grouped = spanTotals(shape, variant.row_block).grouped(variant);
  uint64_t spans = 0;
  forEachTile(shape, variant.row_block, [&](int64_t, int64_t segments) { spans += uint64_t(SpanTotals::spansOf(segments, grouped)); });
  return shape.sequences * spans;
}

static bool takes(const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, const StepShape &shape, uint64_t rows) {
  if (launch.rows != LLMC_ROWS_QUERY_TILES || !variant.span_rows)
    return rows <= variant.max_rows || variant.max_rows == UINT32_MAX ||
           (launch.rows == LLMC_ROWS_QUERY_TILES && shape.tokens <= variant.row_block);
  const llmc_variant_v1 &next = *(&variant + 1);
  const uint64_t tiles = shape.sequences * ((shape.tokens + next.row_block - 1) / next.row_block);
  return spanTotals(shape, variant.row_block).take(variant, shape.tokens, tiles * next.col_blocks);
}

// As StepBuffers::plan does for the step at hand.
LaunchForm formOf(const llmc_launch_v1 &launch, const StepShape &shape) {
  const bool perSequence = launch.rows == LLMC_ROWS_LOGITS || launch.rows == LLMC_ROWS_SEQS;
  uint64_t rows = shape.sequences * (perSequence ? 1 : shape.tokens);
  const llmc_variant_v1 *variant = launch.variants;
  while (!takes(launch, *variant, shape, rows))
    ++variant;
  uint64_t blocks = (rows + variant->row_block - 1) / variant->row_block;
  if (launch.rows == LLMC_ROWS_QUERY_TILES)
    rows = blocks = variant->span_rows ? spansOf(shape, *variant)
                                       : shape.sequences * ((shape.tokens + variant->row_block - 1) / variant->row_block);
  return {variant, rows, blocks * variant->col_blocks, blocks};
}

const llmc_cost_v1 *costOf(const llmc_module_v1 &module, const llmc_launch_v1 &launch) {
  return launch.cost < module.num_costs ? &module.costs[launch.cost] : nullptr;
}

/// Cached tokens that the new ones of a sequence see, summed: token i of n sees c - n + i + 1, at most the window.
static double pairsOf(const StepShape &shape, uint32_t window) {
  const double n = double(shape.tokens), c = double(shape.context), w = double(window);
  if (!window || c <= w)
    return n * c - n * (n - 1) / 2;
  const double growing = std::clamp(w - (c - n), 0.0, n); // see less than the window, or just it
  return growing * (c - n) + growing * (growing + 1) / 2 + (n - growing) * w;
}

LaunchWork workOf(const llmc_cost_v1 &cost, const llmc_launch_v1 &launch, const StepShape &shape) {
  const bool perSequence = launch.rows == LLMC_ROWS_LOGITS || launch.rows == LLMC_ROWS_SEQS;
  const double sequences = double(shape.sequences), rows = sequences * (perSequence ? 1 : double(shape.tokens));
  // The oldest token that is seen is the first new one's.
  const uint64_t seen = cost.window ? std::min<uint64_t>(shape.context, cost.window + shape.tokens - 1) : shape.context;
  LaunchWork work;
  work.flops = rows * double(cost.flops_per_row) + sequences * pairsOf(shape, cost.window) * double(cost.flops_per_pair);
  work.weightBytes = double(cost.weight_bytes) + rows * double(cost.weight_bytes_per_row);
  work.activationBytes = rows * double(cost.activation_bytes_per_row);
  work.kvBytes = sequences * double(seen) * double(cost.kv_read_bytes) + rows * double(cost.kv_write_bytes_per_row);
  return work;
}

std::string opInLayer(const std::string &op, int32_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  return op.rfind(prefix, 0) == 0 && op.size() > prefix.size() ? op.substr(prefix.size()) : op;
}

const char *arithmeticName(uint32_t arithmetic) {
  static constexpr const char *names[] = {"f32", "bf16", "int16", "int8", "e4m3"};
  return arithmetic <= LLMC_COST_E4M3 ? names[arithmetic] : "unknown";
}

} // namespace llmc
