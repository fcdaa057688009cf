//===- MeasuredTiles.h - times of products on a card ------------*- C++ -*-===//
//
// The table that benchmarks/tune.sh measures: how long products take in each of the tiles that Schedule.cpp chooses from. It
// corrects that file's model of their time: of a product that is in the table, and of others by the nearest one there.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_LMTOTILE_MEASUREDTILES_H
#define LLMC_CONVERSION_LMTOTILE_MEASUREDTILES_H

#include "Schedule.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace llmc {

/// Tokens of the measured steps, ascending.
inline constexpr uint32_t kMeasuredRows[] = {128, 256, 512, 2048, 8192};

struct MeasuredTile {
  Epilogue epilogue;
  int64_t panels, k; ///< of the product, as linearSchedules() takes them
  llvm::StringLiteral tile;
  uint32_t nanoseconds[std::size(kMeasuredRows)]; ///< 0: not measured
};

/// Of a product in a tile: what was measured of it, or of the nearest product that was, at the nearest number of tokens below and above.
/// `predict(of, rows)` is the model's time of a measured one. 1000: as predicted; else so many thousandths of that.
int64_t measuredPerMille(llvm::StringRef tile, Epilogue epilogue, int64_t panels, int64_t k, uint32_t rows,
                         llvm::function_ref<int64_t(const MeasuredTile &of, uint32_t rows)> predict);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_MEASUREDTILES_H
