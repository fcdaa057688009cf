// Matrix products: blocks of 8 rows, weight rows outermost, the sum innermost and free to be reordered.
// RUN: llmc-opt %s --lm-to-reference --canonicalize | FileCheck %s

lm.weight @x [20, 100] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 8000, rows = 20>]}
lm.weight @r [20, 50] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 4000, rows = 20>]}
lm.weight @w [50, 100] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 20000, rows = 50>]}
lm.weight @b [50] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 200, rows = 50>]}
lm.weight @g [96, 100] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 19200, rows = 48>, #lm.span<file = 0, offset = 0, bytes = 19200, rows = 48>]}

func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x48xf32> {
  %x = lm.embedding %ids, @x : tensor<?xi32> -> tensor<?x100xf32> loc("x")
  %r = lm.embedding %ids, @r : tensor<?xi32> -> tensor<?x50xf32> loc("r")
  %y = lm.linear %x residual %r, @w bias @b : (tensor<?x100xf32>, tensor<?x50xf32>) -> tensor<?x50xf32> loc("y")
  %z = lm.gated_linear silu %x, @g : (tensor<?x100xf32>) -> tensor<?x48xf32> loc("z")
  return %z : tensor<?x48xf32>
}

// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK: #[[Y:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>

// Activations have 128 and 64 columns in memory, weights are not padded.
// CHECK-LABEL: func.func @ref_linear_50x100_bias_residual
// CHECK-SAME: memref<?x128xf32>, %{{.*}}: memref<?x64xf32>, %{{.*}}: memref<50x100xf32>, %{{.*}}: memref<1x50xf32>, %{{.*}}: memref<?x64xf32>
// CHECK-SAME: index, %{{.*}}: index, %{{.*}}: index) attributes {llmc.kernel}
// CHECK: arith.minsi %{{.*}}, %c8
// CHECK: linalg.fill
// CHECK: linalg.generic {indexing_maps = [#[[X]], #[[W]], #[[Y]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: arith.mulf {{.*}} fastmath<reassoc,contract>
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
// Bias, then residual; then the padding.
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : memref<50xf32
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : memref<?x50xf32
// CHECK: linalg.fill {{.*}} memref<?x14xf32

// CHECK-LABEL: func.func @ref_gated_linear_silu_48x100_by16
// CHECK: memref.alloca() {{.*}} : memref<8x16xf32>
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}}memref<16x100xf32
// CHECK: linalg.generic {{.*}}"reduction"]} ins({{.*}}memref<16x100xf32
// CHECK: math.exp
