// Panels of codes come into a pipeline by producers that unpack them; tokens come by copies. Records that do not fill steps of 64 k are
// left as they are.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @q4_0
// ASYNC-SAME: schedule = {persistent, producers = 128 : i32, threads = 256 : i32, transposed}
// ASYNC: %[[X:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 6>
// ASYNC: %[[W:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 6>
// ASYNC: %[[P:.*]] = tile.alloc_pipeline : !tile.pipeline<6>
// ASYNC: tile.roles producer {
// ASYNC:   %[[ROUND:.*]] = arith.addi
// ASYNC-NOT: tile.acquire
// ASYNC:   tile.unpack_async %{{.*}}[%{{.*}}, %{{.*}}] q4_0 to %[[W]][%[[ROUND]]] signals %[[P]] expects 16384
// ASYNC:   tile.copy_async %{{.*}} box [128, 64] to %[[X]][%[[ROUND]]] signals %[[P]]
// ASYNC-NOT: tile.copy_async
// ASYNC: } consumers {
// ASYNC: } {unpacking}

// Two codes' words of each panel are read and dequantised before the slot is waited for; the thread's eight k are one store of 16
// bytes. The barrier of a full slot counts the copies' thread and the four warps.
// NVVM-LABEL: llvm.func @q4_0
// NVVM-SAME: nvvm.reqntid = array<i32: 384, 1, 1>
// NVVM: %[[FIVE:.*]] = arith.constant 5 : i32
// NVVM: nvvm.mbarrier.init %{{.*}}, %[[FIVE]]
// NVVM: nvvm.setmaxregister decrease 136
// NVVM: arith.minui
// NVVM: "llvm.nvvm.ff2bf16x2.rn"
// NVVM: nvvm.mbarrier.try_wait.parity
// NVVM: nvvm.mbarrier.arrive.expect_tx
// NVVM-COUNT-8: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// NVVM: "fence.proxy.async.shared::cta;"
// NVVM: nvvm.bar.warp.sync
// NVVM: nvvm.mbarrier.arrive
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global
// NVVM: nvvm.setmaxregister increase 184
// NVVM-COUNT-4: nvvm.wgmma.mma_async
tile.kernel @q4_0(%x: memref<?x256xbf16>, %w: memref<12x4x576xi8>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<128x128xf32>) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%c0, %i, %c0] : memref<12x4x576xi8> -> !tile.packed<64 x 128, q4_0>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<128x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, q4_0>, vector<128x128xf32>
    scf.yield %r : vector<128x128xf32>
  }
  tile.store %sum, %out[%c0, %c0] limit %rows columns : vector<128x128xf32>, memref<?x192xf32>
}

// A pair's rows come by eights of gate and up.
// ASYNC-LABEL: tile.kernel @pairs
// ASYNC: tile.unpack_async %{{.*}}[%{{.*}}, %{{.*}}] q4_1 to {{.*}} : memref<6x2x8x320xi8>, !tile.ring<128 x 64, 6>
// ASYNC: tile.deal_columns
tile.kernel @pairs(%x: memref<?x256xbf16>, %w: memref<6x2x8x320xi8>, %out: memref<?x96xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %sums:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %zero, %t = %zero) -> (vector<64x64xf32>, vector<64x64xf32>) {
    %k = arith.muli %i, %c64 : index
    %record = arith.muli %i, %c2 : index
    %g = tile.load_packed %w[%c0, %c0, %record, %c0] : memref<6x2x8x320xi8> -> !tile.packed<64 x 64, q4_1>
    %u = tile.load_packed %w[%c0, %c1, %record, %c0] : memref<6x2x8x320xi8> -> !tile.packed<64 x 64, q4_1>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<64x64xbf16>
    %x0 = tile.dot %a, %g, %s {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, q4_1>, vector<64x64xf32>
    %x1 = tile.dot %a, %u, %t {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, q4_1>, vector<64x64xf32>
    scf.yield %x0, %x1 : vector<64x64xf32>, vector<64x64xf32>
  }
  %y = arith.addf %sums#0, %sums#1 : vector<64x64xf32>
  tile.store %y, %out[%c0, %c0] limit %rows columns : vector<64x64xf32>, memref<?x96xf32>
}

// ASYNC-LABEL: tile.kernel @odd
// ASYNC-NOT: tile.roles
// ASYNC: tile.dot
tile.kernel @odd(%x: memref<?x288xbf16>, %w: memref<12x9x320xi8>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<64x128xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
    %k = arith.muli %i, %c64 : index
    %record = arith.muli %i, %c2 : index
    %b = tile.load_packed %w[%c0, %record, %c0] : memref<12x9x320xi8> -> !tile.packed<64 x 128, q4_1>
    %a = tile.load %x[%c0, %k] : memref<?x288xbf16> -> vector<64x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 128, q4_1>, vector<64x128xf32>
    scf.yield %r : vector<64x128xf32>
  }
  tile.store %sum, %out[%c0, %c0] limit %rows : vector<64x128xf32>, memref<?x192xf32>
}
