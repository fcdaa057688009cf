// Attention over gathered pages becomes a producer that copies pages and warpgroups that take turns; the update of a step runs
// beside the scores of the next. What does not fit stays as it is.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(canonicalize,cse,tile-pipeline-attention-cuda,cse)' | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(canonicalize,cse,tile-pipeline-attention-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// CHECK-LABEL: tile.kernel @attention(
// CHECK-SAME: schedule = {persistent, producers = 128 : i32, threads = 256 : i32}
// CHECK: %[[Q:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 2>
// CHECK: %[[K:.*]] = tile.alloc_ring : !tile.ring<64 x 64, 2>
// CHECK: %[[V:.*]] = tile.alloc_ring : !tile.ring<64 x 64, 2>
// CHECK: %[[STAGING:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 1>
// CHECK: %[[QP:.*]] = tile.alloc_pipeline : !tile.pipeline<2>
// CHECK: %[[KP:.*]] = tile.alloc_pipeline : !tile.pipeline<2>
// CHECK: %[[VP:.*]] = tile.alloc_pipeline : !tile.pipeline<2>
// CHECK: tile.roles producer {
// CHECK:   scf.for %[[VISIT:[a-z0-9]+]] = %{{.*}} iter_args(%[[FIRST:.*]] = %c0
// The 126 rows of 42 tokens and 3 heads.
// CHECK:   tile.acquire %[[QP]][%{{.*}}] expects 16128
// CHECK:   tile.copy_async %{{.*}} box [42, 3, 64] to %[[Q]][%{{.*}}] signals %[[QP]]
// The values of a step come behind the keys of the next, with its page and head; those of all come behind the units.
// CHECK:   scf.for %{{.*}} iter_args(%[[HEAD:.*]] = %{{.*}}, %[[PAGE:.*]] = %{{.*}})
// CHECK:     tile.acquire %[[KP]][%[[R:.*]]] expects 8192
// CHECK:     tile.gather_async %{{.*}} page_tokens 16 to %[[K]][%[[R]]] signals %[[KP]] : memref<?x3x32x64xbf16,
// CHECK:     scf.if
// CHECK:       tile.acquire %[[VP]][%[[LAST:.*]]] expects 8192
// CHECK:       tile.gather_async %{{.*}}[%[[HEAD]], %c16{{.*}}] of %{{.*}}[%[[PAGE]]] {{.*}} to %[[V]][%[[LAST]]] signals %[[VP]]
// CHECK:   tile.gather_async %{{.*}} to %[[V]]
// CHECK: } consumers {
// CHECK:   tile.open_turns
// The first step of all, which masks.
// CHECK:   tile.await %[[QP]]
// CHECK:   tile.warpgroup_dot_rows %[[Q]][{{.*}}], %[[K]][{{.*}}] depth 64
// CHECK:   arith.select %{{.*}} : vector<126x64xi1>
// CHECK:   scf.for
// CHECK:   scf.for
// CHECK-NOT: arith.select %{{.*}} : vector<126x64xi1>
// CHECK:     tile.await %[[KP]][%[[N:.*]]]
// CHECK:     tile.take_turn
// CHECK:     %[[S:.*]] = tile.warpgroup_dot_rows
// CHECK:     tile.await %[[VP]][%[[BEFORE:.*]]]
// CHECK:     %[[U:.*]] = tile.warpgroup_update %{{.*}}, %[[V]][%[[BEFORE]]]
// CHECK:     tile.pass_turn
// CHECK:     tile.wait %[[S]] pending 1
// CHECK:     tile.release %[[KP]][%[[N]]]
// CHECK:     %[[P:.*]] = math.exp2 %{{.*}} : vector<126x64xf32>
// Maximum and sum pass through the wait too: they are computed under the update.
// CHECK:     %[[W:.*]]:4 = tile.wait %[[U]], %[[P]], %{{.*}}, %{{.*}} pending 0
// CHECK:     tile.release %[[VP]][%[[BEFORE]]]
// CHECK:     arith.truncf %[[W]]#1
// CHECK:   scf.for
// CHECK:     arith.select %{{.*}} : vector<126x64xi1>
// CHECK:   tile.release %[[QP]]
// The last update of a unit runs with the first scores of the next.
// CHECK:   scf.if
// CHECK:     tile.warpgroup_dot_rows
// CHECK:     tile.warpgroup_update
// CHECK:     tile.wait %{{.*}} pending 1
// CHECK:     tile.wait %{{.*}} pending 0
// CHECK:     tile.store_staged {{.*}} through %[[STAGING]] limit
// CHECK:   } else {
// CHECK-NOT: tile.warpgroup_dot_rows
// CHECK:     tile.warpgroup_update
// CHECK:     tile.wait %{{.*}} pending 0
// CHECK:     tile.store_staged {{.*}} through %[[STAGING]] limit

// NVVM-LABEL: llvm.func @attention(
// NVVM-SAME: nvvm.reqntid = array<i32: 384, 1, 1>
// NVVM: nvvm.setmaxregister decrease 40
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global
// NVVM: nvvm.setmaxregister increase 232
// NVVM: nvvm.barrier.arrive
// NVVM: nvvm.wgmma.mma_async {{.*}} <zero>
// NVVM-COUNT-3: nvvm.wgmma.mma_async {{.*}} <one>
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM: nvvm.barrier id
// NVVM-COUNT-4: "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 1;"
// What keeps the softmax before the wait.
// NVVM: "{ .reg .pred p; {{.*}} ld.volatile.shared
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// Rows of 16 bytes a lane.
// NVVM: nvvm.stmatrix
// NVVM: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// NVVM: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<1>
tile.kernel @attention(%query: memref<?x9x64xbf16>, %cache: memref<?xi8>, %table: memref<?xi32>, %out: memref<?x9x64xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %none = arith.constant dense<0xFF800000> : vector<126x64xf32>
  %zero = arith.constant dense<0.0> : vector<126x64xf32>
  %low = arith.constant dense<-1.0e30> : vector<126xf32>
  %nothing = arith.constant dense<0.0> : vector<126xf32>
  %iota = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : vector<64xi32>
  %limit = arith.index_cast %rows : index to i32
  %seen = vector.broadcast %limit : i32 to vector<126xi32>
  %head = arith.muli %unit, %c3 : index
  %loaded = tile.load %query[%c0, %head, %c0] : memref<?x9x64xbf16> -> vector<42x3x64xbf16>
  %q = vector.shape_cast %loaded : vector<42x3x64xbf16> to vector<126x64xbf16>
  %keys = tile.view %cache at 0 : memref<?xi8> -> memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>
  %values = tile.view %cache at 2048 : memref<?xi8> -> memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>
  %whole = arith.muli %unit, %c4 : index
  %a:3 = scf.for %n = %c0 to %whole step %c4 iter_args(%m = %low, %l = %nothing, %acc = %zero) -> (vector<126xf32>, vector<126xf32>, vector<126x64xf32>) {
    %pages = tile.load %table[%n] : memref<?xi32> -> vector<4xi32>
    %k = tile.gather_packed %keys[%pages : %unit, %c0, %c0] : memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>, vector<4xi32> -> !tile.packed<64 x 64, bf16_nk>
    %v = tile.gather_packed %values[%pages : %unit, %c0, %c0] : memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>, vector<4xi32> -> !tile.packed<64 x 64, bf16_kn>
    %s = tile.dot %q, %k, %zero {arith = #tile.arith<bf16>} : vector<126x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<126x64xf32>
    %high = tile.reduce max %s : vector<126x64xf32> -> vector<126xf32>
    %m1 = arith.maxnumf %m, %high : vector<126xf32>
    %wide = tile.expand %m1 : vector<126xf32> -> vector<126x64xf32>
    %d = arith.subf %s, %wide : vector<126x64xf32>
    %p = math.exp2 %d : vector<126x64xf32>
    %change = arith.subf %m, %m1 : vector<126xf32>
    %alpha = math.exp2 %change : vector<126xf32>
    %sum = tile.reduce add %p : vector<126x64xf32> -> vector<126xf32>
    %l1 = math.fma %l, %alpha, %sum : vector<126xf32>
    %factor = tile.expand %alpha : vector<126xf32> -> vector<126x64xf32>
    %scaled = arith.mulf %acc, %factor : vector<126x64xf32>
    %pb = arith.truncf %p : vector<126x64xf32> to vector<126x64xbf16>
    %acc1 = tile.dot %pb, %v, %scaled {arith = #tile.arith<bf16>} : vector<126x64xbf16>, !tile.packed<64 x 64, bf16_kn>, vector<126x64xf32>
    scf.yield %m1, %l1, %acc1 : vector<126xf32>, vector<126xf32>, vector<126x64xf32>
  }
  %b:3 = scf.for %n = %whole to %rows step %c4 iter_args(%m = %a#0, %l = %a#1, %acc = %a#2) -> (vector<126xf32>, vector<126xf32>, vector<126x64xf32>) {
    %pages = tile.load %table[%n] : memref<?xi32> -> vector<4xi32>
    %k = tile.gather_packed %keys[%pages : %unit, %c0, %c0] : memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>, vector<4xi32> -> !tile.packed<64 x 64, bf16_nk>
    %v = tile.gather_packed %values[%pages : %unit, %c0, %c0] : memref<?x3x16x64xbf16, strided<[24576, 2048, 64, 1]>>, vector<4xi32> -> !tile.packed<64 x 64, bf16_kn>
    %s0 = tile.dot %q, %k, %zero {arith = #tile.arith<bf16>} : vector<126x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<126x64xf32>
    %first = arith.muli %n, %c16 : index
    %first32 = arith.index_cast %first : index to i32
    %start = vector.broadcast %first32 : i32 to vector<64xi32>
    %column = arith.addi %iota, %start : vector<64xi32>
    %columns = vector.broadcast %column : vector<64xi32> to vector<126x64xi32>
    %last = tile.expand %seen : vector<126xi32> -> vector<126x64xi32>
    %visible = arith.cmpi sle, %columns, %last : vector<126x64xi32>
    %s = arith.select %visible, %s0, %none : vector<126x64xi1>, vector<126x64xf32>
    %high = tile.reduce max %s : vector<126x64xf32> -> vector<126xf32>
    %m1 = arith.maxnumf %m, %high : vector<126xf32>
    %wide = tile.expand %m1 : vector<126xf32> -> vector<126x64xf32>
    %d = arith.subf %s, %wide : vector<126x64xf32>
    %p = math.exp2 %d : vector<126x64xf32>
    %change = arith.subf %m, %m1 : vector<126xf32>
    %alpha = math.exp2 %change : vector<126xf32>
    %sum = tile.reduce add %p : vector<126x64xf32> -> vector<126xf32>
    %l1 = math.fma %l, %alpha, %sum : vector<126xf32>
    %factor = tile.expand %alpha : vector<126xf32> -> vector<126x64xf32>
    %scaled = arith.mulf %acc, %factor : vector<126x64xf32>
    %pb = arith.truncf %p : vector<126x64xf32> to vector<126x64xbf16>
    %acc1 = tile.dot %pb, %v, %scaled {arith = #tile.arith<bf16>} : vector<126x64xbf16>, !tile.packed<64 x 64, bf16_kn>, vector<126x64xf32>
    scf.yield %m1, %l1, %acc1 : vector<126xf32>, vector<126xf32>, vector<126x64xf32>
  }
  %inverse = tile.expand %b#1 : vector<126xf32> -> vector<126x64xf32>
  %y = arith.divf %b#2, %inverse : vector<126x64xf32>
  %yb = arith.truncf %y : vector<126x64xf32> to vector<126x64xbf16>
  %heads = vector.shape_cast %yb : vector<126x64xbf16> to vector<42x3x64xbf16>
  tile.store %heads, %out[%c0, %head, %c0] limit %rows : vector<42x3x64xbf16>, memref<?x9x64xbf16>
}
