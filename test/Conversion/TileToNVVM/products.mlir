// Products whose rows nobody reduces are transposed: a warp's 16 rows of the instruction are a panel of the right operand.
// RUN: llmc-opt %s -split-input-file --pass-pipeline='builtin.module(tile-schedule-cuda,tile-to-nvvm)' | FileCheck %s

// Dense: a thread's share of 32 k of a row is one 16-byte load on each side; two products per 32 k.
// CHECK-LABEL: llvm.func @dense
// CHECK-SAME: llvm.noalias, llvm.readonly
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.reqntid = array<i32: 64, 1, 1>
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-NOT: llvm.nvvm.mma
// CHECK: scf.if
// CHECK: llvm.store
tile.kernel @dense(%x: memref<?x32xbf16>, %w: memref<2x16x32xbf16>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x32xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x16x32xbf16> -> !tile.packed<32 x 32, bf16_nk>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x32xbf16>, !tile.packed<32 x 32, bf16_nk>, vector<8x32xf32>
  tile.store %r, %out[%c0, %c0] limit %rows : vector<8x32xf32>, memref<?x32xf32>
}

// -----

// q4_1: one word of codes for each of a thread's two rows, d and m, dequantised by fma in f32, rounded in pairs.
// CHECK-LABEL: llvm.func @q4_1
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> f16
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK: llvm.intr.fma
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @q4_1(%x: memref<?x32xbf16>, %w: memref<1x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x32xbf16>, !tile.packed<32 x 16, q4_1>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// q4_0 and q8_0: (q - offset) * d, where q comes as 2^23 + q; two groups share a record.
// CHECK-LABEL: llvm.func @q4_0
// CHECK: arith.constant 0x4B000008 : f32
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @q4_0(%x: memref<?x64xbf16>, %w: memref<1x1x576xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x64xbf16> -> vector<8x64xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x576xi8> -> !tile.packed<64 x 16, q4_0>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x64xbf16>, !tile.packed<64 x 16, q4_0>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// CHECK-LABEL: llvm.func @q8_0
// CHECK: arith.constant 0x4B000080 : f32
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @q8_0(%x: memref<?x64xbf16>, %w: memref<1x1x1088xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x64xbf16> -> vector<8x64xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x1088xi8> -> !tile.packed<64 x 16, q8_0>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x64xbf16>, !tile.packed<64 x 16, q8_0>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// Rows that are reduced stay rows: scores, their maximum over the four lanes of a row, and a product with gathered pages whose
// left operand is the scores' own registers.
// CHECK-LABEL: llvm.func @rowwise
// CHECK-SAME: nvvm.reqntid = array<i32: 32, 1, 1>
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @rowwise(%q: memref<?x64xf32>, %kv: memref<?x1x16x64xbf16>, %table: memref<?xi32>, %out: memref<?x64xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<16x32xf32>
  %none = arith.constant dense<0.0> : vector<16x64xf32>
  %q0 = tile.load %q[%c0, %c0] : memref<?x64xf32> -> vector<16x64xf32>
  %a = arith.truncf %q0 : vector<16x64xf32> to vector<16x64xbf16>
  %pages = tile.load %table[%unit] : memref<?xi32> -> vector<2xi32>
  %k = tile.gather_packed %kv[%pages : %c0, %c0, %c0] : memref<?x1x16x64xbf16>, vector<2xi32> -> !tile.packed<64 x 32, bf16_nk>
  %v = tile.gather_packed %kv[%pages : %c0, %c0, %c0] : memref<?x1x16x64xbf16>, vector<2xi32> -> !tile.packed<32 x 64, bf16_kn>
  %s = tile.dot %a, %k, %zero {arith = #tile.arith<bf16>} : vector<16x64xbf16>, !tile.packed<64 x 32, bf16_nk>, vector<16x32xf32>
  %m = tile.reduce max %s : vector<16x32xf32> -> vector<16xf32>
  %m2 = tile.expand %m : vector<16xf32> -> vector<16x32xf32>
  %d = arith.subf %s, %m2 : vector<16x32xf32>
  %e = math.exp2 %d : vector<16x32xf32>
  %p = arith.truncf %e : vector<16x32xf32> to vector<16x32xbf16>
  %r = tile.dot %p, %v, %none {arith = #tile.arith<bf16>} : vector<16x32xbf16>, !tile.packed<32 x 64, bf16_kn>, vector<16x64xf32>
  tile.store %r, %out[%c0, %c0] limit %rows : vector<16x64xf32>, memref<?x64xf32>
}

// -----

// Codes with scales: integer products per group of 32, exact; then the contract's FMAs in f32. int16 codes take two, of their
// high and their low bytes.
// CHECK-LABEL: llvm.func @codes8
// CHECK-COUNT-1: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8"
// CHECK-NOT: llvm.nvvm.mma
// CHECK-COUNT-8: llvm.intr.fma
tile.kernel @codes8(%c: memref<?x32xi8>, %s: memref<?x1x2xf32>, %w: memref<1x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %c[%c0, %c0] : memref<?x32xi8> -> vector<8x32xi8>
  %t = tile.load %s[%c0, %c0, %c0] : memref<?x1x2xf32> -> vector<8x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %a, %t, %b, %zero : vector<8x32xi8>, vector<8x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// CHECK-LABEL: llvm.func @codes16
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8"
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8.u8"
// CHECK-COUNT-4: llvm.intr.fma
tile.kernel @codes16(%c: memref<?x64xi16>, %s: memref<?x2x2xf32>, %w: memref<1x1x1088xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %c[%c0, %c0] : memref<?x64xi16> -> vector<8x64xi16>
  %t = tile.load %s[%c0, %c0, %c0] : memref<?x2x2xf32> -> vector<8x2x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x1088xi8> -> !tile.packed<64 x 16, q8_0>
  %r = tile.scaled_dot %a, %t, %b, %zero : vector<8x64xi16>, vector<8x2x2xf32>, !tile.packed<64 x 16, q8_0>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// Scales of 16 k: a thread's eight k have the scale of their half (quad / 2); codes are nibbles and two bits more.
// CHECK-LABEL: llvm.func @q6_k
// CHECK: arith.constant 8.388640e+06 : f32
// CHECK: arith.divui
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> i8
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: arith.ori
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @q6_k(%x: memref<?x32xbf16>, %w: memref<1x1x3360xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] {first = 64 : i64} : memref<1x1x3360xi8> -> !tile.packed<32 x 16, q6_k>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x32xbf16>, !tile.packed<32 x 16, q6_k>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// Codes that index a table: eight byte permutations look up a thread's eight; one more makes an f32 of each.
// CHECK-LABEL: llvm.func @iq4_nl
// CHECK-COUNT-32: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-NOT: prmt
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @iq4_nl(%x: memref<?x32xbf16>, %w: memref<1x1x576xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x576xi8> -> !tile.packed<32 x 16, iq4_nl>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<8x32xbf16>, !tile.packed<32 x 16, iq4_nl>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// bf16_g32: codes enter the product as whole numbers. q4_1: one word of codes and d and m for each of a thread's two rows; the tokens'
// own sums are two products with ones; d and m meet the sums, which begin at zero for every 32 k.
// CHECK-LABEL: llvm.func @whole_q4_1
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"(%c1065369472_i32,
// CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> f16
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%{{.*}}, %c1128481603_i32, %c16704_i32)
// CHECK: llvm.fsub {{.*}} : vector<2xbf16>
// CHECK-NOT: ff2bf16x2
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-COUNT-8: llvm.intr.fma
tile.kernel @whole_q4_1(%x: memref<?x32xbf16>, %w: memref<1x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_g32>} : vector<8x32xbf16>, !tile.packed<32 x 16, q4_1>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// q4_0: less 128 + 8; two groups share a record, each with its own sums.
// CHECK-LABEL: llvm.func @whole_q4_0
// CHECK: arith.constant dense<1.360000e+02> : vector<2xbf16>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-COUNT-4: llvm.intr.fma
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
// CHECK-COUNT-4: llvm.intr.fma
tile.kernel @whole_q4_0(%x: memref<?x64xbf16>, %w: memref<1x1x576xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x64xbf16> -> vector<8x64xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x576xi8> -> !tile.packed<64 x 16, q4_0>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_g32>} : vector<8x64xbf16>, !tile.packed<64 x 16, q4_0>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// q8_0: seven bits over 128, less 128 or 256 by the eighth bit.
// CHECK-LABEL: llvm.func @whole_q8_0
// CHECK-DAG: arith.andi %{{.*}}, %c2139062143_i32
// CHECK-DAG: arith.andi %{{.*}}, %c-2139062144_i32
// CHECK: llvm.fsub {{.*}} : vector<2xbf16>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @whole_q8_0(%x: memref<?x64xbf16>, %w: memref<1x1x1088xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x64xbf16> -> vector<8x64xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x1088xi8> -> !tile.packed<64 x 16, q8_0>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_g32>} : vector<8x64xbf16>, !tile.packed<64 x 16, q8_0>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}

// -----

// Codes that index a table: eight byte permutations look up a thread's eight, eight more make bf16 of them.
// CHECK-LABEL: llvm.func @whole_iq4_nl
// CHECK-COUNT-32: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-NOT: prmt
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
tile.kernel @whole_iq4_nl(%x: memref<?x32xbf16>, %w: memref<1x1x576xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xbf16> -> vector<8x32xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x576xi8> -> !tile.packed<32 x 16, iq4_nl>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_g32>} : vector<8x32xbf16>, !tile.packed<32 x 16, iq4_nl>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x32xf32>
}
