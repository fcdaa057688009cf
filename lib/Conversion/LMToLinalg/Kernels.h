//===- Kernels.h - the oracle's kernels, one function an op -----*- C++ -*-===//
//
// Each adds the kernel of one op to the module and returns nothing: the pass looks it up by the
// name it asked for. Arguments follow rt.dispatch: inputs, weights, fields, results.
// Units are single rows unless `kRowBlock` is said.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_CONVERSION_LMTOLINALG_KERNELS_H
#define LLMC_LIB_CONVERSION_LMTOLINALG_KERNELS_H

#include "KernelBuilder.h"

#include "dialects/LM/LM.h"

namespace llmc::oracle {

/// Rows of a unit of the matrix products: a weight row is read once for so many activation rows.
constexpr int64_t kRowBlock = 8;

// RowKernels.cpp
/// (table, ids, result)
void embedding(KernelBuilder &k, int64_t tableRows, int64_t columns, double scale);
/// (input, weight, result)
void rmsNorm(KernelBuilder &k, int64_t columns, double eps);
/// The gate's activation of a number.
mlir::Value activate(KernelBuilder &k, lm::Activation activation, mlir::Value x);
/// (gate, up, result)
void gatedActivation(KernelBuilder &k, int64_t columns, lm::Activation activation);
/// (input, result)
void scale(KernelBuilder &k, int64_t columns, double factor);
/// (input, result)
void softCap(KernelBuilder &k, int64_t columns, double cap);
/// (lhs, rhs, result)
void add(KernelBuilder &k, int64_t columns);
/// (input, rows, result)
void gatherRows(KernelBuilder &k, int64_t columns);
/// (input, result): `columns` columns from `first` on.
void copyColumns(KernelBuilder &k, int64_t first, int64_t columns);

// LinearKernels.cpp; units are kRowBlock rows
/// (input, [residual], weight, [bias], result)
void linear(KernelBuilder &k, int64_t columns, int64_t depth, bool bias, bool residual);
/// (input, weight, result); the weight alternates between `interleave` gate rows and `interleave` up rows.
void gatedLinear(KernelBuilder &k, int64_t columns, int64_t depth, int64_t interleave, lm::Activation activation);

// PositionKernels.cpp
/// (frequencies, positions, result)
void ropeTable(KernelBuilder &k, int64_t pairs);
/// (input, table, result): rotates `heads` heads that start at column `first` of the input.
void rope(KernelBuilder &k, int64_t first, int64_t heads, int64_t headDim, int64_t pairs);

// AttentionKernel.cpp
struct AttentionShape {
  int64_t heads, kvHeads, keyDim, valueDim;
  int64_t window; // 0: none
  double scale;
  double softCap; // 0: none
  bool sinks;
};
/// (query, keys, values, [sinks], result)
void attention(KernelBuilder &k, const AttentionShape &shape);

} // namespace llmc::oracle

#endif // LLMC_LIB_CONVERSION_LMTOLINALG_KERNELS_H
