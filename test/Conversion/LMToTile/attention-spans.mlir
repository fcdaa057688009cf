// On a GPU few query tokens work on spans of the cache, segments or groups of them: the softmax of a unit starts anew with every
// segment. A tile's only span is its result; of several the last one of a tile and head puts the parts together in their order. The same
// dispatch has a variant for many tokens.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda})' | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda},canonicalize,cse,tile-pipeline-attention-cuda)' | FileCheck %s --check-prefix=PIPE
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda},canonicalize,cse,tile-pipeline-attention-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM
// With checks of ids, and for queries in f32, there are no spans.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(lm-to-tile{target=cuda trap-checks})' | FileCheck %s --check-prefix=CHECKS

!kv = !lm.kv<heads = 8, k_dim = 128, v_dim = 128, element = bf16, block = 16>
func.func @step(%q: tensor<?x4096xbf16>, %kv: !kv) -> tensor<?x4096xbf16> {
  // Results of 4096 tokens, 8 KV heads and 4 query heads each, and 64 rows behind them.
  // CHECK: rt.dispatch "blk.3.attn"
  // CHECK-SAME: fields = [#rt.field<block_table>, #rt.field<query_tiles>, #rt.field<kv_spans>, #rt.field<arrivals>]
  // CHECK-SAME: #rt.variant<max_rows = 128, kernel = @attention_32_8x128_bf16_scale3E000000_s16, row_block = 16, col_blocks = 8, span_rows = 2147487744>
  // CHECK-SAME: #rt.variant<max_rows = 4294967295, kernel = @attention_32_8x128_bf16_scale3E000000_q32, row_block = 32, col_blocks = 8>
  // CHECK-SAME: (tensor<?x4096xbf16>, tensor<131136x128xf32>, tensor<131136xf32>, tensor<131136xf32>)
  // CHECKS-NOT: kv_spans
  // CHECKS: #rt.variant<max_rows = 64, kernel = @attention_32_8x128_bf16_scale3E000000_q1
  %a = lm.attention %q, %kv {arith = #lm.arith<bf16>, format = #lm.format<bf16>, head_dim = 128, scale = 0.125} : (tensor<?x4096xbf16>, !kv) -> tensor<?x4096xbf16> loc("blk.3.attn")
  return %a : tensor<?x4096xbf16>
}

// CHECK-LABEL: tile.kernel @attention_32_8x128_bf16_scale3E000000_s16
// CHECK-SAME: %[[SPANS:[a-z0-9]+]]: memref<?x11xi32>, %[[ARRIVALS:[a-z0-9]+]]: memref<?xi32>, %[[OUT:[a-z0-9]+]]: memref<?x4096xbf16>, %[[ACC:[a-z0-9]+]]: memref<131136x128xf32>, %[[M:[a-z0-9]+]]: memref<131136xf32>, %[[L:[a-z0-9]+]]: memref<131136xf32>
// CHECK: %[[STATE:.*]]:6 = scf.for %{{.*}} iter_args(%[[TM:[a-z0-9]+]] = %{{.*}}, %[[TL:[a-z0-9]+]] = %{{.*}}, %[[TACC:[a-z0-9]+]] = %{{.*}}, %[[SM:[a-z0-9]+]] = %{{.*}}, %[[SL:[a-z0-9]+]] = %{{.*}}, %[[SACC:[a-z0-9]+]] = %{{.*}})
// CHECK:   %[[STARTS:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK:   %[[TOTAL:.*]]:3 = scf.if %[[STARTS]]
// CHECK:     math.fma %[[SACC]]
// CHECK:   } else {
// CHECK:     scf.yield %[[TM]], %[[TL]], %[[TACC]]
// CHECK:   tile.dot
// CHECK:   arith.select %[[STARTS]], %{{.*}}, %[[SM]] : vector<64xf32>
// CHECK:   scf.yield %[[TOTAL]]#0, %[[TOTAL]]#1, %[[TOTAL]]#2
// CHECK: math.fma %[[STATE]]#5
// CHECK: scf.if
// CHECK:   tile.store %{{.*}} limit %{{.*}} : vector<16x4x128xbf16>
// CHECK: } else {
// CHECK:   tile.store %{{.*}}, %[[ACC]][{{.*}}] limit
// CHECK:   tile.store %{{.*}}, %[[M]][{{.*}}] limit
// CHECK:   tile.store %{{.*}}, %[[L]][{{.*}}] limit
// CHECK:   %[[LAST:.*]] = tile.arrive %[[ARRIVALS]][{{.*}}] of
// CHECK:   scf.if %[[LAST]] {
// One token: the 8 parts of a group side by side, 4 rows.
// CHECK:     scf.for
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK-COUNT-8: tile.load %[[ACC]]{{.*}} -> vector<4x128xf32>
// CHECK:       tile.store {{.*}} limit {{.*}} : vector<1x4x128xbf16>
// Four tokens: 16 rows.
// CHECK:     scf.for
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK-COUNT-8: tile.load %[[ACC]]{{.*}} -> vector<16x128xf32>
// CHECK:       tile.store {{.*}} limit {{.*}} : vector<4x4x128xbf16>

// One warpgroup and one that copies, three slots of 32 KiB; nobody takes turns.
// PIPE-LABEL: tile.kernel @attention_32_8x128_bf16_scale3E000000_s16
// PIPE-SAME: schedule = {persistent, producers = 128 : i32, residents = 2 : i32, threads = 128 : i32}
// PIPE: tile.alloc_ring : !tile.ring<64 x 128, 1>
// PIPE: tile.alloc_ring : !tile.ring<64 x 128, 3>
// PIPE: tile.alloc_ring : !tile.ring<64 x 128, 3>
// The query comes behind the first keys, or the ring would run dry between units.
// PIPE: tile.roles producer {
// PIPE:   scf.for
// PIPE-NOT: tile.acquire
// PIPE:     scf.for
// PIPE:       scf.if
// PIPE:         tile.copy_async
// PIPE:       tile.gather_async
// PIPE: } consumers {
// PIPE-NOT: _turn
// PIPE:   scf.for
// PIPE:     scf.for
// PIPE:       tile.warpgroup_update
// What is put together has the update in it.
// PIPE:       %[[UPDATE:.*]]:2 = tile.wait %{{.*}} pending 0
// PIPE:       tile.release
// PIPE:       scf.if
// PIPE:         math.fma %[[UPDATE]]#0
// PIPE:     tile.arrive
// PIPE:     scf.if
// PIPE: tile.kernel @attention_32_8x128_bf16_scale3E000000_q32
// PIPE: tile.open_turns

// All stores of a CTA are before its count, all loads of others' behind it; the counter goes back to zero.
// NVVM-LABEL: llvm.func @attention_32_8x128_bf16_scale3E000000_s16
// NVVM-SAME: nvvm.minctasm = 2 : i32, nvvm.reqntid = array<i32: 256, 1, 1>
// NVVM: nvvm.setmaxregister decrease 40
// NVVM: nvvm.setmaxregister increase 216
// NVVM: nvvm.barrier id
// NVVM: atom.acq_rel.gpu.global.add.u32
// NVVM: llvm.store %{{.*}} : i32, !llvm.ptr<1>
// NVVM: nvvm.barrier id
