//===- Passes.h - passes of the lm level ------------------------*- C++ -*-===//
#ifndef LLMC_TRANSFORMS_LM_PASSES_H
#define LLMC_TRANSFORMS_LM_PASSES_H

#include "dialects/LM/LM.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <cstdint>
#include <memory>
#include <string>

namespace mlir {
class OpPassManager;
class RewritePatternSet;
class SymbolTable;
} // namespace mlir

namespace llmc::lm {

#define GEN_PASS_DECL
#include "llmc/Transforms/LM/Passes.h.inc"

/// The fusions' patterns. They make weights in `weights`, the module's symbol table, and leave the replaced
/// weights for eraseUnusedWeights or lm-pack-weights. Meant for one walk (walkAndApplyPatterns): they report a
/// missed fusion whenever they fail.
void populateFuseQKVPatterns(mlir::RewritePatternSet &patterns, mlir::SymbolTable &weights);
void populateFuseGateUpPatterns(mlir::RewritePatternSet &patterns, mlir::SymbolTable &weights);
void populateFuseResidualPatterns(mlir::RewritePatternSet &patterns);
void populateFuseQuantizePatterns(mlir::RewritePatternSet &patterns);

/// Bytes of a weight in a layout (llmc/Target/Layout.h); a vector is one row.
uint64_t packedBytes(WeightOp weight, Layout layout);

/// Each fusion's switch (for measuring).
struct FusionOptions {
  bool qkv = true;
  bool gateUp = true;
  bool residual = true;
};

struct DecideOptions {
  std::string compute = "default"; // default, f32 or q8
  std::string quantize;            // fp8; empty: weights as they are stored
  std::string kvElement;           // bf16, f16, f32; empty: bf16, and f32 under compute = f32
  int64_t kvBlock = 16;
  bool fuseQuantize = true;
  bool cuda = false; // arithmetic and layouts of a GPU, greedy sampling on it
  bool phases = false; // prompts have a function of their own, with an arithmetic for matrix units
};

/// Phase "fused": lm as imported to fused lm (nothing decided yet).
void buildLMFusionPipeline(mlir::OpPassManager &pm, const FusionOptions &options = {});
/// Phase "decided": arithmetic, activation formats, KV blocks and packing; ends with lm-verify-decided.
void buildLMDecidePipeline(mlir::OpPassManager &pm, const DecideOptions &options = {});

/// `lm-fusion` and `lm-decide` for llmc-opt.
void registerLMPipelines();

#define GEN_PASS_REGISTRATION
#include "llmc/Transforms/LM/Passes.h.inc"

} // namespace llmc::lm

#endif // LLMC_TRANSFORMS_LM_PASSES_H
