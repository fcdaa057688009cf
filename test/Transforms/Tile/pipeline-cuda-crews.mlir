// Crews: each warpgroup has units of its own, 128 columns of them, whose rounds the producer fills one unit after the other. They
// multiply by turns.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @residual
// ASYNC-SAME: schedule = {crews = 2 : i32, persistent, producers = 128 : i32, threads = 256 : i32, transposed}
// ASYNC: tile.alloc_ring : !tile.ring<128 x 64, 6>
// ASYNC: tile.roles producer {
// ASYNC:   scf.for %[[U:[a-z0-9]+]] = %{{.*}} step %{{.*}} iter_args(%[[FIRST:.*]] = %{{.*}}) -> (index) {
// ASYNC:     %[[NEXT:.*]] = arith.addi %[[FIRST]], %c4
// ASYNC:     scf.yield %[[NEXT]]
// ASYNC: } consumers {
// ASYNC:   tile.open_turns
// ASYNC:   %[[CTAS:.*]] = tile.ctas
// ASYNC:   %[[CREW:.*]] = tile.crew
// ASYNC:   %[[OTHERS:.*]] = arith.muli %[[CREW]], %[[CTAS]]
// ASYNC:   %[[OWN:.*]] = arith.addi %{{.*}}, %[[OTHERS]]
// ASYNC:   %[[STEP:.*]] = arith.muli %[[CTAS]], %c2
// ASYNC:   %[[START:.*]] = arith.muli %[[CREW]], %c4
// ASYNC:   scf.for %{{[a-z0-9]+}} = %[[OWN]] to %{{.*}} step %[[STEP]] iter_args(%[[BEGIN:.*]] = %[[START]]) -> (index) {
// ASYNC:     %[[BEHIND:.*]] = arith.addi %[[BEGIN]], %c4
// ASYNC:     tile.take_turn
// ASYNC:     tile.warpgroup_dot
// ASYNC:     tile.pass_turn
// ASYNC:     tile.wait {{.*}} pending 0 {{.*}} -> vector<128x128xf32>
// ASYNC:     %[[SKIP:.*]] = arith.muli %c4{{.*}}, %c1
// ASYNC:     %[[AFTER:.*]] = arith.addi %[[BEHIND]], %[[SKIP]]
// ASYNC:     scf.yield %[[AFTER]]

// A slot is free when the four warps of its crew have released it. Two products of 64 columns each; the result goes through the crew's
// own shared memory, 32 rows of 128 columns at a time.
// NVVM-LABEL: llvm.func @residual
// NVVM-SAME: nvvm.reqntid = array<i32: 384, 1, 1>
// NVVM: nvvm.mbarrier.init %{{.*}}, %c4_i32
// NVVM: nvvm.wgmma.fence.aligned
// NVVM-COUNT-8: nvvm.wgmma.mma_async {{.*}}m = 64, n = 128, k = 16
// NVVM-NOT: nvvm.wgmma.mma_async
// NVVM: nvvm.wgmma.commit.group.sync.aligned
// NVVM: nvvm.wgmma.wait.group.sync.aligned 1
// NVVM-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM: nvvm.barrier id
// NVVM-COUNT-32: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM: nvvm.barrier id
// NVVM-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
tile.kernel @residual(%x: memref<?x256xbf16>, %r: memref<?x256xf32>, %w: memref<16x16x256xbf16>, %out: memref<?x256xf32>, %rows: index, %unit: index) attributes {crews = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %panel = arith.muli %unit, %c8 : index
  %column = arith.muli %unit, %c128 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<128x128xf32>) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%panel, %c0, %k] : memref<16x16x256xbf16> -> !tile.packed<64 x 128, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<128x64xbf16>
    %d = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<128x128xf32>
    scf.yield %d : vector<128x128xf32>
  }
  %old = tile.load %r[%c0, %column] : memref<?x256xf32> -> vector<128x128xf32>
  %y = arith.addf %sum, %old : vector<128x128xf32>
  tile.store %y, %out[%c0, %column] limit %rows : vector<128x128xf32>, memref<?x256xf32>
}

// ASYNC-LABEL: tile.kernel @gated
// ASYNC: tile.alloc_ring : !tile.ring<128 x 64, 2>
// ASYNC: tile.deal_columns %{{.*}} : vector<128x128xf32> -> vector<128x64xf32>

// The crew's warps have pieces 0 to 3 of a row, and 4 to 7.
// NVVM-LABEL: llvm.func @gated
// NVVM-COUNT-8: nvvm.stmatrix
// NVVM-NOT: nvvm.stmatrix
// NVVM-COUNT-8: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
tile.kernel @gated(%x: memref<?x256xbf16>, %w: memref<12x2x16x256xbf16>, %out: memref<?x192xbf16>, %rows: index, %unit: index) attributes {crews = 2 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %pair = arith.muli %unit, %c4 : index
  %column = arith.muli %unit, %c64 : index
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %sum:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%g = %zero, %u = %zero) -> (vector<128x64xf32>, vector<128x64xf32>) {
    %k = arith.muli %i, %c64 : index
    %gate = tile.load_packed %w[%pair, %c0, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %up = tile.load_packed %w[%pair, %c1, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<128x64xbf16>
    %r = tile.dot %a, %gate, %g {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<128x64xf32>
    %s = tile.dot %a, %up, %u {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<128x64xf32>
    scf.yield %r, %s : vector<128x64xf32>, vector<128x64xf32>
  }
  %y = arith.mulf %sum#0, %sum#1 : vector<128x64xf32>
  %z = arith.truncf %y : vector<128x64xf32> to vector<128x64xbf16>
  tile.store %z, %out[%c0, %column] limit %rows columns : vector<128x64xbf16>, memref<?x192xbf16>
}
