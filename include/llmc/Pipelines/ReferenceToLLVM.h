//===- ReferenceToLLVM.h - from a kernel of the oracle to LLVM --*- C++ -*-===//
#ifndef LLMC_PIPELINES_REFERENCETOLLVM_H
#define LLMC_PIPELINES_REFERENCETOLLVM_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace llmc {

/// Lowers a module of kernels made by lm-to-reference (func.func @ref_x tagged `llmc.kernel`) to
/// llvm.func @ref_x(ptr args, i64 rows, i64 begin, i64 end), an llmc_kernel_fn. The result needs no other symbol.
void buildReferenceToLLVMPipeline(mlir::OpPassManager &manager);

/// The pipeline by name for llmc-opt: reference-to-llvm.
void registerReferenceToLLVMPipeline();

} // namespace llmc

#endif // LLMC_PIPELINES_REFERENCETOLLVM_H
