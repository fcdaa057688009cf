// Tile values become registers; a row reduction is a transposing tree, whatever the number of rows.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' -split-input-file | FileCheck %s

// CHECK-LABEL: llvm.func @elementwise
// CHECK-NOT: vector<4x16xf32>
// CHECK-COUNT-8: arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT: arith.addf
tile.kernel @elementwise(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<4x16xf32>
  %b = arith.addf %a, %a : vector<4x16xf32>
  tile.store %b, %x[%unit, %c0] : vector<4x16xf32>, memref<?x64xf32>
}

// -----

// Rows from the limit on are not stored.
// CHECK-LABEL: llvm.func @limit
// CHECK-COUNT-2: scf.if
// CHECK-NOT: scf.if
tile.kernel @limit(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<2x16xf32>
  tile.store %a, %x[%unit, %c0] limit %rows : vector<2x16xf32>, memref<?x64xf32>
}

// -----

// Two rows of 16: one fold each, then three levels of four, two and one combinations.
// CHECK-LABEL: llvm.func @reduce
// CHECK-COUNT-9: arith.addf {{.*}} : vector<8xf32>
// CHECK-NOT: arith.addf
tile.kernel @reduce(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<2x16xf32>
  %s = tile.reduce add %a : vector<2x16xf32> -> vector<2xf32>
  tile.store %s, %y[%unit, %c0] : vector<2xf32>, memref<?x64xf32>
}

// -----

// Loop-carried tiles are loop-carried registers.
// CHECK-LABEL: llvm.func @carried
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>)
tile.kernel @carried(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %r = scf.for %i = %c0 to %rows step %c1 iter_args(%acc = %zero) -> (vector<1x16xf32>) {
    %a = tile.load %x[%i, %c0] : memref<?x64xf32> -> vector<1x16xf32>
    %n = arith.addf %acc, %a : vector<1x16xf32>
    scf.yield %n : vector<1x16xf32>
  }
  tile.store %r, %x[%unit, %c0] : vector<1x16xf32>, memref<?x64xf32>
}

// -----

// Keys are stored as columns: pairs of neighbours in one 32-bit store. Values are stored as rows.
// CHECK-LABEL: llvm.func @slices
// CHECK-COUNT-8: llvm.store {{.*}} : i32, !llvm.ptr
// CHECK-NOT: llvm.store {{.*}} : i32
// CHECK-COUNT-16: llvm.store {{.*}} : i16, !llvm.ptr
tile.kernel @slices(%x: memref<?x32xf32>, %kv: memref<?x256xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x32xf32> -> vector<16xf32>
  tile.store_slice %a, %kv[%unit, %c0] axis k at %unit : vector<16xf32>, memref<?x256xbf16>, !tile.packed<16 x 16, bf16_pairs>
  tile.store_slice %a, %kv[%unit, %c0] axis n at %unit : vector<16xf32>, memref<?x256xbf16>, !tile.packed<16 x 16, bf16_pairs>
}
