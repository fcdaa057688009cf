// What the oracle refuses: programs whose numerics are already decided, and ops that it does not know.
// RUN: llmc-opt %s --lm-to-reference --split-input-file --verify-diagnostics

// expected-error @below {{expected a func @step}}
module {}

// -----

lm.weight @x [20, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 5120, rows = 20>]}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x20xf32> {
  %x = lm.embedding %ids, @x : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{expected one f32 input and no arith before lm-to-reference}}
  %y = lm.linear %x, @x {arith = #lm.arith<f32>} : (tensor<?x64xf32>) -> tensor<?x20xf32>
  return %y : tensor<?x20xf32>
}

// -----

lm.weight @x [20, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 5120, rows = 20>]}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xbf16> {
  %x = lm.embedding %ids, @x : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{has no reference lowering}}
  %y = lm.round %x : tensor<?x64xf32> -> tensor<?x64xbf16>
  return %y : tensor<?x64xbf16>
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 32, v_dim = 32, element = f32, block = 0>
lm.weight @x [20, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 5120, rows = 20>]}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> tensor<?x64xf32> {
  %x = lm.embedding %ids, @x : tensor<?xi32> -> tensor<?x64xf32>
  // expected-error @below {{expected a cache that this step has appended to}}
  %y = lm.attention %x, %kv {head_dim = 32, scale = 0.25} : (tensor<?x64xf32>, !kv) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

lm.weight @x [20, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 5120, rows = 20>]}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %other: tensor<?xi32>) -> tensor<?x64xf32> {
  // expected-error @below {{expected token ids, positions or logits rows to be one of the first three arguments of @step}}
  %x = lm.embedding %other, @x : tensor<?xi32> -> tensor<?x64xf32>
  return %x : tensor<?x64xf32>
}
