//===- NormedRows.h - normalisation inside a product ------------*- C++ -*-===//
//
// A step of a few tokens waits for each of its kernels longer than it computes. So a product of few tokens can normalise its
// rows itself: every CTA, while its first weights are on their way. The normalisation then is a launch without units, and the
// product's variant does the work of both (LLMC_FUSED in abi.h). The reductions are those of the normalisation's own kernel, in
// the same order, so the bits are the same either way.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_LMTOTILE_NORMEDROWS_H
#define LLMC_CONVERSION_LMTOTILE_NORMEDROWS_H

#include "Lowering.h"
#include "Schedule.h"

#include <optional>

namespace llmc {

/// What a product has to know of the normalisation before it.
struct NormedRows {
  mlir::Value input; ///< [rows, columns] f32
  mlir::FlatSymbolRefAttr weight;
  double eps;
  int64_t columns;
  uint32_t most;                             ///< rows that a product normalises
  unsigned inputBuffer = 0, weightBuffer = 0; ///< arguments of the product's kernel
};

/// 1 / sqrt(mean square + eps) of a row, in every lane; `squares`: sums of its columns' squares, lane by lane.
mlir::Value normFactor(KernelBuilder &k, mlir::Value squares, int64_t columns, double eps);
/// Of a row that is normalised in registers: its parts of as many columns each as `xs` have, times the weight's.
llvm::SmallVector<mlir::Value> normalise(KernelBuilder &k, llvm::ArrayRef<mlir::Value> xs, llvm::ArrayRef<mlir::Value> ws, int64_t columns,
                                         double eps);

/// Adds the arguments that a normalisation reads to a product's kernel: its rows, and behind all inputs its weight.
void takeNormInput(Dispatch &dispatch, NormedRows &normed, llvm::SmallVectorImpl<mlir::Type> &buffers);
void takeNormWeight(Dispatch &dispatch, NormedRows &normed, llvm::SmallVectorImpl<mlir::Type> &buffers);

/// What a kernel's name says of a normalisation that is not the usual one: kernels are shared by name.
std::string epsName(double eps);

/// How many rows of `norm` its users normalise themselves; 0: none (Linear.cpp).
uint32_t rowsNormedByUsers(lm::RMSNormOp norm);
/// The same of a product of padded `k`, by the schedule that it has for one token.
uint32_t rowsNormed(const LinearSchedule &schedule, int64_t k, int64_t step);
/// Leaves what products have to know on the normalisation's dispatch, and reads it there.
void markNormed(rt::DispatchOp norm, double eps, uint32_t most);
std::optional<NormedRows> normedRows(mlir::Value activation);

inline constexpr int64_t kRotatedPairs = 32; ///< of a unit, of one head

/// A product of normalised rows whose results an lm.rope_append rotates and appends: that op's variants of few rows do all of it.
struct RotatedProduct {
  NormedRows normed;
  mlir::FlatSymbolRefAttr weight;
  int64_t parts; ///< of k
  unsigned weightBuffer = 0; ///< argument of the kernel
};
/// Whether `op` rotates what such a product gives.
bool rotatesProducts(lm::LinearOp product);
void markRotated(rt::DispatchOp product, int64_t parts);
std::optional<RotatedProduct> rotatedProduct(mlir::Value activation);
/// First and second halves of the pairs' columns of 32 pairs from panel `panel` of head `head` on: sums over k (Linear.cpp).
KernelBuilder::Values accumulateHalves(KernelBuilder &k, mlir::Value own, int64_t columns, mlir::Value halves, mlir::Value head, mlir::Value panel,
                                       mlir::Value row, const LinearSchedule &schedule);

/// Puts the classes of few rows that normalise before the others.
void addNormedSchedules(llvm::SmallVectorImpl<LinearSchedule> &schedules, const NormedRows &normed);
/// Those classes, of the schedule for one token.
llvm::SmallVector<LinearSchedule> normedSchedules(const LinearSchedule &one, const NormedRows &normed);
/// The rows of the launch, normalised: the unit's own, [rows, columns] bf16.
mlir::Value buildNormedRows(KernelBuilder &k, const NormedRows &normed, const LinearSchedule &schedule);

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_NORMEDROWS_H
