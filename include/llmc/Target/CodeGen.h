//===- CodeGen.h - a module in the LLVM dialect to machine code -*- C++ -*-===//
#ifndef LLMC_TARGET_CODEGEN_H
#define LLMC_TARGET_CODEGEN_H

#include "llmc/Target/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

namespace llmc {

/// What code generation writes: optimised LLVM IR, assembly, or a relocatable object.
enum class CodeForm { LLVM, Assembly, Object };

/// Compiles a module of llvm ops (and nothing else) for `target`: LLVM's -O3 without fast math, position
/// independent, defined functions hidden. The code calls no library; an object that would need a symbol that
/// `module` does not declare is an error naming it. Emits diagnostics.
mlir::LogicalResult generateCode(mlir::ModuleOp module, const CPUTarget &target, CodeForm form,
                                 llvm::SmallVectorImpl<char> &code);

/// Compiles a module of llvm and nvvm ops for a GPU to optimised LLVM IR or PTX text (Assembly). Emits diagnostics;
/// an intrinsic that the target's PTX version lacks aborts the process.
mlir::LogicalResult generatePTX(mlir::ModuleOp module, const GPUTarget &target, CodeForm form,
                                llvm::SmallVectorImpl<char> &code);

} // namespace llmc

#endif // LLMC_TARGET_CODEGEN_H
