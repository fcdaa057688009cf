// AArch64's code: products of codes by sdot, or by smull and addp; what is not written as a multiply-add stays two roundings.
// RUN: llmc-opt %s --tile-to-llvm-neon_dotprod | mlir-translate --mlir-to-llvmir \
// RUN:   | llc -O3 -mtriple=aarch64-linux-gnu -mattr=+dotprod -fp-contract=off | FileCheck %s

// CHECK-LABEL: q4_1:
// CHECK-COUNT-32: sdot {{v[0-9]+}}.4s, {{v[0-9]+}}.16b,
// CHECK-NOT: sdot
// CHECK-COUNT-4: scvtf {{v[0-9]+}}.4s
// CHECK: ret
tile.kernel @q4_1(%x: memref<?x32xi8>, %s: memref<?x1x2xf32>, %w: memref<2x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi8> -> vector<1x32xi8>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi8>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// CHECK-LABEL: wide:
// CHECK: smull {{v[0-9]+}}.4s, {{v[0-9]+}}.4h,
// CHECK: addp {{v[0-9]+}}.4s
// CHECK: ret
tile.kernel @wide(%x: memref<?x32xi16>, %s: memref<?x1x2xf32>, %w: memref<2x1x320xi8>, %out: memref<?x32xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %codes = tile.load %x[%unit, %c0] : memref<?x32xi16> -> vector<1x32xi16>
  %scales = tile.load %s[%unit, %c0, %c0] : memref<?x1x2xf32> -> vector<1x1x2xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x1x320xi8> -> !tile.packed<32 x 16, q4_1>
  %r = tile.scaled_dot %codes, %scales, %b, %zero : vector<1x32xi16>, vector<1x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x32xf32>
}

// CHECK-LABEL: separate:
// CHECK-NOT: {{fmla|fmadd}}
// CHECK: fmul {{v[0-9]+}}.4s
// CHECK-NOT: {{fmla|fmadd}}
// CHECK: fadd {{v[0-9]+}}.4s
// CHECK-NOT: {{fmla|fmadd}}
// CHECK: ret
tile.kernel @separate(%x: memref<?x16xf32>, %out: memref<?x16xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x16xf32> -> vector<1x16xf32>
  %square = arith.mulf %a, %a : vector<1x16xf32>
  %r = arith.addf %square, %a : vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x16xf32>
}
