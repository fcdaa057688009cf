//===- TileToCPU.h - tile kernels to vectors of a CPU -----------*- C++ -*-===//
#ifndef LLMC_CONVERSION_TILETOCPU_H
#define LLMC_CONVERSION_TILETOCPU_H

#include "llvm/ADT/StringRef.h"
#include <memory>

namespace mlir {
class Pass;
class RewritePatternSet;
} // namespace mlir

namespace llmc {

/// `tile-expand-math`: exp, exp2, sin, cos and rounding to bf16 become arith on the same tile values (sin and cos only
/// where the target has the others).
std::unique_ptr<mlir::Pass> createTileExpandMathPass(bool onlyTrigonometry = false);
void populateTileExpandMathPatterns(mlir::RewritePatternSet &patterns, bool onlyTrigonometry = false);

/// `tile-to-cpu{isa=...}`: each tile.kernel becomes an llvm.func of the signature llmc_kernel_fn (llmc/abi.h), its
/// tile values registers of the instruction set ("avx2", "avx512vnni", "avx512bf16", "amxbf16"; "amxbf16-emulated": the structure of amxbf16,
/// with what tiles would do done by AVX-512, for tests).
std::unique_ptr<mlir::Pass> createTileToCPUPass(llvm::StringRef isa = "avx2");

} // namespace llmc

#endif // LLMC_CONVERSION_TILETOCPU_H
