// The same kernel as PTX: read-only loads, the tensor core's instruction, the launch bounds.
// RUN: llmc --worker %s %t sm_90a ptx dense && FileCheck %s < %t
// CHECK: .target sm_90a
// CHECK: .visible .entry dense(
// CHECK: .reqntid 64
// CHECK: .minnctapersm 1
// Nothing of global memory is read before the kernels before this one have ended.
// CHECK-NOT: ld.global
// CHECK: griddepcontrol.launch_dependents
// CHECK-NOT: ld.global
// CHECK: griddepcontrol.wait
// CHECK: ld.global.nc.v4
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: st.global
module attributes {llmc.pipeline = "cuda"} {
  tile.kernel @dense(%x: memref<?x32xbf16>, %w: memref<2x16x32xbf16>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : vector<8x32xf32>
    %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
    %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x16x32xbf16> -> !tile.packed<32 x 32, bf16_nk>
    %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x32xbf16>, !tile.packed<32 x 32, bf16_nk>, vector<8x32xf32>
    tile.store %r, %out[%c0, %c0] limit %rows : vector<8x32xf32>, memref<?x32xf32>
  }
}
