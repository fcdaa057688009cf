//===- Passes.td - passes of the lm level ------------------*- tablegen -*-===//
#ifndef LLMC_TRANSFORMS_LM_PASSES
#define LLMC_TRANSFORMS_LM_PASSES

include "mlir/Pass/PassBase.td"

class LM_Pass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::llmc::lm::LMDialect"];
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

def LMVerifyImportedPass : LM_Pass<"lm-verify-imported"> {
  let summary = "checks what holds after import and fusion";
  let description = [{
    Closes the import phase. Nothing is decided: no arithmetic, format, layout or KV block. Every `!lm.kv` is used
    linearly: at most one append per value, every read is of an appended value and after no other append, and each
    cache argument of a function reaches its own result.
  }];
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def LMFuseQKVPass : LM_Pass<"lm-fuse-qkv"> {
  let summary = "joins the q, k and v projections and their rotations";
  let description = [{
    Three `lm.linear` of one input, two `lm.rope` and the `lm.kv_append` of a layer become one `lm.linear` on the
    concatenated weight (`blk.N.attn_qkv`) and one `lm.rope_append`. Each output column keeps its sum, so bits do not change.

    Not fused (with a remark): storages differ, only some have a bias, a projection has another user, the key and
    value dimensions differ from the head dimension.
  }];
}

def LMFuseGateUpPass : LM_Pass<"lm-fuse-gate-up"> {
  let summary = "joins the gate and up projections and their activation";
  let description = [{
    `lm.gated_activation` of two `lm.linear` of one input becomes `lm.gated_linear` on a weight (`blk.N.ffn_gate_up`)
    that holds the rows of both in alternating blocks of 16, so that one block of a kernel has both halves.

    Not fused (with a remark): storages differ, there is a bias or a residual, a projection has another user, the
    feed-forward size is no multiple of 16.
  }];
}

def LMFuseResidualPass : LM_Pass<"lm-fuse-residual"> {
  let summary = "folds the residual sum into the projection before it";
  let description = [{
    `lm.add` of an `lm.linear` becomes its `residual` operand. The residual stays the last summand, and a sum of two
    floats does not depend on their order, so bits do not change.
  }];
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

def LMQuantizeWeightsPass : LM_Pass<"lm-quantize-weights"> {
  let summary = "quantises the matrices of the layers when they are packed";
  let description = [{
    Sets `quantize` of the weights of products in layers, to e4m3 with a scale per row (`fp8`). Embedding and head stay as they are,
    and so do matrices that are e4m3 already. Weights of codes are an error.
  }];
  let options = [Option<"to", "to", "std::string", "\"fp8\"", "fp8">];
}

def LMSetArithPass : LM_Pass<"lm-set-arith"> {
  let summary = "decides the numerics contract of every matrix product";
  let description = [{
    Sets `arith` where it is absent. On a CPU, `default`: q16_g32 for q4_0, q4_1 and q8_0 weights (q8_g32 with compute `q8`),
    bf16 for bf16 and e4m3, f32 for f16 and f32. `f32`: f32 everywhere, weights widened exactly. On target `cuda`: bf16, and e4m3 for e4m3 of more than 128 columns.
    Attention gets bf16 on target `cuda`, and on a CPU where all products have bf16 or q8_g32 and the cache is bf16.
  }];
  let options = [Option<"compute", "compute", "std::string", "\"default\"", "default, f32 or q8">,
                 Option<"target", "target", "std::string", "\"cpu\"", "cpu or cuda">];
}

def LMSplitPhasesPass : LM_Pass<"lm-split-phases"> {
  let summary = "a function of its own for the tokens of prompts (--numerics=phase)";
  let description = [{
    Copies @step to @prompt and sets the arithmetic of the layers' products there to bf16_eo32, where their weights are bf16 or
    codes. Which of the two a token takes follows from its place in its sequence, never from the number of rows. After lm-set-arith.
  }];
}

def LMQuantizeActivationsPass : LM_Pass<"lm-quantize-activations"> {
  let summary = "makes the rounding of activations explicit";
  let description = [{
    Inserts `lm.quantize` (q8_g32, q16_g32, e4m3) or `lm.round` (bf16_eo32, bf16) before products whose arithmetic wants it: one per input,
    right after the input is computed.
  }];
}

def LMFuseQuantizePass : LM_Pass<"lm-fuse-quantize"> {
  let summary = "lets a producer write the form that its only user wants";
  let description = [{
    `lm.quantize` or `lm.round` of an `lm.rms_norm` or `lm.attention`, and `lm.round` of an `lm.gated_linear` on a GPU, becomes
    the producer's `format` when it is the only user. Elsewhere it stays an op (a remark says why). The values are the same.
  }];
}

def LMPageKVPass : LM_Pass<"lm-page-kv"> {
  let summary = "decides element and block of the KV cache";
  let description = [{
    Rewrites every `!lm.kv` with block = 0, in functions that still hold lm ops, to the given element type and tokens per block.
  }];
  let options = [Option<"element", "element", "std::string", "\"bf16\"", "bf16, f16 or f32">,
                 Option<"block", "block", "int64_t", "16", "tokens per block, a multiple of 16">];
}

def LMPackWeightsPass : LM_Pass<"lm-pack-weights"> {
  let summary = "decides layout and place of every weight";
  let description = [{
    Drops weights that nothing uses; gives the others a layout (matrices: n16 of their storage; vectors and computed
    tables: rows of f32) and an offset, a multiple of 64, in order of first use by the step, so that decoding reads the
    package front to back. Sets the module's `lm.weights_bytes`. On target `cuda` matrices of f32, f16 and bf16 become rows of
    bf16, which is what its products round them to.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "cpu or cuda">];
}

def LMSampleOnDevicePass : LM_Pass<"lm-sample-on-device"> {
  let summary = "sampled ids as a result of the step";
  let description = [{
    Appends `lm.sample` of the logits (the first result) to `@step` and its ids to the results, so that only ids leave the
    device. Does nothing where the step returns ids already.
  }];
}

def LMVerifyDecidedPass : LM_Pass<"lm-verify-decided"> {
  let summary = "checks that everything is decided";
  let description = [{
    Closes the decided phase: every product has an arithmetic (its verifier then checks the inputs), every weight a layout and an offset
    inside `lm.weights_bytes` without overlap, every `!lm.kv` a block.
  }];
}

#endif // LLMC_TRANSFORMS_LM_PASSES
