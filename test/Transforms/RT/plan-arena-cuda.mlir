// RUN: llmc-opt %s --rt-plan-arena="row-pad=128 max-tokens=20 max-seqs=2 max-logits=3" | FileCheck %s
// RUN: not llmc-opt %s --rt-plan-arena=row-pad=24 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: expected row-pad to be a multiple of 16 up to 4096, got 24

// Every buffer has 128 rows, and as many rows of the widest activation follow:
//   token_embd f32 128 x 64 x 4  = 32768, alive 0-1
//   output     f32 128 x 128 x 4 = 65536, alive 1-
//   greedy_ids i32 128 x 4       = 512, alive 2-
//   behind them 128 x 64 x 4     = 32768
// CHECK: rt.program @step attributes {arena_bytes = 131072 : i64, hidden_offset = 65536 : i64, ids_offset = 65536 : i64, logits_offset = 0 : i64}
// CHECK: rt.launch "greedy_ids"
// CHECK-SAME: values = [#rt.value<name = "greedy_ids", offset = 65536, element = 4, cols = 1, stride = 1>]
!kv = !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>
module {
  lm.weight @w [100, 40] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16000, rows = 100>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> (tensor<?x100xf32>, !kv, tensor<?xi32>) {
    %x = rt.dispatch "token_embd"(%ids) {weights = [@w], rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @embed, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x40xf32>
    %l = rt.dispatch "output"(%x) {weights = [@w], rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?x40xf32>) -> tensor<?x100xf32>
    %i = rt.dispatch "greedy_ids"(%l) {rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @argmax, row_block = 1, col_blocks = 1>]} : (tensor<?x100xf32>) -> tensor<?xi32>
    return %l, %kv, %i : tensor<?x100xf32>, !kv, tensor<?xi32>
  }
}
