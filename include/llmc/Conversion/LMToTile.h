//===- LMToTile.h - decided lm to tile kernels ------------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_H
#define LLMC_CONVERSION_LMTOTILE_H

#include <memory>
#include <string>
#include <vector>

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
  std::string linearTile;  ///< of linearTileNames(): takes the products of more than 64 tokens that have a choice (CUDA only)
};

/// The tiles that schedules of dense products on a GPU choose from.
std::vector<std::string> linearTileNames();

/// `lm-to-tile`: each lm op of func @step becomes an rt.dispatch of tile.kernel ops (made in the module). The module gets
/// the attribute `tile.target`.
std::unique_ptr<mlir::Pass> createLMToTilePass(const LMToTileOptions &options = {});
void populateLMToTilePatterns(mlir::RewritePatternSet &patterns);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_H
