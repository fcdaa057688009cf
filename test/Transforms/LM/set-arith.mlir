// RUN: llmc-opt %s --lm-set-arith | FileCheck %s
// RUN: llmc-opt %s --lm-set-arith=compute=f32 | FileCheck %s --check-prefix=F32
// RUN: llmc-opt %s --lm-set-arith=compute=q8 | FileCheck %s --check-prefix=Q8
// RUN: not llmc-opt %s --lm-set-arith=compute=fp8 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: llmc-opt %s --lm-set-arith=target=cuda | FileCheck %s --check-prefix=CUDA
// RUN: not llmc-opt %s --lm-set-arith="target=cuda compute=q8" 2>&1 | FileCheck %s --check-prefix=CUDA-ERROR
// RUN: not llmc-opt %s --lm-set-arith=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET-ERROR
// CUDA-ERROR: error: expected target cpu, or cuda with compute default, got 'cuda' with 'q8'
// TARGET-ERROR: error: expected target cpu, or cuda with compute default, got 'tpu' with 'default'
// CUDA-COUNT-6: #lm.arith<bf16>
// CUDA: @decided
// CUDA: @q4_0 {arith = #lm.arith<f32>}
// ERROR: error: expected compute default, f32 or q8, got 'fp8'

lm.weight @f32 [32, 32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>]}
lm.weight @f16 [32, 32] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
lm.weight @bf16 [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
lm.weight @q4_0 [32, 32] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 576, rows = 32>]}
lm.weight @q4_1 [32, 32] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 640, rows = 32>]}
lm.weight @q8_0 [32, 32] q8_0 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 544, rows = 16>, #lm.span<file = 0, offset = 0, bytes = 544, rows = 16>]}

// CHECK-LABEL: func.func @storages
// F32-LABEL: func.func @storages
func.func @storages(%x: tensor<?x32xf32>) -> tensor<?x16xf32> {
  // CHECK: @f32 {arith = #lm.arith<f32>}
  // F32: @f32 {arith = #lm.arith<f32>}
  %0 = lm.linear %x, @f32 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: @f16 {arith = #lm.arith<f32>}
  // F32: @f16 {arith = #lm.arith<f32>}
  %1 = lm.linear %0, @f16 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: @bf16 {arith = #lm.arith<bf16>}
  // F32: @bf16 {arith = #lm.arith<f32>}
  %2 = lm.linear %1, @bf16 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: @q4_0 {arith = #lm.arith<q16_g32>}
  // Q8: @q4_0 {arith = #lm.arith<q8_g32>}
  // F32: @q4_0 {arith = #lm.arith<f32>}
  %3 = lm.linear %2, @q4_0 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: @q4_1 {arith = #lm.arith<q16_g32>}
  // F32: @q4_1 {arith = #lm.arith<f32>}
  %4 = lm.linear %3, @q4_1 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: @q8_0 {arith = #lm.arith<q16_g32>}
  // F32: @q8_0 {arith = #lm.arith<f32>}
  %5 = lm.gated_linear silu %4, @q8_0 : (tensor<?x32xf32>) -> tensor<?x16xf32>
  return %5 : tensor<?x16xf32>
}

// Must not change what is decided.
// CHECK-LABEL: func.func @decided
func.func @decided(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: @q4_0 {arith = #lm.arith<f32>}
  %0 = lm.linear %x, @q4_0 {arith = #lm.arith<f32>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}
