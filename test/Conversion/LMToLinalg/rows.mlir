// Kernels of single rows, without fusions and with partial rotation.
// RUN: llmc-opt %s --lm-to-reference --canonicalize | FileCheck %s

!kv = !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>
lm.weight @x [20, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 5120, rows = 20>]}
lm.weight @n [64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 256, rows = 64>]}
lm.weight @sinks [2] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 8, rows = 2>]}
lm.weight @f [1, 12] f32 {value = dense<1.0> : tensor<1x12xf32>}

func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> (tensor<?x64xf32>, !kv) {
  %x = lm.embedding %ids, @x : tensor<?xi32> -> tensor<?x64xf32> loc("x")
  %t = lm.rope_table %positions, @f : tensor<?xi32> -> tensor<?x24xf32> loc("t")
  %n = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x64xf32>) -> tensor<?x64xf32> loc("n")
  %q = lm.rope %n, %t {head_dim = 32} : tensor<?x64xf32>, tensor<?x24xf32> loc("q")
  %kv1 = lm.kv_append %kv, %q, %x : !kv, tensor<?x64xf32>, tensor<?x64xf32> loc("kv")
  %a = lm.attention %q, %kv1 {head_dim = 32, scale = 0.25, window = 7} : (tensor<?x64xf32>, !kv) -> tensor<?x64xf32> loc("a")
  %g = lm.gated_activation silu %a, %x : tensor<?x64xf32> loc("g")
  %s = lm.add %g, %x : tensor<?x64xf32> loc("s")
  %e = lm.embedding %ids, @x {scale = 8.0} : tensor<?xi32> -> tensor<?x64xf32> loc("e")
  %h = lm.gated_activation gelu_tanh %e, %s : tensor<?x64xf32> loc("h")
  %m = lm.scale %h {factor = 0.5} : tensor<?x64xf32> loc("m")
  %c = lm.soft_cap %m {cap = 30.0} : tensor<?x64xf32> loc("c")
  %d = lm.attention %c, %kv1 {head_dim = 32, scale = 0.25, soft_cap = 50.0, sinks = @sinks} : (tensor<?x64xf32>, !kv) -> tensor<?x64xf32> loc("d")
  return %d, %kv1 : tensor<?x64xf32>, !kv
}

// The append needs no launch: attention reads its operands.
// CHECK-LABEL: func.func @reference
// CHECK: %[[X:.*]] = rt.dispatch "x"
// CHECK: %[[Q:.*]] = rt.dispatch "q"
// CHECK-NOT: rt.dispatch "kv"
// CHECK: rt.dispatch "a"(%[[Q]], %[[Q]], %[[X]])

// CHECK-LABEL: func.func @ref_embedding_20x64
// CHECK: memref.load %{{.*}} : memref<?xi32>
// CHECK: arith.minui

// Angles in f32, their cosines and sines in f64; 24 columns of 32.
// CHECK-LABEL: func.func @ref_rope_table_12
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.extf
// CHECK: math.cos {{.*}} : f64
// CHECK: math.sin {{.*}} : f64
// CHECK: linalg.fill {{.*}}memref<1x8xf32

// CHECK-LABEL: func.func @ref_rms_norm_64_eps
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]}
// CHECK: math.sqrt

// Low halves, high halves, and the 8 columns of a head that do not rotate.
// CHECK-LABEL: func.func @ref_rope_2x32_pairs12_of64_from0
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : memref<2x12xf32
// CHECK: arith.subf
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : memref<2x12xf32
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}}outs(%{{.*}} : memref<2x8xf32

// Tiles of 64 keys from max(0, t + 1 - window) to t.
// CHECK-LABEL: func.func @ref_attention_2of2x32x32_window7_scale
// CHECK: arith.maxsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c64
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]}
// CHECK: arith.divf

// CHECK-LABEL: func.func @ref_gated_activation_silu_64
// CHECK: math.exp
// CHECK-LABEL: func.func @ref_add_64
// CHECK: arith.addf

// CHECK-LABEL: func.func @ref_embedding_20x64_scale
// CHECK: arith.mulf
// CHECK-LABEL: func.func @ref_gated_activation_gelu_tanh_64
// CHECK: math.tanh
// CHECK-LABEL: func.func @ref_scale_64_by
// CHECK: arith.mulf
// CHECK-LABEL: func.func @ref_soft_cap_64_at
// CHECK: arith.divf
// CHECK: math.tanh
// Capped scores; the sink relative to the maximum joins the sum.
// CHECK-LABEL: func.func @ref_attention_2of2x32x32_window0_scale{{.*}}_cap{{.*}}_sinks
// CHECK: math.tanh
// CHECK: memref.load %arg3[
// CHECK: math.exp
// CHECK: arith.divf
