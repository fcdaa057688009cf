// Sixteen tokens on a panel of 64 columns in two parts of k: a ring of more than half a multiprocessor, eight tokens for each CTA.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @narrow
// ASYNC-SAME: schedule = {parts = 2 : i32, persistent, producers = 32 : i32, threads = 128 : i32, transposed}
// ASYNC: tile.alloc_ring : !tile.ring<16 x 64, 12>
// ASYNC: tile.alloc_ring : !tile.ring<64 x 64, 12>
// The first rounds are those of the part: all its weights before the wait.
// ASYNC: tile.roles producer {
// ASYNC: %[[PART:.*]] = tile.part
// ASYNC: scf.for %[[R:.*]] = %c0{{.*}} to %c8
// ASYNC:   %[[FIRST:.*]] = arith.muli %[[PART]], %c8
// ASYNC:   %[[STEP:.*]] = arith.addi %[[FIRST]], %[[R]]
// ASYNC:   tile.copy_async %{{.*}} box [4, 16, 64]
// ASYNC: nvvm.griddepcontrol wait
// ASYNC: scf.for
// ASYNC:   tile.copy_async %{{.*}} box [16, 64]
// ASYNC: consumers {
// ASYNC: nvvm.griddepcontrol wait
// ASYNC: tile.sum_parts {{.*}} : vector<16x64xf32> -> vector<8x64xf32>

// NVVM-LABEL: llvm.func @narrow
// NVVM-SAME: nvvm.reqntid = array<i32: 160, 1, 1>
// NVVM: nvvm.griddepcontrol wait
// NVVM: wgmma.mma_async
// NVVM: st.async
tile.kernel @narrow(%x: memref<?x1024xbf16>, %w: memref<12x16x1024xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %panel = arith.muli %unit, %c4 : index
  %column = arith.muli %unit, %c64 : index
  %zero = arith.constant dense<0.0> : vector<16x64xf32>
  %sum = scf.for %p = %c0 to %c2 step %c1 iter_args(%total = %zero) -> (vector<16x64xf32>) {
    %first = arith.muli %p, %c8 : index
    %part = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<16x64xf32>) {
      %step = arith.addi %first, %i : index
      %k = arith.muli %step, %c64 : index
      %b = tile.load_packed %w[%panel, %c0, %k] : memref<12x16x1024xbf16> -> !tile.packed<64 x 64, bf16_nk>
      %a = tile.load %x[%c0, %k] : memref<?x1024xbf16> -> vector<16x64xbf16>
      %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<16x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<16x64xf32>
      scf.yield %r : vector<16x64xf32>
    }
    %y = arith.addf %total, %part : vector<16x64xf32>
    scf.yield %y : vector<16x64xf32>
  }
  tile.store %sum, %out[%c0, %column] limit %rows : vector<16x64xf32>, memref<?x192xf32>
}
