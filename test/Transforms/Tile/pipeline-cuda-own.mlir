// A unit that computes the left operand itself: consumers do, once, while the first weights are on their way; the producer waits for no
// kernel before this one.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @own
// ASYNC-SAME: schedule = {persistent, producers = 32 : i32, threads = 128 : i32, transposed}
// ASYNC: tile.alloc_ring : !tile.ring<64 x 64, 15>
// ASYNC: %[[OWN:.*]] = tile.alloc_rows : memref<1x512xbf16>
// ASYNC-NOT: griddepcontrol
// ASYNC: tile.roles producer {
// ASYNC-NOT: griddepcontrol
// ASYNC: tile.acquire %{{.*}} expects 8192
// ASYNC: consumers {
// ASYNC: tile.load %{{.*}} : memref<1x512xf32>
// ASYNC: nvvm.griddepcontrol wait
// ASYNC: scf.for
// ASYNC:   tile.load %{{.*}} : memref<?x512xf32>
// ASYNC:   tile.stage %{{.*}}, %[[OWN]]
// ASYNC: tile.publish
// ASYNC: scf.for
// ASYNC:   tile.warpgroup_dot_own %[[OWN]][%{{.*}}], %{{.*}} : memref<1x512xbf16>, !tile.ring<64 x 64, 15>, !tile.in_flight<vector<8x64xf32>>

// One row of columns in pieces of eight, one behind the other: 16 bytes from eight columns to the next.
// NVVM-LABEL: llvm.func @own
// NVVM: fence.proxy.async.shared::cta
// NVVM: 65536 : i64
// NVVM: wgmma.mma_async{{.*}}m = 64, n = 8, k = 16
tile.kernel @own(%x: memref<?x512xf32>, %n: memref<1x512xf32>, %w: memref<12x16x512xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %row = arith.divui %unit, %c3 : index
  %block = arith.remui %unit, %c3 : index
  %panel = arith.muli %block, %c4 : index
  %column = arith.muli %block, %c64 : index
  %own = tile.alloc_rows : memref<1x512xbf16>
  %weight = tile.load %n[%c0, %c0] : memref<1x512xf32> -> vector<512xf32>
  scf.for %r = %c0 to %rows step %c1 {
    %v = tile.load %x[%r, %c0] : memref<?x512xf32> -> vector<512xf32>
    %y = arith.mulf %v, %weight : vector<512xf32>
    %t = arith.truncf %y : vector<512xf32> to vector<512xbf16>
    tile.store %t, %own[%r, %c0] : vector<512xbf16>, memref<1x512xbf16>
  }
  %zero = arith.constant dense<0.0> : vector<8x64xf32>
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<8x64xf32>) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%panel, %c0, %k] : memref<12x16x512xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %a = tile.load %own[%row, %k] : memref<1x512xbf16> -> vector<8x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<8x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<8x64xf32>
    scf.yield %r : vector<8x64xf32>
  }
  tile.store %sum, %out[%row, %column] limit %rows : vector<8x64xf32>, memref<?x192xf32>
}
