// RUN: llmc-opt %s --lm-fuse-gate-up --split-input-file --mlir-print-debuginfo | FileCheck %s
// RUN: llmc-opt %s --lm-fuse-gate-up --split-input-file --remark-format=emitRemark --remarks-filter-missed="lm-fuse-gate-up" 2>&1 | FileCheck %s --check-prefix=REMARK

// CHECK: lm.weight @blk.3.ffn_gate_up [64, 8] bf16 {interleave = 16 : i64, sources = [#lm.span<file = 0, offset = 0, bytes = 512, rows = 32>, #lm.span<file = 1, offset = 512, bytes = 512, rows = 32>]}
// CHECK-NOT: lm.weight
lm.weight @blk.3.ffn_gate [32, 8] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 512, rows = 32>]}
lm.weight @blk.3.ffn_up [32, 8] bf16 {sources = [#lm.span<file = 1, offset = 512, bytes = 512, rows = 32>]}
// CHECK-LABEL: func.func @joined
func.func @joined(%x: tensor<?x8xf32>) -> tensor<?x32xf32> {
  // CHECK-NEXT: %[[H:.*]] = lm.gated_linear silu %{{.*}}, @blk.3.ffn_gate_up : (tensor<?x8xf32>) -> tensor<?x32xf32> loc(#[[LOC:.*]])
  // CHECK-NEXT: return %[[H]]
  %g = lm.linear %x, @blk.3.ffn_gate : (tensor<?x8xf32>) -> tensor<?x32xf32>
  %u = lm.linear %x, @blk.3.ffn_up : (tensor<?x8xf32>) -> tensor<?x32xf32>
  %h = lm.gated_activation silu %g, %u : tensor<?x32xf32> loc("blk.3.ffn_act")
  return %h : tensor<?x32xf32>
}
// CHECK: #[[LOC]] = loc("blk.3.ffn_act")

// -----

// Must not fire: 24 columns do not fill blocks of 16.
lm.weight @g [24, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 768, rows = 24>]}
// REMARK: remark: [Missed] FuseGateUp | Category:lm-fuse-gate-up{{.*}}Reason="24 columns are no multiple of 16"
// CHECK-LABEL: func.func @odd
func.func @odd(%x: tensor<?x8xf32>) -> tensor<?x24xf32> {
  // CHECK-COUNT-2: lm.linear
  // CHECK: lm.gated_activation
  %g = lm.linear %x, @g : (tensor<?x8xf32>) -> tensor<?x24xf32>
  %u = lm.linear %x, @g : (tensor<?x8xf32>) -> tensor<?x24xf32>
  %h = lm.gated_activation silu %g, %u : tensor<?x24xf32>
  return %h : tensor<?x24xf32>
}

// -----

// Must not fire: storages, a bias, no projection, one projection for both.
lm.weight @g [16, 32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 2048, rows = 16>]}
lm.weight @u [16, 32] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 544, rows = 16>]}
lm.weight @b [16] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 64, rows = 16>]}
// REMARK: Reason="storages differ: g is f32, u is q8_0"
// REMARK: Reason="a projection has a bias"
// REMARK: Reason="gate or up is not a projection"
// REMARK: Reason="the projection by g has other users"
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<?x32xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK-NOT: lm.gated_linear
  %g0 = lm.linear %x, @g : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %u0 = lm.linear %x, @u : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %h0 = lm.gated_activation silu %g0, %u0 : tensor<?x16xf32>
  %g1 = lm.linear %x, @g bias @b : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %u1 = lm.linear %x, @g : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %h1 = lm.gated_activation silu %g1, %u1 : tensor<?x16xf32>
  %g2 = lm.linear %x, @g : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %h2 = lm.gated_activation silu %g2, %h1 : tensor<?x16xf32>
  %g3 = lm.linear %x, @g : (tensor<?x32xf32>) -> tensor<?x16xf32>
  %h3 = lm.gated_activation silu %g3, %g3 : tensor<?x16xf32>
  return %h0, %h1, %h2, %h3 : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}
