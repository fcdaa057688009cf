//===- LMToTile.h - decided lm to tile kernels ------------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_H
#define LLMC_CONVERSION_LMTOTILE_H

#include <memory>

namespace mlir {
class Pass;
class RewritePatternSet;
} // namespace mlir

namespace llmc {

/// What kernels are blocked for. The algorithms are the same; tiles, forms of cache blocks and rounding of products'
/// operands follow the target.
struct LMToTileOptions {
  bool cuda = false;
  bool trapChecks = false; ///< kernels check block and token ids and trap (CUDA only)
};

/// `lm-to-tile`: each lm op of func @step becomes an rt.dispatch of tile.kernel ops (made in the module). The module gets
/// the attribute `tile.target`.
std::unique_ptr<mlir::Pass> createLMToTilePass(const LMToTileOptions &options = {});
void populateLMToTilePatterns(mlir::RewritePatternSet &patterns);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_H
