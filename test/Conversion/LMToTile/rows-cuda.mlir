// Kernels of rows on a GPU: a unit of few tokens' rotation is a head, a normalised row is read once where it fits the registers.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

!paged = !lm.kv<heads = 2, k_dim = 64, v_dim = 64, element = bf16, block = 16>
lm.weight @norm [576] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 2304, rows = 576>], layout = #lm.layout<rows_f32>, offset = 0 : i64}
lm.weight @long [9248] f32 {sources = [#lm.span<file = 0, offset = 2304, bytes = 36992, rows = 9248>], layout = #lm.layout<rows_f32>, offset = 2304 : i64}
func.func @step(%qkv: tensor<?x640xf32>, %t: tensor<?x64xf32>, %kv: !paged, %x: tensor<?x576xf32>, %y: tensor<?x9248xf32>)
    -> (tensor<?x384xbf16>, !paged, tensor<?x576xbf16>, tensor<?x9248xbf16>) {
  // CHECK: rt.dispatch
  // CHECK-SAME: #rt.variant<max_rows = 64, kernel = @rope_append_6_2x64_32_bf16_heads, row_block = 1, col_blocks = 8>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @rope_append_6_2x64_32_bf16, row_block = 1, col_blocks = 1>
  %q, %kv1 = lm.rope_append %qkv, %t, %kv {head_dim = 64} : (tensor<?x640xf32>, tensor<?x64xf32>, !paged) -> (tensor<?x384xbf16>, !paged)
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5, format = #lm.format<bf16>} : (tensor<?x576xf32>) -> tensor<?x576xbf16>
  %m = lm.rms_norm %y, @long {eps = 1.0e-5, format = #lm.format<bf16>} : (tensor<?x9248xf32>) -> tensor<?x9248xbf16>
  return %q, %kv1, %n, %m : tensor<?x384xbf16>, !paged, tensor<?x576xbf16>, tensor<?x9248xbf16>
}

// CHECK-LABEL: tile.kernel @rope_append_6_2x64_32_bf16_heads
// CHECK-SAME: %[[UNIT:[a-z0-9]+]]: index)
// CHECK: %[[ROW:.*]] = arith.divui %[[UNIT]], %c8
// CHECK: %[[HEAD:.*]] = arith.remui %[[UNIT]], %c8
// CHECK: %[[QUERY:.*]] = arith.cmpi ult, %[[HEAD]], %c6
// CHECK: scf.if %[[QUERY]] {
// CHECK:   tile.store %{{.*}}[%[[ROW]], %[[HEAD]], %c0
// CHECK:   tile.store %{{.*}}[%[[ROW]], %[[HEAD]], %c32
// CHECK: %[[KEY:.*]] = arith.cmpi uge, %[[HEAD]], %c6
// CHECK: scf.if %[[KEY]] {
// CHECK:   tile.load %{{.*}}[%[[ROW]]] : memref<?xi32> -> i32
// CHECK:   scf.if
// CHECK-NOT: scf.for
// CHECK:     %[[KV:.*]] = arith.subi %[[HEAD]], %c6
// CHECK-COUNT-2: tile.store_slice {{.*}} axis k
// CHECK:     tile.store_slice {{.*}} axis n
// CHECK-LABEL: tile.kernel @rope_append_6_2x64_32_bf16(
// CHECK: scf.for

// CHECK-LABEL: tile.kernel @rms_norm_576_bf16
// CHECK-NOT: scf.for
// CHECK-COUNT-18: tile.load {{.*}} -> vector<64xf32>
// CHECK-NOT: tile.load
// CHECK: tile.reduce
// CHECK-COUNT-9: tile.store
// CHECK-LABEL: tile.kernel @rms_norm_9248_bf16
// CHECK: scf.for
