// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-to-cpu{isa=avx2})' -split-input-file -verify-diagnostics

// The arithmetic of a GPU is refused, not computed otherwise.
tile.kernel @codes(%x: memref<?x64xbf16>, %w: memref<1x1x576xi8>, %out: memref<?x16xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<1x16xf32>
  %a = tile.load %x[%unit, %c0] : memref<?x64xbf16> -> vector<1x64xbf16>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x1x576xi8> -> !tile.packed<64 x 16, q4_0>
  // expected-error @+2 {{expected arithmetic f32, bf16_eo32, or bf16 with pairs, on a CPU, got bf16_g32}}
  // expected-error @+1 {{failed to legalize operation 'tile.dot'}}
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<bf16_g32>} : vector<1x64xbf16>, !tile.packed<64 x 16, q4_0>, vector<1x16xf32>
  tile.store %r, %out[%unit, %c0] : vector<1x16xf32>, memref<?x16xf32>
}

// -----

// Rows of a product on a GPU may have such columns.
tile.kernel @reduce(%x: memref<?x48xf32>, %out: memref<?xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%unit, %c0] : memref<?x48xf32> -> vector<1x48xf32>
  // expected-error @+2 {{expected a power of two columns on a CPU, got 48}}
  // expected-error @+1 {{failed to legalize operation 'tile.reduce'}}
  %r = tile.reduce add %a : vector<1x48xf32> -> vector<1xf32>
  tile.store %r, %out[%unit] : vector<1xf32>, memref<?xf32>
}
