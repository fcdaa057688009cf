//===- KVSpans.h - a query's context in segments ----------------*- C++ -*-===//
//
// What llmc_kv_span says about segments, in one place: the step's buffers list spans, the cost model counts them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_KVSPANS_H
#define LLMC_RUNTIME_DEVICE_KVSPANS_H

#include "llmc/abi.h"

#include <algorithm>
#include <cstdint>

namespace llmc {

/// Segments of a context at most, where they have `tokens`.
inline int64_t segmentsAtMost(int64_t tokens) { return tokens == LLMC_KV_SEGMENT ? LLMC_KV_GROUP : LLMC_KV_SEGMENTS; }

/// Tokens of a segment for a query token at `position`.
inline int64_t segmentOf(int64_t position) {
  int64_t tokens = LLMC_KV_SEGMENT;
  while (tokens * segmentsAtMost(tokens) <= position)
    tokens *= 2;
  return tokens;
}

/// Calls body(first, count, segment, parts) for the query tiles of `tokens` new tokens from `position` on: at most rowBlock tokens
/// with equal segments each, `parts` of them up to its last token; `first` counts from the first new token.
template <typename Body> void forEachSpannedTile(int64_t position, int64_t tokens, int64_t rowBlock, Body body) {
  for (int64_t first = 0; first < tokens;) {
    const int64_t segment = segmentOf(position + first), most = segment * segmentsAtMost(segment) - (position + first);
    const int64_t count = std::min({rowBlock, tokens - first, most});
    body(first, count, segment, (position + first + count + segment - 1) / segment);
    first += count;
  }
}

/// Places for results of spans.
inline uint32_t spanRowsOf(const llmc_variant_v1 &variant) { return variant.span_rows & ~LLMC_SPAN_GROUPS; }

/// What the spans of a step take, added up tile by tile, and with it how long they are. That changes no result: a span of a
/// group gives what its segments put together give.
struct SpanTotals {
  static constexpr uint64_t kFill = 112; ///< units that keep the memory of a card of 132 multiprocessors busy (measured: 128 do, 64 do not)

  static constexpr uint64_t kFewUnits = 32; ///< at least this many go through their contexts as fast as spans do (measured)

  uint64_t tiles = 0, groups = 0, rows[2] = {}; ///< groups of segments; places of results with spans of segments, of groups

  static int64_t spansOf(int64_t segments, bool grouped) { return grouped ? (segments + LLMC_KV_GROUP - 1) / LLMC_KV_GROUP : segments; }

  /// A tile of `count` tokens, `times` of them.
  void add(int64_t count, int64_t segments, uint64_t times = 1) {
    tiles += times;
    groups += times * uint64_t(spansOf(segments, true));
    for (bool grouped : {false, true})
      if (const int64_t parts = spansOf(segments, grouped); parts > 1)
        rows[grouped] += times * uint64_t(parts * count);
  }
  /// Groups, where they are enough to fill a card or segments have no room.
  bool grouped(const llmc_variant_v1 &variant) const {
    return variant.span_rows & LLMC_SPAN_GROUPS && (groups * variant.col_blocks >= kFill || rows[0] > spanRowsOf(variant));
  }
  bool fits(const llmc_variant_v1 &variant) const { return rows[grouped(variant)] <= spanRowsOf(variant); }
  /// Whether a step takes the variant, where a sequence has at most `largest` new tokens: more than a tile's only where the `otherwise`
  /// units of whole contexts are few, and long.
  bool take(const llmc_variant_v1 &variant, uint64_t largest, uint64_t otherwise) const {
    return largest <= variant.max_rows && fits(variant) &&
           (largest <= variant.row_block || (otherwise <= kFewUnits && groups >= 2 * tiles));
  }
};

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_KVSPANS_H
