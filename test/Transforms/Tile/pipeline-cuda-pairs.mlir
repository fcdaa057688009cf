// Two products with alternating panels become one: a copy lands eight rows of each by turns, a thread has both sums of an output.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @gated
// ASYNC: %[[W:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 9>
// ASYNC: %[[STAGING:.*]] = tile.alloc_ring : !tile.ring<64 x 64, 1>
// ASYNC: %[[PAIRS:.*]] = tile.view %{{.*}} at 0 : memref<12x2x16x256xbf16> -> memref<12x2x2x8x256xbf16, strided<[8192, 2048, 4096, 256, 1]>>
// Few tokens: the first rounds' weights come while the kernels before this one run, their tokens behind them.
// ASYNC: tile.roles producer {
// ASYNC:   %[[ROUNDS:.*]] = arith.constant 4 : index
// ASYNC:   scf.for %[[R:[a-z0-9]+]] = %c0{{.*}} to %[[ROUNDS]]
// ASYNC:     tile.acquire %{{.*}}[%[[R]]] expects 24576
// ASYNC:     tile.copy_async %[[PAIRS]][%{{.*}}, %c0, %c0, %c0, %{{.*}}] box [4, 2, 2, 8, 64] to %[[W]][%[[R]]]
// ASYNC-NOT: tile.copy_async
// ASYNC:   nvvm.griddepcontrol wait
// ASYNC:   scf.for %[[R:[a-z0-9]+]] = %c0{{.*}} to %[[ROUNDS]]
// ASYNC:     tile.copy_async %{{.*}} box [64, 64] to %{{.*}}[%[[R]]]
// ASYNC:   scf.for {{.*}} iter_args(%[[FIRST:.*]] = %{{.*}}) -> (index) {
// ASYNC:     %[[OPENS:.*]] = arith.cmpi eq, %[[FIRST]], %c0
// ASYNC:     %[[START:.*]] = arith.select %[[OPENS]], %[[ROUNDS]], %c0
// ASYNC:     scf.for %{{.*}} = %[[START]] to
// ASYNC:       tile.copy_async %{{.*}} box [64, 64] to
// ASYNC:       tile.copy_async %[[PAIRS]]{{.*}} to %[[W]]
// ASYNC: } consumers {
// ASYNC:   nvvm.griddepcontrol wait
// ASYNC: %[[SUM:.*]] = tile.wait {{.*}} pending 0 {{.*}} -> vector<64x128xf32>
// ASYNC: %[[EVEN:.*]], %[[ODD:.*]] = tile.deal_columns %[[SUM]] : vector<64x128xf32> -> vector<64x64xf32>
// ASYNC: arith.mulf %[[EVEN]], %[[ODD]] : vector<64x64xf32>
// ASYNC: tile.store_staged %{{.*}} through %[[STAGING]] limit %{{.*}} : vector<64x64xbf16>
// ASYNC-NOT: tile.store

// Elements 2 and 3 of each four of a product are the second sums.
// NVVM-LABEL: llvm.func @gated
// Copies of the same boxes share a tensor map.
// NVVM-SAME: i64, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: !llvm.ptr {{{[^}]*}}grid_constant}, %{{[a-z0-9]+}}: !llvm.ptr {{{[^}]*}}grid_constant}) attributes
// NVVM: %[[Y:.*]] = llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM-DAG: %[[G0:.*]] = llvm.extractvalue %[[Y]][0]
// NVVM-DAG: %[[G1:.*]] = llvm.extractvalue %[[Y]][1]
// NVVM-DAG: %[[U0:.*]] = llvm.extractvalue %[[Y]][2]
// NVVM-DAG: %[[U1:.*]] = llvm.extractvalue %[[Y]][3]
// NVVM: arith.mulf %[[G0]], %[[U0]]
// NVVM: arith.mulf %[[G1]], %[[U1]]
// NVVM: llvm.call_intrinsic "llvm.nvvm.div.approx.ftz.f"
// NVVM-NOT: arith.divf
// NVVM: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// NVVM-COUNT-2: nvvm.stmatrix {{.*}}layout = #nvvm.mma_layout<col>{{.*}} : !llvm.ptr<3>, i32, i32, i32, i32
// NVVM-NOT: nvvm.stmatrix
// NVVM: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// NVVM-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
tile.kernel @gated(%x: memref<?x256xbf16>, %w: memref<12x2x16x256xbf16>, %out: memref<?x192xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %pair = arith.muli %unit, %c4 : index
  %column = arith.muli %unit, %c64 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %sum:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%g = %zero, %u = %zero) -> (vector<64x64xf32>, vector<64x64xf32>) {
    %k = arith.muli %i, %c64 : index
    %gate = tile.load_packed %w[%pair, %c0, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %up = tile.load_packed %w[%pair, %c1, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<64x64xbf16>
    %r = tile.dot %a, %gate, %g {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<64x64xf32>
    %s = tile.dot %a, %up, %u {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<64x64xf32>
    scf.yield %r, %s : vector<64x64xf32>, vector<64x64xf32>
  }
  %y = arith.mulf %sum#0, %sum#1 : vector<64x64xf32>
  %q = arith.divf %y, %sum#1 : vector<64x64xf32>
  %z = arith.truncf %q : vector<64x64xf32> to vector<64x64xbf16>
  tile.store %z, %out[%c0, %column] limit %rows columns : vector<64x64xbf16>, memref<?x192xbf16>
}

// The same panel twice: not touched.
// ASYNC-LABEL: tile.kernel @twice
// ASYNC-NOT: tile.roles
// ASYNC: tile.return
tile.kernel @twice(%x: memref<?x256xbf16>, %w: memref<12x2x16x256xbf16>, %out: memref<?x192xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %pair = arith.muli %unit, %c4 : index
  %column = arith.muli %unit, %c64 : index
  %zero = arith.constant dense<0.0> : vector<64x64xf32>
  %sum:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%g = %zero, %u = %zero) -> (vector<64x64xf32>, vector<64x64xf32>) {
    %k = arith.muli %i, %c64 : index
    %gate = tile.load_packed %w[%pair, %c0, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %up = tile.load_packed %w[%pair, %c0, %c0, %k] : memref<12x2x16x256xbf16> -> !tile.packed<64 x 64, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<64x64xbf16>
    %r = tile.dot %a, %gate, %g {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<64x64xf32>
    %s = tile.dot %a, %up, %u {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 64, bf16_nk>, vector<64x64xf32>
    scf.yield %r, %s : vector<64x64xf32>, vector<64x64xf32>
  }
  %y = arith.mulf %sum#0, %sum#1 : vector<64x64xf32>
  %z = arith.truncf %y : vector<64x64xf32> to vector<64x64xbf16>
  tile.store %z, %out[%c0, %column] limit %rows columns : vector<64x64xbf16>, memref<?x192xbf16>
}
