//===- TileToLLVM.h - the pipeline from tile kernels to LLVM ----*- C++ -*-===//
#ifndef LLMC_PIPELINES_TILETOLLVM_H
#define LLMC_PIPELINES_TILETOLLVM_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace llmc {

/// Lowers a module of tile.kernel ops to llvm.func ops of the signature llmc_kernel_fn, for an instruction set
/// ("avx2", "avx512vnni").
void buildTileToLLVMPipeline(mlir::OpPassManager &manager, llvm::StringRef isa);

/// Registers tile-expand-math, tile-to-cpu and the pipelines tile-to-llvm-<isa>.
void registerTileToLLVMPasses();

} // namespace llmc

#endif // LLMC_PIPELINES_TILETOLLVM_H
