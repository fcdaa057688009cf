//===- LMToLinalg.h - the oracle: lm as f32 linalg kernels ------*- C++ -*-===//
//
// Passes lm-to-reference, reference-expand-math and reference-kernel-entry; see Passes.td beside the sources.
// The pipeline of one kernel is in llmc/Pipelines/ReferenceToLLVM.h.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_LMTOLINALG_H
#define LLMC_CONVERSION_LMTOLINALG_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace llmc {

#define GEN_PASS_DECL
#include "lib/Conversion/LMToLinalg/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/LMToLinalg/Passes.h.inc"

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOLINALG_H
