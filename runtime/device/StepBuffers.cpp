//===- StepBuffers.cpp ----------------------------------------------------===//
#include "runtime/device/StepBuffers.h"
#include "runtime/device/KVBlocks.h"
#include "runtime/device/KVSpans.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llmc {

namespace {

constexpr uint64_t kAlign = 128; // of every field

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Rows of the copied table start at multiples of this many entries.
constexpr uint32_t kStridePad = 16;
uint32_t paddedStride(uint64_t blocks) { return uint32_t((blocks + kStridePad - 1) / kStridePad * kStridePad); }

} // namespace

StepBuffers::StepBuffers(const llmc_module_v1 &module, const llmc_program_v1 &program, const StepBufferShape &shape)
    : shape_(shape), maxTokens_(module.max_tokens), maxSeqs_(module.max_seqs), maxLogits_(module.max_logits),
      maxContext_(module.max_context) {
  for (uint32_t i = 0; i < program.num_launches; ++i)
    for (uint32_t v = 0; v < program.launches[i].num_variants; ++v) {
      const llmc_variant_v1 &variant = program.launches[i].variants[v];
      if (program.launches[i].rows != LLMC_ROWS_QUERY_TILES)
        continue;
      tiles_[variant.row_block];
      if (!variant.span_rows || variant.span_rows == LLMC_FUSED)
        continue;
      spans_[variant.row_block].variant = variant; // the same in every layer
      spans_[variant.row_block].next = *(&variant + 1);
    }
  maySplit_ = spans_.size() == 1;
  for (uint32_t i = 0; i < program.num_launches; ++i)
    if (const llmc_launch_v1 &launch = program.launches[i]; launch.rows == LLMC_ROWS_QUERY_TILES)
      maySplit_ = maySplit_ && launch.variants[0].span_rows && launch.num_variants == 2;
  order_.reserve(maxSeqs_);
  capacity_ = 3 * aligned(uint64_t(padded(maxTokens_)) * 4) + aligned(uint64_t(padded(maxLogits_)) * 4) + kAlign +
              aligned(uint64_t(maxLogits_) * sizeof(llmc_row_sampler));
  for (const auto &[rowBlock, tiles] : tiles_)
    capacity_ += aligned(maxTiles(rowBlock) * sizeof(llmc_query_tile));
  for (const auto &[rowBlock, spans] : spans_)
    capacity_ += aligned((spanRowsOf(spans.variant) + maxSpanTiles(spans)) * sizeof(llmc_kv_span)) +
                 aligned(maxSpanTiles(spans) * spans.variant.col_blocks * 4);
  if (shape_.copyTable)
    capacity_ += aligned((uint64_t(maxSeqs_) * paddedStride(blocksOf(maxContext_)) + kTablePad) * 4);
}

uint64_t StepBuffers::maxTiles(uint32_t rowBlock) const {
  // Every sequence may end in a tile that is not full.
  const uint64_t bound = uint64_t(maxTokens_) / rowBlock + maxSeqs_;
  return padded(uint32_t(std::min<uint64_t>(bound, maxTokens_)));
}

uint64_t StepBuffers::maxSpanTiles(const Spans &spans) const {
  // Where segments grow a tile may end early: once a sequence, since its tokens are fewer than a segment is long.
  return maxTiles(spans.variant.row_block) + maxSeqs_;
}

template <typename T> T *StepBuffers::place(uint64_t count) {
  T *result = reinterpret_cast<T *>(base_ + used_);
  used_ += aligned(count * sizeof(T));
  return result;
}

int32_t *StepBuffers::copyRows(const int32_t *from, uint32_t count, int32_t rest) {
  int32_t *to = place<int32_t>(padded(count));
  if (!from)
    count = 0;
  std::copy_n(from, count, to);
  std::fill(to + count, reinterpret_cast<int32_t *>(base_ + used_), rest);
  return to;
}

/// Null, and settings that come to it: greedy.
static llmc_row_sampler rowSampler(const llmc_sampler_v1 *s) {
  constexpr int32_t kRounds = 40; // bisection to 2^-40 of the range
  constexpr int32_t kDraws = 64;
  llmc_row_sampler row{1.0f, 0.0f, 0, 0, 1.0f, 0, -std::numeric_limits<float>::infinity(), 0, {0, 0}, {0, 0}};
  if (!s || !(s->temperature > 1e-6f) || s->top_k == 1)
    return row;
  row.inverse_temperature = 1.0f / s->temperature;
  row.noise = 1;
  if (s->top_k > 0)
    row.top_k = s->top_k, row.top_k_rounds = kRounds;
  if (s->top_p < 1)
    row.top_p = s->top_p, row.top_p_rounds = kDraws;
  if (s->min_p > 0)
    row.log_min_p = std::log(std::min(s->min_p, 1.0f));
  row.seed[0] = uint32_t(s->seed), row.seed[1] = uint32_t(s->seed >> 32);
  row.position[0] = uint32_t(s->position), row.position[1] = uint32_t(s->position >> 32);
  return row;
}

void StepBuffers::fill(const llmc_step_v1 &step, std::span<const int32_t> previousIds) {
  if (!base_) {
    own_.resize(capacity_ + kAlign);
    base_ = reinterpret_cast<std::byte *>(aligned(reinterpret_cast<uint64_t>(own_.data())));
  }
  used_ = 0;
  tokens_ = step.num_tokens;
  sequences_ = step.num_seqs;
  logitsRows_ = step.num_logits;
  const bool cached = step.num_kv_groups > 0; // the reference program has no cache
  ids_ = copyRows(step.token_ids, tokens_, 0);
  for (uint32_t t = 0; t < tokens_ && !previousIds.empty(); ++t)
    if (ids_[t] < 0)
      ids_[t] = previousIds[size_t(-1 - ids_[t])];
  positions_ = copyRows(step.positions, tokens_, 0);
  slots_ = copyRows(cached ? step.kv[0].slots : nullptr, tokens_, -1);
  rows_ = copyRows(step.logits_rows, logitsRows_, 0);
  numBlocks_ = place<int32_t>(1);
  *numBlocks_ = int32_t(shape_.numBlocks);
  samplers_ = place<llmc_row_sampler>(logitsRows_);
  for (uint32_t i = 0; i < logitsRows_; ++i)
    samplers_[i] = rowSampler(step.samplers ? &step.samplers[i] : nullptr);
  const bool copied = cached && shape_.copyTable;
  table_ = cached ? step.kv[0].block_table : nullptr;
  tableStride_ = copied ? copiedStride(step) : cached ? step.kv[0].block_table_stride : 0;
  largest_ = 0;
  for (uint32_t s = 0; s < sequences_; ++s)
    largest_ = std::max(largest_, uint32_t(step.seq_starts[s + 1] - step.seq_starts[s]));
  decideSplit(step);
  for (auto &[rowBlock, tiles] : tiles_)
    makeTiles(step, rowBlock, tiles);
  for (auto &[rowBlock, spans] : spans_)
    makeSpans(step, spans);
  if (copied) // last: its size depends on the lengths of the sequences, the places of the other fields do not
    copyTable(step);
}

/// Entries of the longest sequence.
uint32_t StepBuffers::copiedStride(const llmc_step_v1 &step) const {
  uint64_t longest = 0;
  for (uint32_t s = 0; s < sequences_; ++s)
    longest = std::max(longest, blocksOf(uint64_t(step.kv_lengths[s])));
  return paddedStride(longest);
}

void StepBuffers::copyTable(const llmc_step_v1 &step) {
  int32_t *to = place<int32_t>(uint64_t(sequences_) * tableStride_ + kTablePad);
  table_ = to;
  for (uint32_t s = 0; s < sequences_; ++s, to += tableStride_) {
    const uint64_t blocks = blocksOf(uint64_t(step.kv_lengths[s]));
    std::copy_n(step.kv[0].block_table + uint64_t(s) * step.kv[0].block_table_stride, blocks, to);
    std::fill(to + blocks, to + tableStride_, 0);
  }
  std::fill_n(to, kTablePad, 0);
}

void StepBuffers::makeTiles(const llmc_step_v1 &step, uint32_t rowBlock, Tiles &tiles) {
  tiles.first = reinterpret_cast<llmc_query_tile *>(base_ + used_);
  tiles.count = 0;
  for (uint32_t s = 0; s < sequences_; ++s)
    for (int64_t t = step.seq_starts[s]; inTiles(step, s) && t < step.seq_starts[s + 1]; t += rowBlock)
      tiles.first[tiles.count++] = {int32_t(t), int32_t(std::min<int64_t>(rowBlock, step.seq_starts[s + 1] - t)),
                                    step.positions[t], int32_t(s * uint64_t(tableStride_))};
  const uint32_t count = std::max(padded(tiles.count), shape_.rowPad);
  place<llmc_query_tile>(std::min<uint64_t>(count, maxTiles(rowBlock)));
  std::fill(tiles.first + tiles.count, reinterpret_cast<llmc_query_tile *>(base_ + used_), llmc_query_tile{});
}

static int64_t newTokens(const llmc_step_v1 &step, uint32_t sequence) {
  return step.seq_starts[sequence + 1] - step.seq_starts[sequence];
}

/// The tiles of those sequences: body(sequence, tile as forEachSpannedTile gives it).
template <typename Body> static void forEachTile(const llmc_step_v1 &step, std::span<const uint32_t> sequences, uint32_t rowBlock, Body body) {
  for (uint32_t s : sequences) {
    const int64_t start = step.seq_starts[s], tokens = newTokens(step, s);
    if (tokens)
      forEachSpannedTile(step.positions[start], tokens, rowBlock,
                         [&](int64_t first, int64_t count, int64_t segment, int64_t segments) { body(s, first, count, segment, segments); });
  }
}

/// Tiles of single tokens leave most of their rows empty: where there are prompts beside enough of these, spans are for them alone.
void StepBuffers::decideSplit(const llmc_step_v1 &step) {
  constexpr uint32_t kFew = 8; // not worth a launch of their own
  split_ = false;
  if (maySplit_ && largest_ > spans_.begin()->first) {
    const llmc_variant_v1 &variant = spans_.begin()->second.variant;
    orderSequences(step, variant.row_block);
    SpanTotals totals;
    forEachTile(step, order_, variant.row_block,
                [&](uint32_t, int64_t, int64_t count, int64_t, int64_t segments) { totals.add(count, segments); });
    split_ = totals.tiles >= kFew && totals.fits(variant);
  }
  if (!split_)
    orderSequences(step, UINT32_MAX);
}

/// Those with at most so many new tokens. Units are taken in their order: a long one that came last would keep the card waiting.
void StepBuffers::orderSequences(const llmc_step_v1 &step, uint32_t mostTokens) {
  order_.clear();
  for (uint32_t s = 0; s < sequences_; ++s)
    if (newTokens(step, s) <= mostTokens)
      order_.push_back(s);
  if (!spans_.empty())
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return step.kv_lengths[a] > step.kv_lengths[b]; });
}

bool StepBuffers::inTiles(const llmc_step_v1 &step, uint32_t sequence) const {
  return !split_ || newTokens(step, sequence) > spans_.begin()->first;
}

/// Where they are not taken none are listed.
void StepBuffers::makeSpans(const llmc_step_v1 &step, Spans &spans) {
  SpanTotals totals;
  forEachTile(step, order_, spans.variant.row_block,
              [&](uint32_t, int64_t, int64_t count, int64_t, int64_t segments) { totals.add(count, segments); });
  spans.count = 0;
  spans.taken = split_ || totals.take(spans.variant, largest_, uint64_t(tiles_.at(spans.next.row_block).count) * spans.next.col_blocks);
  if (spans.taken)
    listSpans(step, totals.grouped(spans.variant), spans);
}

void StepBuffers::listSpans(const llmc_step_v1 &step, bool grouped, Spans &spans) {
  const int64_t each = grouped ? LLMC_KV_GROUP : 1;
  spans.first = reinterpret_cast<llmc_kv_span *>(base_ + used_);
  int64_t slot = 0;
  uint32_t tiles = 0;
  forEachTile(step, order_, spans.variant.row_block, [&](uint32_t s, int64_t first, int64_t count, int64_t segment, int64_t segments) {
    const int64_t start = step.seq_starts[s], position = step.positions[start] + first, parts = SpanTotals::spansOf(segments, grouped);
    for (int64_t part = 0; part < parts; ++part)
      spans.first[spans.count++] = {int32_t(start + first), int32_t(count), int32_t(position), int32_t(s * uint64_t(tableStride_)),
                                    int32_t(part * each * segment), int32_t(std::min(position + count, (part + 1) * each * segment)),
                                    int32_t(slot + part * count), int32_t(slot), int32_t(parts), int32_t(tiles), int32_t(segment)};
    slot += parts > 1 ? parts * count : 0;
    ++tiles;
  });
  place<llmc_kv_span>(spans.count);
  spans.arrivals = place<int32_t>(uint64_t(tiles) * spans.variant.col_blocks);
  std::fill_n(spans.arrivals, uint64_t(tiles) * spans.variant.col_blocks, 0);
}

const void *StepBuffers::field(uint64_t field, uint32_t rowBlock) const {
  switch (field) {
  case LLMC_FIELD_TOKEN_IDS:
    return ids_;
  case LLMC_FIELD_POSITIONS:
    return positions_;
  case LLMC_FIELD_LOGITS_ROWS:
    return rows_;
  case LLMC_FIELD_SLOTS:
    return slots_;
  case LLMC_FIELD_BLOCK_TABLE:
    return table_;
  case LLMC_FIELD_QUERY_TILES:
    return tiles_.at(rowBlock).first;
  case LLMC_FIELD_KV_SPANS: // a launch's arguments are those of all its variants
    return spans_.count(rowBlock) ? spans_.at(rowBlock).first : nullptr;
  case LLMC_FIELD_ARRIVALS:
    return spans_.count(rowBlock) ? spans_.at(rowBlock).arrivals : nullptr;
  case LLMC_FIELD_NUM_BLOCKS:
    return numBlocks_;
  case LLMC_FIELD_SAMPLERS:
    return samplers_;
  }
  return nullptr;
}

StepBuffers::Form StepBuffers::form() const {
  Form form{tokens_, sequences_, logitsRows_};
  for (const auto &[rowBlock, tiles] : tiles_)
    form.push_back(tiles.count);
  form.push_back(largest_);
  for (const auto &[rowBlock, spans] : spans_)
    form.push_back(spans.taken);
  return form;
}

StepBuffers::Form StepBuffers::contexts() const {
  Form form;
  for (const auto &[rowBlock, spans] : spans_)
    if (spans.taken)
      form.insert(form.end(), {spans.count, offsetOf(spans.first), offsetOf(spans.arrivals)});
  form.push_back(shape_.copyTable && table_ ? offsetOf(table_) : 0);
  return form;
}

bool StepBuffers::readsContexts(const llmc_launch_v1 &launch) {
  return std::any_of(launch.args, launch.args + launch.num_args, [](const llmc_arg_v1 &arg) {
    return arg.kind == LLMC_ARG_STEP &&
           (arg.value == LLMC_FIELD_KV_SPANS || arg.value == LLMC_FIELD_ARRIVALS || arg.value == LLMC_FIELD_BLOCK_TABLE);
  });
}

bool StepBuffers::takes(const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, uint32_t rows) const {
  if (launch.rows != LLMC_ROWS_QUERY_TILES)
    return rows <= variant.max_rows && !(apart_ && variant.span_rows == LLMC_FUSED);
  if (!variant.span_rows) // single tokens of many sequences would leave larger tiles all but empty
    return rows <= variant.max_rows || largest_ <= variant.row_block;
  return spans_.at(variant.row_block).taken;
}

LaunchPlan StepBuffers::plan(const llmc_launch_v1 &launch) const {
  uint32_t rows = launch.rows == LLMC_ROWS_LOGITS ? logitsRows_ : launch.rows == LLMC_ROWS_SEQS ? sequences_ : tokens_;
  const llmc_variant_v1 *variant = launch.variants;
  while (!takes(launch, *variant, rows))
    ++variant;
  int64_t rowBlocks;
  if (launch.rows == LLMC_ROWS_QUERY_TILES) {
    rows = variant->span_rows ? spans_.at(variant->row_block).count : tiles_.at(variant->row_block).count;
    rowBlocks = rows;
  } else {
    rowBlocks = (int64_t(rows) + variant->row_block - 1) / variant->row_block;
  }
  return {variant, rows, rowBlocks * variant->col_blocks};
}

LaunchPlan StepBuffers::rest(const llmc_launch_v1 &launch) const {
  if (!split_ || launch.rows != LLMC_ROWS_QUERY_TILES)
    return {launch.variants, 0, 0};
  const llmc_variant_v1 *variant = launch.variants + 1;
  const uint32_t tiles = tiles_.at(variant->row_block).count;
  return {variant, tiles, int64_t(tiles) * variant->col_blocks};
}

} // namespace llmc
