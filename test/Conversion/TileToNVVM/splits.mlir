// Warps that share the k of a product: two panels are two warps' and four splits share their steps; sums meet in shared memory,
// and the first split stores them.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-schedule-cuda)' | FileCheck %s --check-prefix=SCHEDULE
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s

// SCHEDULE: tile.kernel @few
// SCHEDULE-SAME: schedule = {splits = 4 : i32, threads = 256 : i32, transposed}
// CHECK-LABEL: llvm.func @few
// CHECK-SAME: nvvm.reqntid = array<i32: 256, 1, 1>
// The number of the split is that of the warp, halved; a split begins at its own step and leaves out three.
// CHECK: %[[SPLIT:.*]] = arith.divui %{{.*}}, %c2{{.*}} : index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[SPLIT]], %c1{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[OFFSET]] : index
// CHECK: %[[STEP:.*]] = arith.muli %c1{{.*}}, %c4{{.*}} : index
// CHECK: %[[SUMS:.*]]:4 = scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.store %[[SUMS]]
// CHECK: nvvm.barrier
// CHECK: %[[S0:.*]] = llvm.load
// CHECK: %[[S1:.*]] = llvm.load
// CHECK: %[[A:.*]] = arith.addf %[[S0]], %[[S1]]
// CHECK: %[[S2:.*]] = llvm.load
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[S2]]
// CHECK: %[[S3:.*]] = llvm.load
// CHECK: arith.addf %[[B]], %[[S3]]
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[SPLIT]], %c0
// CHECK: scf.if %[[ONE]]
module {
  tile.kernel @few(%x: memref<?x256xbf16>, %w: memref<12x16x256xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) attributes {splits = 4 : i32} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<8x32xf32>
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<8x32xf32>) {
      %k = arith.muli %i, %c64 : index
      %b = tile.load_packed %w[%c0, %c0, %k] : memref<12x16x256xbf16> -> !tile.packed<64 x 32, bf16_nk>
      %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<8x64xbf16>
      %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<8x64xbf16>, !tile.packed<64 x 32, bf16_nk>, vector<8x32xf32>
      scf.yield %r : vector<8x32xf32>
    }
    tile.store %sum, %out[%c0, %c0] limit %rows : vector<8x32xf32>, memref<?x192xf32>
  }
}
