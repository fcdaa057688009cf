// On a CPU attention multiplies bf16 operands where every product of the model rounds as much, and the cache is bf16.
// RUN: llmc-opt %s -split-input-file --lm-set-arith | FileCheck %s
// RUN: llmc-opt %s -split-input-file --lm-set-arith=compute=q8 | FileCheck %s --check-prefix=Q8
// RUN: llmc-opt %s -split-input-file --lm-set-arith=compute=f32 | FileCheck %s --check-prefix=F32

// F32-NOT: lm.attention {{.*}}#lm.arith
lm.weight @w [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
// CHECK-LABEL: func.func @bf16
// CHECK: lm.attention {{.*}}arith = #lm.arith<bf16>
// Q8-LABEL: func.func @bf16
// Q8: lm.attention {{.*}}arith = #lm.arith<bf16>
func.func @bf16(%x: tensor<?x32xf32>, %kv: !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = bf16, block = 16>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @w : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %a = lm.attention %q, %kv {head_dim = 32, scale = 0.5} : (tensor<?x32xf32>, !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = bf16, block = 16>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// -----

lm.weight @w [32, 32] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 576, rows = 32>]}
// CHECK-LABEL: func.func @codes
// CHECK: lm.attention
// CHECK-NOT: arith
// CHECK: return
// Q8-LABEL: func.func @codes
// Q8: lm.attention {{.*}}arith = #lm.arith<bf16>
func.func @codes(%x: tensor<?x32xf32>, %kv: !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = bf16, block = 16>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @w : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %a = lm.attention %q, %kv {head_dim = 32, scale = 0.5} : (tensor<?x32xf32>, !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = bf16, block = 16>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}

// -----

lm.weight @w [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
// CHECK-LABEL: func.func @cache
// CHECK: lm.attention
// CHECK-NOT: arith
// CHECK: return
func.func @cache(%x: tensor<?x32xf32>, %kv: !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = f32, block = 16>) -> tensor<?x32xf32> {
  %q = lm.linear %x, @w : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %a = lm.attention %q, %kv {head_dim = 32, scale = 0.5} : (tensor<?x32xf32>, !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = f32, block = 16>) -> tensor<?x32xf32>
  return %a : tensor<?x32xf32>
}
