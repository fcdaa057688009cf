// RUN: llmc-opt %s --split-input-file --verify-diagnostics --lm-sample-on-device --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>

// The ids come last, behind the caches, and have a name for dumps.
// CHECK-LABEL: func.func @step
// CHECK-SAME: -> (tensor<?x40xf32>, !lm.kv<{{.*}}>, tensor<?xi32>)
// CHECK: %[[I:.*]] = lm.sample %{{.*}} : tensor<?x40xf32> -> tensor<?xi32> loc("sampled_ids")
// CHECK: return %{{.*}}, %{{.*}}, %[[I]]
func.func @step(%logits: tensor<?x40xf32>, %kv: !kv) -> (tensor<?x40xf32>, !kv) {
  return %logits, %kv : tensor<?x40xf32>, !kv
}

// -----

// Must not fire: the step has ids.
// CHECK-LABEL: func.func @step
// CHECK-NOT: lm.sample
func.func @step(%logits: tensor<?x40xf32>, %ids: tensor<?xi32>) -> (tensor<?x40xf32>, tensor<?xi32>) {
  return %logits, %ids : tensor<?x40xf32>, tensor<?xi32>
}

// -----

// expected-error @+1 {{expected logits tensor<?xVxf32> as the first result}}
func.func @step(%ids: tensor<?xi32>) -> tensor<?xi32> {
  return %ids : tensor<?xi32>
}

// -----

// expected-error @+1 {{expected a func @step}}
module {
}
