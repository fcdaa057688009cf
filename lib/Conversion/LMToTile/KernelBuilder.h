//===- KernelBuilder.h - writes tile kernels --------------------*- C++ -*-===//
//
// A thin layer over OpBuilder for the lowerings of this folder: kernels read like
// the formulas they compute.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_LMTOTILE_KERNELBUILDER_H
#define LLMC_CONVERSION_LMTOTILE_KERNELBUILDER_H

#include "dialects/Tile/Tile.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc {

inline int64_t pad32(int64_t columns) { return (columns + 31) / 32 * 32; }

class KernelBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value iv, mlir::ValueRange state)>;

  /// Starts a kernel at the end of `module`; buffers are the memref arguments.
  KernelBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, llvm::ArrayRef<mlir::Type> buffers);

  mlir::OpBuilder b;
  mlir::Location loc;
  tile::KernelOp kernel;

  mlir::Value buffer(unsigned i) { return kernel.getBuffers()[i]; }
  mlir::Value rows() { return kernel.getRows(); }
  mlir::Value unit() { return kernel.getUnit(); }

  // Types.
  mlir::Type f32() { return b.getF32Type(); }
  mlir::VectorType vec(llvm::ArrayRef<int64_t> shape) { return mlir::VectorType::get(shape, f32()); }
  mlir::VectorType vecOf(llvm::ArrayRef<int64_t> shape, mlir::Type element) { return mlir::VectorType::get(shape, element); }
  tile::PackedType packed(int64_t k, int64_t n, tile::Format format) {
    return tile::PackedType::get(b.getContext(), k, n, format);
  }

  // Constants and index arithmetic.
  mlir::Value index(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value number(double value);
  mlir::Value splat(llvm::ArrayRef<int64_t> shape, double value);
  mlir::Value ints(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int32_t> values);
  mlir::Value addIndex(mlir::Value x, mlir::Value y);
  mlir::Value addIndex(mlir::Value x, int64_t y) { return y ? addIndex(x, index(y)) : x; }
  mlir::Value mulIndex(mlir::Value x, int64_t y);
  mlir::Value divIndex(mlir::Value x, int64_t y);
  mlir::Value remIndex(mlir::Value x, int64_t y);
  mlir::Value minIndex(mlir::Value x, mlir::Value y);
  mlir::Value toIndex(mlir::Value i32);
  mlir::Value toI32(mlir::Value index);

  // Memory.
  mlir::Value load(mlir::Type type, mlir::Value memref, mlir::ValueRange indices);
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange indices, mlir::Value limit = {});
  mlir::Value loadPacked(tile::PackedType type, mlir::Value memref, mlir::ValueRange indices, int64_t prefetch = 0,
                         int64_t first = 0);

  // Elementwise, on scalars and vectors.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, mlir::Value y);
  /// `roughly`: off by up to 2^-11 of the result where the target has an instruction for that.
  mlir::Value tanh(mlir::Value x, bool roughly);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value max(mlir::Value x, mlir::Value y); ///< x > y ? x : y (one instruction everywhere)
  mlir::Value greater(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value spread(mlir::Value scalar, llvm::ArrayRef<int64_t> shape); ///< vector.broadcast
  mlir::Value expand(mlir::Value vector, int64_t columns);               ///< tile.expand
  mlir::Value reduce(tile::Reduction kind, mlir::Value vector);
  mlir::Value reshape(mlir::Value vector, llvm::ArrayRef<int64_t> shape); ///< vector.shape_cast

  /// scf.for with loop-carried values.
  Values loop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange inits, LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// scf.if without results.
  void when(mlir::Value condition, llvm::function_ref<void()> body);
};

/// Activation buffer [rows, columns padded to 32].
mlir::MemRefType rowsType(mlir::MLIRContext *context, int64_t columns, mlir::Type element);
/// Activation buffer seen as [rows, heads, head_dim] with the row stride of rowsType(heads * head_dim).
mlir::MemRefType headsType(mlir::MLIRContext *context, int64_t heads, int64_t headDim, mlir::Type element);
/// Scales of an int8 activation: [rows, groups of 32, 2].
mlir::MemRefType scalesType(mlir::MLIRContext *context, int64_t columns);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_KERNELBUILDER_H
