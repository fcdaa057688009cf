// bf16 with pairs is one chain, of every pair the odd k first: multiply-adds, or the instruction that computes just that.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx512vnni})' | FileCheck %s --check-prefix=VNNI
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=neon_dotprod})' | FileCheck %s
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx512bf16})' | FileCheck %s --check-prefix=BF16

// CHECK-LABEL: llvm.func @pairs
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>)
// CHECK: %[[ODD:.*]] = llvm.intr.fma(%{{.*}}, %[[X:[^,]*]], %{{.*}})
// CHECK: llvm.intr.fma(%{{.*}}, %[[Y:[^,]*]], %[[ODD]])
// CHECK-COUNT-2: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// VNNI: scf.for {{.*}} -> (vector<16xf32>)
// VNNI-COUNT-2: llvm.intr.fma
// VNNI-NOT: llvm.intr.fma
// VNNI-NOT: dpbf16
// BF16-NOT: llvm.intr.fma
// BF16: scf.for {{.*}} -> (vector<16xf32>)
// BF16: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// BF16-NOT: llvm.intr.fma
tile.kernel @pairs(%x: memref<?x32xbf16>, %w: memref<4x16x32xbf16>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %a = tile.load %x[%unit, %c0] : memref<?x32xbf16> -> vector<1x32xbf16>
  %b = tile.load_packed %w[%unit, %c0, %c0] : memref<4x16x32xbf16> -> !tile.packed<32 x 16, bf16_pairs>
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16>} : vector<1x32xbf16>, !tile.packed<32 x 16, bf16_pairs>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}
