//===- RTToLLVM.h - the host program as constant tables ---------*- C++ -*-===//
//
// rt-to-llvm; see lib/Conversion/RTToLLVM/Passes.td.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_RTTOLLVM_H
#define LLMC_CONVERSION_RTTOLLVM_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace llmc {

#define GEN_PASS_DECL
#include "lib/Conversion/RTToLLVM/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/RTToLLVM/Passes.h.inc"

} // namespace llmc

#endif // LLMC_CONVERSION_RTTOLLVM_H
