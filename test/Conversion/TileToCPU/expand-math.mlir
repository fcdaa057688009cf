// Elementary functions are arithmetic: nothing of math but fma, rounding and what is one instruction.
// RUN: llmc-opt %s --tile-expand-math | FileCheck %s
// RUN: llmc-opt %s --tile-to-llvm-avx2 | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: llvm.call @
// LLVM-NOT: llvm.intr.exp
// LLVM-NOT: llvm.intr.tanh
// LLVM-NOT: llvm.intr.sin
// LLVM-NOT: llvm.intr.cos
// CHECK-LABEL: tile.kernel @functions
// CHECK-NOT: math.exp
// CHECK-NOT: math.exp2
// CHECK-NOT: math.tanh
// CHECK-NOT: math.sin
// CHECK-NOT: math.cos
// CHECK-NOT: arith.truncf {{.*}} to vector<32xbf16>
// CHECK: math.roundeven
// CHECK: arith.extf {{.*}} : vector<32xf32> to vector<32xf64>
// A function without an expansion stays: the pass does not touch it.
// CHECK: math.sqrt
tile.kernel @functions(%x: memref<?x32xf32>, %y: memref<?x32xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x32xf32> -> vector<32xf32>
  %b = math.exp %a : vector<32xf32>
  %c = math.exp2 %b : vector<32xf32>
  %t = math.tanh %c : vector<32xf32>
  %d = math.sin %t : vector<32xf32>
  %e = math.cos %d : vector<32xf32>
  %f = math.sqrt %e : vector<32xf32>
  %g = arith.truncf %f : vector<32xf32> to vector<32xbf16>
  tile.store %g, %y[%unit, %c0] : vector<32xbf16>, memref<?x32xbf16>
}
