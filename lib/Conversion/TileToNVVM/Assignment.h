//===- Assignment.h - a layout for every tile value -------------*- C++ -*-===//
//
// Values that one elementwise op combines must lie alike; products, reductions and
// broadcasts say how. Union-find over the kernel's vectors, then one layout per
// class. Constants and broadcast scalars take the layout of each use.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_TILETONVVM_ASSIGNMENT_H
#define LLMC_CONVERSION_TILETONVVM_ASSIGNMENT_H

#include "Layout.h"
#include "dialects/Tile/Tile.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace llmc::cuda {

/// The CTA that a kernel's attribute `schedule` (tile-schedule-cuda) asks for.
mlir::FailureOr<Shape> shapeOf(tile::KernelOp kernel);

/// Whether every element of a vector is the same without looking at any register (a splat or a broadcast scalar).
bool isUniform(mlir::Value value);
/// Constants and uniform values: made anew wherever they are used.
bool isFree(mlir::Value value);

class Assignment {
public:
  /// Emits a diagnostic where a value's uses want different layouts.
  mlir::LogicalResult run(tile::KernelOp kernel, const Shape &cta);
  const Layout &of(mlir::Value value) const;

private:
  struct Class {
    bool product = false, operand = false, pages = false, dealt = false;
    int64_t block = 1;
    mlir::Value rowsOf, columnsOf; ///< one value per row (column) of these
  };
  void tie(mlir::Value x, mlir::Value y);
  Class &classOf(mlir::Value value) { return facts[classes.getOrInsertLeaderValue(value.getAsOpaquePointer())]; }
  void visit(mlir::Operation *op);
  void mark(mlir::Operation *op);
  void markProduct(mlir::Value result, mlir::Value left);
  mlir::FailureOr<Layout> decide(mlir::Value value, const Shape &cta);

  llvm::EquivalenceClasses<void *> classes;
  llvm::DenseMap<void *, Class> facts;
  llvm::DenseMap<void *, Layout> layouts; ///< by leader
  bool products = false;
};

} // namespace llmc::cuda

#endif // LLMC_CONVERSION_TILETONVVM_ASSIGNMENT_H
