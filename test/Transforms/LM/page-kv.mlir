// RUN: llmc-opt %s --lm-page-kv | FileCheck %s
// RUN: llmc-opt %s --lm-page-kv="element=f32 block=32" | FileCheck %s --check-prefix=F32
// RUN: not llmc-opt %s --lm-page-kv=element=i8 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: not llmc-opt %s --lm-page-kv=block=20 2>&1 | FileCheck %s --check-prefix=BLOCK
// ELEMENT: error: expected element bf16, f16 or f32, got 'i8'
// BLOCK: error: expected block to be a positive multiple of 16, got 20

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>

// CHECK-LABEL: func.func @step
// CHECK-SAME: (%{{.*}}: tensor<?x8xf32>, %{{.*}}: !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = bf16, block = 16>) -> !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = bf16, block = 16>
// F32-LABEL: func.func @step
func.func @step(%k: tensor<?x8xf32>, %kv: !kv) -> !kv {
  // CHECK: lm.kv_append {{.*}} : !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = bf16, block = 16>
  // F32: lm.kv_append {{.*}} : !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 32>
  %r = lm.kv_append %kv, %k, %k : !kv, tensor<?x8xf32>, tensor<?x8xf32>
  return %r : !kv
}

// Must not fire: a decided cache.
!decided = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f16, block = 64>
// CHECK-LABEL: func.func @decided
func.func @decided(%k: tensor<?x8xf32>, %kv: !decided) -> !decided {
  // CHECK: lm.kv_append {{.*}} : !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f16, block = 64>
  %r = lm.kv_append %kv, %k, %k : !decided, tensor<?x8xf32>, tensor<?x8xf32>
  return %r : !decided
}

// Must not fire: a function without lm ops (the reference program keeps its own cache).
// CHECK-LABEL: func.func @reference
// CHECK-SAME: block = 0
func.func @reference(%kv: !kv) -> !kv {
  return %kv : !kv
}
