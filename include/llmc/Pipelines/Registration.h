//===- Registration.h - every dialect and pass of llmc ----------*- C++ -*-===//
#ifndef LLMC_PIPELINES_REGISTRATION_H
#define LLMC_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace llmc {

/// MLIR's dialects and extensions, llmc's dialects, and the translations to LLVM IR.
void registerAllDialects(mlir::DialectRegistry &registry);

/// MLIR's passes, llmc's passes and pipelines, by name (for llmc-opt and --print-ir-after).
void registerAllPasses();

} // namespace llmc

#endif // LLMC_PIPELINES_REGISTRATION_H
