//===- WeightFusion.h - joining the weights of joined projections -*- C++ -*-===//
#ifndef LLMC_LIB_TRANSFORMS_LM_WEIGHTFUSION_H
#define LLMC_LIB_TRANSFORMS_LM_WEIGHTFUSION_H

#include "dialects/LM/LM.h"

#include "mlir/IR/PatternMatch.h"

namespace llmc::lm {

/// Why a projection cannot be joined with others (several users, a residual, decided arithmetic …), or empty.
std::string whyNotJoinable(LinearOp linear);

/// The weights named, or an empty list with `why` filled: a missing symbol, different storages, columns or
/// ranks, a computed value, interleaved rows.
llvm::SmallVector<WeightOp> joinableWeights(llvm::ArrayRef<mlir::FlatSymbolRefAttr> names,
                                            mlir::SymbolTable &weights, std::string &why);

/// A new weight that holds the rows of `parts` one after the other (interleave 0) or in alternating blocks.
/// It stands before the first part.
WeightOp joinWeights(mlir::PatternRewriter &rewriter, mlir::SymbolTable &weights,
                     llvm::MutableArrayRef<WeightOp> parts, llvm::StringRef name, int64_t interleave = 0);

/// "blk.3.attn_q", "attn_qkv" -> "blk.3.attn_qkv".
std::string siblingName(llvm::StringRef name, llvm::StringRef last);

/// Erases every weight that nothing uses.
void eraseUnusedWeights(mlir::ModuleOp module);

} // namespace llmc::lm

#endif // LLMC_LIB_TRANSFORMS_LM_WEIGHTFUSION_H
