// A cap is one tanh of the scores, whose units follow it; a sink is a term of a row's sum that is added when the loops are done, so
// that blocks, spans and segments stay what they are.
// RUN: llmc-opt %s --lm-to-tile | FileCheck %s
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s --check-prefix=CUDA

!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>
lm.weight @sinks [9] f32 {layout = #lm.layout<rows_f32>, offset = 0, sources = [#lm.span<file = 0, offset = 0, bytes = 36, rows = 9>]}
func.func @step(%q: tensor<?x576xbf16>, %kv: !kv) -> tensor<?x576xf32> {
  // CHECK: rt.dispatch "a"
  // CHECK-SAME: kernel = @attention_9_3x64_f32_w300_bf16_scale3E800000_cap42480000_sinks_q1,
  // CHECK-SAME: weights = [@sinks]
  %a = lm.attention %q, %kv {arith = #lm.arith<bf16>, head_dim = 64, scale = 0.25, window = 300, soft_cap = 50.0, sinks = @sinks} : (tensor<?x576xbf16>, !kv) -> tensor<?x576xf32> loc("a")
  return %a : tensor<?x576xf32>
}
// CHECK-LABEL: tile.kernel @attention_9_3x64_f32_w300_bf16_scale3E800000_cap42480000_sinks_q4(
// CHECK-SAME: %[[SINKS:[a-z0-9]+]]: memref<1x32xf32>
// CHECK: tile.dot {{.*}} vector<12x16xf32>
// 0.25 / 50, then 50 / ln 2.
// CHECK: %[[IN:.*]] = arith.constant dense<5.000000e-03> : vector<12x16xf32>
// CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %[[IN]]
// CHECK: %[[T:.*]] = math.tanh %[[X]] : vector<12x16xf32>
// CHECK: arith.mulf %[[T]], %{{.*}} : vector<12x16xf32>
// CHECK: arith.select
// CHECK: scf.yield
// CHECK: %[[EVERY:.*]] = tile.view %[[SINKS]] at 0 : memref<1x32xf32> -> memref<?x32xf32, strided<[0, 1]>>
// CHECK: %[[L:.*]] = tile.load %[[EVERY]]{{.*}} -> vector<4x3xf32>
// CHECK: vector.shape_cast %[[L]] : vector<4x3xf32> to vector<12xf32>
// CHECK: math.exp2 {{.*}} : vector<12xf32>
// CHECK: arith.divf {{.*}} : vector<12xf32>

// CUDA: tile.kernel @attention_9_3x64_f32_w300_scale3E800000_cap42480000_sinks_s21(
// CUDA: math.tanh {{.*}} fastmath<afn> : vector<63x64xf32>
// CUDA: tile.load {{.*}} : memref<?x32xf32, strided<[0, 1]>> -> vector<21x3xf32>
// CUDA: tile.kernel @attention_9_3x64_f32_w300_scale3E800000_cap42480000_sinks_q42(
// CUDA-COUNT-3: math.tanh {{.*}} fastmath<afn> : vector<126x128xf32>
// CUDA: tile.load {{.*}} : memref<?x32xf32, strided<[0, 1]>> -> vector<42x3xf32>
