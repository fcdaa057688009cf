// RUN: llmc-opt %s -split-input-file --rt-plan-arena -verify-diagnostics

!kv = !lm.kv<heads = 1, k_dim = 16, v_dim = 16, element = f32, block = 0>
// expected-error @below {{expected caches of f32 or bf16 in blocks of 16}}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %a: !kv) -> !kv {
  return %a : !kv
}

// -----

func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<1xf32> {
  // expected-error @below {{expected every op to be an rt.dispatch before rt-plan-arena}}
  %0 = arith.constant dense<0.0> : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

// expected-error @below {{expected the result of a dispatch as the first result (the logits)}}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?xi32> {
  return %ids : tensor<?xi32>
}

// -----

// expected-error @below {{expected ids, positions and logits rows, then caches, got argument 3}}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %more: tensor<?xi32>) {
  return
}

// -----

// expected-error @below {{expected a func @step}}
module {}
