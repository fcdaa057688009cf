// The dispatches of one fused layer: kernels are shared by equal shapes, names are those of the lm ops, no cache is left.
// RUN: llmc-opt %s --lm-to-reference | FileCheck %s
// RUN: llmc-opt %s --lm-to-reference | FileCheck %s --check-prefix=ONCE

lm.weight @token_embd [50, 96] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 19200, rows = 50>]}
lm.weight @norm [96] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 384, rows = 96>]}
lm.weight @qkv [256, 96] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 98304, rows = 256>]}
lm.weight @qkv_bias [256] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 1024, rows = 256>]}
lm.weight @o [96, 128] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 49152, rows = 96>]}
lm.weight @gu [96, 96] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 18432, rows = 48>, #lm.span<file = 0, offset = 0, bytes = 18432, rows = 48>]}
lm.weight @down [96, 48] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 18432, rows = 96>]}
lm.weight @freq [1, 16] f32 {value = dense<1.0> : tensor<1x16xf32>}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>) -> (tensor<?x50xf32>, !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>) {
  %x = lm.embedding %ids, @token_embd : tensor<?xi32> -> tensor<?x96xf32> loc("token_embd")
  %t = lm.rope_table %positions, @freq : tensor<?xi32> -> tensor<?x32xf32> loc("rope")
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5} : (tensor<?x96xf32>) -> tensor<?x96xf32> loc("blk.0.attn_norm")
  %qkv = lm.linear %n, @qkv bias @qkv_bias : (tensor<?x96xf32>) -> tensor<?x256xf32> loc("blk.0.attn_qkv")
  %q, %kv1 = lm.rope_append %qkv, %t, %kv {head_dim = 32} : (tensor<?x256xf32>, tensor<?x32xf32>, !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>) -> (tensor<?x128xf32>, !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>) loc("blk.0.kv")
  %a = lm.attention %q, %kv1 {head_dim = 32, scale = 0.125, window = 0} : (tensor<?x128xf32>, !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>) -> tensor<?x128xf32> loc("blk.0.attn")
  %r = lm.linear %a residual %x, @o : (tensor<?x128xf32>, tensor<?x96xf32>) -> tensor<?x96xf32> loc("blk.0.attn_residual")
  %h = lm.gated_linear silu %r, @gu : (tensor<?x96xf32>) -> tensor<?x48xf32> loc("blk.0.ffn_act")
  %d = lm.linear %h, @down : (tensor<?x48xf32>) -> tensor<?x96xf32> loc("blk.0.ffn_down")
  %y = lm.add %d, %r : tensor<?x96xf32> loc("blk.0.ffn_residual")
  %f = lm.rms_norm %y, @norm {eps = 1.0e-5} : (tensor<?x96xf32>) -> tensor<?x96xf32> loc("output_norm")
  %l = lm.gather_rows %f, %rows : tensor<?x96xf32>, tensor<?xi32> -> tensor<?x96xf32> loc("logits_rows")
  %o = lm.linear %l, @token_embd : (tensor<?x96xf32>) -> tensor<?x50xf32> loc("output")
  return %o, %kv1 : tensor<?x50xf32>, !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>
}

// @step itself stays.
// CHECK-LABEL: func.func @step
// CHECK: lm.rope_append

// CHECK-LABEL: func.func @reference
// CHECK-SAME: (%[[IDS:.*]]: tensor<?xi32>, %[[POSITIONS:.*]]: tensor<?xi32>, %[[ROWS:.*]]: tensor<?xi32>) -> tensor<?x50xf32>
// CHECK: %[[X:.*]] = rt.dispatch "token_embd"() {fields = [#rt.field<token_ids>], reference_weights, rows = #rt.rows<tokens>
// CHECK-SAME: variants = [#rt.variant<max_rows = 4294967295, kernel = @ref_embedding_50x96, row_block = 1, col_blocks = 1>], weights = [@token_embd]
// CHECK: %[[T:.*]] = rt.dispatch "rope"() {fields = [#rt.field<positions>]
// CHECK: %[[N:.*]] = rt.dispatch "blk.0.attn_norm"(%[[X]]) {layer = 0 : i32
// CHECK: %[[QKV:.*]] = rt.dispatch "blk.0.attn_qkv"(%[[N]]) {{.*}}row_block = 8{{.*}}weights = [@qkv, @qkv_bias]
// CHECK: %[[Q:.*]] = rt.dispatch "blk.0.kv"(%[[QKV]], %[[T]]) {{.*}} -> tensor<?x128xf32>
// CHECK: %[[K:.*]] = rt.dispatch "blk.0.kv.k"(%[[QKV]], %[[T]]) {{.*}}_from128{{.*}} -> tensor<?x64xf32>
// CHECK: %[[V:.*]] = rt.dispatch "blk.0.kv.v"(%[[QKV]]) {{.*}}_from192{{.*}} -> tensor<?x64xf32>
// CHECK: %[[A:.*]] = rt.dispatch "blk.0.attn"(%[[Q]], %[[K]], %[[V]])
// CHECK: %[[R:.*]] = rt.dispatch "blk.0.attn_residual"(%[[A]], %[[X]]) {{.*}}weights = [@o]
// CHECK: %[[H:.*]] = rt.dispatch "blk.0.ffn_act"(%[[R]])
// CHECK: %[[D:.*]] = rt.dispatch "blk.0.ffn_down"(%[[H]])
// CHECK: %[[Y:.*]] = rt.dispatch "blk.0.ffn_residual"(%[[D]], %[[R]])
// CHECK: %[[F:.*]] = rt.dispatch "output_norm"(%[[Y]]) {reference_weights
// CHECK: %[[L:.*]] = rt.dispatch "logits_rows"(%[[F]]) {fields = [#rt.field<logits_rows>], reference_weights, rows = #rt.rows<logits>
// CHECK: %[[O:.*]] = rt.dispatch "output"(%[[L]]) {reference_weights, rows = #rt.rows<logits>
// CHECK: return %[[O]] : tensor<?x50xf32>

// Two norms, one kernel.
// ONCE-COUNT-1: func.func @ref_rms_norm_96
// ONCE-NOT: func.func @ref_rms_norm_96
