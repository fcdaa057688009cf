// RUN: llmc-opt %s --lm-quantize-activations --mlir-print-debuginfo | FileCheck %s

lm.weight @q4_1 [32, 32] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 640, rows = 32>]}
lm.weight @bf16 [32, 32] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 32>]}
lm.weight @pair [32, 32] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 16>, #lm.span<file = 0, offset = 0, bytes = 2048, rows = 16>]}

// One rounding per input and form, right after the input.
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>
func.func @once(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x32xf32>) {
  // CHECK-NEXT: %[[Y:.*]] = lm.add %[[X]], %[[X]]
  %y = lm.add %x, %x : tensor<?x32xf32> loc("blk.0.ffn_residual")
  // CHECK-DAG: %[[C:.*]], %[[S:.*]] = lm.quantize %[[Y]] : tensor<?x32xf32> -> tensor<?x32xi8>, tensor<?x1x2xf32> loc(#[[QLOC:.*]])
  // CHECK-DAG: %[[R:.*]] = lm.round %[[Y]] : tensor<?x32xf32> -> tensor<?x32xbf16> loc(#[[RLOC:.*]])
  // CHECK-NEXT: lm.linear %[[C]], %[[S]] residual %[[X]], @q4_1 {arith = #lm.arith<q8_g32>} : (tensor<?x32xi8>, tensor<?x1x2xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  %0 = lm.linear %y residual %x, @q4_1 {arith = #lm.arith<q8_g32>} : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK-NEXT: lm.linear %[[R]], @bf16 {arith = #lm.arith<bf16_eo32>}
  %1 = lm.linear %y, @bf16 {arith = #lm.arith<bf16_eo32>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK-NEXT: lm.gated_linear silu %[[C]], %[[S]], @pair
  %2 = lm.gated_linear silu %y, @pair {arith = #lm.arith<q8_g32>} : (tensor<?x32xf32>) -> tensor<?x16xf32>
  // CHECK-NEXT: lm.linear %[[R]], @bf16
  %3 = lm.linear %y, @bf16 {arith = #lm.arith<bf16_eo32>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  return %0, %1, %2, %3 : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x32xf32>
}

// Must not fire: f32 arithmetic, undecided arithmetic, inputs that are rounded already.
// CHECK-LABEL: func.func @never
func.func @never(%x: tensor<?x32xf32>, %r: tensor<?x32xbf16>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK-NOT: lm.quantize
  // CHECK-NOT: lm.round
  %0 = lm.linear %x, @q4_1 {arith = #lm.arith<f32>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = lm.linear %x, @q4_1 : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %2 = lm.linear %r, @bf16 {arith = #lm.arith<bf16_eo32>} : (tensor<?x32xbf16>) -> tensor<?x32xf32>
  return %0, %1, %2 : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}
// e4m3 has a scale for a whole row. What attention and gated products write by parts is bf16 first.
lm.weight @e4m3 [32, 32] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 1024, rows = 32, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}
lm.weight @narrow [32, 16] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 512, rows = 32, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}
// CHECK-LABEL: func.func @codes_of_rows
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x32xf32>
func.func @codes_of_rows(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: %[[Y:.*]] = lm.add %[[X]], %[[X]]
  %y = lm.add %x, %x : tensor<?x32xf32>
  // CHECK-NEXT: %[[C:.*]], %[[S:.*]] = lm.quantize %[[Y]] : tensor<?x32xf32> -> tensor<?x32xf8E4M3FN>, tensor<?x1xf32>
  // CHECK-NEXT: lm.linear %[[C]], %[[S]], @e4m3
  %0 = lm.linear %y, @e4m3 {arith = #lm.arith<e4m3>} : (tensor<?x32xf32>) -> tensor<?x32xf32>
  // CHECK: %[[G:.*]] = lm.gated_linear
  %1 = lm.gated_linear silu %y, @pair {arith = #lm.arith<f32>} : (tensor<?x32xf32>) -> tensor<?x16xf32>
  // CHECK-NEXT: %[[R:.*]] = lm.round %[[G]]
  // CHECK-NEXT: %[[C:.*]], %[[S:.*]] = lm.quantize %[[R]] : tensor<?x16xbf16> -> tensor<?x16xf8E4M3FN>, tensor<?x1xf32>
  // CHECK-NEXT: lm.linear %[[C]], %[[S]], @narrow
  %2 = lm.linear %1, @narrow {arith = #lm.arith<e4m3>} : (tensor<?x16xf32>) -> tensor<?x32xf32>
  return %0, %2 : tensor<?x32xf32>, tensor<?x32xf32>
}

// CHECK-DAG: #[[QLOC]] = loc("blk.0.ffn_residual.q8")
// CHECK-DAG: #[[RLOC]] = loc("blk.0.ffn_residual.bf16")
