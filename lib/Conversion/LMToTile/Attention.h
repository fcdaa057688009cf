//===- Attention.h - pieces of attention kernels ----------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_ATTENTION_H
#define LLMC_CONVERSION_LMTOTILE_ATTENTION_H

#include "Lowering.h"

namespace llmc {

struct AttentionShape {
  int64_t heads, group, headDim; // query heads, query heads per KV head, columns of K
  int64_t pages;                 // blocks of the cache in one step of the loop
  bool gpu;                      // columns of V in parts
  double scale;
  int64_t window;
  mlir::Type queryElement;
  lm::Format format;
  KVGeometry kv;
  double softCap = 0;          // of scores; 0: none
  mlir::MemRefType sinks = {}; // of their buffer; null: none
  /// Buffers: query, cache, sinks if there are, block table, query tiles, of a dispatch with spans these and their arrivals, the
  /// pool's size where ids are checked, results, of spans their results, maxima and sums.
  enum { kQuery = 0, kCache = 1, kSinks = 2 };
  unsigned table() const { return sinks ? 3 : 2; }
  unsigned tiles() const { return table() + 1; }
  unsigned kvSpans() const { return table() + 2; }
  unsigned arrivals() const { return table() + 3; }
  unsigned blocks() const { return table() + 2; }
  unsigned result() const { return table() + (spans ? 4 : checks ? 3 : 2); }
  bool checks = false; // ids of blocks
  bool spans = false;  // a variant of the dispatch works on spans
  bool splits = false; // a loop of its own for blocks that need no mask
  int64_t vParts = 1;  // units that share the columns of V
  /// Operands of products in bf16.
  bool narrow() const { return gpu || queryElement.isBF16(); }
  int64_t columns() const { return 16 * pages; }
  int64_t vColumns() const { return kv.vDim / vParts; }
};

/// The fields of this unit's llmc_query_tile.
struct QueryTile {
  mlir::Value first, count, position, table;
};

/// What a step of the loop over the cache carries.
struct Softmax {
  mlir::Value m, l, acc; ///< running maximum (in units of log2), sum, result before the division
};

/// The blocks of the cache that some row of a tile sees.
struct PageRange {
  mlir::Value begin, end;
};
PageRange visibleBlocks(KernelBuilder &k, const AttentionShape &shape, const QueryTile &tile);

/// Of `tokens` rows' query heads with the blocks in `range`, whose begin is a multiple of a step; `part`: which of the vParts.
/// With `segmentMask` the softmax starts anew at blocks that have none of its bits, and what it had then is put together.
Softmax attendOver(KernelBuilder &k, const AttentionShape &shape, const QueryTile &tile, mlir::Value head, mlir::Value part, int64_t tokens,
                   PageRange range, mlir::Value segmentMask = {});

/// Whether tile-pipeline-attention-cuda will take a kernel of `rows` rows: it copies whole pages of K and V.
bool takesWarpgroups(const AttentionShape &shape, int64_t rows);

/// What the softmax gives `tokens` rows' query heads: the accumulator by its sum, which a head's sink is a term of.
mlir::Value quotient(KernelBuilder &k, const AttentionShape &shape, const Softmax &sum, mlir::Value head, int64_t tokens);

/// Writes out [rows, columns of V] as columns of the group's heads, f32 or bf16.
void writeHeads(KernelBuilder &k, const AttentionShape &shape, const QueryTile &tile, mlir::Value head, mlir::Value part, mlir::Value out,
                int64_t tokens);

//===----------------------------------------------------------------------===//
// Spans of the cache (AttentionSpans.cpp)
//===----------------------------------------------------------------------===//

inline constexpr double kNoScore = -1e30; ///< maximum of no score: finite, so that exp2(m - m') is 0 and never NaN

/// The sums of two runs of tokens as those of both.
Softmax putTogether(KernelBuilder &k, const Softmax &older, const Softmax &newer, int64_t columns);
/// Whether a variant may work on spans: as tile-pipeline-attention-cuda wants it, with rows for one warpgroup.
bool mayHaveSpans(const AttentionShape &shape);
/// Query tokens of its tile.
int64_t spanTokens(const AttentionShape &shape);
/// What the dispatch needs for it: fields, memory for the spans' results, and the buffers' types.
void addSpanArguments(Dispatch &dispatch, llvm::SmallVectorImpl<mlir::Type> &fieldBuffers, llvm::SmallVectorImpl<mlir::Type> &resultBuffers,
                      const AttentionShape &shape);
void addSpanVariant(Dispatch &dispatch, const AttentionShape &shape, llvm::StringRef name, llvm::ArrayRef<mlir::Type> buffers);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_ATTENTION_H
