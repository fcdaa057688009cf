// RUN: llmc-opt %s | llmc-opt | FileCheck %s

// CHECK-LABEL: func.func @dispatch
func.func @dispatch(%c: tensor<?x576xi8>, %s: tensor<?x18x2xf32>) -> tensor<?x960xf32> {
  // CHECK: rt.dispatch "blk.0.attn_qkv"(%{{.*}}, %{{.*}}) {cost = #rt.cost<arithmetic = i16, window = 3, flops_per_row = 5, weight_bytes = 7>, fields = [#rt.field<slots>], layer = 0 : i32, rows = #rt.rows<tokens>
  // CHECK-SAME: #rt.variant<max_rows = 1, kernel = @linear_1, row_block = 1, col_blocks = 60>
  // CHECK-SAME: weights = [@blk.0.attn_qkv]
  %q = rt.dispatch "blk.0.attn_qkv"(%c, %s) {weights = [@blk.0.attn_qkv], fields = [#rt.field<slots>], rows = #rt.rows<tokens>,
    cost = #rt.cost<arithmetic = i16, window = 3, flops_per_row = 5, weight_bytes = 7>,
    variants = [#rt.variant<max_rows = 1, kernel = @linear_1, row_block = 1, col_blocks = 60>,
                #rt.variant<max_rows = 4294967295, kernel = @linear, row_block = 16, col_blocks = 60>], layer = 0 : i32}
    : (tensor<?x576xi8>, tensor<?x18x2xf32>) -> tensor<?x960xf32>
  return %q : tensor<?x960xf32>
}

// CHECK: rt.program @step attributes {arena_bytes = 128 : i64, hidden_offset = -1 : i64, logits_offset = 64 : i64}
rt.program @step attributes {arena_bytes = 128, logits_offset = 64, hidden_offset = -1} {
  // CHECK: rt.launch "output" {args = [#rt.arg<kind = arena, value = 64>, #rt.arg<kind = weight, weight = @w>, #rt.arg<kind = step, value = 3>]
  // CHECK-SAME: values = [#rt.value<name = "output", offset = 0, element = 0, cols = 10, stride = 32>]
  rt.launch "output" {rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
    args = [#rt.arg<kind = arena, value = 64>, #rt.arg<kind = weight, weight = @w>, #rt.arg<kind = step, value = 3>],
    values = [#rt.value<name = "output", offset = 0, element = 0, cols = 10, stride = 32>]}
}
