//===- KVSpans.h - a query's context in segments ----------------*- C++ -*-===//
//
// What llmc_kv_span says about segments, in one place: the step's buffers list spans, the cost model counts them.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_RUNTIME_DEVICE_KVSPANS_H
#define LLMC_RUNTIME_DEVICE_KVSPANS_H

#include "llmc/abi.h"

#include <algorithm>

namespace llmc {

/// Tokens of a segment for a query token at `position`.
inline int64_t segmentOf(int64_t position) {
  int64_t tokens = LLMC_KV_SEGMENT;
  while (tokens * LLMC_KV_SEGMENTS <= position)
    tokens *= 2;
  return tokens;
}

/// Calls body(first, count, segment, parts) for the query tiles of `tokens` new tokens from `position` on: at most rowBlock tokens
/// with equal segments each, `parts` of them up to its last token; `first` counts from the first new token.
template <typename Body> void forEachSpannedTile(int64_t position, int64_t tokens, int64_t rowBlock, Body body) {
  for (int64_t first = 0; first < tokens;) {
    const int64_t segment = segmentOf(position + first), most = segment * LLMC_KV_SEGMENTS - (position + first);
    const int64_t count = std::min({rowBlock, tokens - first, most});
    body(first, count, segment, (position + first + count + segment - 1) / segment);
    first += count;
  }
}

} // namespace llmc

#endif // LLMC_RUNTIME_DEVICE_KVSPANS_H
