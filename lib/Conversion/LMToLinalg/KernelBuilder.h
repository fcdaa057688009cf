//===- KernelBuilder.h - writes one kernel of the oracle --------*- C++ -*-===//
//
// A kernel is a func.func on memrefs, tagged `llmc.kernel`:
//
//   func.func @ref_x(%arg0: memref<?x64xf32>, ..., %rows: index, %begin: index, %end: index)
//
// It computes units [begin, end) of a launch of `rows` rows. Activations are [rows, padded columns],
// weights [rows, columns] without padding, step fields memref<?xi32>. All arithmetic is linalg on
// memref.reinterpret_casts of these arguments: the row, or the block of rows, of one unit.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_CONVERSION_LMTOLINALG_KERNELBUILDER_H
#define LLMC_LIB_CONVERSION_LMTOLINALG_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace llmc::oracle {

class KernelBuilder {
public:
  using Body = llvm::function_ref<mlir::Value(mlir::ValueRange)>;

  /// Creates the function at the builder's insertion point; `arguments` are the buffers.
  KernelBuilder(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                llvm::ArrayRef<mlir::MemRefType> arguments);

  mlir::Value argument(unsigned index) { return func.getArgument(index); }
  mlir::Value rows() { return func.getArgument(buffers); }

  /// Calls `body` inside a loop over the units of this call.
  void forEachUnit(llvm::function_ref<void(mlir::Value unit)> body);
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);

  // Scalars.
  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value a, mlir::Value b); // index or f32
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, index(b)); }
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, index(b)); }
  mlir::Value min(mlir::Value a, mlir::Value b); // index
  /// i32 element of a step field as an index below `limit`.
  mlir::Value loadId(mlir::Value field, mlir::Value position, mlir::Value limit);

  /// x / (1 + exp(-x)).
  mlir::Value silu(mlir::Value x);
  mlir::Value tanh(mlir::Value x);

  /// `sizes` and `strides` (in elements) of `buffer` from element `offset` on.
  mlir::Value view(mlir::Value buffer, mlir::Value offset, llvm::ArrayRef<mlir::OpFoldResult> sizes,
                   llvm::ArrayRef<int64_t> strides);
  /// `count` columns from `column` on of one row.
  mlir::Value row(mlir::Value buffer, mlir::Value row, int64_t count, int64_t column = 0);
  mlir::Value scratch(llvm::ArrayRef<int64_t> shape);

  void fill(mlir::Value buffer, double value);
  /// Zeroes the columns of `buffer` past `columns` in `count` rows from `row` on.
  void zeroPadding(mlir::Value buffer, mlir::Value row, mlir::OpFoldResult count, int64_t columns);

  /// linalg.generic; `iterators` has one letter a dimension, p(arallel) or r(eduction), `maps` name dimensions
  /// by the same position: {0, 2} is (d0, d1, d2) -> (d0, d2). The body gets inputs, then the output.
  void generic(mlir::ValueRange inputs, mlir::Value output, llvm::StringRef iterators,
               llvm::ArrayRef<llvm::SmallVector<unsigned>> maps, Body body);
  /// generic with identity maps.
  void elementwise(mlir::ValueRange inputs, mlir::Value output, Body body);
  /// output[] (a scalar or a row) += product of the two inputs under `maps`, in any order of summation.
  void contract(mlir::Value a, mlir::Value b, mlir::Value output, llvm::StringRef iterators,
                llvm::ArrayRef<llvm::SmallVector<unsigned>> maps);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::func::FuncOp func;

private:
  unsigned buffers;
};

} // namespace llmc::oracle

#endif // LLMC_LIB_CONVERSION_LMTOLINALG_KERNELBUILDER_H
