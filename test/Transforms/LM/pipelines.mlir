// One layer from import to decided; each fusion can be switched off.
// RUN: llmc-opt %s --lm-fusion --lm-decide | FileCheck %s
// RUN: llmc-opt %s --lm-fusion="qkv=false gate-up=false residual=false" | FileCheck %s --check-prefix=OFF
// RUN: llmc-opt %s --lm-fusion --lm-decide="compute=f32" | FileCheck %s --check-prefix=F32
// RUN: llmc-opt %s --lm-fusion --lm-decide="fuse-quantize=false kv-element=f16 kv-block=32" | FileCheck %s --check-prefix=OPTIONS
// RUN: llmc-opt %s --lm-fusion --lm-decide=cuda=true | FileCheck %s --check-prefix=CUDA

// On a GPU every rounding to bf16 moves into its producer as for bf16_eo32; greedy ids are a result.
// CUDA: func.func @step
// CUDA-SAME: element = bf16, block = 16
// CUDA-SAME: -> (tensor<?x64xf32>, !lm.kv<{{.*}}>, tensor<?xi32>)
// CUDA-NEXT: %[[N:.*]] = lm.rms_norm {{.*}}format = #lm.format<bf16>
// CUDA-NEXT: lm.linear %[[N]], @b.attn_qkv {arith = #lm.arith<bf16>}
// CUDA: %[[A:.*]] = lm.attention {{.*}}format = #lm.format<bf16>
// CUDA-NEXT: %[[H:.*]] = lm.gated_linear silu %[[A]], @b.ffn_gate_up {arith = #lm.arith<bf16>, format = #lm.format<bf16>}
// CUDA-NEXT: %[[Y:.*]] = lm.linear %[[H]] residual %{{.*}}, @b.down {arith = #lm.arith<bf16>}
// CUDA-NEXT: %[[I:.*]] = lm.sample %[[Y]] : tensor<?x64xf32> -> tensor<?xi32>
// CUDA-NEXT: return %[[Y]], %{{.*}}, %[[I]]

!kv = !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = f32, block = 0>

lm.weight @n [64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 256, rows = 64>]}
lm.weight @b.q [64, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 2560, rows = 64>]}
lm.weight @b.k [32, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 1280, rows = 32>]}
lm.weight @b.v [32, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 1280, rows = 32>]}
lm.weight @b.gate [32, 64] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>]}
lm.weight @b.up [32, 64] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>]}
lm.weight @b.down [64, 32] f16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 64>]}

// CHECK: lm.weights_bytes
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x64xf32>, %[[T:[a-z0-9]+]]: tensor<?x32xf32>, %[[KV:[a-z0-9]+]]: !lm.kv<heads = 1, k_dim = 32, v_dim = 32, element = bf16, block = 16>
// CHECK-NEXT: %[[N:.*]]:2 = lm.rms_norm %[[X]], @n {{.*}}format = #lm.format<q16>
// CHECK-NEXT: %[[J:.*]] = lm.linear %[[N]]#0, %[[N]]#1, @b.attn_qkv {arith = #lm.arith<q16_g32>}
// CHECK-NEXT: %[[Q:.*]], %[[R:.*]] = lm.rope_append %[[J]], %[[T]], %[[KV]]
// CHECK-NEXT: %[[A:.*]] = lm.attention %[[Q]], %[[R]] {format = #lm.format<bf16>
// CHECK-NEXT: %[[H:.*]] = lm.gated_linear silu %[[A]], @b.ffn_gate_up {arith = #lm.arith<bf16>}
// CHECK-NEXT: %[[Y:.*]] = lm.linear %[[H]] residual %[[X]], @b.down {arith = #lm.arith<f32>}
// CHECK-NEXT: return %[[Y]], %[[R]]

// OFF-COUNT-3: lm.linear
// OFF: lm.kv_append
// OFF: lm.gated_activation
// OFF: lm.add

// F32: func.func @step
// F32-SAME: element = f32, block = 16
// F32-NOT: lm.quantize
// F32-NOT: lm.round
// F32-NOT: #lm.format
// F32: @b.attn_qkv {arith = #lm.arith<f32>}

// OPTIONS: func.func @step
// OPTIONS-SAME: element = f16, block = 32
// OPTIONS: lm.rms_norm {{.*}} -> tensor<?x64xf32>
// OPTIONS-NEXT: lm.quantize
// OPTIONS: lm.round
func.func @step(%x: tensor<?x64xf32>, %t: tensor<?x32xf32>, %kv: !kv) -> (tensor<?x64xf32>, !kv) {
  %n = lm.rms_norm %x, @n {eps = 1.0e-5} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = lm.linear %n, @b.q : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %k = lm.linear %n, @b.k : (tensor<?x64xf32>) -> tensor<?x32xf32>
  %v = lm.linear %n, @b.v : (tensor<?x64xf32>) -> tensor<?x32xf32>
  %qr = lm.rope %q, %t {head_dim = 32} : tensor<?x64xf32>, tensor<?x32xf32>
  %kr = lm.rope %k, %t {head_dim = 32} : tensor<?x32xf32>, tensor<?x32xf32>
  %kv1 = lm.kv_append %kv, %kr, %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %a = lm.attention %qr, %kv1 {head_dim = 32, scale = 0.25} : (tensor<?x64xf32>, !kv) -> tensor<?x64xf32>
  %g = lm.linear %a, @b.gate : (tensor<?x64xf32>) -> tensor<?x32xf32>
  %u = lm.linear %a, @b.up : (tensor<?x64xf32>) -> tensor<?x32xf32>
  %h = lm.gated_activation silu %g, %u : tensor<?x32xf32>
  %d = lm.linear %h, @b.down : (tensor<?x32xf32>) -> tensor<?x64xf32>
  %y = lm.add %x, %d : tensor<?x64xf32>
  return %y, %kv1 : tensor<?x64xf32>, !kv
}
