// A normalisation whose rows the product behind it makes itself where they are few: no units there, one kernel for both. With
// rope behind the product one kernel for all three.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

!paged = !lm.kv<heads = 8, k_dim = 64, v_dim = 64, element = bf16, block = 16>
lm.weight @norm [2048] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 8192, rows = 2048>], layout = #lm.layout<rows_f32>, offset = 0 : i64}
lm.weight @qkv [3072, 2048] bf16 {sources = [#lm.span<file = 0, offset = 8192, bytes = 12582912, rows = 3072>], layout = #lm.layout<rows_bf16>, offset = 2097152 : i64}
lm.weight @head [32000, 2048] bf16 {sources = [#lm.span<file = 0, offset = 16777216, bytes = 131072000, rows = 32000>], layout = #lm.layout<rows_bf16>, offset = 16777216 : i64}
func.func @step(%x: tensor<?x2048xf32>, %t: tensor<?x64xf32>, %kv: !paged) -> (tensor<?x2048xbf16>, !paged, tensor<?x32000xf32>) {
  // CHECK: %[[N:.*]] = rt.dispatch "rms_norm"(%arg0) {{.*}}rms_norm = {eps = {{.*}}, rows = 4 : i32}
  // CHECK-SAME: #rt.variant<max_rows = 4, kernel = @rms_norm_2048_bf16, row_block = 1, col_blocks = 0, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @rms_norm_2048_bf16, row_block = 1, col_blocks = 1>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5, format = #lm.format<bf16>} : (tensor<?x2048xf32>) -> tensor<?x2048xbf16>
  // CHECK: %[[Y:.*]] = rt.dispatch "linear"(%[[N]]) {{.*}}rotated = 2 : i64
  // CHECK-SAME: #rt.variant<max_rows = 4, kernel = @linear_bf16_bf16_nk_2048x3072_v16p2, row_block = 16, col_blocks = 0, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_2048x3072_v16p2, row_block = 16, col_blocks = 48>
  %y = lm.linear %n, @qkv {arith = #lm.arith<bf16>} : (tensor<?x2048xbf16>) -> tensor<?x3072xf32>
  // CHECK: rt.dispatch "rope_append"(%[[Y]], %arg1, %arg2, %arg0)
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @rope_append_32_8x64_32_bf16_product_2048p2n1, row_block = 16, col_blocks = 48, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 4, kernel = @rope_append_32_8x64_32_bf16_product_2048p2n4, row_block = 16, col_blocks = 48, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 64, kernel = @rope_append_32_8x64_32_bf16_product_heads, row_block = 1, col_blocks = 40>
  // CHECK-SAME: weights = [@qkv, @norm]
  %q, %kv1 = lm.rope_append %y, %t, %kv {head_dim = 64} : (tensor<?x3072xf32>, tensor<?x64xf32>, !paged) -> (tensor<?x2048xbf16>, !paged)
  %m = lm.rms_norm %x, @norm {eps = 1.0e-5, format = #lm.format<bf16>} : (tensor<?x2048xf32>) -> tensor<?x2048xbf16>
  // CHECK: #rt.variant<max_rows = 1, kernel = @linear_bf16_bf16_nk_2048x32000_normed_w16n1, row_block = 8, col_blocks = 250, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 4, kernel = @linear_bf16_bf16_nk_2048x32000_normed_w16n4, row_block = 8, col_blocks = 250, span_rows = 1073741824>
  // CHECK-SAME: #rt.variant<max_rows = 16, kernel = @linear_bf16_bf16_nk_2048x32000_normed_w16, row_block = 16, col_blocks = 250>
  %h = lm.linear %m, @head {arith = #lm.arith<bf16>} : (tensor<?x2048xbf16>) -> tensor<?x32000xf32>
  return %q, %kv1, %h : tensor<?x2048xbf16>, !paged, tensor<?x32000xf32>
}

// The rows of one token, in memory of the unit's own, and 32 pairs of a head.
// CHECK-LABEL: tile.kernel @rope_append_32_8x64_32_bf16_product_2048p2n1
// CHECK: %[[OWN:.*]] = tile.alloc_rows : memref<1x2048xbf16>
// CHECK: scf.for
// CHECK:   tile.reduce
// CHECK:   tile.store %{{.*}}, %[[OWN]]
// CHECK: tile.view {{.*}} -> memref<48x2x2x16x2048xbf16>
// CHECK: tile.load %[[OWN]][{{.*}}] : memref<1x2048xbf16> -> vector<16x64xbf16>
// CHECK: scf.if
// CHECK: tile.store
// CHECK: scf.if
// CHECK: tile.scatter
// CHECK: scf.if
// CHECK: tile.scatter

// Four rows side by side.
// CHECK-LABEL: tile.kernel @linear_bf16_bf16_nk_2048x32000_normed_w16n4
// CHECK: tile.alloc_rows : memref<4x2048xbf16>
// CHECK: scf.for
// CHECK-COUNT-4: tile.load %{{.*}} : memref<?x2048xf32>
// CHECK-COUNT-4: tile.reduce
