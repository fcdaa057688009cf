// Attention is a loop over tile ops with m, l and acc loop-carried; no op of the result is named after it.
// RUN: llmc-opt %s --lm-to-tile | FileCheck %s

!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>
func.func @step(%q: tensor<?x576xf32>, %kv: !kv) -> tensor<?x576xf32> {
  // CHECK: rt.dispatch "blk.3.attn"(%{{.*}}, %{{.*}}) {cost = #rt.cost<{{[^>]*}}>, fields = [#rt.field<block_table>, #rt.field<query_tiles>], layer = 3 : i32, rows = #rt.rows<query_tiles>
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @attention_9_3x64_f32_q1, row_block = 1, col_blocks = 3>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @attention_9_3x64_f32_q4, row_block = 4, col_blocks = 3>
  %a = lm.attention %q, %kv {head_dim = 64, scale = 0.125} : (tensor<?x576xf32>, !kv) -> tensor<?x576xf32> loc("blk.3.attn")
  return %a : tensor<?x576xf32>
}
// CHECK-LABEL: tile.kernel @attention_9_3x64_f32_q1
// CHECK: %[[Q:.*]] = vector.shape_cast %{{.*}} : vector<1x3x64xf32> to vector<3x64xf32>
// CHECK: %[[STATE:.*]]:3 = scf.for %{{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}}) -> (vector<3xf32>, vector<3xf32>, vector<3x64xf32>)
// CHECK: %[[PAGE:.*]] = tile.load %{{.*}} : memref<?xi32> -> i32
// CHECK: tile.load_packed {{.*}} -> !tile.packed<64 x 16, bf16_pairs>
// CHECK: tile.load_packed {{.*}} -> !tile.packed<16 x 64, bf16_pairs>
// CHECK: tile.dot %[[Q]], %{{.*}} {arith = #tile.arith<f32>}
// CHECK: %[[MAX:.*]] = tile.reduce max %{{.*}} : vector<3x16xf32> -> vector<3xf32>
// CHECK: arith.cmpf ogt, %[[M]], %[[MAX]]
// CHECK: %[[P:.*]] = math.exp2 %{{.*}} : vector<3x16xf32>
// CHECK: %[[ALPHA:.*]] = math.exp2 %{{.*}} : vector<3xf32>
// CHECK: tile.reduce add %[[P]]
// CHECK: math.fma %[[L]], %[[ALPHA]]
// CHECK: tile.expand %[[ALPHA]] : vector<3xf32> -> vector<3x64xf32>
// CHECK: arith.mulf %[[ACC]]
// CHECK: tile.dot %[[P]]
// CHECK: scf.yield
// CHECK-NOT: softmax
