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

} // namespace llmc

#endif // LLMC_TRANSFORMS_TILE_PASSES_H
