// bf16_eo32 of blocks of 16 tokens on AMX: sums stay in tile registers from their zeros to the end of the loop; activations are streamed.
// Weights of codes become pairs of bf16 before the loops over tokens, once for a unit. What tiles do can be done by AVX-512 instead.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=amxbf16})' | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=amxbf16 emulate-amx})' | FileCheck %s --check-prefix=EMULATED
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' | FileCheck %s --check-prefix=AVX2

// CHECK-LABEL: llvm.func @two_by_two
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK: scf.for {{.*}} -> (!llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx)
// CHECK-COUNT-2: %[[A:.*]] = llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: x86.t
// CHECK: scf.yield {{.*}} : !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK-NOT: x86.t
// CHECK-NOT: tile.
// EMULATED-LABEL: llvm.func @two_by_two
// EMULATED-NOT: llvm.x86.t
// EMULATED: scf.for {{.*}} -> (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// EMULATED: llvm.intr.fma
// AVX2-LABEL: llvm.func @two_by_two
// AVX2-NOT: llvm.x86.t
tile.kernel @two_by_two(%x: memref<?x96xbf16>, %w: memref<4x48x64xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<32x16xf32>
  %next = arith.addi %unit, %c1 : index
  %sums:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%s0 = %zero, %s1 = %zero) -> (vector<32x16xf32>, vector<32x16xf32>) {
    %k = arith.muli %i, %c32 : index
    %r = arith.muli %i, %c16 : index
    %b0 = tile.load_packed %w[%unit, %r, %c0] : memref<4x48x64xi8> -> !tile.packed<32 x 16, bf16_pairs>
    %b1 = tile.load_packed %w[%next, %r, %c0] : memref<4x48x64xi8> -> !tile.packed<32 x 16, bf16_pairs>
    %a = tile.load %x[%c0, %k] : memref<?x96xbf16> -> vector<32x32xbf16>
    %d0 = tile.dot %a, %b0, %s0 {arith = #tile.arith<bf16_eo32>} : vector<32x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<32x16xf32>
    %d1 = tile.dot %a, %b1, %s1 {arith = #tile.arith<bf16_eo32>} : vector<32x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<32x16xf32>
    scf.yield %d0, %d1 : vector<32x16xf32>, vector<32x16xf32>
  }
  tile.store %sums#0, %out[%c0, %c0] limit %rows : vector<32x16xf32>, memref<?x32xf32>
  tile.store %sums#1, %out[%c0, %c16] limit %rows : vector<32x16xf32>, memref<?x32xf32>
}

// The loop over records is before that over tokens, rounds two k at a time and stores pairs.
// CHECK-LABEL: llvm.func @codes
// CHECK: llvm.alloca
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-16: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (!llvm.x86_amx)
// CHECK-NOT: cvtne2ps2bf16
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// AVX2-LABEL: llvm.func @codes
// AVX2: scf.for
// AVX2: scf.for
// AVX2: %[[HALF:.*]] = arith.constant dense<32767> : vector<8xi32>
// AVX2: scf.for
tile.kernel @codes(%x: memref<?x64xbf16>, %w: memref<4x2x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  scf.for %row = %c0 to %rows step %c16 {
    %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %zero) -> (vector<16x16xf32>) {
      %k = arith.muli %i, %c32 : index
      %b = tile.load_packed %w[%unit, %i, %c0] : memref<4x2x320xi8> -> !tile.packed<32 x 16, q4_1>
      %a = tile.load %x[%row, %k] : memref<?x64xbf16> -> vector<16x32xbf16>
      %d = tile.dot %a, %b, %s {arith = #tile.arith<bf16_eo32>} : vector<16x32xbf16>, !tile.packed<32 x 16, q4_1>, vector<16x16xf32>
      scf.yield %d : vector<16x16xf32>
    }
    tile.store %sum, %out[%row, %c0] limit %rows : vector<16x16xf32>, memref<?x32xf32>
  }
}

// Four tokens are no block of tiles, and what another op sees in every step leaves the loop in registers.
// CHECK-LABEL: llvm.func @few
// CHECK-NOT: x86.t
// CHECK: llvm.intr.fma
tile.kernel @few(%x: memref<?x32xbf16>, %w: memref<4x16x64xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<4x16xf32>
  %a = tile.load %x[%unit, %c0] : memref<?x32xbf16> -> vector<4x32xbf16>
  %b = tile.load_packed %w[%unit, %c0, %c0] : memref<4x16x64xi8> -> !tile.packed<32 x 16, bf16_pairs>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_eo32>} : vector<4x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<4x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<4x16xf32>, memref<?x32xf32>
}
// CHECK-LABEL: llvm.func @seen
// CHECK-NOT: x86.t
// CHECK: llvm.intr.fma
tile.kernel @seen(%x: memref<?x64xbf16>, %w: memref<4x32x64xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : vector<16x16xf32>
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%s = %zero) -> (vector<16x16xf32>) {
    %k = arith.muli %i, %c32 : index
    %r = arith.muli %i, %c16 : index
    %b = tile.load_packed %w[%unit, %r, %c0] : memref<4x32x64xi8> -> !tile.packed<32 x 16, bf16_pairs>
    %a = tile.load %x[%c0, %k] : memref<?x64xbf16> -> vector<16x32xbf16>
    %twice = arith.addf %s, %s : vector<16x16xf32>
    %d = tile.dot %a, %b, %twice {arith = #tile.arith<bf16_eo32>} : vector<16x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<16x16xf32>
    scf.yield %d : vector<16x16xf32>
  }
  tile.store %sum, %out[%c0, %c0] limit %rows : vector<16x16xf32>, memref<?x32xf32>
}
