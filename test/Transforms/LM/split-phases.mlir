// Prompts get a copy of the step whose layers' products of bf16 and of codes are bf16_eo32. The head, and weights that bf16 would
// round, are as they were; so is attention.
// RUN: llmc-opt %s --lm-set-arith --lm-split-phases | FileCheck %s
// RUN: echo 'module {}' | not llmc-opt --lm-split-phases 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: expected a func @step

lm.weight @blk.0.q [32, 32] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 640, rows = 32>]}
lm.weight @blk.0.up [64, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>, #lm.span<file = 0, offset = 2048, bytes = 2048, rows = 32>], interleave = 16}
lm.weight @blk.0.half [32, 32] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
lm.weight @output [32, 32] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 1088, rows = 32>]}

// CHECK-LABEL: func.func @step(
// CHECK: @blk.0.q {arith = #lm.arith<q16_g32>}
// CHECK: @blk.0.up {arith = #lm.arith<bf16>}
// CHECK: @blk.0.half {arith = #lm.arith<f32>}
// CHECK: @output {arith = #lm.arith<q16_g32>}
// CHECK-LABEL: func.func @prompt(
// CHECK: @blk.0.q {arith = #lm.arith<bf16_eo32>}
// CHECK: @blk.0.up {arith = #lm.arith<bf16_eo32>}
// CHECK: @blk.0.half {arith = #lm.arith<f32>}
// CHECK: @output {arith = #lm.arith<q16_g32>}
func.func @step(%x: tensor<?x32xf32>, %rows: tensor<?xi32>) -> tensor<?x32xf32> {
  %0 = lm.linear %x, @blk.0.q : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = lm.gated_linear silu %0, @blk.0.up : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %2 = lm.linear %1, @blk.0.half : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %3 = lm.linear %2, @output : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %3 : tensor<?x32xf32>
}
