// 4-bit codes: 16-bit sums widened once per group; the same products on both instruction sets.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' | FileCheck %s --check-prefix=AVX2
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx512vnni})' | FileCheck %s --check-prefix=VNNI
// RUN: not llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=mmx})' 2>&1 | FileCheck %s --check-prefix=ISA

// ISA: error: expected instruction set avx2 or avx512vnni, got 'mmx'

// AVX2-LABEL: llvm.func @q4_1(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
// AVX2: scf.for
// AVX2: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// AVX2-COUNT-15: llvm.x86.avx2.pmadd.ub.sw
// AVX2-NOT: llvm.x86.avx2.pmadd.ub.sw
// AVX2-COUNT-2: llvm.x86.avx2.pmadd.wd
// AVX2: arith.sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// AVX2-COUNT-4: llvm.intr.fma
// AVX2-NOT: llvm.intr.fma
// VNNI-LABEL: llvm.func @q4_1
// VNNI-COUNT-8: llvm.x86.avx512.vpdpbusd.512
// VNNI-NOT: vpdpbusd
// VNNI: arith.sitofp {{.*}} : vector<16xi32> to vector<16xf32>
// VNNI-COUNT-2: llvm.intr.fma
tile.kernel @q4_1(%x: memref<?x32xi8>, %s: memref<?x1x2xf32>, %w: memref<2x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi8> -> vector<1x32xi8>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi8>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// int16 codes: no widening, one multiply-add per pair of k.
// AVX2-LABEL: llvm.func @wide
// AVX2-NOT: pmadd.ub.sw
// AVX2-COUNT-32: llvm.x86.avx2.pmadd.wd
// AVX2-NOT: pmadd
// VNNI-LABEL: llvm.func @wide
// VNNI-COUNT-16: llvm.x86.avx512.vpdpwssd.512
// VNNI-NOT: vpdpwssd
tile.kernel @wide(%x: memref<?x32xi16>, %s: memref<?x1x2xf32>, %w: memref<2x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi16> -> vector<1x32xi16>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi16>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}
