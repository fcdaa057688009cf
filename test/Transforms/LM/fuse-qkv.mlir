// RUN: llmc-opt %s --lm-fuse-qkv --split-input-file --mlir-print-debuginfo | FileCheck %s
// RUN: llmc-opt %s --lm-fuse-qkv --split-input-file --remark-format=emitRemark --remarks-filter-missed="lm-fuse-qkv" 2>&1 | FileCheck %s --check-prefix=REMARK

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>

// Rows are concatenated in the order q, k, v and keep their spans; the parts' weights go.
// CHECK-NOT: lm.weight @blk.0.attn_q [
// CHECK: lm.weight @blk.0.attn_qkv [32, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 512, rows = 16, deinterleave = 4>, #lm.span<file = 0, offset = 1000, bytes = 256, rows = 8, deinterleave = 4>, #lm.span<file = 0, offset = 2000, bytes = 256, rows = 8>]}
// CHECK-NOT: lm.weight @blk.0.attn_{{[kv]}} [
lm.weight @blk.0.attn_q [16, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 512, rows = 16, deinterleave = 4>]}
lm.weight @blk.0.attn_k [8, 8] f32 {sources = [#lm.span<file = 0, offset = 1000, bytes = 256, rows = 8, deinterleave = 4>]}
lm.weight @blk.0.attn_v [8, 8] f32 {sources = [#lm.span<file = 0, offset = 2000, bytes = 256, rows = 8>]}

// CHECK-LABEL: func.func @joined
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x8xf32>{{.*}}, %[[T:[a-z0-9]+]]: tensor<?x4xf32>{{.*}}, %[[KV:[a-z0-9]+]]: !lm.kv
func.func @joined(%x: tensor<?x8xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x16xf32>, !kv) {
  // CHECK: %[[J:.*]] = lm.linear %[[X]], @blk.0.attn_qkv : (tensor<?x8xf32>) -> tensor<?x32xf32> loc(#[[JLOC:.*]])
  // CHECK-NEXT: %[[Q:.*]], %[[R:.*]] = lm.rope_append %[[J]], %[[T]], %[[KV]] {head_dim = 4 : i64} : {{.*}} loc(#[[ALOC:.*]])
  // CHECK-NEXT: %[[A:.*]] = lm.attention %[[Q]], %[[R]]
  // CHECK-NEXT: return %[[A]], %[[R]]
  %q = lm.linear %x, @blk.0.attn_q : (tensor<?x8xf32>) -> tensor<?x16xf32> loc("blk.0.attn_q")
  %k = lm.linear %x, @blk.0.attn_k : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("blk.0.attn_k")
  %v = lm.linear %x, @blk.0.attn_v : (tensor<?x8xf32>) -> tensor<?x8xf32> loc("blk.0.attn_v")
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x16xf32>, tensor<?x4xf32> loc("blk.0.attn_q_rope")
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x8xf32>, tensor<?x4xf32> loc("blk.0.attn_k_rope")
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x8xf32>, tensor<?x8xf32> loc("blk.0.kv")
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32> loc("blk.0.attn")
  return %a, %kv1 : tensor<?x16xf32>, !kv
}
// CHECK: #[[JLOC]] = loc("blk.0.attn_qkv")
// CHECK: #[[ALOC]] = loc("blk.0.kv")

// -----

// Biases are joined too.
!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
lm.weight @q [4, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 4>]}
lm.weight @k [4, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 4>]}
lm.weight @v [4, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 4>]}
// CHECK: lm.weight @attn_qkv.bias [12] f32 {sources = [#lm.span<file = 0, offset = 100, bytes = 16, rows = 4, deinterleave = 4>, #lm.span<file = 0, offset = 200, bytes = 16, rows = 4, deinterleave = 4>, #lm.span<file = 0, offset = 300, bytes = 16, rows = 4>]}
lm.weight @q.bias [4] f32 {sources = [#lm.span<file = 0, offset = 100, bytes = 16, rows = 4, deinterleave = 4>]}
lm.weight @k.bias [4] f32 {sources = [#lm.span<file = 0, offset = 200, bytes = 16, rows = 4, deinterleave = 4>]}
lm.weight @v.bias [4] f32 {sources = [#lm.span<file = 0, offset = 300, bytes = 16, rows = 4>]}
// CHECK-LABEL: func.func @biases
func.func @biases(%x: tensor<?x8xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  // CHECK: lm.linear %{{.*}}, @attn_qkv bias @attn_qkv.bias
  %q = lm.linear %x, @q bias @q.bias : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %k = lm.linear %x, @k bias @k.bias : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %v = lm.linear %x, @v bias @v.bias : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %kv1 : tensor<?x4xf32>, !kv
}

// -----

// Must not fire: v is stored differently (as llama.cpp does for some layers of mixed files).
!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
lm.weight @q [4, 32] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 72, rows = 4>]}
lm.weight @k [4, 32] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 72, rows = 4>]}
lm.weight @v [4, 32] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 136, rows = 4>]}
// REMARK: remark: [Missed] FuseQKV | Category:lm-fuse-qkv{{.*}}Reason="storages differ: q is q4_0, v is q8_0"
// CHECK-LABEL: func.func @storages
func.func @storages(%x: tensor<?x32xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  // CHECK-COUNT-3: lm.linear
  // CHECK: lm.kv_append
  %q = lm.linear %x, @q : (tensor<?x32xf32>) -> tensor<?x4xf32>
  %k = lm.linear %x, @k : (tensor<?x32xf32>) -> tensor<?x4xf32>
  %v = lm.linear %x, @v : (tensor<?x32xf32>) -> tensor<?x4xf32>
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %kv1 : tensor<?x4xf32>, !kv
}

// -----

// Must not fire: k is used elsewhere; q comes from another input; only one bias.
!kv = !lm.kv<heads = 1, k_dim = 4, v_dim = 4, element = f32, block = 0>
lm.weight @w [4, 8] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 4>]}
lm.weight @b [4] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16, rows = 4>]}
// REMARK: Reason="the projection by w has other users"
// CHECK-LABEL: func.func @users
func.func @users(%x: tensor<?x8xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, tensor<?x4xf32>, !kv) {
  // CHECK: lm.kv_append
  %q = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %k = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %v = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %k, %kv1 : tensor<?x4xf32>, tensor<?x4xf32>, !kv
}
// REMARK: Reason="the projections have different inputs"
// CHECK-LABEL: func.func @inputs
func.func @inputs(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  // CHECK: lm.kv_append
  %q = lm.linear %y, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %k = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %v = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %kv1 : tensor<?x4xf32>, !kv
}
// REMARK: Reason="only some projections have a bias"
// CHECK-LABEL: func.func @one_bias
func.func @one_bias(%x: tensor<?x8xf32>, %t: tensor<?x4xf32>, %kv: !kv) -> (tensor<?x4xf32>, !kv) {
  // CHECK: lm.kv_append
  %q = lm.linear %x, @w bias @b : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %k = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %v = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %qr = lm.rope %q, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kr = lm.rope %k, %t {head_dim = 4} : tensor<?x4xf32>, tensor<?x4xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x4xf32>, tensor<?x4xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 4, scale = 0.5} : (tensor<?x4xf32>, !kv) -> tensor<?x4xf32>
  return %a, %kv1 : tensor<?x4xf32>, !kv
}
