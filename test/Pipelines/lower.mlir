// A model of one layer through the phases, each with what it must have decided.
// RUN: llmc-opt %s --llmc-imported --llmc-fused | FileCheck %s --check-prefix=FUSED
// RUN: llmc-opt %s --llmc-fused --llmc-reference | FileCheck %s --check-prefix=REFERENCE
// RUN: llmc-opt %s --llmc-fused --llmc-decided | FileCheck %s --check-prefix=DECIDED
// RUN: llmc-opt %s --llmc-fused --llmc-decided --llmc-tile | FileCheck %s --check-prefix=TILE
// RUN: llmc-opt %s --llmc-lower | FileCheck %s --check-prefix=PLANNED
// RUN: llmc-opt %s --llmc-lower --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=TABLES
// RUN: llmc-opt %s --llmc-lower=cuda=true | FileCheck %s --check-prefix=CUDA

// For a GPU: the same phases, other decisions, greedy ids, no reference.
// CUDA: tile.target = {name = "cuda"}
// CUDA: lm.weight @blk.0.attn_qkv {{.*}}layout = #lm.layout<n16_q4_0>
// CUDA: rt.program @step attributes {{.*}}ids_offset = {{[0-9]+}} : i64
// CUDA: rt.launch "blk.0.attn"
// CUDA: rt.launch "output"
// CUDA: rt.launch "sampled_ids"
// CUDA-NOT: @reference

// FUSED: lm.weight @blk.0.attn_qkv [256, 96] q4_0
// FUSED: lm.weight @blk.0.ffn_gate_up [320, 96] q4_0
// FUSED: lm.rope_append
// FUSED: lm.gated_linear
// FUSED-NOT: lm.add

// REFERENCE: func.func @reference
// REFERENCE: rt.dispatch "blk.0.attn"{{.*}}reference_weights
// REFERENCE: func.func @ref_{{.*}} attributes {llmc.kernel}

// Every weight has its place, every product its arithmetic, the cache its blocks.
// DECIDED: lm.weights_bytes
// DECIDED: lm.weight @blk.0.attn_qkv {{.*}}layout = #lm.layout<n16_q4_0>, offset =
// DECIDED: func.func @step({{.*}}!lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = bf16, block = 16>
// DECIDED: lm.linear {{.*}}arith = #lm.arith<

// Launches have the names of the values they compute, and variants by rows.
// TILE: func.func @step
// TILE-NOT: {{lm\.(linear|attention|embedding)}}
// TILE: rt.dispatch "token_embd"
// TILE: rt.dispatch "blk.0.attn_qkv"{{.*}}max_rows = 1,
// TILE: rt.dispatch "blk.0.attn"{{.*}}rows = #rt.rows<query_tiles>
// TILE: rt.dispatch "output"{{.*}}rows = #rt.rows<logits>
// TILE: tile.kernel

// PLANNED: rt.program @step
// PLANNED: rt.launch "token_embd"
// PLANNED: rt.launch "output"
// PLANNED: rt.program @reference

// TABLES: @llmc_module_v1 = constant

!kv = !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>

module attributes {lm.model = {architecture = "llama", ffn = 160 : i64, head_dim = 32 : i64, heads = 4 : i64, hidden = 96 : i64, kv_heads = 2 : i64, layers = 1 : i64, max_context = 256 : i64, name = "tiny", vocab = 269 : i64}} {
  lm.weight @token_embd [269, 96] q4_0 {sources = [#lm.span<file = 0, offset = 6208, bytes = 14526, rows = 269>]}
  lm.weight @rope.frequencies [1, 16] f32 {value = dense<0.5> : tensor<1x16xf32>}
  lm.weight @blk.0.attn_norm [96] f32 {sources = [#lm.span<file = 0, offset = 20736, bytes = 384, rows = 96>]}
  lm.weight @blk.0.attn_q [128, 96] q4_0 {sources = [#lm.span<file = 0, offset = 21120, bytes = 6912, rows = 128, deinterleave = 32>]}
  lm.weight @blk.0.attn_k [64, 96] q4_0 {sources = [#lm.span<file = 0, offset = 28032, bytes = 3456, rows = 64, deinterleave = 32>]}
  lm.weight @blk.0.attn_v [64, 96] q4_0 {sources = [#lm.span<file = 0, offset = 31488, bytes = 3456, rows = 64>]}
  lm.weight @blk.0.attn_output [96, 128] q4_0 {sources = [#lm.span<file = 0, offset = 34944, bytes = 6912, rows = 96>]}
  lm.weight @blk.0.ffn_norm [96] f32 {sources = [#lm.span<file = 0, offset = 41856, bytes = 384, rows = 96>]}
  lm.weight @blk.0.ffn_gate [160, 96] q4_0 {sources = [#lm.span<file = 0, offset = 42240, bytes = 8640, rows = 160>]}
  lm.weight @blk.0.ffn_up [160, 96] q4_0 {sources = [#lm.span<file = 0, offset = 50880, bytes = 8640, rows = 160>]}
  lm.weight @blk.0.ffn_down [96, 160] q4_0 {sources = [#lm.span<file = 0, offset = 59520, bytes = 8640, rows = 96>]}
  lm.weight @output_norm [96] f32 {sources = [#lm.span<file = 0, offset = 115584, bytes = 384, rows = 96>]}
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> (tensor<?x269xf32>, !kv) {
    %0 = lm.embedding %ids, @token_embd : tensor<?xi32> -> tensor<?x96xf32> loc("token_embd")
    %1 = lm.rope_table %positions, @rope.frequencies : tensor<?xi32> -> tensor<?x32xf32> loc("rope")
    %2 = lm.rms_norm %0, @blk.0.attn_norm {eps = 1.0e-5} : (tensor<?x96xf32>) -> tensor<?x96xf32> loc("blk.0.attn_norm")
    %3 = lm.linear %2, @blk.0.attn_q : (tensor<?x96xf32>) -> tensor<?x128xf32> loc("blk.0.attn_q")
    %4 = lm.linear %2, @blk.0.attn_k : (tensor<?x96xf32>) -> tensor<?x64xf32> loc("blk.0.attn_k")
    %5 = lm.linear %2, @blk.0.attn_v : (tensor<?x96xf32>) -> tensor<?x64xf32> loc("blk.0.attn_v")
    %6 = lm.rope %3, %1 {head_dim = 32 : i64} : tensor<?x128xf32>, tensor<?x32xf32> loc("blk.0.attn_q_rope")
    %7 = lm.rope %4, %1 {head_dim = 32 : i64} : tensor<?x64xf32>, tensor<?x32xf32> loc("blk.0.attn_k_rope")
    %8 = lm.kv_append %kv, %7, %5 : !kv, tensor<?x64xf32>, tensor<?x64xf32> loc("blk.0.kv")
    %9 = lm.attention %6, %8 {head_dim = 32 : i64, scale = 0.17677669529663687 : f64} : (tensor<?x128xf32>, !kv) -> tensor<?x128xf32> loc("blk.0.attn")
    %10 = lm.linear %9, @blk.0.attn_output : (tensor<?x128xf32>) -> tensor<?x96xf32> loc("blk.0.attn_output")
    %11 = lm.add %0, %10 : tensor<?x96xf32> loc("blk.0.attn_residual")
    %12 = lm.rms_norm %11, @blk.0.ffn_norm {eps = 1.0e-5} : (tensor<?x96xf32>) -> tensor<?x96xf32> loc("blk.0.ffn_norm")
    %13 = lm.linear %12, @blk.0.ffn_gate : (tensor<?x96xf32>) -> tensor<?x160xf32> loc("blk.0.ffn_gate")
    %14 = lm.linear %12, @blk.0.ffn_up : (tensor<?x96xf32>) -> tensor<?x160xf32> loc("blk.0.ffn_up")
    %15 = lm.gated_activation silu %13, %14 : tensor<?x160xf32> loc("blk.0.ffn_act")
    %16 = lm.linear %15, @blk.0.ffn_down : (tensor<?x160xf32>) -> tensor<?x96xf32> loc("blk.0.ffn_down")
    %17 = lm.add %11, %16 : tensor<?x96xf32> loc("blk.0.ffn_residual")
    %34 = lm.gather_rows %17, %rows : tensor<?x96xf32>, tensor<?xi32> -> tensor<?x96xf32> loc("logits_rows")
    %35 = lm.rms_norm %34, @output_norm {eps = 1.0e-5} : (tensor<?x96xf32>) -> tensor<?x96xf32> loc("output_norm")
    %36 = lm.linear %35, @token_embd : (tensor<?x96xf32>) -> tensor<?x269xf32> loc("output")
    return %36, %8 : tensor<?x269xf32>, !kv
  }
}
