// A result of a static size is memory for its launch alone: an argument of 100 x 32 x 4 bytes, free behind it, and no value.
// RUN: llmc-opt %s --rt-plan-arena="row-pad=16 max-tokens=16 max-seqs=2 max-logits=16" | FileCheck %s

// 16 rows of 64 f32 = 4096 each for "a", "b" and behind the last; scratch of 12800 beside "a" and "b".
// CHECK: rt.program @step attributes {arena_bytes = 25088 : i64
// CHECK: rt.launch "b"
// CHECK-SAME: args = [#rt.arg<kind = arena{{[^>]*}}>, #rt.arg<kind = arena{{[^>]*}}>, #rt.arg<kind = arena{{[^>]*}}>], rows
// CHECK-SAME: values = [#rt.value<name = "b", offset = {{[0-9]+}}, element = 0, cols = 64, stride = 64>]
// CHECK: rt.launch "c"
module {
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>) -> tensor<?x64xf32> {
    %a = rt.dispatch "a"(%ids) {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @a, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x64xf32>
    %b, %scratch = rt.dispatch "b"(%a) {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @b, row_block = 1, col_blocks = 1>]} : (tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<100x32xf32>)
    %c = rt.dispatch "c"(%b) {rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @c, row_block = 1, col_blocks = 1>]} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    return %c : tensor<?x64xf32>
  }
}
