// A loop of products on dense panels becomes a producer and consumers, each with a loop over the CTA's units; other kernels
// stay as they are.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' | FileCheck %s --check-prefix=ASYNC
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda,tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s --check-prefix=NVVM

// ASYNC-LABEL: tile.kernel @wide
// ASYNC-SAME: schedule = {persistent, producers = 32 : i32, threads = 256 : i32, transposed}
// ASYNC: %[[X:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 6>
// ASYNC: %[[W:.*]] = tile.alloc_ring : !tile.ring<128 x 64, 6>
// ASYNC: %[[P:.*]] = tile.alloc_pipeline : !tile.pipeline<6>
// ASYNC: tile.roles producer {
// ASYNC:   %[[UNITS:.*]] = tile.units
// ASYNC:   %[[CTAS:.*]] = tile.ctas
// ASYNC:   scf.for %[[U:[a-z0-9]+]] = %{{.*}} to %[[UNITS]] step %[[CTAS]] iter_args(%[[FIRST:.*]] = %{{.*}}) -> (index) {
// ASYNC:     %[[PANEL:.*]] = arith.muli %[[U]], %c8
// ASYNC:     scf.for %[[I:[a-z0-9]+]] =
// ASYNC:       %[[ROUND:.*]] = arith.addi %[[FIRST]], %[[I]]
// ASYNC:       tile.acquire %[[P]][%[[ROUND]]] expects 32768
// ASYNC:       tile.copy_async %{{.*}} box [128, 64] to %[[X]][%[[ROUND]]] signals %[[P]]
// ASYNC:       tile.copy_async %{{.*}}[%[[PANEL]], %{{.*}}] box [8, 16, 64] to %[[W]][%[[ROUND]]] signals %[[P]]
// ASYNC:     %[[NEXT:.*]] = arith.addi %[[FIRST]], %c4
// ASYNC:     scf.yield %[[NEXT]]
// ASYNC: } consumers {
// ASYNC:   scf.for %[[V:[a-z0-9]+]] = %{{.*}} iter_args(%[[BEGIN:.*]] = %{{.*}}) -> (index) {
// ASYNC:     %[[END:.*]] = arith.addi %[[BEGIN]], %c4
// ASYNC:     tile.start
// ASYNC:     scf.for %[[R:[a-z0-9]+]] =
// ASYNC:       %[[AT:.*]] = arith.addi %[[BEGIN]], %[[R]]
// ASYNC:       tile.await %[[P]][%[[AT]]]
// ASYNC:       tile.warpgroup_dot %[[X]][%[[AT]]], %[[W]][%[[AT]]]
// ASYNC:       tile.wait {{.*}} pending 1
// ASYNC:       %[[LAST:.*]] = arith.select %{{.*}}, %c-1, %{{.*}} : index
// ASYNC:       tile.release %[[P]][%[[LAST]]]
// ASYNC:     tile.wait {{.*}} pending 0 {{.*}} -> vector<128x128xf32>
// ASYNC:     tile.release %[[P]]
// ASYNC:     %[[COLUMN:.*]] = arith.muli %[[V]], %c128
// ASYNC:     tile.store %{{.*}}[%{{.*}}, %[[COLUMN]]]
// ASYNC:     scf.yield %[[END]]

// NVVM: llvm.mlir.global external @dynamic_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// NVVM-LABEL: llvm.func @wide
// NVVM-SAME: %{{.*}}: i64, %[[UNITS:.*]]: i64, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// NVVM-SAME: nvvm.reqntid = array<i32: 288, 1, 1>
// NVVM: nvvm.mbarrier.init
// NVVM: nvvm.fence.mbarrier.init
// NVVM: nvvm.barrier0
// NVVM: arith.index_cast %[[UNITS]]
// NVVM: "mov.u32 $0, %nctaid.x;"
// NVVM: nvvm.mbarrier.try_wait.parity
// NVVM: nvvm.mbarrier.arrive.expect_tx
// NVVM-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// NVVM: nvvm.mbarrier.try_wait.parity
// NVVM: nvvm.wgmma.fence.aligned
// NVVM-COUNT-4: nvvm.wgmma.mma_async
// NVVM: nvvm.wgmma.commit.group.sync.aligned
// NVVM: nvvm.wgmma.wait.group.sync.aligned 1
// NVVM: nvvm.mbarrier.arrive
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM: nvvm.mbarrier.arrive
// The result goes through shared memory, 64 rows at a time.
// NVVM: nvvm.barrier id
// NVVM-COUNT-32: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM: nvvm.barrier id
// NVVM-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// NVVM: nvvm.barrier id
tile.kernel @wide(%x: memref<?x256xbf16>, %w: memref<12x16x256xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
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
    %b = tile.load_packed %w[%panel, %c0, %k] : memref<12x16x256xbf16> -> !tile.packed<64 x 128, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<128x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<128x128xf32>
    scf.yield %r : vector<128x128xf32>
  }
  tile.store %sum, %out[%c0, %column] limit %rows columns : vector<128x128xf32>, memref<?x192xf32>
}

// The loop carries more than sums: not touched.
// ASYNC-LABEL: tile.kernel @other
// ASYNC-NOT: tile.roles
// ASYNC: tile.return
tile.kernel @other(%x: memref<?x256xbf16>, %w: memref<12x16x256xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %sum:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero, %n = %c0) -> (vector<128x128xf32>, index) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%c0, %c0, %k] : memref<12x16x256xbf16> -> !tile.packed<64 x 128, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<128x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<128x128xf32>
    scf.yield %r, %k : vector<128x128xf32>, index
  }
  tile.store %sum#0, %out[%sum#1, %c0] limit %rows : vector<128x128xf32>, memref<?x192xf32>
}

// What is added to the sums is asked for: into the L2 cache at the start of the unit, its first 64 rows into registers before the last
// products are waited for. It is added where whole rows are written, and read nowhere else.
// NVVM-LABEL: llvm.func @residual
// NVVM-COUNT-2: llvm.call_intrinsic "llvm.nvvm.prefetch.global.L2"
// NVVM: nvvm.wgmma.wait.group.sync.aligned 1
// NVVM: nvvm.mbarrier.arrive
// NVVM-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// NVVM-NOT: llvm.load {{.*}} -> f32
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM: nvvm.barrier id
// NVVM-COUNT-32: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// NVVM: nvvm.barrier id
// NVVM: arith.addf %{{.*}}, %{{.*}} : vector<4xf32>
tile.kernel @residual(%x: memref<?x256xbf16>, %r: memref<?x256xf32>, %w: memref<16x16x256xbf16>, %out: memref<?x256xf32>, %rows: index, %unit: index) {
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
    %y = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<128x128xf32>
    scf.yield %y : vector<128x128xf32>
  }
  %residual = tile.load %r[%c0, %column] : memref<?x256xf32> -> vector<128x128xf32>
  %result = arith.addf %sum, %residual : vector<128x128xf32>
  tile.store %result, %out[%c0, %column] limit %rows : vector<128x128xf32>, memref<?x256xf32>
}

// Sums of parts: each CTA of the unit multiplies one and has a quarter of the rows of what follows.
// ASYNC-LABEL: tile.kernel @parts
// ASYNC-SAME: parts = 4 : i32
// ASYNC: tile.roles producer {
// ASYNC:   %[[PART:.*]] = tile.part
// ASYNC:   scf.for %[[I:[a-z0-9]+]] = %{{.*}} to %c2{{.*}} {
// ASYNC:     %[[FIRST:.*]] = arith.muli %[[PART]], %c2
// ASYNC:     arith.addi %[[FIRST]], %[[I]]
// ASYNC: } consumers {
// ASYNC:   %[[OWN:.*]] = tile.part
// ASYNC:   %[[ROWS:.*]] = arith.muli %[[OWN]], %c32
// ASYNC:   %[[ROW:.*]] = arith.addi %{{.*}}, %[[ROWS]]
// ASYNC:   %[[SUM:.*]] = tile.wait {{.*}} pending 0 {{.*}} -> vector<128x128xf32>
// ASYNC:   %[[OF:.*]] = tile.sum_parts %[[SUM]] visit %{{.*}} : vector<128x128xf32> -> vector<32x128xf32>
// ASYNC:   tile.load %{{.*}}[%[[ROW]], %{{.*}}] : memref<?x256xf32> -> vector<32x128xf32>
// ASYNC:   tile.store %{{.*}}[%[[ROW]], %{{.*}}] limit %{{.*}} : vector<32x128xf32>

// NVVM-LABEL: llvm.func @parts
// NVVM-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
// NVVM: nvvm.cluster.arrive
// NVVM: nvvm.cluster.wait
// NVVM: nvvm.mapa
// NVVM: llvm.inline_asm has_side_effects {{.*}} "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32
// NVVM: nvvm.cluster.arrive
// NVVM: nvvm.cluster.wait
// NVVM: llvm.return
tile.kernel @parts(%x: memref<?x512xbf16>, %r: memref<?x256xf32>, %w: memref<16x16x512xbf16>, %out: memref<?x256xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %unit, %c128 : index
  %zero = arith.constant dense<0.0> : vector<128x128xf32>
  %sum = scf.for %part = %c0 to %c4 step %c1 iter_args(%total = %zero) -> (vector<128x128xf32>) {
    %first = arith.muli %part, %c2 : index
    %of = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> (vector<128x128xf32>) {
      %step = arith.addi %first, %i : index
      %k = arith.muli %step, %c64 : index
      %b = tile.load_packed %w[%c8, %c0, %k] : memref<16x16x512xbf16> -> !tile.packed<64 x 128, bf16_nk>
      %a = tile.load %x[%row, %k] : memref<?x512xbf16> -> vector<128x64xbf16>
      %y = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<128x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<128x128xf32>
      scf.yield %y : vector<128x128xf32>
    }
    %next = arith.addf %total, %of : vector<128x128xf32>
    scf.yield %next : vector<128x128xf32>
  }
  %residual = tile.load %r[%row, %c128] : memref<?x256xf32> -> vector<128x128xf32>
  %result = arith.addf %sum, %residual : vector<128x128xf32>
  tile.store %result, %out[%row, %c128] limit %rows : vector<128x128xf32>, memref<?x256xf32>
}

// 96 rows: the second chunk has 32.
// NVVM-LABEL: llvm.func @rows96
// NVVM: llvm.inline_asm has_side_effects {{.*}} "wgmma.wait_group.sync.aligned 0;"
// NVVM: nvvm.barrier id
// NVVM-COUNT-32: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM: nvvm.barrier id
// NVVM-COUNT-8: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// NVVM: nvvm.barrier id
// NVVM-COUNT-16: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// NVVM-NOT: : f32, !llvm.ptr<3>
// NVVM: nvvm.barrier id
// NVVM-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// NVVM-NOT: vector<4xf32>, !llvm.ptr<1>
// NVVM: llvm.return
tile.kernel @rows96(%x: memref<?x256xbf16>, %w: memref<8x16x256xbf16>, %out: memref<?x128xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %row = arith.muli %unit, %c96 : index
  %zero = arith.constant dense<0.0> : vector<96x128xf32>
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<96x128xf32>) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%c0, %c0, %k] : memref<8x16x256xbf16> -> !tile.packed<64 x 128, bf16_nk>
    %a = tile.load %x[%row, %k] : memref<?x256xbf16> -> vector<96x64xbf16>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<96x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<96x128xf32>
    scf.yield %r : vector<96x128xf32>
  }
  tile.store %sum, %out[%row, %c0] limit %rows : vector<96x128xf32>, memref<?x128xf32>
}
