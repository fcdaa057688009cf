// Usually the first scores of a unit run with the last update of the one before, whose registers they need beside its own. The
// worker asks for the other form (llmc.frugal) if ptxas spills: a unit ends before the next begins.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda},canonicalize,cse,tile-pipeline-attention-cuda)' | FileCheck %s
// RUN: sed 's/^module {/module attributes {llmc.frugal} {/' %s | llmc-opt --pass-pipeline='builtin.module(lm-to-tile{target=cuda},canonicalize,cse,tile-pipeline-attention-cuda)' | FileCheck %s --check-prefix=FRUGAL

// CHECK: module attributes {llmc.has_frugal_form,
// CHECK-LABEL: tile.kernel @attention_32_8x128_bf16_scale3DB43958_q32
// CHECK: tile.roles
// CHECK: } consumers {
// CHECK: tile.warpgroup_dot_rows
// CHECK: scf.for
// CHECK: scf.if {{.*}} -> (
// CHECK: tile.warpgroup_update
// CHECK: } else {
// CHECK: tile.warpgroup_update

// FRUGAL: module attributes {llmc.frugal, tile.target
// FRUGAL-LABEL: tile.kernel @attention_32_8x128_bf16_scale3DB43958_q32
// FRUGAL: tile.roles
// FRUGAL: } consumers {
// FRUGAL-NOT: tile.warpgroup_dot_rows
// FRUGAL: scf.for
// FRUGAL-NOT: scf.if {{.*}} -> (
// FRUGAL: tile.warpgroup_dot_rows
module {
  func.func @step(%q: tensor<?x4096xbf16>, %kv: !lm.kv<heads = 8, k_dim = 128, v_dim = 128, element = bf16, block = 16>) -> tensor<?x4096xbf16> {
    %a = lm.attention %q, %kv {arith = #lm.arith<bf16>, format = #lm.format<bf16>, head_dim = 128, scale = 0.088} : (tensor<?x4096xbf16>, !lm.kv<heads = 8, k_dim = 128, v_dim = 128, element = bf16, block = 16>) -> tensor<?x4096xbf16>
    return %a : tensor<?x4096xbf16>
  }
}
