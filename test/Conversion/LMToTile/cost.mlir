// What a launch must compute and move, on logical shapes; bytes as they lie in memory.
// RUN: llmc-opt %s --lm-to-tile -split-input-file | FileCheck %s

// 2 * 96 * 64 + 96 of the residual; 3840 bytes of panels; 64 codes, 2 * 2 scales, 96 columns read and written.
lm.weight @w [96, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 3840, rows = 96>], layout = #lm.layout<n16_q4_1>, offset = 0 : i64}
func.func @step(%c: tensor<?x64xi8>, %s: tensor<?x2x2xf32>, %r: tensor<?x96xf32>) -> tensor<?x96xf32> {
  // CHECK: rt.dispatch "linear"(%{{.*}}) {cost = #rt.cost<arithmetic = i8, flops_per_row = 12384, weight_bytes = 3840, activation_bytes_per_row = 848>
  %y = lm.linear %c, %s residual %r, @w {arith = #lm.arith<q8_g32>} : (tensor<?x64xi8>, tensor<?x2x2xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>
  return %y : tensor<?x96xf32>
}

// -----

// 2 * 64 * 64 and 5 a column of the activation. On a CPU f32 multiply-adds do it.
lm.weight @w [64, 64] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>, #lm.span<file = 0, offset = 4096, bytes = 4096, rows = 32>], interleave = 16 : i64, layout = #lm.layout<n16_bf16>, offset = 0 : i64}
func.func @step(%x: tensor<?x64xbf16>) -> tensor<?x32xf32> {
  // CHECK: {cost = #rt.cost<arithmetic = f32, flops_per_row = 8352, weight_bytes = 8192, activation_bytes_per_row = 256>
  %y = lm.gated_linear silu %x, @w {arith = #lm.arith<bf16_eo32>} : (tensor<?x64xbf16>) -> tensor<?x32xf32>
  return %y : tensor<?x32xf32>
}

// -----

// 9 heads of 2 * (64 + 64) a pair; 3 KV heads of 128 bf16 a cached token. Query tiles count their tokens.
!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>
func.func @step(%q: tensor<?x576xf32>, %kv: !kv) -> tensor<?x576xf32> {
  // CHECK: {cost = #rt.cost<arithmetic = f32, window = 20, flops_per_pair = 2304, activation_bytes_per_row = 4608, kv_read_bytes = 768>
  %a = lm.attention %q, %kv {head_dim = 64, scale = 0.125, window = 20} : (tensor<?x576xf32>, !kv) -> tensor<?x576xf32>
  return %a : tensor<?x576xf32>
}

// -----

// A row of a table in panels is read with the 15 beside it.
lm.weight @w [100, 40] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16000, rows = 100>], layout = #lm.layout<n16_f32>, offset = 0 : i64}
func.func @step(%ids: tensor<?xi32>) -> tensor<?x40xf32> {
  // CHECK: {cost = #rt.cost<arithmetic = f32, weight_bytes_per_row = 4096, activation_bytes_per_row = 260>
  %x = lm.embedding %ids, @w : tensor<?xi32> -> tensor<?x40xf32>
  return %x : tensor<?x40xf32>
}

// -----

// 4 a column of the norm, 4 of the codes.
lm.weight @norm [64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 256, rows = 64>], layout = #lm.layout<rows_f32>, offset = 0 : i64}
func.func @step(%x: tensor<?x64xf32>) -> (tensor<?x64xi16>, tensor<?x2x2xf32>) {
  // CHECK: {cost = #rt.cost<arithmetic = f32, flops_per_row = 512, weight_bytes = 256, activation_bytes_per_row = 400>
  %c, %s = lm.rms_norm %x, @norm {eps = 1.0e-05 : f64, format = #lm.format<q16>} : (tensor<?x64xf32>) -> (tensor<?x64xi16>, tensor<?x2x2xf32>)
  return %c, %s : tensor<?x64xi16>, tensor<?x2x2xf32>
}
