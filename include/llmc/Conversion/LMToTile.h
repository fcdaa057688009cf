//===- LMToTile.h - decided lm to tile kernels ------------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_H
#define LLMC_CONVERSION_LMTOTILE_H

#include <memory>

namespace mlir {
class Pass;
class RewritePatternSet;
} // namespace mlir

namespace llmc {

/// `lm-to-tile`: each lm op of func @step becomes an rt.dispatch of tile.kernel ops (made in the module).
std::unique_ptr<mlir::Pass> createLMToTilePass();
void populateLMToTilePatterns(mlir::RewritePatternSet &patterns);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_H
