//===- UnitLoop.h - a role's loop over the units of its CTA -----*- C++ -*-===//
//
// A persistent kernel has a CTA for each place that the card has, and each of its roles walks over the units unit,
// unit + ctas, ... by itself: the producer is in the next unit while the consumers write the last one. What a role needs of a
// unit it computes itself; rounds of the pipelines count on from unit to unit, by as many as the unit has.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_TRANSFORMS_TILE_UNITLOOP_H
#define LLMC_LIB_TRANSFORMS_TILE_UNITLOOP_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace llmc::tile {

/// Computes again what a kernel computes, with other values for some (a role's own unit, its round).
class Again {
public:
  Again(KernelOp kernel, mlir::OpBuilder &builder) : kernel(kernel), b(builder) {}

  void map(mlir::Value from, mlir::Value to) { known.map(from, to); }
  /// `value` here: itself where nothing it comes from is mapped and it is computed at the top of the kernel. Only pure ops
  /// and loads are computed again.
  mlir::Value value(mlir::Value original);
  llvm::SmallVector<mlir::Value> values(mlir::ValueRange originals);
  /// A copy of `op` and its regions here.
  mlir::Operation *clone(mlir::Operation *op);

private:
  bool differs(mlir::Value value);

  KernelOp kernel;
  mlir::OpBuilder &b;
  mlir::IRMapping known;
};

/// The loop over units at the builder's place, which moves into it; the kernel's unit is mapped in `again`.
struct UnitLoop {
  mlir::scf::ForOp loop;
  mlir::Value firstRound; ///< of the unit

  /// Of a crew among `crews` every crews-th of the CTA's units, each of `rounds` rounds.
  UnitLoop(KernelOp kernel, mlir::OpBuilder &builder, mlir::Location loc, Again &again, int64_t crews = 1, mlir::Value rounds = {});
  /// Ends the body: the next unit's rounds start at `nextRound`.
  void close(mlir::OpBuilder &builder, mlir::Value nextRound);
};

/// Another order: every second row of ctas units backwards, so that units whose work falls with their number are dealt evenly.
/// Numbers of visits are i32: registers are short where units are visited.
class SnakeOrder {
public:
  SnakeOrder(KernelOp kernel, mlir::OpBuilder &builder, mlir::Location loc);
  mlir::Value visits() const { return count; } ///< units of this CTA, at least one
  mlir::Value unit(mlir::Value visit);         ///< of the launch, index

private:
  mlir::Value placeIn(mlir::Value row, mlir::Value ctas);
  mlir::Value number(int64_t value);
  mlir::Value narrow(mlir::Value index);

  KernelOp kernel;
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value count;
};

/// Erases what no longer has uses at the top of a kernel.
void eraseUnused(KernelOp kernel);

} // namespace llmc::tile

#endif // LLMC_LIB_TRANSFORMS_TILE_UNITLOOP_H
