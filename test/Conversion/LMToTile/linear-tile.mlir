// A tile that is asked for takes the products of more than 64 tokens, where it may: a gated one has no 64 columns.
// RUN: llmc-opt %s --lm-to-tile="target=cuda linear-tile=w64n64" | FileCheck %s

lm.weight @w [4096, 4096] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 33554432, rows = 4096>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
lm.weight @gu [8192, 4096] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 33554432, rows = 4096>, #lm.span<file = 0, offset = 33554432, bytes = 33554432, rows = 4096>], interleave = 16 : i64, layout = #lm.layout<rows_bf16>, offset = 0 : i64}
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf32>, tensor<?x4096xbf16>) {
  // CHECK: #rt.variant<max_rows = 32, kernel = @linear_bf16_bf16_nk_4096x4096_w32n64p2, row_block = 32, col_blocks = 64>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @linear_bf16_bf16_nk_4096x4096_w64n64, row_block = 64, col_blocks = 64>
  %y = lm.linear %x, @w {arith = #lm.arith<bf16>} : (tensor<?x4096xbf16>) -> tensor<?x4096xf32>
  // CHECK: kernel = @gated_bf16_bf16_nk_4096x4096_bf16_w256, row_block = 256, col_blocks = 64>
  %h = lm.gated_linear silu %x, @gu {arith = #lm.arith<bf16>, format = #lm.format<bf16>} : (tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
  return %y, %h : tensor<?x4096xf32>, tensor<?x4096xbf16>
}
