// A module for a GPU: kernels are data, one table each however many launches use it.
// RUN: llmc-opt %s --split-input-file --verify-diagnostics --rt-plan-arena="row-pad=128 max-tokens=20 max-seqs=2 max-logits=3" --rt-to-llvm=isa=sm_90a -o - | FileCheck %s

// CHECK-NOT: llvm.func
// CHECK-DAG: llvm.mlir.global internal constant @cuda.embed.cubin("\7FELF\00") {{.*}}alignment = 64
// CHECK-DAG: llvm.mlir.global internal constant @cuda.embed.ptx(".version 8.6\00")
// CHECK-DAG: llvm.mlir.global internal constant @cuda.embed.tensor_maps() {{.*}} : !llvm.array<1 x struct<(i32, i32, i32, i32, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i32, i32, i32, i32, i32, i32)>>
// CHECK-DAG: llvm.mlir.global internal constant @cuda.embed() {{.*}} : !llvm.array<1 x struct<(ptr, i64, ptr, i64, i32, i32, i32, i32, ptr)>>
// CHECK-DAG: llvm.mlir.global internal constant @cuda.head.ptx("head\00")
// CHECK-NOT: @cuda.head.cubin
// CHECK-DAG: llvm.mlir.global internal constant @text.{{[0-9]+}}("cuda\00")
// CHECK-DAG: llvm.mlir.global internal constant @text.{{[0-9]+}}("sm_90a\00")
// CHECK: llvm.mlir.global external constant @llmc_module_v1
// CHECK-NOT: rt.cuda_kernels
!kv = !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>
module attributes {lm.model = {name = "m", architecture = "llama", hidden = 40 : i64, layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 20 : i64, ffn = 48 : i64, vocab = 100 : i64, max_context = 128 : i64}, lm.weights_bytes = 128 : i64,
    rt.cuda_kernels = {embed = {cubin = "\7FELF\00", ptx = ".version 8.6", threads = 128 : i64, shared_bytes = 4096 : i64, tensor_maps = [array<i64: 1, 1, 2, 128, 64, 100, 0, 0, 0, 2, 128, 0, 0, 0, 64, 8, 0, 0, 0>]},
                       head = {ptx = "head", threads = 256 : i64, shared_bytes = 0 : i64, persistent = 2 : i64}}} {
  lm.weight @token_embd [100, 40] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16000, rows = 100>], layout = #lm.layout<rows_bf16>, offset = 0 : i64}
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> (tensor<?x100xf32>, !kv, tensor<?xi32>) {
    %x = rt.dispatch "token_embd"(%ids) {weights = [@token_embd], rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @embed, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x40xf32>
    %y = rt.dispatch "again"(%ids) {weights = [@token_embd], rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @embed, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x40xf32>
    %l = rt.dispatch "output"(%y) {weights = [@token_embd], rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?x40xf32>) -> tensor<?x100xf32>
    %i = rt.dispatch "greedy_ids"(%l) {rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?x100xf32>) -> tensor<?xi32>
    return %l, %kv, %i : tensor<?x100xf32>, !kv, tensor<?xi32>
  }
}

// -----

// A launch of a kernel that was not compiled.
!kv = !lm.kv<heads = 1, k_dim = 20, v_dim = 20, element = bf16, block = 16>
module attributes {lm.model = {name = "m", architecture = "llama", hidden = 40 : i64, layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 20 : i64, ffn = 48 : i64, vocab = 100 : i64, max_context = 128 : i64}, lm.weights_bytes = 128 : i64, rt.cuda_kernels = {}} {
  func.func @step(%ids: tensor<?xi32>, %positions: tensor<?xi32>, %rows: tensor<?xi32>, %kv: !kv) -> (tensor<?x100xf32>, !kv) {
    // expected-error @below {{expected the kernel @head in rt.cuda_kernels, with ptx, threads and shared_bytes}}
    %l = rt.dispatch "output"(%ids) {rows = #rt.rows<logits>, variants = [#rt.variant<max_rows = 4294967295, kernel = @head, row_block = 1, col_blocks = 1>]} : (tensor<?xi32>) -> tensor<?x100xf32>
    return %l, %kv : tensor<?x100xf32>, !kv
  }
}
