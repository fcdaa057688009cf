// A pair of products as PTX: a five-dimensional copy, one product, results through shared memory.
// RUN: llmc --worker %s %t sm_90a ptx gated && FileCheck %s < %t
// CHECK: .visible .entry gated(
// CHECK: .param .align 64 .b8 gated_param_6[128]
// CHECK: cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: bar.sync 1, 256
// CHECK: cvt.rn.bf16x2.f32
// CHECK: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: bar.sync 1, 256
// CHECK: ld.shared.v4
// CHECK: st.global.v4
module attributes {llmc.pipeline = "cuda"} {
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
    %z = arith.truncf %y : vector<64x64xf32> to vector<64x64xbf16>
    tile.store %z, %out[%c0, %column] limit %rows columns : vector<64x64xbf16>, memref<?x192xbf16>
  }
}
