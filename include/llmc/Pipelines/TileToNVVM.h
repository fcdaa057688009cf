//===- TileToNVVM.h - the pipeline of one kernel for a GPU ------*- C++ -*-===//
#ifndef LLMC_PIPELINES_TILETONVVM_H
#define LLMC_PIPELINES_TILETONVVM_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace llmc {

/// Lowers a module of tile.kernels to llvm.funcs with nvvm.kernel, ready for translation to LLVM IR for NVPTX
/// (include/llmc/Conversion/TileToNVVM.h says what the module tells about them).
void buildTileToNVVMPipeline(mlir::OpPassManager &manager);

/// tile-schedule-cuda, tile-to-nvvm and the pipeline tile-to-llvm-cuda for llmc-opt.
void registerTileToNVVMPasses();

} // namespace llmc

#endif // LLMC_PIPELINES_TILETONVVM_H
