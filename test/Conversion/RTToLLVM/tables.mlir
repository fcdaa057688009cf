// RUN: llmc-opt %s --rt-plan-arena="max-tokens=20 max-seqs=2 max-logits=3" --rt-to-llvm=isa=avx512vnni > %t && FileCheck %s < %t
// RUN: llmc-opt %s --rt-plan-arena --rt-to-llvm | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=LLVM

// What is left are data and hidden declarations of the kernels.
// CHECK-NOT: rt.
// CHECK-NOT: lm.
// CHECK-NOT: func.func
// CHECK: llvm.func hidden @embed(!llvm.ptr, i64, i64, i64)
// CHECK: llvm.mlir.global internal constant @step.1.variants() {{.*}} : !llvm.array<2 x struct<(i32, i32, i32, i32, ptr, ptr)>>
// CHECK: llvm.mlir.global external constant @llmc_module_v1

// LLVM-DAG: @text.0 = internal constant [11 x i8] c"token_embd\00"
// LLVM-DAG: @step.0.args = internal constant [3 x { i32, i32, i64 }] [{ i32, i32, i64 } { i32 3, i32 0, i64 0 }, { i32, i32, i64 } { i32 1, i32 0, i64 0 }, { i32, i32, i64 } zeroinitializer]
// LLVM-DAG: @step.1.variants = internal constant [2 x { i32, i32, i32, i32, ptr, ptr }] [{ i32, i32, i32, i32, ptr, ptr } { i32 1, i32 1, i32 1, i32 0, ptr @norm_1, ptr @{{.*}} }, { i32, i32, i32, i32, ptr, ptr } { i32 -1, i32 16, i32 1, i32 0, ptr @norm_n, ptr @{{.*}} }]
// Query tiles launch by tiles, but what they compute has a row per token.
// LLVM-DAG: @step.3.values = internal constant [1 x { ptr, i64, i32, i32, i32, i32, i64 }] [{ ptr, i64, i32, i32, i32, i32, i64 } { ptr @{{.*}}, i64 {{.*}}, i32 0, i32 0, i32 40, i32 64, i64 0 }]
// LLVM-DAG: @weights = internal constant [2 x { ptr, i64, i64, i32, i32, i64, i64, i64, i64 }] [{ {{.*}} } { ptr @text.0, i64 0, i64 32768, i32 1, i32 0, i64 100, i64 40, i64 128, i64 64 }, { {{.*}} } { ptr @{{.*}}, i64 32768, i64 256, i32 0, i32 0, i64 1, i64 40, i64 1, i64 64 }]
// LLVM-DAG: @kv_groups = internal constant [1 x { i32, i32, i32, i32, i32, i32, i64, i64, i64 }] [{ i32, i32, i32, i32, i32, i32, i64, i64, i64 } { i32 1, i32 1, i32 1, i32 20, i32 20, i32 0, i64 1280, i64 1280, i64 1280 }]
// Two launches share the first cost, one has its own, two have none.
// LLVM-DAG: @costs = internal constant [2 x { i32, i32, i64, i64, i64, i64, i64, i64, i64 }] [{ {{.*}} } { i32 1, i32 0, i64 8000, i64 0, i64 32768, i64 0, i64 768, i64 0, i64 0 }, { {{.*}} } { i32 0, i32 7, i64 0, i64 160, i64 0, i64 0, i64 0, i64 80, i64 2 }]
// LLVM-DAG: @step.launches = {{.*}} { i32 0, {{.*}}, i32 0, i32 0 }, {{.*}} { i32 1, {{.*}}, i32 -1, i32 0 }, {{.*}} { i32 3, {{.*}}, i32 1, i32 0 }, {{.*}} { i32 4, {{.*}}, i32 0, i32 0 }]
// The module: 248 bytes, version 1, five launches, no reference, no program for prompts.
// LLVM-DAG: @llmc_module_v1 = constant { {{.*}} } { i32 248, i32 1, ptr @{{.*}}, ptr @{{.*}}, i32 512, i32 16, i32 16, i32 100, i32 128, i32 40, i32 64, i32 128, i32 1, i32 1, i32 2, i32 2, ptr @kv_groups, ptr @weights, i64 128, i32 5, i32 0, ptr @step.launches, {{.*}}, i32 0, i32 0, ptr null, i64 0, i64 0, i64 -1, i64 -1, ptr @costs, i32 0, i32 0, ptr null, i64 0, i64 0, i64 -1, i64 -1 }
module attributes {lm.model = {name = "m", architecture = "llama", hidden = 40 : i64, layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 20 : i64, ffn = 48 : i64, vocab = 100 : i64, max_context = 128 : i64}, lm.weights_bytes = 128 : i64} {
  lm.weight @token_embd [100, 40] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16000, rows = 100>], layout = #lm.layout<n16_f32>, offset = 0 : i64}
  lm.weight @norm [40] f32 {sources = [#lm.span<file = 0, offset = 16000, bytes = 160, rows = 40>], layout = #lm.layout<rows_f32>, offset = 32768 : i64}
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> (tensor<?x100xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) {
    %x = rt.dispatch "token_embd"(%ids) {cost = #rt.cost<arithmetic = bf16, flops_per_row = 8000, weight_bytes = 32768, activation_bytes_per_row = 768>, weights = [@token_embd], rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @embed, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x40xf32>
    %c, %s = rt.dispatch "blk.0.attn_norm"(%x) {weights = [@norm], rows = #rt.rows<tokens>, layer = 0 : i32, variants = [#rt.variant<max_rows = 1, kernel = @norm_1, row_block = 1, col_blocks = 1>, #rt.variant<max_rows = 4294967295, kernel = @norm_n, row_block = 16, col_blocks = 1>]} : (tensor<?x40xf32>) -> (tensor<?x40xi8>, tensor<?x2x2xf32>)
    %q, %kv1 = rt.dispatch "blk.0.kv"(%c, %s, %kv) {fields = [#rt.field<slots>], rows = #rt.rows<tokens>, layer = 0 : i32, variants = [#rt.variant<max_rows = 4294967295, kernel = @kv, row_block = 1, col_blocks = 1>]} : (tensor<?x40xi8>, tensor<?x2x2xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> (tensor<?x40xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>)
    %a = rt.dispatch "blk.0.attn"(%q, %kv1) {cost = #rt.cost<arithmetic = f32, window = 7, flops_per_pair = 160, kv_read_bytes = 80, kv_write_bytes_per_row = 2>, fields = [#rt.field<block_table>, #rt.field<query_tiles>], rows = #rt.rows<query_tiles>, layer = 0 : i32, variants = [#rt.variant<max_rows = 4294967295, kernel = @attention, row_block = 4, col_blocks = 1>]} : (tensor<?x40xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>) -> tensor<?x40xf32>
    %l = rt.dispatch "output"(%a) {cost = #rt.cost<arithmetic = bf16, flops_per_row = 8000, weight_bytes = 32768, activation_bytes_per_row = 768>, weights = [@token_embd], rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?x40xf32>) -> tensor<?x100xf32>
    return %l, %kv1 : tensor<?x100xf32>, !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>
  }
}
