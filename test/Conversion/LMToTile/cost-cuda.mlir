// On a GPU tensor cores do the products of attention.
// RUN: llmc-opt %s --lm-to-tile=target=cuda | FileCheck %s

!kv = !lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = bf16, block = 16>
func.func @step(%q: tensor<?x576xf32>, %kv: !kv) -> tensor<?x576xf32> {
  // CHECK: {cost = #rt.cost<arithmetic = bf16, window = 20, flops_per_pair = 2304, activation_bytes_per_row = 4608, kv_read_bytes = 768>
  %a = lm.attention %q, %kv {head_dim = 64, scale = 0.125, window = 20} : (tensor<?x576xf32>, !kv) -> tensor<?x576xf32>
  return %a : tensor<?x576xf32>
}
