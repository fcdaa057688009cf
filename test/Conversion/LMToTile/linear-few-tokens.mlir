// Dense weights on a GPU: few columns have small units whose k four warps share, many columns pipelines from one token on.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

lm.weight @few [4096, 1024] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 8388608, rows = 4096>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
lm.weight @many [16384, 1024] bf16 {sources = [#lm.span<file = 0, offset = 8388608, bytes = 33554432, rows = 16384>], layout = #lm.layout<rows_bf16>, offset = 8388608 : i64}
func.func @step(%x: tensor<?x1024xbf16>) -> (tensor<?x4096xf32>, tensor<?x16384xf32>) {
  // CHECK: rt.dispatch
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @linear_bf16_bf16_nk_1024x4096_m1, row_block = 1, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 8, kernel = @linear_bf16_bf16_nk_1024x4096_m8, row_block = 8, col_blocks = 128>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x4096_m16, row_block = 16, col_blocks = 128>
  // CHECK-SAME: #rt.variant<max_rows = 32, kernel = @linear_bf16_bf16_nk_1024x4096_w32, row_block = 32, col_blocks = 32>
  %a = lm.linear %x, @few {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x4096xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: variants = [#rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x16384_w16, row_block = 16, col_blocks = 128>
  %b = lm.linear %x, @many {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x16384xf32>
  return %a, %b : tensor<?x4096xf32>, tensor<?x16384xf32>
}
// CHECK: tile.kernel @linear_bf16_bf16_nk_1024x4096_m1
// CHECK-SAME: attributes {splits = 4 : i32}
// CHECK: tile.load {{.*}} -> vector<1x256xbf16>
