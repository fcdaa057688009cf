// Blocks that a window leaves for some rows and blocks that some rows do not see yet are masked; what lies between is not.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>
func.func @step(%q: tensor<?x576xbf16>, %kv: !kv) -> tensor<?x576xf32> {
  // CHECK-LABEL: tile.kernel @attention_9_3x64_f32_w300_q42
  // CHECK: %[[A:.*]]:3 = scf.for %{{.*}} = %{{.*}} to %[[ENTERED:.*]] step
  // CHECK: arith.select %{{.*}} : vector<126x128xi1>
  // CHECK: %[[B:.*]]:3 = scf.for %{{.*}} = %[[ENTERED]] to %[[SEEN:.*]] step %{{.*}} iter_args(%{{.*}} = %[[A]]#0
  // CHECK-NOT: arith.select %{{.*}} : vector<126x128xi1>
  // CHECK: scf.for %{{.*}} = %[[SEEN]] to %{{.*}} step %{{.*}} iter_args(%{{.*}} = %[[B]]#0
  // CHECK: arith.select %{{.*}} : vector<126x128xi1>
  %a = lm.attention %q, %kv {arith = #lm.arith<bf16>, head_dim = 64, scale = 0.125, window = 300} : (tensor<?x576xbf16>, !kv) -> tensor<?x576xf32>
  return %a : tensor<?x576xf32>
}
