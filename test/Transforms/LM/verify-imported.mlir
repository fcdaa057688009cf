// RUN: llmc-opt %s --lm-verify-imported --split-input-file --verify-diagnostics

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>

// Must not fire.
func.func @linear(%k: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %k, %1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  %2 = lm.kv_append %1, %a, %a : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %a, %2 : tensor<?x4xf32>, !kv
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @two_appends(%k: tensor<?x4xf32>, %kv: !kv) -> (!kv, !kv) {
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error @below {{expected one use of the cache as a whole, got another at lm.kv_append}}
  %2 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %1, %2 : !kv, !kv
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @read_of_argument(%k: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  // expected-error @below {{expected a cache with the step's keys and values appended, got an argument}}
  %a = lm.attention %k, %kv {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %a, %1 : tensor<?x4xf32>, !kv
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @read_after_append(%k: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %2 = lm.kv_append %1, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  // expected-error @below {{expected a read before the cache's next append}}
  %a = lm.attention %k, %1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %2 : tensor<?x4xf32>, !kv
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @old_returned(%k: tensor<?x4xf32>, %kv: !kv) -> (!kv, !kv) {
  // expected-error @below {{expected a cache that is appended to not to be returned as well}}
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %kv, %1 : !kv, !kv
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @dropped(%k: tensor<?x4xf32>, %kv: !kv) {
  // expected-error @below {{expected a cache to be returned after its last append}}
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return
}

// -----

!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 16>
func.func @paged(%k: tensor<?x4xf32>, %kv: !kv) -> !kv {
  // expected-error @below {{expected an undecided block (0) before lm-page-kv}}
  %1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  return %1 : !kv
}

// -----

lm.weight @w [4, 4] f32 {value = dense<1.0> : tensor<4x4xf32>}
func.func @arith(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @below {{expected no arith before lm-set-arith}}
  %y = lm.linear %x, @w {arith = #lm.arith<f32>} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

func.func @rounded(%x: tensor<?x4xf32>) -> tensor<?x4xbf16> {
  // expected-error @below {{expected no rounding of activations before lm-quantize-activations}}
  %y = lm.round %x : tensor<?x4xf32> -> tensor<?x4xbf16>
  return %y : tensor<?x4xbf16>
}

// -----

lm.weight @w [4] f32 {value = dense<1.0> : tensor<4xf32>}
func.func @format(%x: tensor<?x4xf32>) -> tensor<?x4xbf16> {
  // expected-error @below {{expected format f32 before lm-fuse-quantize, got bf16}}
  %y = lm.rms_norm %x, @w {eps = 1.0, format = #lm.format<bf16>} : (tensor<?x4xf32>) -> tensor<?x4xbf16>
  return %y : tensor<?x4xbf16>
}

// -----

// expected-error @below {{expected no layout before lm-pack-weights}}
lm.weight @w [4] f32 {layout = #lm.layout<rows_f32>, offset = 0, value = dense<1.0> : tensor<4xf32>}
