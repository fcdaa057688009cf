//===- Passes.h - passes on tile kernels ------------------------*- C++ -*-===//
#ifndef LLMC_TRANSFORMS_TILE_PASSES_H
#define LLMC_TRANSFORMS_TILE_PASSES_H

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace llmc {

/// `tile-schedule-cuda`: gives every kernel the attribute `schedule`: {threads, transposed}.
std::unique_ptr<mlir::Pass> createTileScheduleCudaPass();

/// `tile-pipeline-cuda`: matrix products over dense weights in large tiles become pipelines of bulk copies and
/// warpgroup products (the level tile.async), with a schedule of their own; other kernels stay as they are.
std::unique_ptr<mlir::Pass> createTilePipelineCudaPass();

/// `tile-pipeline-attention-cuda`: attention over gathered pages in tiles of up to 128 rows becomes a pipeline of page
/// copies and two warpgroups that take turns; other kernels stay as they are.
std::unique_ptr<mlir::Pass> createTilePipelineAttentionCudaPass();

} // namespace llmc

#endif // LLMC_TRANSFORMS_TILE_PASSES_H
