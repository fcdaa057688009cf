// Variants per M class are explicit; the arithmetic and the layout decide the product's op.
// RUN: llmc-opt %s --lm-to-tile -split-input-file | FileCheck %s

lm.weight @w [96, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 3840, rows = 96>], layout = #lm.layout<n16_q4_1>, offset = 0 : i64}
// CHECK-LABEL: func.func @step
func.func @step(%c: tensor<?x64xi8>, %s: tensor<?x2x2xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // CHECK: rt.dispatch "blk.0.attn_residual"(%arg0, %arg1, %arg2)
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @linear_q8_g32_q4_1_64x96_residual_m1, row_block = 1, col_blocks = 6>
  // CHECK-SAME: #rt.variant<max_rows = 8, kernel = @linear_q8_g32_q4_1_64x96_residual_m8, row_block = 8, col_blocks = 6>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_q8_g32_q4_1_64x96_residual_m16, row_block = 16, col_blocks = 6>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @linear_q8_g32_q4_1_64x96_residual_m256, row_block = 256, col_blocks = 6>
  // CHECK-SAME: weights = [@w]
  %y = lm.linear %c, %s residual %r, @w {arith = #lm.arith<q8_g32>} : (tensor<?x64xi8>, tensor<?x2x2xf32>, tensor<?x96xf32>) -> tensor<?x96xf32> loc("blk.0.attn_residual")
  return %y : tensor<?x96xf32>
}
// CHECK-LABEL: tile.kernel @linear_q8_g32_q4_1_64x96_residual_m1(%{{.*}}: memref<?x64xi8>, %{{.*}}: memref<?x2x2xf32>, %{{.*}}: memref<?x96xf32>, %{{.*}}: memref<6x2x320xi8>, %{{.*}}: memref<?x96xf32>,
// CHECK: scf.for
// CHECK: tile.load_packed {{.*}}{prefetch = 4096 : i64}
// CHECK: tile.scaled_dot {{.*}} : vector<1x32xi8>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
// CHECK-LABEL: tile.kernel @linear_q8_g32_q4_1_64x96_residual_m256
// CHECK: tile.scaled_dot {{.*}} vector<16x16xf32>
// CHECK: tile.store {{.*}} limit
// CHECK: tile.scaled_dot {{.*}} vector<4x16xf32>

// -----

// An odd group of a two-group record is a product of its own after the loop.
lm.weight @w [32, 96] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 3264, rows = 32>], layout = #lm.layout<n16_q8_0>, offset = 0 : i64}
func.func @step(%c: tensor<?x96xi8>, %s: tensor<?x3x2xf32>) -> tensor<?x32xf32> {
  %y = lm.linear %c, %s, @w {arith = #lm.arith<q8_g32>} : (tensor<?x96xi8>, tensor<?x3x2xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
// CHECK-LABEL: tile.kernel @linear_q8_g32_q8_0_96x32_m1
// CHECK: tile.scaled_dot {{.*}} !tile.packed<64 x 16, q8_0>
// CHECK: tile.scaled_dot {{.*}} !tile.packed<32 x 16, q8_0>

// -----

// Under f32 arithmetic the packed weight is widened in the product, never in memory.
lm.weight @w [32, 64] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 1152, rows = 32>], layout = #lm.layout<n16_q4_0>, offset = 0 : i64}
lm.weight @b [32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 32>], layout = #lm.layout<rows_f32>, offset = 0 : i64}
func.func @step(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  %y = lm.linear %x, @w bias @b {arith = #lm.arith<f32>} : (tensor<?x64xf32>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
// CHECK-LABEL: tile.kernel @linear_f32_q4_0_64x32_bias_m1
// CHECK: tile.dot {{.*}} {arith = #tile.arith<f32>} : vector<1x64xf32>, !tile.packed<64 x 16, q4_0>, vector<1x16xf32>

// -----

lm.weight @w [64, 64] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>, #lm.span<file = 0, offset = 4096, bytes = 4096, rows = 32>], interleave = 16 : i64, layout = #lm.layout<n16_bf16>, offset = 0 : i64}
func.func @step(%x: tensor<?x64xbf16>) -> tensor<?x32xf32> {
  %y = lm.gated_linear silu %x, @w {arith = #lm.arith<bf16_eo32>} : (tensor<?x64xbf16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}
// Gate and up panels alternate; their activation is in the same kernel. One loop over k has the sums of both, as tiles of AMX want it.
// CHECK-LABEL: tile.kernel @gated_bf16_eo32_bf16_pairs_64x32_m256
// CHECK: scf.for {{.*}} -> (vector<32x16xf32>, vector<32x16xf32>)
// CHECK: tile.load {{.*}} -> vector<32x32xbf16>
// CHECK-NEXT: tile.dot {{.*}} {arith = #tile.arith<bf16_eo32>}
// CHECK-NEXT: tile.dot {{.*}} {arith = #tile.arith<bf16_eo32>}
// CHECK: arith.negf
// CHECK: math.exp

// -----

// A unit of bf16_eo32 has two panels beside each other; a record of 64 k is two products.
lm.weight @w [64, 96] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 3456, rows = 64>], layout = #lm.layout<n16_q4_0>, offset = 0 : i64}
func.func @step(%x: tensor<?x96xbf16>) -> tensor<?x64xf32> {
  %y = lm.linear %x, @w {arith = #lm.arith<bf16_eo32>} : (tensor<?x96xbf16>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
// CHECK: #rt.variant<max_rows = 4294967295, kernel = @linear_bf16_eo32_q4_0_96x64_m256, row_block = 256, col_blocks = 2>
// CHECK-LABEL: tile.kernel @linear_bf16_eo32_q4_0_96x64_m256
// CHECK: scf.for {{.*}} -> (vector<32x16xf32>, vector<32x16xf32>)
// CHECK-COUNT-2: tile.load_packed {{.*}} -> !tile.packed<32 x 16, q4_0>
// CHECK-COUNT-2: tile.dot {{.*}} {arith = #tile.arith<bf16_eo32>}
// CHECK-COUNT-2: tile.load_packed {{.*}} {first = 32 : i64} {{.*}} -> !tile.packed<32 x 16, q4_0>
// CHECK-COUNT-2: tile.dot {{.*}} {arith = #tile.arith<bf16_eo32>}
// CHECK: scf.yield

// -----

// On a GPU the tile is the one that fills the card: 64 columns, or parts of k, while blocks of 128 do not, fewer tokens or 192 columns where they
// are one round, the largest where its units are a whole round. A gated product writes the format that it is asked for.
module attributes {tile.target = {name = "cuda"}} {
  lm.weight @w [4096, 4096] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 33554432, rows = 4096>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
  lm.weight @gu [8192, 4096] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 33554432, rows = 4096>, #lm.span<file = 0, offset = 33554432, bytes = 33554432, rows = 4096>], interleave = 16 : i64, layout = #lm.layout<rows_bf16>, offset = 0 : i64}
  // CHECK-LABEL: func.func @step
  func.func @step(%x: tensor<?x4096xbf16>) -> (tensor<?x4096xf32>, tensor<?x4096xbf16>) {
    // CHECK: #rt.variant<max_rows = 32, kernel = @linear_bf16_bf16_nk_4096x4096_w32n64p2, row_block = 32, col_blocks = 64>
    // CHECK-SAME: #rt.variant<max_rows = 128, kernel = @linear_bf16_bf16_nk_4096x4096_w64n64, row_block = 64, col_blocks = 64>
    // CHECK-SAME: #rt.variant<max_rows = 256, kernel = @linear_bf16_bf16_nk_4096x4096_w128n64, row_block = 128, col_blocks = 64>
    // CHECK-SAME: #rt.variant<max_rows = 384, kernel = @linear_bf16_bf16_nk_4096x4096_w96, row_block = 96, col_blocks = 32>
    // CHECK-SAME: #rt.variant<max_rows = 512, kernel = @linear_bf16_bf16_nk_4096x4096_w128x2, row_block = 128, col_blocks = 32>
    // CHECK-SAME: #rt.variant<max_rows = 640, kernel = @linear_bf16_bf16_nk_4096x4096_w160, row_block = 160, col_blocks = 32>
    // CHECK-SAME: #rt.variant<max_rows = 768, kernel = @linear_bf16_bf16_nk_4096x4096_w128n192, row_block = 128, col_blocks = 22>
    // CHECK-SAME: #rt.variant<max_rows = 1024, kernel = @linear_bf16_bf16_nk_4096x4096_w256, row_block = 256, col_blocks = 32>
    // CHECK-SAME: #rt.variant<max_rows = 1280, kernel = @linear_bf16_bf16_nk_4096x4096_w160, row_block = 160, col_blocks = 32>
    // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @linear_bf16_bf16_nk_4096x4096_w256, row_block = 256, col_blocks = 32>
    %y = lm.linear %x, @w {arith = #lm.arith<bf16>} : (tensor<?x4096xbf16>) -> tensor<?x4096xf32>
    // CHECK: kernel = @gated_bf16_bf16_nk_4096x4096_bf16_w256, row_block = 256, col_blocks = 64>
    %h = lm.gated_linear silu %x, @gu {arith = #lm.arith<bf16>, format = #lm.format<bf16>} : (tensor<?x4096xbf16>) -> tensor<?x4096xbf16>
    return %y, %h : tensor<?x4096xf32>, tensor<?x4096xbf16>
  }
}
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_4096x4096_w32n64p2(
// CHECK: scf.for %[[PART:.*]] = %{{.*}} iter_args(%[[TOTAL:.*]] = %{{.*}}) -> (vector<32x64xf32>)
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c32
// CHECK: %[[OF:.*]] = scf.for %[[STEP:[a-z0-9]+]] =
// CHECK: arith.addi %[[FIRST]], %[[STEP]]
// CHECK: tile.dot
// CHECK: %[[NEXT:.*]] = arith.addf %[[TOTAL]], %[[OF]]
// CHECK: scf.yield %[[NEXT]]
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_4096x4096_w128x2(
// CHECK-SAME: attributes {crews = 2 : i32, pipelined}
// CHECK: tile.dot {{.*}} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>
// CHECK-LABEL: tile.kernel @gated_bf16_bf16_nk_4096x4096_bf16_w256(
// CHECK-COUNT-2: tile.dot {{.*}} : vector<256x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<256x64xf32>
// CHECK: arith.truncf
// CHECK: tile.store {{.*}} : vector<256x64xbf16>, memref<?x4096xbf16>

// -----

// Copies give zeros past the end: the last step of a pipeline, and the last part, may reach beyond k. Other kernels multiply what is left.
lm.weight @w [3072, 2080] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 12779520, rows = 3072>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
func.func @step(%x: tensor<?x2080xbf16>) -> tensor<?x3072xf32> {
  %y = lm.linear %x, @w {arith = #lm.arith<bf16>} : (tensor<?x2080xbf16>) -> tensor<?x3072xf32>
  return %y : tensor<?x3072xf32>
}
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_2080x3072_v16p2(
// CHECK-SAME: attributes {pipelined}
// CHECK: scf.for %{{.*}} to %c17
// CHECK: tile.dot {{.*}} : vector<16x64xbf16>
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_2080x3072_w32n64p2(
// CHECK-SAME: attributes {pipelined}
// CHECK: arith.muli %{{.*}}, %c17
// CHECK: scf.for %{{.*}} to %c17
// CHECK: tile.dot {{.*}} : vector<32x64xbf16>
// CHECK-NOT: tile.dot
// CHECK: tile.store
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_2080x3072_w256(
// CHECK: scf.for %{{.*}} to %c33
// CHECK: tile.dot {{.*}} : vector<256x64xbf16>
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NOT: tile.dot
// CHECK: tile.store

// -----

lm.weight @w [1024, 2080] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4259840, rows = 1024>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
func.func @step(%x: tensor<?x2080xbf16>) -> tensor<?x1024xf32> {
  %y = lm.linear %x, @w {arith = #lm.arith<bf16>} : (tensor<?x2080xbf16>) -> tensor<?x1024xf32>
  return %y : tensor<?x1024xf32>
}
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_2080x1024_m8(
// CHECK-SAME: attributes {splits = 4 : i32}
// CHECK: scf.for %{{.*}} to %c8
// CHECK: tile.dot {{.*}} : vector<8x256xbf16>
// CHECK: tile.dot {{.*}} : vector<8x32xbf16>
