// The same pipeline on e4m3: 128 k a slot, four products of 32 k. Scales of the weight's rows, two for each thread, are loaded before them, those
// of the tokens behind them.
// RUN: llmc --worker %s %t sm_90a ptx scaled && FileCheck %s < %t
// CHECK: .visible .entry scaled(
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK-COUNT-2: ld.global
// CHECK-NOT: ld.global
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK-COUNT-16: ld.global
module attributes {llmc.pipeline = "cuda"} {
  tile.kernel @scaled(%x: memref<?x512xf8E4M3FN>, %s: memref<?x32xf32>, %w: memref<12x16x512xf8E4M3FN, strided<[8320, 512, 1]>>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %k = arith.muli %i, %c128 : index
      %b = tile.load_packed %w[%c0, %c0, %k] : memref<12x16x512xf8E4M3FN, strided<[8320, 512, 1]>> -> !tile.packed<128 x 128, e4m3_nk>
      %a = tile.load %x[%c0, %k] : memref<?x512xf8E4M3FN> -> vector<64x128xf8E4M3FN>
      %r = tile.dot %a, %b, %acc {arith = #tile.arith<e4m3>} : vector<64x128xf8E4M3FN>, !tile.packed<128 x 128, e4m3_nk>, vector<64x128xf32>
      scf.yield %r : vector<64x128xf32>
    }
    %rs = tile.view %s at 0 : memref<?x32xf32> -> memref<?x128xf32, strided<[32, 0]>>
    %r = tile.load %rs[%c0, %c0] : memref<?x128xf32, strided<[32, 0]>> -> vector<64x128xf32>
    %ws = tile.view %w at 8192 : memref<12x16x512xf8E4M3FN, strided<[8320, 512, 1]>> -> memref<12x16xf32, strided<[2080, 1]>>
    %c = tile.load %ws[%c0, %c0] : memref<12x16xf32, strided<[2080, 1]>> -> vector<8x16xf32>
    %columns = vector.shape_cast %c : vector<8x16xf32> to vector<128xf32>
    %spread = vector.broadcast %columns : vector<128xf32> to vector<64x128xf32>
    %factor = arith.mulf %r, %spread : vector<64x128xf32>
    %y = arith.mulf %sum, %factor : vector<64x128xf32>
    tile.store %y, %out[%c0, %c0] limit %rows columns : vector<64x128xf32>, memref<?x192xf32>
  }
}
