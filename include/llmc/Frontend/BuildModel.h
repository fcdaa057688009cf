//===- BuildModel.h - facts to lm IR ----------------------------*- C++ -*-===//
#ifndef LLMC_FRONTEND_BUILDMODEL_H
#define LLMC_FRONTEND_BUILDMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llmc {

struct ModelFacts;

/// The module of the import phase: one lm.weight per tensor used and
///
///   func.func @step(ids: tensor<?xi32>, positions: tensor<?xi32>, logits_rows: tensor<?xi32>,
///                   one !lm.kv<..., block = 0> per layer)
///       -> (tensor<?xVxf32>, the caches)
///
/// with the module attribute lm.model = {name, architecture, hidden, layers, heads, kv_heads, head_dim, ffn,
/// vocab, max_context}. Loads the dialects it needs. Throws Error, naming the tensor, where facts are
/// incomplete or contradict themselves. Reads no weights.
mlir::OwningOpRef<mlir::ModuleOp> buildModel(mlir::MLIRContext *context, const ModelFacts &facts);

} // namespace llmc

#endif // LLMC_FRONTEND_BUILDMODEL_H
