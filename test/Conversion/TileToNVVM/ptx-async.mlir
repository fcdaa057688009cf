// The pipeline as PTX: bulk tensor copies that count bytes, warpgroup products from shared memory.
// RUN: llmc --worker %s %t sm_90a ptx wide && FileCheck %s < %t
// CHECK: .extern .shared .align 1024
// CHECK: .visible .entry wide(
// CHECK: .param .align 64 .b8 wide_param_5[128]
// CHECK: mbarrier.init.shared.b64
// CHECK: mbarrier.try_wait.parity
// CHECK: mbarrier.arrive.expect_tx
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: wgmma.fence.sync.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
module attributes {llmc.pipeline = "cuda"} {
  tile.kernel @wide(%x: memref<?x256xbf16>, %w: memref<12x16x256xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<64x128xf32>
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
      %k = arith.muli %i, %c64 : index
      %b = tile.load_packed %w[%c0, %c0, %k] : memref<12x16x256xbf16> -> !tile.packed<64 x 128, bf16_nk>
      %a = tile.load %x[%c0, %k] : memref<?x256xbf16> -> vector<64x64xbf16>
      %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16>} : vector<64x64xbf16>, !tile.packed<64 x 128, bf16_nk>, vector<64x128xf32>
      scf.yield %r : vector<64x128xf32>
    }
    tile.store %sum, %out[%c0, %c0] limit %rows columns : vector<64x128xf32>, memref<?x192xf32>
  }
}
