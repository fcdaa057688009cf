// RUN: llmc-opt %s --rt-plan-arena="max-tokens=20 max-logits=3" | FileCheck %s

// A second cache is the second layer of every block; a cache read after its append is the same memory. In the reference,
// logits have a row for every token. Each arena ends with 16 rows of the widest buffer (2048 bytes), which a query tile may read.

!kv = !lm.kv<heads = 2, k_dim = 16, v_dim = 16, element = f32, block = 16>
!x = tensor<?x32xf32>
#any = #rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>

// CHECK: rt.kv_group = {block_bytes = 8192 : i64, element = 0 : i64, head_bytes = 2048 : i64, heads = 2 : i64, k_dim = 16 : i64, layer_bytes = 4096 : i64, layers = 2 : i64
// CHECK: rt.program @step attributes {arena_bytes = 8192 : i64, hidden_offset = -1 : i64, logits_offset = 4096 : i64}
func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %a: !kv, %b: !kv) -> (!x, !kv, !kv) {
  %0 = rt.dispatch "e"(%positions) {rows = #rt.rows<tokens>, variants = [#any]} : (tensor<?xi32>) -> !x
  // CHECK: rt.launch "l1" {args = [#rt.arg<kind = arena>, #rt.arg<kind = kv, value = 4096>]
  %b1 = rt.dispatch "l1"(%0, %b) {rows = #rt.rows<tokens>, variants = [#any]} : (!x, !kv) -> !kv
  // CHECK: rt.launch "l0" {args = [#rt.arg<kind = arena>, #rt.arg<kind = kv>]
  %a1 = rt.dispatch "l0"(%0, %a) {rows = #rt.rows<tokens>, variants = [#any]} : (!x, !kv) -> !kv
  // CHECK: rt.launch "r" {args = [#rt.arg<kind = arena>, #rt.arg<kind = kv, value = 4096>, #rt.arg<kind = step, value = 2>, #rt.arg<kind = arena, value = 4096>]
  %1 = rt.dispatch "r"(%0, %b1, %rows) {rows = #rt.rows<logits>, variants = [#any]} : (!x, !kv, tensor<?xi32>) -> !x
  return %1, %a1, %b1 : !x, !kv, !kv
}

// 20 tokens may want logits: 32 rows of 32 columns, where @step has 16.
// CHECK: rt.program @reference attributes {arena_bytes = 10240 : i64, hidden_offset = 0 : i64, logits_offset = 4096 : i64}
func.func @reference(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> !x {
  // CHECK-NEXT: rt.launch "e" {args = [#rt.arg<kind = weight_f32, weight = @w>, #rt.arg<kind = step>, #rt.arg<kind = arena>]
  %0 = rt.dispatch "e"() {rows = #rt.rows<tokens>, weights = [@w], fields = [#rt.field<token_ids>], reference_weights, variants = [#any]} : () -> !x
  %1 = rt.dispatch "r"(%0) {rows = #rt.rows<logits>, variants = [#any]} : (!x) -> !x
  return %1 : !x
}
