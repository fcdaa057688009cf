//===- StepFunctions.h - the functions that the lm passes work on -*- C++ -*-===//
//
// After lm-to-reference a module also holds @reference, made of launches, which keeps f32 caches
// and must not be touched: an lm pass works on functions that hold lm ops.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_LIB_TRANSFORMS_LM_STEPFUNCTIONS_H
#define LLMC_LIB_TRANSFORMS_LM_STEPFUNCTIONS_H

#include "dialects/LM/LM.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc::lm {

inline llvm::SmallVector<mlir::func::FuncOp> stepFunctions(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::func::FuncOp> result;
  for (auto function : module.getOps<mlir::func::FuncOp>()) {
    mlir::WalkResult found = function.walk([](mlir::Operation *op) {
      return llvm::isa_and_nonnull<LMDialect>(op->getDialect()) ? mlir::WalkResult::interrupt()
                                                                : mlir::WalkResult::advance();
    });
    if (found.wasInterrupted())
      result.push_back(function);
  }
  return result;
}

} // namespace llmc::lm

#endif // LLMC_LIB_TRANSFORMS_LM_STEPFUNCTIONS_H
