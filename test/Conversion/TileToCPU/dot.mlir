// Products name no algorithm: dense, pairwise and widened operands, each one chain (or pair of chains) per result.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' -split-input-file | FileCheck %s

// The left operand is broadcast from where it was loaded; k runs in a loop with the register tile carried.
// CHECK-LABEL: llvm.func @dense
// CHECK-NOT: llvm.alloca
// CHECK: scf.for {{.*}} step %{{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
tile.kernel @dense(%x: memref<?x64xf32>, %w: memref<4x64x16xf32>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %a = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<1x64xf32>
  %b = tile.load_packed %w[%unit, %c0, %c0] : memref<4x64x16xf32> -> !tile.packed<64 x 16, f32>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<f32>} : vector<1x64xf32>, !tile.packed<64 x 16, f32>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// -----

// A computed left operand goes through the stack.
// CHECK-LABEL: llvm.func @computed
// CHECK: llvm.alloca
tile.kernel @computed(%x: memref<?x64xf32>, %w: memref<4x64x16xf32>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %a0 = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<1x64xf32>
  %a = arith.addf %a0, %a0 : vector<1x64xf32>
  %b = tile.load_packed %w[%unit, %c0, %c0] : memref<4x64x16xf32> -> !tile.packed<64 x 16, f32>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<f32>} : vector<1x64xf32>, !tile.packed<64 x 16, f32>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// -----

// bf16_eo32: an even and an odd chain from zero, then acc + (even + odd).
// CHECK-LABEL: llvm.func @pairwise
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-4: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK: scf.yield
// CHECK-COUNT-4: arith.addf {{.*}} : vector<8xf32>
tile.kernel @pairwise(%x: memref<?x32xbf16>, %w: memref<4x16x32xbf16>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %a = tile.load %x[%unit, %c0] : memref<?x32xbf16> -> vector<1x32xbf16>
  %b = tile.load_packed %w[%unit, %c0, %c0] : memref<4x16x32xbf16> -> !tile.packed<32 x 16, bf16_pairs>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_eo32>} : vector<1x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}
