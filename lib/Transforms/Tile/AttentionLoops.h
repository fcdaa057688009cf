//===- AttentionLoops.h - the loops of an attention kernel ------*- C++ -*-===//
#ifndef LLMC_LIB_TRANSFORMS_TILE_ATTENTIONLOOPS_H
#define LLMC_LIB_TRANSFORMS_TILE_ATTENTIONLOOPS_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace llmc::tile {

/// A kernel whose loops, which go on where the one before ends, carry a softmax between two products.
struct Attention {
  /// A loop: its products and what feeds them.
  struct Steps {
    mlir::scf::ForOp loop;
    DotOp scores, update;
    GatherPackedOp keys, values;
    LoadOp pages;
    mlir::Value p;         ///< f32, rounded it is the update's left operand
    unsigned accIndex = 0; ///< the update's among the carried values
  };
  llvm::SmallVector<Steps> loops;
  LoadOp query;
  int64_t rows = 0, width = 0, depth = 0, columns = 0, pageTokens = 0; ///< of queries, of a step, of K, of V

  /// null: `kernel` is such a kernel, for one or two warpgroups of 64 rows; else why not.
  const char *match(KernelOp kernel);

private:
  const char *matchShape();
};

} // namespace llmc::tile

#endif // LLMC_LIB_TRANSFORMS_TILE_ATTENTIONLOOPS_H
