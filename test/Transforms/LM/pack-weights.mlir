// RUN: llmc-opt %s --lm-pack-weights | FileCheck %s
// RUN: llmc-opt %s --lm-pack-weights=target=cuda | FileCheck %s --check-prefix=CUDA
// RUN: not llmc-opt %s --lm-pack-weights=target=tpu 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: expected target cpu or cuda, got 'tpu'

// On a GPU: rows of bf16 (32 rows of 32, 64 columns), but panels of codes and vectors as on a CPU.
// CUDA: lm.weight @norm [40] f16 {layout = #lm.layout<rows_f32>
// CUDA: lm.weight @f32 [20, 32] f32 {layout = #lm.layout<rows_bf16>, offset = 0 : i64
// CUDA: lm.weight @f16 [32, 40] f16 {layout = #lm.layout<rows_bf16>, offset = 2176 : i64
// CUDA: lm.weight @bf16 [32, 40] bf16 {layout = #lm.layout<rows_bf16>, offset = 6272 : i64
// CUDA: lm.weight @q4_0 [40, 32] q4_0 {layout = #lm.layout<n16_q4_0>

// In order of use (of one op: bias, weight), whatever the order of declaration; sizes are padded to 32 rows and columns.
// CHECK: module attributes {lm.weights_bytes = 20992 : i64}
// CHECK: lm.weight @norm [40] f16 {layout = #lm.layout<rows_f32>, offset = 12416 : i64
lm.weight @norm [40] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 80, rows = 40>]}
// CHECK: lm.weight @table [1, 2] f32 {layout = #lm.layout<rows_f32>, offset = 4096 : i64
lm.weight @table [1, 2] f32 {value = dense<1.0> : tensor<1x2xf32>}
// CHECK: lm.weight @f32 [20, 32] f32 {layout = #lm.layout<n16_f32>, offset = 0 : i64
lm.weight @f32 [20, 32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 2560, rows = 20>]}
// CHECK-NOT: @unused
lm.weight @unused [20, 32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 2560, rows = 20>]}
// f16: 2 panels of 40 -> 64 columns of 32 bytes.
// CHECK: lm.weight @f16 [32, 40] f16 {layout = #lm.layout<n16_f16>, offset = 4224 : i64
lm.weight @f16 [32, 40] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2560, rows = 32>]}
// CHECK: lm.weight @bf16 [32, 40] bf16 {layout = #lm.layout<n16_bf16>, offset = 8320 : i64
lm.weight @bf16 [32, 40] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2560, rows = 32>]}
// q4_0 and q8_0: records of 64 columns, also for 32.
// CHECK: lm.weight @q4_0 [40, 32] q4_0 {layout = #lm.layout<n16_q4_0>, offset = 12672 : i64
lm.weight @q4_0 [40, 32] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 720, rows = 40>]}
// CHECK: lm.weight @q4_1 [40, 96] q4_1 {layout = #lm.layout<n16_q4_1>, offset = 14976 : i64
lm.weight @q4_1 [40, 96] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 2400, rows = 40>]}
// CHECK: lm.weight @q8_0 [32, 64] q8_0 {layout = #lm.layout<n16_q8_0>, offset = 18816 : i64
lm.weight @q8_0 [32, 64] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 2176, rows = 32>]}

func.func @step(%ids: tensor<?xi32>, %x: tensor<?x32xf32>, %y: tensor<?x40xf32>, %z: tensor<?x96xf32>) {
  %a = lm.linear %x, @f32 : (tensor<?x32xf32>) -> tensor<?x20xf32>
  %b = lm.rope_table %ids, @table : tensor<?xi32> -> tensor<?x4xf32>
  %c = lm.linear %y, @f16 : (tensor<?x40xf32>) -> tensor<?x32xf32>
  %d = lm.linear %y, @bf16 : (tensor<?x40xf32>) -> tensor<?x32xf32>
  %e = lm.linear %x, @q4_0 bias @norm : (tensor<?x32xf32>) -> tensor<?x40xf32>
  %f = lm.linear %z, @q4_1 : (tensor<?x96xf32>) -> tensor<?x40xf32>
  // A second use moves nothing.
  %g = lm.embedding %ids, @f32 : tensor<?xi32> -> tensor<?x32xf32>
  %h = lm.embedding %ids, @q8_0 : tensor<?xi32> -> tensor<?x64xf32>
  return
}
