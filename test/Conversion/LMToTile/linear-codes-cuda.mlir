// Weights of codes on a GPU: up to 64 tokens (with a minimum 16) take the codes as whole numbers (bf16_g32), in units of one panel
// whose k eight warps share. More take weights rounded to bf16, in pipelines where records fill whole steps of 64 k. A short k has
// as many splits as steps.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

lm.weight @a [4096, 1024] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 2359296, rows = 4096>], layout = #lm.layout<n16_q4_0>, offset = 0 : i64}
lm.weight @b [64, 256] q4_1 {sources = [#lm.span<file = 0, offset = 2359296, bytes = 10240, rows = 64>], layout = #lm.layout<n16_q4_1>, offset = 4194304 : i64}
func.func @step(%x: tensor<?x1024xbf16>, %y: tensor<?x256xbf16>) -> (tensor<?x4096xf32>, tensor<?x64xf32>) {
  // CHECK: rt.dispatch
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @linear_bf16_g32_q4_0_1024x4096_m1, row_block = 1, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 8, kernel = @linear_bf16_g32_q4_0_1024x4096_m8, row_block = 8, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_bf16_g32_q4_0_1024x4096_m16, row_block = 16, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 32, kernel = @linear_bf16_g32_q4_0_1024x4096_m32, row_block = 32, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 64, kernel = @linear_bf16_g32_q4_0_1024x4096_m64, row_block = 64, col_blocks = 256>
  // CHECK-SAME: #rt.variant<max_rows = 256, kernel = @linear_bf16_q4_0_1024x4096_w64, row_block = 64, col_blocks = 32>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @linear_bf16_q4_0_1024x4096_w256, row_block = 256, col_blocks = 32>
  %0 = lm.linear %x, @a {arith = #lm.arith<bf16>} : (tensor<?x1024xbf16>) -> tensor<?x4096xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: kernel = @linear_bf16_g32_q4_1_256x64_m16,
  // CHECK-SAME: kernel = @linear_bf16_q4_1_256x64_m32,
  // CHECK-SAME: kernel = @linear_bf16_q4_1_256x64_m64,
  %1 = lm.linear %y, @b {arith = #lm.arith<bf16>} : (tensor<?x256xbf16>) -> tensor<?x64xf32>
  return %0, %1 : tensor<?x4096xf32>, tensor<?x64xf32>
}
// CHECK: tile.kernel @linear_bf16_g32_q4_0_1024x4096_m1
// CHECK-SAME: attributes {splits = 8 : i32}
// CHECK: tile.dot {{.*}} {arith = #tile.arith<bf16_g32>} : vector<1x128xbf16>, !tile.packed<128 x 16, q4_0>, vector<1x16xf32>
// CHECK: tile.kernel @linear_bf16_q4_0_1024x4096_w256
// CHECK-SAME: attributes {pipelined}
// CHECK: tile.dot {{.*}} {arith = #tile.arith<bf16>} : vector<256x64xbf16>, !tile.packed<64 x 128, q4_0>, vector<256x128xf32>
// CHECK: tile.kernel @linear_bf16_g32_q4_1_256x64_m1
// CHECK-SAME: attributes {splits = 2 : i32}
