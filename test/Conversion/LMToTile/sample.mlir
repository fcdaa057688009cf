// A unit samples one row: largest logit, top-k's threshold by bisection in a loop that runs no round when it is off, then
// rounds of a pass that adds noise and keeps the best and, for top-p, one that sums what is above it. The settings are words of
// the step's samplers.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda})' | FileCheck %s

// CHECK: rt.dispatch "sample"(%{{.*}}) {cost = #rt.cost<arithmetic = f32, {{[^>]*}}>, fields = [#rt.field<samplers>], {{.*}}kernel = @sample_40
// CHECK: tile.kernel @sample_40(%[[X:.*]]: memref<?x64xf32>, %[[S:.*]]: memref<?x12xi32>, %[[IDS:.*]]: memref<?xi32>,
// The largest logit, and whether all are finite.
// CHECK: tile.reduce max {{.*}} : vector<64xf32> -> f32
// CHECK: tile.reduce max {{.*}} : vector<64xi32> -> i32
// Top-k counts; top-p takes its share of the sum of probabilities.
// CHECK: scf.for
// CHECK: tile.reduce add {{.*}} : vector<64xf32> -> f32
// CHECK: scf.yield
// CHECK: math.exp
// CHECK: tile.reduce add {{.*}} : vector<64xf32> -> f32
// CHECK: scf.for
// CHECK: scf.for
// Philox and Gumbel noise.
// CHECK: arith.extui {{.*}} : vector<64xi32> to vector<64xi64>
// CHECK: math.log
// CHECK: tile.reduce max {{.*}} : vector<64xf32> -> f32
// What is above the token that was drawn.
// CHECK: %[[ID:.*]] = arith.minsi {{.*}} : i32
// CHECK: arith.index_cast %[[ID]] : i32 to index
// CHECK: math.exp
// CHECK: %[[HIGHER:.*]] = tile.reduce add {{.*}} : vector<64xf32> -> f32
// CHECK: arith.cmpf oge, %[[HIGHER]]
// CHECK: scf.yield
// CHECK: scf.yield
// CHECK: tile.store {{.*}}, %[[IDS]]
func.func @step(%logits: tensor<?x40xf32>) -> tensor<?xi32> {
  %i = lm.sample %logits : tensor<?x40xf32> -> tensor<?xi32>
  return %i : tensor<?xi32>
}
