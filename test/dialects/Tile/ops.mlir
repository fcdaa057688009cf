// Every op prints what it parses.
// RUN: llmc-opt %s | llmc-opt | FileCheck %s
// RUN: llmc-opt %s --mlir-print-op-generic | llmc-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @ops(%{{.*}}: memref<?x64xf32>, %{{.*}}: memref<?xi8>, %{{.*}}: memref<36x18x320xi8>, %{{.*}}: memref<?xi32>, %{{.*}}: index, %{{.*}}: index) {
tile.kernel @ops(%x: memref<?x64xf32>, %kv: memref<?xi8>, %w: memref<36x18x320xi8>, %ids: memref<?xi32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.view %{{.*}} at 4096 : memref<?xi8> -> memref<?x3x1024xbf16, strided<[12288, 4096, 1]>>
  %k = tile.view %kv at 4096 : memref<?xi8> -> memref<?x3x1024xbf16, strided<[12288, 4096, 1]>>
  // CHECK: tile.load %{{.*}}[%{{.*}}] : memref<?xi32> -> i32
  %id = tile.load %ids[%unit] : memref<?xi32> -> i32
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x64xf32> -> vector<4x64xf32>
  %q = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<4x64xf32>
  // CHECK: tile.load_packed %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] {prefetch = 4096 : i64} : memref<36x18x320xi8> -> !tile.packed<32 x 16, q4_1>
  %p = tile.load_packed %w[%c0, %c0, %c0] {prefetch = 4096} : memref<36x18x320xi8> -> !tile.packed<32 x 16, q4_1>
  // CHECK: tile.unpack_row %{{.*}}[%{{.*}}] first 0 : !tile.packed<32 x 16, q4_1> -> vector<32xf32>
  %row = tile.unpack_row %p[%c0] first 0 : !tile.packed<32 x 16, q4_1> -> vector<32xf32>
  %kb = tile.load_packed %k[%c0, %c0, %c0] : memref<?x3x1024xbf16, strided<[12288, 4096, 1]>> -> !tile.packed<64 x 16, bf16_pairs>
  %zero = arith.constant dense<0.0> : vector<4x16xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {arith = #tile.arith<f32>} : vector<4x64xf32>, !tile.packed<64 x 16, bf16_pairs>, vector<4x16xf32>
  %s = tile.dot %q, %kb, %zero {arith = #tile.arith<f32>} : vector<4x64xf32>, !tile.packed<64 x 16, bf16_pairs>, vector<4x16xf32>
  %codes = arith.constant dense<1> : vector<4x32xi8>
  %scales = arith.constant dense<1.0> : vector<4x1x2xf32>
  // CHECK: tile.scaled_dot %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : vector<4x32xi8>, vector<4x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<4x16xf32>
  %d = tile.scaled_dot %codes, %scales, %p, %s : vector<4x32xi8>, vector<4x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<4x16xf32>
  // CHECK: tile.reduce max %{{.*}} : vector<4x16xf32> -> vector<4xf32>
  %m = tile.reduce max %d : vector<4x16xf32> -> vector<4xf32>
  // CHECK: tile.reduce add %{{.*}} : vector<32xf32> -> f32
  %sum = tile.reduce add %row : vector<32xf32> -> f32
  // CHECK: tile.expand %{{.*}} : vector<4xf32> -> vector<4x16xf32>
  %e = tile.expand %m : vector<4xf32> -> vector<4x16xf32>
  %wide = arith.constant dense<1> : vector<4x32xi16>
  // CHECK: tile.pair_order %{{.*}} : vector<4x32xi16>
  %pairs = tile.pair_order %wide : vector<4x32xi16>
  // CHECK: tile.store_slice %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] axis k at %{{.*}} : vector<32xf32>, memref<{{.*}}>, !tile.packed<64 x 16, bf16_pairs>
  tile.store_slice %row, %k[%c0, %c0, %c0] axis k at %c0 : vector<32xf32>, memref<?x3x1024xbf16, strided<[12288, 4096, 1]>>, !tile.packed<64 x 16, bf16_pairs>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] limit %{{.*}} : vector<4x16xf32>, memref<?x64xf32>
  tile.store %e, %x[%unit, %c0] limit %rows : vector<4x16xf32>, memref<?x64xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : f32, memref<?x64xf32>
  tile.store %sum, %x[%unit, %c0] : f32, memref<?x64xf32>
  // CHECK: tile.return
  tile.return
}

// The scheduled level.
// CHECK-LABEL: tile.kernel @scheduled
tile.kernel @scheduled(%x: memref<?x64xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.alloc_ring : !tile.ring<64 x 64, 1>
  %ring = tile.alloc_ring : !tile.ring<64 x 64, 1>
  // CHECK: %[[N:.*]] = tile.units
  // CHECK: %[[C:.*]] = tile.ctas
  %n = tile.units
  %ctas = tile.ctas
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]] step %[[C]]
  scf.for %u = %unit to %n step %ctas {
    // CHECK: tile.part
    %part = tile.part
    %own = arith.constant dense<0.0> : vector<128x128xf32>
    // CHECK: tile.sum_parts %{{.*}} visit %{{.*}} : vector<128x128xf32> -> vector<32x128xf32>
    %all = tile.sum_parts %own visit %u : vector<128x128xf32> -> vector<32x128xf32>
    %sum = arith.constant dense<0.0> : vector<64x128xbf16>
    // CHECK: %[[E:.*]], %{{.*}} = tile.deal_columns %{{.*}} : vector<64x128xbf16> -> vector<64x64xbf16>
    %e, %o = tile.deal_columns %sum : vector<64x128xbf16> -> vector<64x64xbf16>
    // CHECK: tile.store_staged %[[E]], %{{.*}}[%{{.*}}, %{{.*}}] through %{{.*}} limit %{{.*}} : vector<64x64xbf16>, memref<?x64xbf16>, !tile.ring<64 x 64, 1>
    tile.store_staged %e, %x[%u, %c0] through %ring limit %rows : vector<64x64xbf16>, memref<?x64xbf16>, !tile.ring<64 x 64, 1>
  }
}
// Rows of a unit's own, and results that go where slots say.
// CHECK-LABEL: tile.kernel @own
tile.kernel @own(%x: memref<?x64xbf16>, %kv: memref<?x8x16x128xbf16>, %slots: memref<?xi32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  // CHECK: tile.alloc_rows : memref<1x64xbf16>
  %own = tile.alloc_rows : memref<1x64xbf16>
  %ring = tile.alloc_ring : !tile.ring<64 x 64, 2>
  %v = tile.load %x[%unit, %c0] : memref<?x64xbf16> -> vector<64xbf16>
  // CHECK: tile.stage %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : vector<64xbf16>, memref<1x64xbf16>
  tile.stage %v, %own[%c0, %c0] : vector<64xbf16>, memref<1x64xbf16>
  // CHECK: tile.publish
  tile.publish
  %zero = arith.constant dense<0.0> : vector<8x64xf32>
  %start = tile.start %zero : vector<8x64xf32> -> !tile.in_flight<vector<8x64xf32>>
  // CHECK: tile.warpgroup_dot_own %{{.*}}[%{{.*}}], %{{.*}}[%{{.*}}], %{{.*}} : memref<1x64xbf16>, !tile.ring<64 x 64, 2>, !tile.in_flight<vector<8x64xf32>>
  %sum = tile.warpgroup_dot_own %own[%c0], %ring[%c0], %start : memref<1x64xbf16>, !tile.ring<64 x 64, 2>, !tile.in_flight<vector<8x64xf32>>
  %y = tile.wait %sum pending 0 : (!tile.in_flight<vector<8x64xf32>>) -> vector<8x64xf32>
  %k = arith.truncf %y : vector<8x64xf32> to vector<8x64xbf16>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] slots %{{.*}}[%{{.*}}] limit %{{.*}} : vector<8x64xbf16>, memref<?x8x16x128xbf16>, memref<?xi32>
  tile.scatter %k, %kv[%unit, %c0] slots %slots[%c0] limit %rows : vector<8x64xbf16>, memref<?x8x16x128xbf16>, memref<?xi32>
}

