// RUN: llmc-opt %s --lm-fuse-quantize | FileCheck %s
// RUN: llmc-opt %s --lm-fuse-quantize --remark-format=emitRemark --remarks-filter-missed="lm-fuse-quantize" 2>&1 | FileCheck %s --check-prefix=REMARK

!kv = !lm.kv<heads = 1, k_dim = 16, v_dim = 16, element = f32, block = 0>
lm.weight @n [32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 32>]}

// CHECK-LABEL: func.func @norm
func.func @norm(%x: tensor<?x32xf32>) -> (tensor<?x32xi8>, tensor<?x1x2xf32>, tensor<?x32xbf16>) {
  // CHECK-NEXT: %[[N:.*]]:2 = lm.rms_norm %{{.*}}, @n {eps = 1.000000e-05 : f64, format = #lm.format<q8>} : (tensor<?x32xf32>) -> (tensor<?x32xi8>, tensor<?x1x2xf32>)
  // CHECK-NEXT: %[[R:.*]] = lm.rms_norm %{{.*}}, @n {eps = 1.000000e-05 : f64, format = #lm.format<bf16>} : (tensor<?x32xf32>) -> tensor<?x32xbf16>
  // CHECK-NEXT: return %[[N]]#0, %[[N]]#1, %[[R]]
  %a = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %c, %s = lm.quantize %a : tensor<?x32xf32> -> tensor<?x32xi8>, tensor<?x1x2xf32>
  %b = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = lm.round %b : tensor<?x32xf32> -> tensor<?x32xbf16>
  return %c, %s, %r : tensor<?x32xi8>, tensor<?x1x2xf32>, tensor<?x32xbf16>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x32xf32>, %kv: !kv) -> (tensor<?x32xi8>, tensor<?x1x2xf32>) {
  // CHECK-NEXT: %[[A:.*]]:2 = lm.attention %{{.*}}, %{{.*}} {format = #lm.format<q8>, head_dim = 16 : i64, scale = 2.500000e-01 : f64, window = 8 : i64}
  // CHECK-NEXT: return %[[A]]#0, %[[A]]#1
  %a = lm.attention %q, %kv {head_dim = 16, scale = 0.25, window = 8} : (tensor<?x32xf32>, !kv) -> tensor<?x32xf32>
  %c, %s = lm.quantize %a : tensor<?x32xf32> -> tensor<?x32xi8>, tensor<?x1x2xf32>
  return %c, %s : tensor<?x32xi8>, tensor<?x1x2xf32>
}

// A gated product writes bf16 where its own operands are bf16, not where they are codes.
lm.weight @gu [64, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>, #lm.span<file = 0, offset = 2048, bytes = 2048, rows = 32>], interleave = 16}
// CHECK-LABEL: func.func @gated
func.func @gated(%x: tensor<?x32xbf16>) -> (tensor<?x32xbf16>, tensor<?x32xbf16>) {
  // CHECK-NEXT: %[[H:.*]] = lm.gated_linear silu %{{.*}}, @gu {arith = #lm.arith<bf16>, format = #lm.format<bf16>} : (tensor<?x32xbf16>) -> tensor<?x32xbf16>
  // CHECK-NEXT: %[[C:.*]] = lm.gated_linear silu %{{.*}}, @gu {arith = #lm.arith<bf16_eo32>, format = #lm.format<bf16>} : (tensor<?x32xbf16>) -> tensor<?x32xbf16>
  // CHECK-NEXT: return %[[H]], %[[C]]
  %g = lm.gated_linear silu %x, @gu {arith = #lm.arith<bf16>} : (tensor<?x32xbf16>) -> tensor<?x32xf32>
  %a = lm.round %g : tensor<?x32xf32> -> tensor<?x32xbf16>
  %c = lm.gated_linear silu %x, @gu {arith = #lm.arith<bf16_eo32>} : (tensor<?x32xbf16>) -> tensor<?x32xf32>
  %b = lm.round %c : tensor<?x32xf32> -> tensor<?x32xbf16>
  return %a, %b : tensor<?x32xbf16>, tensor<?x32xbf16>
}

// Must not fire: someone else reads the f32 value; the producer has no formats.
// REMARK: remark: [Missed] FuseQuantize | Category:lm-fuse-quantize{{.*}}Reason="the f32 value of lm.rms_norm has other users"
// REMARK: Reason="the producer cannot write bf16"
// CHECK-LABEL: func.func @users
func.func @users(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xi8>, tensor<?x1x2xf32>, tensor<?x32xbf16>) {
  // CHECK: lm.rms_norm %{{.*}}, @n {eps = 1.000000e-05 : f64} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: lm.quantize
  // CHECK: lm.add
  // CHECK: lm.round
  %a = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %c, %s = lm.quantize %a : tensor<?x32xf32> -> tensor<?x32xi8>, tensor<?x1x2xf32>
  %b = lm.add %x, %x : tensor<?x32xf32>
  %r = lm.round %b : tensor<?x32xf32> -> tensor<?x32xbf16>
  return %a, %c, %s, %r : tensor<?x32xf32>, tensor<?x32xi8>, tensor<?x1x2xf32>, tensor<?x32xbf16>
}

// A scale for a whole row is for what holds one: a normalisation.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<?x32xf32>, %q: tensor<?x32xf32>, %kv: !kv) -> (tensor<?x32xf8E4M3FN>, tensor<?x1xf32>, tensor<?x32xf8E4M3FN>, tensor<?x1xf32>) {
  // CHECK-NEXT: lm.rms_norm %{{.*}}, @n {eps = 1.000000e-05 : f64, format = #lm.format<e4m3>} : (tensor<?x32xf32>) -> (tensor<?x32xf8E4M3FN>, tensor<?x1xf32>)
  %a = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %c, %s = lm.quantize %a : tensor<?x32xf32> -> tensor<?x32xf8E4M3FN>, tensor<?x1xf32>
  // CHECK-NEXT: %[[A:.*]] = lm.attention {{.*}} -> tensor<?x32xf32>
  // CHECK-NEXT: lm.quantize %[[A]]
  %b = lm.attention %q, %kv {head_dim = 16, scale = 0.25} : (tensor<?x32xf32>, !kv) -> tensor<?x32xf32>
  %d, %t = lm.quantize %b : tensor<?x32xf32> -> tensor<?x32xf8E4M3FN>, tensor<?x1xf32>
  return %c, %s, %d, %t : tensor<?x32xf8E4M3FN>, tensor<?x1xf32>, tensor<?x32xf8E4M3FN>, tensor<?x1xf32>
}
