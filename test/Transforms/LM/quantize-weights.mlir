// RUN: llmc-opt %s --split-input-file --lm-quantize-weights --verify-diagnostics | FileCheck %s
// RUN: not llmc-opt %s --lm-quantize-weights=to=int4 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: expected fp8 to quantise weights to, got 'int4'

// Of the layers' products, joined or not; not the head, not vectors, not what is e4m3 already.
// CHECK: lm.weight @token_embd [32, 32] bf16 {sources
lm.weight @token_embd [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
// CHECK: lm.weight @blk.0.attn_q.bias [32] f32 {sources
lm.weight @blk.0.attn_q.bias [32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 32>]}
// CHECK: lm.weight @blk.0.attn_q [32, 32] bf16 {quantize = #lm<storage e4m3>, sources
lm.weight @blk.0.attn_q [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
// CHECK: lm.weight @blk.0.ffn_gate_up [32, 32] f32 {interleave = 16 : i64, quantize = #lm<storage e4m3>, sources
lm.weight @blk.0.ffn_gate_up [32, 32] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 16>, #lm.span<file = 0, offset = 0, bytes = 2048, rows = 16>]}
// CHECK: lm.weight @blk.0.attn_output [32, 32] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 1024, rows = 32, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}
lm.weight @blk.0.attn_output [32, 32] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 1024, rows = 32, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}

func.func @step(%ids: tensor<?xi32>) -> tensor<?x32xf32> {
  %0 = lm.embedding %ids, @token_embd : tensor<?xi32> -> tensor<?x32xf32>
  %1 = lm.linear %0, @blk.0.attn_q bias @blk.0.attn_q.bias : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %2 = lm.linear %1, @blk.0.attn_output : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %3 = lm.gated_linear silu %2, @blk.0.ffn_gate_up : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %4 = lm.linear %2, @token_embd : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %4 : tensor<?x32xf32>
}

// -----

// expected-error @below {{expected f32, f16, bf16 or e4m3 to quantise to fp8, got q8_0}}
lm.weight @blk.0.ffn_down [32, 32] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 1088, rows = 32>]}
func.func @codes(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %0 = lm.linear %x, @blk.0.ffn_down : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
