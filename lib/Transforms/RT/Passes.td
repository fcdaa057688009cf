//===- Passes.td - passes on the host program ---------------*- tablegen -*-===//
#ifndef LLMC_RT_PASSES
#define LLMC_RT_PASSES

include "mlir/Pass/PassBase.td"

def RTPlanArenaPass : Pass<"rt-plan-arena", "::mlir::ModuleOp"> {
  let summary = "give every buffer of the step its place in the arena";
  let description = [{
    Turns `func @step` and, where there is one, `func @reference` (bodies of `rt.dispatch`) into `rt.program`s. A result
    lives from its dispatch to its last use; those that return live to the end. Buffers are placed greedily, the
    largest first, each at the lowest multiple of 64 that no buffer alive at the same time covers. A dispatch
    never shares memory with its own operands.

    A buffer has its type's columns rounded up to 32 (inner dimensions of rank 3 stay as they are) and the largest row
    count of its kind, rounded up to `row-pad`; as many rows are free behind the last buffer, for tiles that start anywhere.
    In `@reference` logits may be wanted for every token.

    A `tensor<?xi32>` among the results of `@step` holds the greedy ids (`ids_offset`).

    The caches of all layers form KV group 0: argument i of type `!lm.kv` is layer i. The module gets `rt.limits` and
    `rt.kv_group`, which rt-to-llvm writes out.
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512", "tokens of one step">,
    Option<"maxSeqs", "max-seqs", "int64_t", "16", "sequences of one step">,
    Option<"maxLogits", "max-logits", "int64_t", "16", "rows of logits of one step">,
    Option<"rowPad", "row-pad", "int64_t", "16", "rows of a buffer are a multiple of this; 256 for a GPU">];
  let dependentDialects = ["::llmc::rt::RTDialect"];
}

#endif // LLMC_RT_PASSES
