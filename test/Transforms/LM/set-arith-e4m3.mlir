// e4m3 fits bf16, stored or made when packed; on a GPU it is multiplied as it is, more than one step of 128 k.
// RUN: llmc-opt %s --lm-set-arith --split-input-file | FileCheck %s
// RUN: llmc-opt %s --lm-set-arith=compute=f32 --split-input-file | FileCheck %s --check-prefix=F32
// RUN: llmc-opt %s --lm-set-arith=compute=q8 --split-input-file | FileCheck %s --check-prefix=Q8
// RUN: llmc-opt %s --lm-set-arith=target=cuda --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=CUDA

lm.weight @e4m3 [160, 160] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 25600, rows = 160, scales = <file = 0, offset = 0, count = 160, storage = bf16>>]}
lm.weight @made [160, 160] f32 {quantize = #lm<storage e4m3>, sources = [#lm.span<file = 0, offset = 0, bytes = 102400, rows = 160>]}
// CHECK-LABEL: func.func @fp8
// F32-LABEL: func.func @fp8
// Q8-LABEL: func.func @fp8
// CUDA-LABEL: func.func @fp8
func.func @fp8(%x: tensor<?x160xf32>) -> tensor<?x160xf32> {
  // CHECK: @e4m3 {arith = #lm.arith<bf16>}
  // F32: @e4m3 {arith = #lm.arith<f32>}
  // Q8: @e4m3 {arith = #lm.arith<bf16>}
  %0 = lm.linear %x, @e4m3 : (tensor<?x160xf32>) -> tensor<?x160xf32>
  // CHECK: @made {arith = #lm.arith<bf16>}
  %1 = lm.linear %0, @made : (tensor<?x160xf32>) -> tensor<?x160xf32>
  return %1 : tensor<?x160xf32>
}

// -----

// expected-error @below {{expected more than 128 columns of e4m3 on a GPU, got 96}}
lm.weight @w [32, 96] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 3072, rows = 32, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}
func.func @few(%x: tensor<?x96xf32>) -> tensor<?x32xf32> {
  // CHECK: @w {arith = #lm.arith<bf16>}
  %0 = lm.linear %x, @w : (tensor<?x96xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
