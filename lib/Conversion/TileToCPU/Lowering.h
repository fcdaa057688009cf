//===- Lowering.h - what the tile to CPU patterns share ---------*- C++ -*-===//
//
// A tile value (a vector of any size) becomes pieces: registers of `lanes`
// elements along its last dimension, row after row; the last piece of a row may be
// shorter. Memrefs become base pointers (their strides are static), packed operands
// become pointers to their bytes, and are loaded where they are used.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_TILETOCPU_LOWERING_H
#define LLMC_CONVERSION_TILETOCPU_LOWERING_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace llmc::cpu {

/// What the instruction set gives.
struct Machine {
  int64_t lanes = 8;  ///< f32 elements of a register
  bool vnni = false;  ///< vpdpbusd on 512-bit registers
  int64_t rowBlock = 4; ///< rows of a register tile of 16 columns
  bool bf16 = false;  ///< vdpbf16ps on 512-bit registers
  bool neon = false;  ///< AArch64 with sdot; registers here are pairs of its 128-bit ones
  bool roundsBF16 = false; ///< vcvtne2ps2bf16 likewise
  bool amx = false;   ///< tiles, tdpbf16ps
  bool emulateAmx = false; ///< what tiles would do, with vectors
};

using Values = llvm::SmallVector<mlir::Value>;

/// Types of the pieces of a vector.
llvm::SmallVector<mlir::Type> pieceTypes(mlir::VectorType type, int64_t lanes);

class Converter : public mlir::TypeConverter {
public:
  explicit Converter(mlir::MLIRContext *context, const Machine &machine);
  Machine machine;
};

/// Builder of the few LLVM-level shapes that the patterns need.
struct Emitter {
  Emitter(mlir::OpBuilder &b, mlir::Location loc, const Machine &machine) : b(b), loc(loc), machine(machine) {}
  mlir::OpBuilder &b;
  mlir::Location loc;
  const Machine &machine;

  mlir::VectorType vec(int64_t n, mlir::Type element) { return mlir::VectorType::get({n}, element); }
  mlir::VectorType f32s() { return vec(machine.lanes, b.getF32Type()); }
  mlir::VectorType i32s() { return vec(machine.lanes, b.getI32Type()); }
  mlir::VectorType bytes() { return vec(machine.lanes * 4, b.getI8Type()); }
  mlir::VectorType halves() { return vec(machine.lanes * 2, b.getI16Type()); }

  mlir::Value constant(mlir::TypedAttr value) { return mlir::arith::ConstantOp::create(b, loc, value); }
  mlir::Value splatInt(mlir::VectorType type, int64_t value);
  mlir::Value splatF32(mlir::VectorType type, float value);
  mlir::Value i64(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
  mlir::Value index(int64_t value) { return constant(b.getIndexAttr(value)); }
  mlir::Value toI64(mlir::Value index);

  /// Stack memory of the enclosing function, 64-byte aligned, made once at its entry.
  mlir::Value stack(int64_t bytes);
  /// pointer + bytes
  mlir::Value offset(mlir::Value pointer, int64_t bytes);
  mlir::Value offset(mlir::Value pointer, mlir::Value bytes);
  mlir::Value load(mlir::Type type, mlir::Value pointer, int64_t bytes = 0);
  void store(mlir::Value value, mlir::Value pointer, int64_t bytes = 0);
  void prefetch(mlir::Value pointer, int64_t bytes);
  mlir::Value bitcast(mlir::Type type, mlir::Value value);
  mlir::Value broadcast(mlir::VectorType type, mlir::Value scalar);
  mlir::Value shuffle(mlir::Value x, mlir::Value y, llvm::ArrayRef<int32_t> mask);
  mlir::Value extract(mlir::Value vector, int64_t lane);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);
  /// An intrinsic of 128-bit registers on each part of the operands; `result` is the whole's.
  mlir::Value inParts(llvm::StringRef name, mlir::VectorType result, mlir::ValueRange operands);
  /// Of 16-byte tables, one for every 16 lanes of bytes(), the bytes at `places` < 16.
  mlir::Value lookUp(llvm::ArrayRef<int8_t> table, mlir::Value places);

  /// f16 values at pointer + bytes, widened.
  mlir::Value loadF16(int64_t count, mlir::Value pointer, int64_t bytes);
  /// The even and the odd members of bf16 pairs in 32-bit lanes, as f32.
  mlir::Value evenBF16(mlir::Value pairs);
  mlir::Value oddBF16(mlir::Value pairs);
  /// Pairs of e4m3 (two bytes for each of the `lanes`), none a NaN, as such pairs of bf16: exact.
  mlir::Value widenE4M3(mlir::Value pairs);

  /// scf.for over index with loop-carried values.
  Values loop(int64_t upper, int64_t step, mlir::ValueRange inits,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
};

/// Address of an access: dynamic part of the indices times strides in a pointer, the rest static.
struct Address {
  mlir::Value pointer;
  llvm::SmallVector<int64_t> strides; ///< bytes, of every memref dimension
  /// Static byte offset of row `row` (flattened over the vector's outer dimensions).
  int64_t rowOffset(mlir::VectorType type, int64_t row) const;
};
Address addressOf(Emitter &e, mlir::Value pointer, mlir::MemRefType memref, mlir::ValueRange indices);

/// A left operand of a product, element by element from memory: where it was loaded from (seen through
/// vector.shape_cast), else spilled to the stack.
struct LeftOperand {
  mlir::Value pointer;
  llvm::SmallVector<int64_t> rowOffsets; ///< bytes
};
LeftOperand leftOperand(Emitter &e, mlir::ConversionPatternRewriter &rewriter, const mlir::TypeConverter &converter,
                        mlir::Value original, mlir::ValueRange pieces);

// Before the conversion, on outlined kernels: operands and sums of bf16_eo32 in other places than registers.

/// Weights of codes become bf16_pairs in memory of the thread (Panels.cpp).
mlir::LogicalResult unpackPanels(mlir::LLVM::LLVMFuncOp function, const Machine &machine);
/// Products of whole blocks of 16 tokens in tile registers; does nothing without these (Amx.cpp).
void useTiles(mlir::LLVM::LLVMFuncOp function, const Machine &machine);

// One per op family.
void populateElementwisePatterns(const Converter &converter, mlir::RewritePatternSet &patterns);
void populateMemoryPatterns(const Converter &converter, mlir::RewritePatternSet &patterns);
void populateReductionPatterns(const Converter &converter, mlir::RewritePatternSet &patterns);
void populateDotPatterns(const Converter &converter, mlir::RewritePatternSet &patterns);
void populateScaledDotPatterns(const Converter &converter, mlir::RewritePatternSet &patterns);

} // namespace llmc::cpu

#endif // LLMC_CONVERSION_TILETOCPU_LOWERING_H
