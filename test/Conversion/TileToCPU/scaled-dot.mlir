// 4-bit codes: 16-bit sums widened once per group; the same products on every instruction set.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' | FileCheck %s --check-prefix=AVX2
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx512vnni})' | FileCheck %s --check-prefix=VNNI
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=neon_dotprod})' | FileCheck %s --check-prefix=NEON
// RUN: not llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=mmx})' 2>&1 | FileCheck %s --check-prefix=ISA

// ISA: error: expected instruction set avx2, avx512vnni, avx512bf16, amxbf16 or neon_dotprod, got 'mmx'

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
// NEON-LABEL: llvm.func @q4_1
// NEON-COUNT-32: llvm.call_intrinsic "llvm.aarch64.neon.sdot"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// NEON-NOT: sdot
// NEON: arith.sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// NEON-COUNT-4: llvm.intr.fma
// NEON-NOT: llvm.intr.fma
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
// NEON-LABEL: llvm.func @wide
// NEON-COUNT-128: llvm.call_intrinsic "llvm.aarch64.neon.smull"({{.*}}) : (vector<4xi16>, vector<4xi16>) -> vector<4xi32>
// NEON-NOT: smull
tile.kernel @wide(%x: memref<?x32xi16>, %s: memref<?x1x2xf32>, %w: memref<2x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi16> -> vector<1x32xi16>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi16>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// Scales of 16 k: two dots over code - 32, each with its FMA; the second 32 k of a record. d is at 0, fields 2 and 3 at 64
// and 80, codes from 288 + 384 on, their two high bits 256 later.
// AVX2-LABEL: llvm.func @q6_k
// AVX2: llvm.getelementptr %{{.*}}[672]
// AVX2: llvm.getelementptr %{{.*}}[928]
// AVX2: arith.subi {{.*}} : vector<16xi16>
// AVX2: llvm.getelementptr %{{.*}}[64]
// AVX2: llvm.getelementptr %{{.*}}[80]
// AVX2-COUNT-16: llvm.x86.avx2.pmadd.wd
// AVX2-COUNT-2: llvm.intr.fma
// AVX2-COUNT-16: llvm.x86.avx2.pmadd.wd
// AVX2-COUNT-2: llvm.intr.fma
// AVX2-NOT: {{pmadd|intr.fma}}
// VNNI-LABEL: llvm.func @q6_k
// VNNI-COUNT-8: llvm.x86.avx512.vpdpwssd.512
// VNNI: llvm.intr.fma
// VNNI-COUNT-8: llvm.x86.avx512.vpdpwssd.512
// VNNI-NOT: vpdpwssd
// NEON-LABEL: llvm.func @q6_k
// NEON-COUNT-64: llvm.aarch64.neon.smull
// NEON: llvm.intr.fma
// NEON-COUNT-64: llvm.aarch64.neon.smull
// NEON-NOT: smull
tile.kernel @q6_k(%x: memref<?x32xi16>, %s: memref<?x1x2xf32>, %w: memref<2x1x3360xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi16> -> vector<1x32xi16>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] {first = 32 : i64} : memref<2x1x3360xi8> -> !tile.packed<32 x 16, q6_k>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi16>, vector<1x1x2xf32>, !tile.packed<32 x 16, q6_k>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// Codes that index a table are looked up as bytes, 128 added.
// AVX2-LABEL: llvm.func @iq4_xs
// AVX2-COUNT-16: llvm.x86.avx2.pshuf.b
// AVX2-NOT: pshuf
// AVX2: llvm.x86.avx2.psign.b
// VNNI-LABEL: llvm.func @iq4_xs
// VNNI-COUNT-8: llvm.x86.avx512.pshuf.b.512
// VNNI-NOT: pshuf
// VNNI-COUNT-16: llvm.x86.avx512.vpdpbusd.512
// VNNI-NOT: vpdpbusd
// NEON-LABEL: llvm.func @iq4_xs
// NEON-COUNT-4: "llvm.aarch64.neon.tbl1"
// NEON: arith.subi {{.*}} : vector<32xi8>
// NEON-COUNT-32: llvm.aarch64.neon.sdot
// NEON-NOT: {{sdot|llvm.x86}}
tile.kernel @iq4_xs(%x: memref<?x32xi8>, %s: memref<?x1x2xf32>, %w: memref<2x1x2176xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi8> -> vector<1x32xi8>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] {first = 96 : i64} : memref<2x1x2176xi8> -> !tile.packed<32 x 16, iq4_xs>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi8>, vector<1x1x2xf32>, !tile.packed<32 x 16, iq4_xs>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}
