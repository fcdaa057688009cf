// Dense weights on a GPU, few tokens: many columns have pipelines from one token on, fewer have narrow ones in one or two parts of k,
// and what even these do not spread over the card has small units whose k four warps share, some only for one token.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

lm.weight @fewest [2048, 1024] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4194304, rows = 2048>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
lm.weight @few [4096, 1024] bf16 {sources = [#lm.span<file = 0, offset = 4194304, bytes = 8388608, rows = 4096>], layout = #lm.layout<rows_bf16>, offset = 4194304 : i64}
lm.weight @some [6144, 1024] bf16 {sources = [#lm.span<file = 0, offset = 12582912, bytes = 12582912, rows = 6144>], layout = #lm.layout<rows_bf16>, offset = 12582912 : i64}
lm.weight @many [16384, 1024] bf16 {sources = [#lm.span<file = 0, offset = 25165824, bytes = 33554432, rows = 16384>], layout = #lm.layout<rows_bf16>, offset = 25165824 : i64}
func.func @step(%x: tensor<?x1024xbf16>) -> (tensor<?x2048xf32>, tensor<?x4096xf32>, tensor<?x6144xf32>, tensor<?x16384xf32>) {
  // CHECK: rt.dispatch
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @linear_bf16_bf16_nk_1024x2048_m1, row_block = 1, col_blocks = 128>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x2048_v16p2, row_block = 16, col_blocks = 32>
  // CHECK-SAME: #rt.variant<max_rows = 32, kernel = @linear_bf16_bf16_nk_1024x2048_w32n64p2, row_block = 32, col_blocks = 32>
  // CHECK-SAME: #rt.variant<max_rows = 256, kernel = @linear_bf16_bf16_nk_1024x2048_w64n64, row_block = 64, col_blocks = 32>
  // CHECK-SAME: #rt.variant<max_rows = 512, kernel = @linear_bf16_bf16_nk_1024x2048_w128n64, row_block = 128, col_blocks = 32>
  %a = lm.linear %x, @fewest {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x2048xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: variants = [#rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x4096_v16p2, row_block = 16, col_blocks = 64>
  // CHECK-SAME: #rt.variant<max_rows = 32, kernel = @linear_bf16_bf16_nk_1024x4096_w32n64, row_block = 32, col_blocks = 64>
  %b = lm.linear %x, @few {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x4096xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: variants = [#rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x6144_v16, row_block = 16, col_blocks = 96>
  %c = lm.linear %x, @some {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x6144xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: variants = [#rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_1024x16384_w16, row_block = 16, col_blocks = 128>
  %d = lm.linear %x, @many {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x16384xf32>
  return %a, %b, %c, %d : tensor<?x2048xf32>, tensor<?x4096xf32>, tensor<?x6144xf32>, tensor<?x16384xf32>
}
// CHECK: tile.kernel @linear_bf16_bf16_nk_1024x2048_m1
// CHECK-SAME: attributes {splits = 4 : i32}
// CHECK: tile.load {{.*}} -> vector<1x256xbf16>
// CHECK: tile.kernel @linear_bf16_bf16_nk_1024x4096_v16p2
// CHECK-SAME: attributes {pipelined}
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK:   tile.load_packed {{.*}} -> !tile.packed<64 x 64, bf16_nk>
