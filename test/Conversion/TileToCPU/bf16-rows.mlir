// 32 rounded values fit a 512-bit register as bits, but are split by lanes like the floats that they come from.
// RUN: llmc-opt %s --tile-to-llvm-avx2 | FileCheck %s
// RUN: llmc-opt %s --tile-to-llvm-avx512vnni | FileCheck %s
// RUN: llmc-opt %s --tile-to-llvm-avx512bf16 | FileCheck %s

// CHECK-LABEL: llvm.func @round
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.return
tile.kernel @round(%x: memref<?x32xf32>, %y: memref<?x32xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x32xf32> -> vector<32xf32>
  %b = arith.truncf %a : vector<32xf32> to vector<32xbf16>
  tile.store %b, %y[%unit, %c0] : vector<32xbf16>, memref<?x32xbf16>
  tile.return
}
