// e4m3 on a GPU: pipelines for any number of tokens, 128 k a step; scales of tokens and of the weight's rows meet the finished sums.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda},canonicalize,cse,tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC

lm.weight @a [4096, 1024] f32 {quantize = #lm<storage e4m3>, sources = [#lm.span<file = 0, offset = 0, bytes = 16777216, rows = 4096>], layout = #lm.layout<rows_e4m3>, offset = 0 : i64}
lm.weight @b [2048, 1024] f32 {quantize = #lm<storage e4m3>, interleave = 16 : i64, sources = [#lm.span<file = 0, offset = 0, bytes = 4194304, rows = 1024>, #lm.span<file = 0, offset = 4194304, bytes = 4194304, rows = 1024>], layout = #lm.layout<rows_e4m3>, offset = 4227072 : i64}
lm.weight @norm [1024] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 1024>], layout = #lm.layout<rows_f32>, offset = 6340608 : i64}
func.func @step(%x: tensor<?x1024xf32>) -> (tensor<?x4096xf32>, tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>) {
  // CHECK: rt.dispatch
  // CHECK-SAME: kernel = @rms_norm_1024_e4m3,
  %n:2 = lm.rms_norm %x, @norm {eps = 1.0e-5, format = #lm.format<e4m3>} : (tensor<?x1024xf32>) -> (tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>)
  // CHECK: rt.dispatch
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_e4m3_e4m3_nk_1024x4096_v16
  // CHECK-SAME: max_rows = 4294967295, kernel = @linear_e4m3_e4m3_nk_1024x4096_w128x2
  %0 = lm.linear %n#0, %n#1, @a {arith = #lm.arith<e4m3>} : (tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>) -> tensor<?x4096xf32>
  // CHECK: rt.dispatch
  // CHECK-SAME: kernel = @gated_e4m3_e4m3_nk_1024x1024_bf16_w16
  %h = lm.gated_linear silu %n#0, %n#1, @b {arith = #lm.arith<e4m3>, format = #lm.format<bf16>} : (tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>) -> tensor<?x1024xbf16>
  // CHECK: rt.dispatch
  // CHECK-SAME: kernel = @quantize_1024_bf16_e4m3,
  %c, %s = lm.quantize %h : tensor<?x1024xbf16> -> tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>
  return %0, %c, %s : tensor<?x4096xf32>, tensor<?x1024xf8E4M3FN>, tensor<?x1xf32>
}

// The largest magnitude first, then the codes, then the scale.
// CHECK-LABEL: tile.kernel @rms_norm_1024_e4m3
// CHECK: tile.reduce max
// CHECK: arith.truncf %{{.*}} : vector<1024xf32> to vector<1024xf8E4M3FN>
// CHECK: tile.store %{{.*}} : vector<1024xi8>, memref<?x1024xi8>
// CHECK: tile.store %{{.*}} : f32, memref<?x32xf32>

// Panels of 16 rows are 128 bytes further apart than their codes take: the scales, behind 16384 bytes of codes.
// CHECK-LABEL: tile.kernel @linear_e4m3_e4m3_nk_1024x4096_w128x2
// CHECK-SAME: memref<?x1024xf8E4M3FN>, %{{.*}}: memref<?x32xf32>, %{{.*}}: memref<256x16x1024xf8E4M3FN, strided<[16512, 1024, 1]>>
// CHECK: tile.dot {{.*}} {arith = #tile.arith<e4m3>} : vector<128x128xf8E4M3FN>, !tile.packed<128 x 128, e4m3_nk>, vector<128x128xf32>
// CHECK: %[[ROWS:.*]] = tile.view %{{.*}} at 0 : memref<?x32xf32> -> memref<?x128xf32, strided<[32, 0]>>
// CHECK: tile.load %[[ROWS]]
// CHECK: %[[SCALES:.*]] = tile.view %{{.*}} at 16384 : {{.*}} -> memref<1x256x16xf32, strided<[4128, 4128, 1]>>
// CHECK: tile.load %[[SCALES]]{{.*}} -> vector<8x16xf32>
// ASYNC-LABEL: tile.kernel @linear_e4m3_e4m3_nk_1024x4096_w128x2
// ASYNC: tile.copy_async %{{.*}} box [128, 128] to
// ASYNC: tile.copy_async %{{.*}} box [8, 16, 128] to
// ASYNC: } consumers {
// The weight's scales before the products, the tokens' behind them.
// ASYNC: tile.load {{.*}} -> vector<8x16xf32>
// ASYNC: tile.warpgroup_dot {{.*}} {arith = #tile.arith<e4m3>}
// ASYNC: tile.load {{.*}} : memref<?x128xf32, strided<[32, 0]>> -> vector<128x128xf32>

// Gate and up rows land by turns, eight of one and eight of the other.
// ASYNC-LABEL: tile.kernel @gated_e4m3_e4m3_nk_1024x1024_bf16_w16
// ASYNC: tile.copy_async %{{.*}} box [4, 2, 2, 8, 128] to {{.*}} memref<64x2x2x8x1024xf8E4M3FN, strided<[33024, 8192, 16512, 1024, 1]>>
