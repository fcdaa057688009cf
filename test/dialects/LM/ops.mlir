// Every op prints what it parses.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --mlir-print-op-generic | llmc-opt | FileCheck %s

!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = f32, block = 0>
!paged = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>

// CHECK: lm.weight @token_embd [49152, 576] q8_0 {sources = [#lm.span<file = 0, offset = 64, bytes = 30081024, rows = 49152>]}
lm.weight @token_embd [49152, 576] q8_0 {sources = [#lm.span<file = 0, offset = 64, bytes = 30081024, rows = 49152>]}
// CHECK: lm.weight @norm [576] f32 {layout = #lm.layout<rows_f32>, offset = 128 : i64, sources = [#lm.span<
lm.weight @norm [576] f32 {layout = #lm.layout<rows_f32>, offset = 128, sources = [#lm.span<file = 0, offset = 0, bytes = 2304, rows = 576>]}
// CHECK: lm.weight @plus_one [576] bf16 {addend = 1.000000e+00 : f32, sources = [#lm.span<
lm.weight @plus_one [576] bf16 {addend = 1.0 : f32, sources = [#lm.span<file = 0, offset = 0, bytes = 1152, rows = 576>]}
// CHECK: lm.weight @sinks [9] f32
lm.weight @sinks [9] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 36, rows = 9>]}
// CHECK: lm.weight @q [576, 576] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 207360, rows = 576, deinterleave = 64>]}
lm.weight @q [576, 576] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 207360, rows = 576, deinterleave = 64>]}
// CHECK: lm.weight @q.bias [576] f16
lm.weight @q.bias [576] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 1152, rows = 576, deinterleave = 64>]}
// CHECK: lm.weight @w4_0 [576, 576] q4_0
lm.weight @w4_0 [576, 576] q4_0 {sources = [#lm.span<file = 1, offset = 0, bytes = 186624, rows = 576>]}
// CHECK: lm.weight @wbf16 [576, 576] bf16
lm.weight @wbf16 [576, 576] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 663552, rows = 576>]}
// CHECK: lm.weight @e4m3 [576, 576] e4m3 {sources = [#lm.span<file = 1, offset = 0, bytes = 331776, rows = 576, scales = <file = 1, offset = 331776, count = 576, storage = bf16>>]}
lm.weight @e4m3 [576, 576] e4m3 {sources = [#lm.span<file = 1, offset = 0, bytes = 331776, rows = 576, scales = #lm.scales<file = 1, offset = 331776, count = 576, storage = bf16>>]}
// CHECK: lm.weight @gate_up [64, 576] f32 {interleave = 16 : i64, sources = [#lm.span<{{.*}}>, #lm.span<{{.*}}>]}
lm.weight @gate_up [64, 576] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 73728, rows = 32>, #lm.span<file = 0, offset = 73728, bytes = 73728, rows = 32>]}
// CHECK: lm.weight @frequencies [1, 4] f32 {value = dense<{{\[\[}}1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01]]> : tensor<1x4xf32>}
lm.weight @frequencies [1, 4] f32 {value = dense<[[1.0, 0.5, 0.25, 0.125]]> : tensor<1x4xf32>}

// CHECK-LABEL: func.func @model
func.func @model(%ids: tensor<?xi32>, %rows: tensor<?xi32>, %k: tensor<?x192xf32>, %kv: !kv) -> (tensor<?x576xf32>, !kv) {
  // CHECK: %[[X:.*]] = lm.embedding %{{.*}}, @token_embd : tensor<?xi32> -> tensor<?x576xf32>
  %x = lm.embedding %ids, @token_embd : tensor<?xi32> -> tensor<?x576xf32>
  // CHECK: %[[N:.*]] = lm.rms_norm %[[X]], @norm {eps = 1.000000e-05 : f64} : (tensor<?x576xf32>) -> tensor<?x576xf32>
  %n = lm.rms_norm %x, @norm {eps = 1.0e-5} : (tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: %[[Q:.*]] = lm.linear %[[N]], @q : (tensor<?x576xf32>) -> tensor<?x576xf32>
  %q = lm.linear %n, @q : (tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: %[[B:.*]] = lm.linear %[[N]], @q bias @q.bias {arith = #lm.arith<f32>} : (tensor<?x576xf32>) -> tensor<?x576xf32>
  %b = lm.linear %n, @q bias @q.bias {arith = #lm.arith<f32>} : (tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: lm.linear %[[N]] residual %[[X]], @q bias @q.bias : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  %r = lm.linear %n residual %x, @q bias @q.bias : (tensor<?x576xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: lm.gated_activation silu %[[Q]], %[[B]] : tensor<?x576xf32>
  %h = lm.gated_activation silu %q, %b : tensor<?x576xf32>
  // CHECK: lm.add %{{.*}}, %{{.*}} : tensor<?x576xf32>
  %y = lm.add %x, %h : tensor<?x576xf32>
  // CHECK: %[[T:.*]] = lm.rope_table %{{.*}}, @frequencies : tensor<?xi32> -> tensor<?x8xf32>
  %t = lm.rope_table %ids, @frequencies : tensor<?xi32> -> tensor<?x8xf32>
  // CHECK: %[[QR:.*]] = lm.rope %[[Q]], %[[T]] {head_dim = 64 : i64} : tensor<?x576xf32>, tensor<?x8xf32>
  %qr = lm.rope %q, %t {head_dim = 64} : tensor<?x576xf32>, tensor<?x8xf32>
  // CHECK: %[[KV:.*]] = lm.kv_append %{{.*}}, %{{.*}}, %{{.*}} : !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = f32, block = 0>, tensor<?x192xf32>, tensor<?x192xf32>
  %kv1 = lm.kv_append %kv, %k, %k : !kv, tensor<?x192xf32>, tensor<?x192xf32>
  // CHECK: lm.gated_activation gelu_tanh %[[Q]], %[[B]] : tensor<?x576xf32>
  %gelu = lm.gated_activation gelu_tanh %q, %b : tensor<?x576xf32>
  // CHECK: lm.embedding %{{.*}}, @token_embd {scale = 2.400000e+01 : f64}
  %big = lm.embedding %ids, @token_embd {scale = 24.0} : tensor<?xi32> -> tensor<?x576xf32>
  // CHECK: lm.scale %{{.*}} {factor = 2.200000e-01 : f64} : tensor<?x576xf32>
  %scaled = lm.scale %q {factor = 0.22} : tensor<?x576xf32>
  // CHECK: lm.soft_cap %{{.*}} {cap = 3.000000e+01 : f64} : tensor<?x576xf32>
  %capped = lm.soft_cap %q {cap = 30.0} : tensor<?x576xf32>
  // CHECK: lm.attention %[[QR]], %{{.*}} {head_dim = 64 : i64, scale = 1.250000e-01 : f64, sinks = @sinks, soft_cap = 5.000000e+01 : f64}
  %sunk = lm.attention %qr, %kv1 {head_dim = 64, scale = 0.125, soft_cap = 50.0, sinks = @sinks} : (tensor<?x576xf32>, !kv) -> tensor<?x576xf32>
  // CHECK: lm.attention %[[QR]], %[[KV]] {head_dim = 64 : i64, scale = 1.250000e-01 : f64, window = 4096 : i64} : (tensor<?x576xf32>, !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = f32, block = 0>) -> tensor<?x576xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 64, scale = 0.125, window = 4096} : (tensor<?x576xf32>, !kv) -> tensor<?x576xf32>
  // CHECK: lm.gather_rows %{{.*}}, %{{.*}} : tensor<?x576xf32>, tensor<?xi32> -> tensor<?x576xf32>
  %g = lm.gather_rows %a, %rows : tensor<?x576xf32>, tensor<?xi32> -> tensor<?x576xf32>
  return %g, %kv1 : tensor<?x576xf32>, !kv
}

// CHECK-LABEL: func.func @decided
func.func @decided(%x: tensor<?x576xf32>, %qkv: tensor<?x960xf32>, %t: tensor<?x64xf32>, %kv: !paged) -> (tensor<?x576xf32>, !paged) {
  // CHECK: %[[C:.*]], %[[S:.*]] = lm.quantize %{{.*}} : tensor<?x576xf32> -> tensor<?x576xi8>, tensor<?x18x2xf32>
  %c, %s = lm.quantize %x : tensor<?x576xf32> -> tensor<?x576xi8>, tensor<?x18x2xf32>
  // CHECK: %[[R:.*]] = lm.round %{{.*}} : tensor<?x576xf32> -> tensor<?x576xbf16>
  %r = lm.round %x : tensor<?x576xf32> -> tensor<?x576xbf16>
  // CHECK: lm.linear %[[C]], %[[S]] residual %{{.*}}, @q {arith = #lm.arith<q8_g32>} : (tensor<?x576xi8>, tensor<?x18x2xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  %o = lm.linear %c, %s residual %x, @q {arith = #lm.arith<q8_g32>} : (tensor<?x576xi8>, tensor<?x18x2xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
  // CHECK: lm.linear %[[R]], @wbf16 {arith = #lm.arith<bf16_eo32>}
  %p = lm.linear %r, @wbf16 {arith = #lm.arith<bf16_eo32>} : (tensor<?x576xbf16>) -> tensor<?x576xf32>
  // CHECK: %[[E:.*]], %[[F:.*]] = lm.quantize %{{.*}} : tensor<?x576xf32> -> tensor<?x576xf8E4M3FN>, tensor<?x1xf32>
  %e, %f = lm.quantize %x : tensor<?x576xf32> -> tensor<?x576xf8E4M3FN>, tensor<?x1xf32>
  // CHECK: lm.linear %[[E]], %[[F]], @e4m3 {arith = #lm.arith<e4m3>} : (tensor<?x576xf8E4M3FN>, tensor<?x1xf32>) -> tensor<?x576xf32>
  %g = lm.linear %e, %f, @e4m3 {arith = #lm.arith<e4m3>} : (tensor<?x576xf8E4M3FN>, tensor<?x1xf32>) -> tensor<?x576xf32>
  // CHECK: lm.gated_linear silu %{{.*}}, @gate_up {arith = #lm.arith<f32>} : (tensor<?x576xf32>) -> tensor<?x32xf32>
  %h = lm.gated_linear silu %x, @gate_up {arith = #lm.arith<f32>} : (tensor<?x576xf32>) -> tensor<?x32xf32>
  // CHECK: lm.gated_linear silu %[[C]], %[[S]], @gate_up {arith = #lm.arith<q8_g32>} : (tensor<?x576xi8>, tensor<?x18x2xf32>) -> tensor<?x32xf32>
  %h2 = lm.gated_linear silu %c, %s, @gate_up {arith = #lm.arith<q8_g32>} : (tensor<?x576xi8>, tensor<?x18x2xf32>) -> tensor<?x32xf32>
  // CHECK: %{{.*}}:2 = lm.rms_norm %{{.*}}, @norm {eps = 1.000000e-05 : f64, format = #lm.format<q8>} : (tensor<?x576xf32>) -> (tensor<?x576xi8>, tensor<?x18x2xf32>)
  %n:2 = lm.rms_norm %x, @norm {eps = 1.0e-5, format = #lm.format<q8>} : (tensor<?x576xf32>) -> (tensor<?x576xi8>, tensor<?x18x2xf32>)
  // CHECK: lm.rope_append %{{.*}}, %{{.*}}, %{{.*}} {head_dim = 64 : i64} : (tensor<?x960xf32>, tensor<?x64xf32>, !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>) -> (tensor<?x576xf32>, !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>)
  %q, %kv1 = lm.rope_append %qkv, %t, %kv {head_dim = 64} : (tensor<?x960xf32>, tensor<?x64xf32>, !paged) -> (tensor<?x576xf32>, !paged)
  // CHECK: lm.attention %{{.*}}, %{{.*}} {format = #lm.format<bf16>, head_dim = 64 : i64, scale = 1.250000e-01 : f64} : (tensor<?x576xf32>, !lm.kv<{{.*}}>) -> tensor<?x576xbf16>
  %a = lm.attention %q, %kv1 {head_dim = 64, scale = 0.125, format = #lm.format<bf16>} : (tensor<?x576xf32>, !paged) -> tensor<?x576xbf16>
  return %o, %kv1 : tensor<?x576xf32>, !paged
}
