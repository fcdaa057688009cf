//===- Phases.h - the phases on IR ------------------------------*- C++ -*-===//
#ifndef LLMC_PIPELINES_PHASES_H
#define LLMC_PIPELINES_PHASES_H

#include "llmc/Pipelines/Compile.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace llmc {

/// Adds the passes of one phase ("imported" has only its verifier).
void buildPhase(mlir::OpPassManager &manager, llvm::StringRef phase, const ModelOptions &options);

/// Builds the model and runs the phases up to and including `last`. Throws Error with the first diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> lowerModel(mlir::MLIRContext &context, const ModelFacts &facts,
                                             const ModelOptions &options, llvm::StringRef last);

/// `llmc-<phase>` for each phase, and `llmc-lower` for all from "fused" to "planned".
void registerPhasePipelines();

/// Collects diagnostics: errors for an Error to throw, warnings and remarks to stderr.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context);
  ~DiagnosticCollector();
  /// Throws the first error (or `otherwise`) as "PHASE: LOCATION: message".
  [[noreturn]] void fail(llvm::StringRef phase, llvm::StringRef otherwise) const;

private:
  mlir::MLIRContext &context;
  uint64_t handler;
  std::string firstError;
};

} // namespace llmc

#endif // LLMC_PIPELINES_PHASES_H
