// Kernels without products: values are spread over the threads of the CTA, neighbours in fours.
// RUN: llmc-opt %s -split-input-file --pass-pipeline='builtin.module(tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s

// CHECK-LABEL: llvm.func @square
// CHECK-SAME: nvvm.reqntid = array<i32: 128, 1, 1>
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: llvm.load
// CHECK: nvvm.griddepcontrol wait
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-4: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: llvm.return
tile.kernel @square(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x512xf32> -> vector<512xf32>
  %s = arith.mulf %v, %v : vector<512xf32>
  tile.store %s, %y[%unit, %c0] : vector<512xf32>, memref<?x512xf32>
}

// -----

// tanh by one instruction where the op allows it, else by ex2 and rcp.
// CHECK-LABEL: llvm.func @tanh
// CHECK: llvm.intr.tanh(%{{.*}}) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
tile.kernel @tanh(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x128xf32> -> vector<128xf32>
  %t = math.tanh %v fastmath<afn> : vector<128xf32>
  %u = math.tanh %t : vector<128xf32>
  tile.store %u, %y[%unit, %c0] : vector<128xf32>, memref<?x128xf32>
}

// -----

// The tree of tile.reduce: warps through shared memory, then lanes 16, 8, 4 and 2 apart, the thread's own four, the last pair.
// CHECK-LABEL: llvm.func @sum
// CHECK: nvvm.barrier0
// CHECK-COUNT-4: llvm.store {{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: nvvm.shfl.sync bfly
// CHECK: scf.if
// CHECK: llvm.store {{.*}} : f32, !llvm.ptr<1>
tile.kernel @sum(%x: memref<?x512xf32>, %y: memref<?xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x512xf32> -> vector<512xf32>
  %s = tile.reduce add %v : vector<512xf32> -> f32
  tile.store %s, %y[%unit] : f32, memref<?xf32>
}

// -----

// 40 elements on 32 threads: what is past the end is neither read nor written.
// CHECK-LABEL: llvm.func @partial
// CHECK: arith.select
// CHECK: scf.if
tile.kernel @partial(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<40xf32>
  tile.store %v, %y[%unit, %c0] : vector<40xf32>, memref<?x64xf32>
}

// -----

// Keys and values are written as tokens, rounded to bf16; a column that the format keeps elsewhere is refused (invalid.mlir).
// CHECK-LABEL: llvm.func @append
// CHECK: arith.truncf {{.*}} : f32 to bf16
// CHECK: llvm.store {{.*}} : bf16, !llvm.ptr<1>
tile.kernel @append(%x: memref<?x64xf32>, %kv: memref<?x1x16x64xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<64xf32>
  tile.store_slice %v, %kv[%c0, %c0, %c0, %c0] axis k at %unit : vector<64xf32>, memref<?x1x16x64xbf16>, !tile.packed<64 x 16, bf16_nk>
}

// -----

// CHECK-LABEL: llvm.func @table_row
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> i8
// CHECK: arith.sitofp
tile.kernel @table_row(%w: memref<4x2x320xi8>, %y: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %p = tile.load_packed %w[%unit, %c0, %c0] : memref<4x2x320xi8> -> !tile.packed<32 x 16, q4_1>
  %v = tile.unpack_row %p[%unit] first 0 : !tile.packed<32 x 16, q4_1> -> vector<32xf32>
  tile.store %v, %y[%unit, %c0] : vector<32xf32>, memref<?x32xf32>
}

// -----

// An id out of bounds stops the kernel; a negative one is a large one.
// CHECK-LABEL: llvm.func @checked
// CHECK: arith.cmpi uge
// CHECK: llvm.intr.trap
tile.kernel @checked(%ids: memref<?xi32>, %rows: index, %unit: index) {
  %limit = arith.constant 99 : i32
  %id = tile.load %ids[%unit] : memref<?xi32> -> i32
  tile.check %id below %limit, "token id" : i32
  tile.store %id, %ids[%unit] : i32, memref<?xi32>
}

// -----

// Of four neighbouring threads the middle two change values.
// CHECK-LABEL: llvm.func @pairs
// CHECK: nvvm.shfl.sync bfly
// CHECK: arith.select
tile.kernel @pairs(%x: memref<?x32xi16>, %y: memref<?x32xi16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x32xi16> -> vector<32xi16>
  %p = tile.pair_order %v : vector<32xi16>
  tile.store %p, %y[%unit, %c0] : vector<32xi16>, memref<?x32xi16>
}

// -----

// A constant that counts or masks is computed from the element's place.
// CHECK-LABEL: llvm.func @constants
// CHECK-NOT: dense
// CHECK: llvm.return
tile.kernel @constants(%y: memref<?x64xi32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %iota = arith.constant dense<[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]> : vector<16xi32>
  %mask = arith.constant dense<[1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]> : vector<16xi1>
  %zero = arith.constant dense<0> : vector<16xi32>
  %v = arith.select %mask, %iota, %zero : vector<16xi1>, vector<16xi32>
  tile.store %v, %y[%unit, %c0] : vector<16xi32>, memref<?x64xi32>
}

// -----

// e4m3 comes two at a time, and leaves a thread's four neighbours at once.
// CHECK-LABEL: llvm.func @e4m3
// CHECK-COUNT-2: "cvt.rn.satfinite.e4m3x2.f32 $0, $1, $2;"
// CHECK-NOT: cvt.rn
// CHECK: llvm.store {{.*}} {alignment = 4 : i64} : vector<4xi8>, !llvm.ptr<1>
tile.kernel @e4m3(%x: memref<?x512xf32>, %y: memref<?x512xf8E4M3FN>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x512xf32> -> vector<512xf32>
  %e = arith.truncf %v : vector<512xf32> to vector<512xf8E4M3FN>
  %b = arith.bitcast %e : vector<512xf8E4M3FN> to vector<512xi8>
  %z = tile.view %y at 0 : memref<?x512xf8E4M3FN> -> memref<?x512xi8>
  tile.store %b, %z[%unit, %c0] : vector<512xi8>, memref<?x512xi8>
}
