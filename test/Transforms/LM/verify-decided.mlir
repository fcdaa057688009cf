// RUN: llmc-opt %s --lm-verify-decided --split-input-file --verify-diagnostics

// Must not fire.
!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = bf16, block = 16>
module attributes {lm.weights_bytes = 4096 : i64} {
  lm.weight @w [32, 32] f32 {layout = #lm.layout<n16_f32>, offset = 0, value = dense<1.0> : tensor<32x32xf32>}
  func.func @step(%x: tensor<?x32xbf16>, %k: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x32xf32>, !kv) {
    %y = lm.linear %x, @w {arith = #lm.arith<bf16_eo32>} : (tensor<?x32xbf16>) -> tensor<?x32xf32>
    %r = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
    return %y, %r : tensor<?x32xf32>, !kv
  }
}

// -----

lm.weight @w [4, 4] f32 {value = dense<1.0> : tensor<4x4xf32>}
func.func @arith(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{expected a decided arith}}
  %y = lm.linear %x, @w : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

lm.weight @w [32, 4] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 256, rows = 16>, #lm.span<file = 0, offset = 0, bytes = 256, rows = 16>]}
func.func @inputs(%x: tensor<?x4xf32>) -> tensor<?x16xf32> {
  // expected-error @below {{expected inputs in q8 for q8_g32, got 'f32'}}
  %y = lm.gated_linear silu %x, @w {arith = #lm.arith<q8_g32>} : (tensor<?x4xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @block(%k: tensor<?x4xf32>, %kv: !kv) -> !kv {
  // expected-error @below {{expected a KV cache with a decided block}}
  %r = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %r : !kv
}

// -----

// expected-error @below {{expected a layout}}
lm.weight @w [4] f32 {value = dense<1.0> : tensor<4xf32>}

// -----

// expected-error @below {{expected the attribute lm.weights_bytes}}
module {
  lm.weight @w [4] f32 {layout = #lm.layout<rows_f32>, offset = 0, value = dense<1.0> : tensor<4xf32>}
}

// -----

module attributes {lm.weights_bytes = 256 : i64} {
  // expected-error @below {{expected the packed weight to end by 64, got 128}}
  lm.weight @a [4] f32 {layout = #lm.layout<rows_f32>, offset = 0, value = dense<1.0> : tensor<4xf32>}
  lm.weight @b [4] f32 {layout = #lm.layout<rows_f32>, offset = 64, value = dense<1.0> : tensor<4xf32>}
}

// -----

module attributes {lm.weights_bytes = 64 : i64} {
  // expected-error @below {{expected the packed weight to end by 64, got 128}}
  lm.weight @a [4] f32 {layout = #lm.layout<rows_f32>, offset = 0, value = dense<1.0> : tensor<4xf32>}
}
