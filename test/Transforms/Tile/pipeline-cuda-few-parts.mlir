// 32 tokens in two parts of k: as many slots as a multiprocessor has room for; a CTA adds, and stores row by row, 16 tokens. What is added
// to them is asked for before the last products are waited for.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @few
// ASYNC-SAME: schedule = {parts = 2 : i32, persistent, producers = 32 : i32, threads = 128 : i32, transposed}
// ASYNC: tile.alloc_ring : !tile.ring<32 x 64, 17>
// ASYNC: tile.alloc_ring : !tile.ring<64 x 64, 17>
// ASYNC: tile.sum_parts {{.*}} : vector<32x64xf32> -> vector<16x64xf32>

// 128 threads fetch 16 rows of two lines.
// NVVM-LABEL: llvm.func @few
// NVVM: %[[FETCHES:.*]] = arith.cmpi slt, %{{.*}}, %c16
// NVVM-NEXT: scf.if %[[FETCHES]]
// NVVM: llvm.call_intrinsic "llvm.nvvm.prefetch.global.L2"
// NVVM: nvvm.wgmma.wait.group.sync.aligned 1
// NVVM-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// NVVM: "wgmma.wait_group.sync.aligned 0;"
// NVVM: st.async
// NVVM-NOT: llvm.load {{.*}} !llvm.ptr<1>
// NVVM-COUNT-8: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
tile.kernel @few(%x: memref<?x1024xbf16>, %r: memref<?x192xf32>, %w: memref<12x16x1024xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %panel = arith.muli %unit, %c4 : index
  %column = arith.muli %unit, %c64 : index
  %zero = arith.constant dense<0.0> : vector<32x64xf32>
  %sum = scf.for %p = %c0 to %c2 step %c1 iter_args(%total = %zero) -> (vector<32x64xf32>) {
    %first = arith.muli %p, %c8 : index
    %part = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (vector<32x64xf32>) {
      %step = arith.addi %first, %i : index
      %k = arith.muli %step, %c64 : index
      %b = tile.load_packed %w[%panel, %c0, %k] : memref<12x16x1024xbf16> -> !tile.packed<64 x 64, bf16_nk>
      %a = tile.load %x[%c0, %k] : memref<?x1024xbf16> -> vector<32x64xbf16>
      %y = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<32x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<32x64xf32>
      scf.yield %y : vector<32x64xf32>
    }
    %y = arith.addf %total, %part : vector<32x64xf32>
    scf.yield %y : vector<32x64xf32>
  }
  %residual = tile.load %r[%c0, %column] : memref<?x192xf32> -> vector<32x64xf32>
  %result = arith.addf %sum, %residual : vector<32x64xf32>
  tile.store %result, %out[%c0, %column] limit %rows : vector<32x64xf32>, memref<?x192xf32>
}
