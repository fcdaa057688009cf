// RUN: llmc-opt %s --lm-fuse-residual --mlir-print-debuginfo | FileCheck %s
// RUN: llmc-opt %s --lm-fuse-residual --remark-format=emitRemark --remarks-filter-missed="lm-fuse-residual" 2>&1 | FileCheck %s --check-prefix=REMARK

lm.weight @w [8, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 256, rows = 8>]}
lm.weight @b [8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 32, rows = 8>]}

// CHECK-LABEL: func.func @right
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]:
func.func @right(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[R:.*]] = lm.linear %[[Y]] residual %[[X]], @w bias @b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32> loc(#[[LOC:.*]])
  // CHECK-NEXT: return %[[R]]
  %o = lm.linear %y, @w bias @b : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("blk.0.attn_output")
  %r = lm.add %x, %o : tensor<?x8xf32> loc("blk.0.attn_residual")
  return %r : tensor<?x8xf32>
}

// The projection may be the left summand.
// CHECK-LABEL: func.func @left
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]:
func.func @left(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: lm.linear %[[Y]] residual %[[X]], @w :
  // CHECK-NEXT: return
  %o = lm.linear %y, @w : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = lm.add %o, %x : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Two projections: one takes the other as its residual.
// CHECK-LABEL: func.func @both
func.func @both(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[A:.*]] = lm.linear %{{.*}}, @w :
  // CHECK-NEXT: lm.linear %{{.*}} residual %[[A]], @w :
  // CHECK-NEXT: return
  %a = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = lm.linear %y, @w : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = lm.add %a, %b : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Must not fire: another user needs the projection alone; no projection; a residual already.
// REMARK: remark: [Missed] FuseResidual | Category:lm-fuse-residual{{.*}}Reason="the projection by w has other users"
// CHECK-LABEL: func.func @users
func.func @users(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK: lm.add
  %o = lm.linear %y, @w : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = lm.add %x, %o : tensor<?x8xf32>
  return %r, %o : tensor<?x8xf32>, tensor<?x8xf32>
}
// REMARK: Reason="no summand is a projection"
// CHECK-LABEL: func.func @none
func.func @none(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: lm.add
  %r = lm.add %x, %y : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
// REMARK: Reason="the projection by w has a residual already"
// CHECK-LABEL: func.func @already
func.func @already(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: lm.add
  %o = lm.linear %y residual %y, @w : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = lm.add %x, %o : tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
// CHECK: #[[LOC]] = loc("blk.0.attn_residual")
