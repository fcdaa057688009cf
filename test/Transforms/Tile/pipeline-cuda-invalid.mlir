// A kernel that counts on zeros past the ends of its operands cannot do without the pipeline.
// RUN: llmc-opt %s --pass-pipeline='builtin.module(tile-pipeline-cuda)' -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a product for tile-pipeline-cuda: expected bf16 or e4m3 products with one left operand}}
tile.kernel @f32(%x: memref<?x288xf32>, %w: memref<12x16x288xbf16>, %out: memref<?x192xf32>, %rows: index, %unit: index) attributes {pipelined} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : vector<64x128xf32>
  %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %zero) -> (vector<64x128xf32>) {
    %k = arith.muli %i, %c64 : index
    %b = tile.load_packed %w[%c0, %c0, %k] : memref<12x16x288xbf16> -> !tile.packed<64 x 128, bf16_nk>
    %a = tile.load %x[%c0, %k] : memref<?x288xf32> -> vector<64x64xf32>
    %r = tile.dot %a, %b, %acc {arith = #tile.arith<f32>} : vector<64x64xf32>, !tile.packed<64 x 128, bf16_nk>, vector<64x128xf32>
    scf.yield %r : vector<64x128xf32>
  }
  tile.store %sum, %out[%c0, %c0] limit %rows : vector<64x128xf32>, memref<?x192xf32>
}
