//===- Optimize.h - what code generation for every target shares *- C++ -*-===//
#ifndef LLMC_LIB_TARGET_OBJECT_OPTIMIZE_H
#define LLMC_LIB_TARGET_OBJECT_OPTIMIZE_H

#include "llmc/Target/CodeGen.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace llmc {

/// LLVM's code generator at -O3 without fast math: a * b + c stays two roundings, fused ones are written as fma. Null
/// with `error` where this LLVM has none for the triple.
std::unique_ptr<llvm::TargetMachine> createMachine(const llvm::Triple &triple, const std::string &cpu,
                                                   const std::string &features, llvm::Reloc::Model relocation,
                                                   std::string &error);

/// No function of the C library exists: loops must not become memset or memcpy.
llvm::TargetLibraryInfoImpl noLibrary(const llvm::Triple &triple);

/// The module in LLVM IR with the machine's triple and data layout. Null after a diagnostic.
std::unique_ptr<llvm::Module> translate(mlir::ModuleOp module, llvm::TargetMachine &machine, llvm::LLVMContext &context);

/// Writes an optimised module in `form`; `module` is where diagnostics go.
mlir::LogicalResult emitCode(mlir::ModuleOp module, llvm::Module &llvmModule, llvm::TargetMachine &machine, CodeForm form,
                             llvm::SmallVectorImpl<char> &code);

/// -O3 on a module whose triple and data layout are the machine's.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, const llvm::PipelineTuningOptions &tuning = {});

} // namespace llmc

#endif // LLMC_LIB_TARGET_OBJECT_OPTIMIZE_H
