// RUN: llmc-opt %s --rt-plan-arena="max-tokens=20 max-seqs=2 max-logits=3" | FileCheck %s

// One layer by hand. 20 tokens are 32 rows, 3 rows of logits are 16; 40 columns are 64.
//   token_embd      f32 32 x 64 x 4      = 8192, alive 0-1
//   blk.0.attn_norm i8  32 x 64          = 2048, scales f32 32 x 2 x 2 x 4 = 512, alive 1-2
//   blk.0.kv        f32                    8192, alive 2-3
//   blk.0.attn      f32                    8192, alive 3-4
//   output          f32 16 x 128 x 4     = 8192, alive 4
//   16 more rows of 64 columns behind them = 4096: a query tile reads past the last token

// CHECK: module attributes
// CHECK-SAME: rt.kv_group = {block_bytes = 1280 : i64, element = 1 : i64, head_bytes = 1280 : i64, heads = 1 : i64, k_dim = 20 : i64, layer_bytes = 1280 : i64, layers = 1 : i64, v_dim = 20 : i64, window = 0 : i64}
// CHECK-SAME: rt.limits = {max_logits = 3 : i64, max_seqs = 2 : i64, max_tokens = 20 : i64}
// CHECK: rt.program @step attributes {arena_bytes = 20480 : i64, hidden_offset = 8192 : i64, logits_offset = 0 : i64}
// CHECK-NEXT: rt.launch "token_embd" {args = [#rt.arg<kind = step>, #rt.arg<kind = weight, weight = @token_embd>, #rt.arg<kind = arena>]
// CHECK-SAME: cost = #rt.cost<arithmetic = f32, activation_bytes_per_row = 5>
// CHECK-SAME: values = [#rt.value<name = "token_embd", offset = 0, element = 0, cols = 40, stride = 64>]
// Codes and scales are one value; arguments in the order inputs, weights, fields, results.
// CHECK-NEXT: rt.launch "blk.0.attn_norm" {args = [#rt.arg<kind = arena>, #rt.arg<kind = weight, weight = @norm>, #rt.arg<kind = arena, value = 8192>, #rt.arg<kind = arena, value = 10240>]
// CHECK-SAME: values = [#rt.value<name = "blk.0.attn_norm", offset = 8192, element = 3, cols = 40, stride = 64, scales_offset = 10240>]
// The cache is an argument once, its result none.
// CHECK-NEXT: rt.launch "blk.0.kv" {args = [#rt.arg<kind = arena, value = 8192>, #rt.arg<kind = arena, value = 10240>, #rt.arg<kind = kv>, #rt.arg<kind = step, value = 3>, #rt.arg<kind = arena>]
// CHECK-NEXT: rt.launch "blk.0.attn" {args = [#rt.arg<kind = arena>, #rt.arg<kind = kv>, #rt.arg<kind = step, value = 4>, #rt.arg<kind = step, value = 5>, #rt.arg<kind = arena, value = 8192>]
// CHECK-NEXT: rt.launch "output"
// CHECK-NOT: func.func
module attributes {lm.model = {name = "m", architecture = "llama", hidden = 40 : i64, layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 20 : i64, ffn = 48 : i64, vocab = 100 : i64, max_context = 128 : i64}, lm.weights_bytes = 128 : i64} {
  lm.weight @token_embd [100, 40] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16000, rows = 100>], layout = #lm.layout<n16_f32>, offset = 0 : i64}
  lm.weight @norm [40] f32 {sources = [#lm.span<file = 0, offset = 16000, bytes = 160, rows = 40>], layout = #lm.layout<rows_f32>, offset = 32768 : i64}
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> (tensor<?x100xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) {
    %x = rt.dispatch "token_embd"(%ids) {cost = #rt.cost<arithmetic = f32, activation_bytes_per_row = 5>, weights = [@token_embd], rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @embed, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x40xf32>
    %c, %s = rt.dispatch "blk.0.attn_norm"(%x) {weights = [@norm], rows = #rt.rows<tokens>, layer = 0 : i32, variants = [#rt.variant<max_rows = 1, kernel = @norm_1, row_block = 1, col_blocks = 1>, #rt.variant<max_rows = 4294967295, kernel = @norm_n, row_block = 16, col_blocks = 1>]} : (tensor<?x40xf32>) -> (tensor<?x40xi8>, tensor<?x2x2xf32>)
    %q, %kv1 = rt.dispatch "blk.0.kv"(%c, %s, %kv) {fields = [#rt.field<slots>], rows = #rt.rows<tokens>, layer = 0 : i32, variants = [#rt.variant<max_rows = 4294967295, kernel = @kv, row_block = 1, col_blocks = 1>]} : (tensor<?x40xi8>, tensor<?x2x2xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> (tensor<?x40xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>)
    %a = rt.dispatch "blk.0.attn"(%q, %kv1) {fields = [#rt.field<block_table>, #rt.field<query_tiles>], rows = #rt.rows<query_tiles>, layer = 0 : i32, variants = [#rt.variant<max_rows = 4294967295, kernel = @attention, row_block = 4, col_blocks = 1>]} : (tensor<?x40xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> tensor<?x40xf32>
    %l = rt.dispatch "output"(%a) {weights = [@token_embd], rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?x40xf32>) -> tensor<?x100xf32>
    return %l, %kv1 : tensor<?x100xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>
  }
}
