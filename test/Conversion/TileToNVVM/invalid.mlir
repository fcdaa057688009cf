// What has no form on a GPU is refused by name.
// RUN: llmc-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(tile-schedule-cuda,tile-to-nvvm)'

tile.kernel @exact(%x: memref<?x32xf32>, %w: memref<1x32x16xf32>, %out: memref<?x16xf32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8x16xf32>
  %a = tile.load %x[%c0, %c0] : memref<?x32xf32> -> vector<8x32xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<1x32x16xf32> -> !tile.packed<32 x 16, f32>
  // expected-error @+1 {{expected arithmetic bf16 or bf16_g32 on a GPU, got f32}}
  %r = tile.dot %a, %b, %zero {arith = #tile.arith<f32>} : vector<8x32xf32>, !tile.packed<32 x 16, f32>, vector<8x16xf32>
  tile.store %r, %out[%c0, %c0] : vector<8x16xf32>, memref<?x16xf32>
}

// -----

tile.kernel @pairs(%x: memref<?x64xf32>, %kv: memref<?x1x1024xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%unit, %c0] : memref<?x64xf32> -> vector<64xf32>
  // expected-error @+1 {{expected a whole token of bf16_nk along k or of bf16_kn along n on a GPU}}
  tile.store_slice %v, %kv[%c0, %c0, %c0] axis k at %unit : vector<64xf32>, memref<?x1x1024xbf16>, !tile.packed<64 x 16, bf16_pairs>
}

// -----

tile.kernel @random(%y: memref<?x64xi32>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{expected a constant vector that is uniform, counts or masks its end}}
  %v = arith.constant dense<[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]> : vector<16xi32>
  tile.store %v, %y[%unit, %c0] : vector<16xi32>, memref<?x64xi32>
}

// -----

// expected-error @+1 {{expected a schedule with threads, a multiple of 32 up to 1024}}
tile.kernel @odd(%y: memref<?x64xi32>, %rows: index, %unit: index) attributes {schedule = {threads = 48 : i32}} {
}

// -----

// expected-error @+1 {{expected splits that divide the warps of a transposed schedule without producers, got 3}}
tile.kernel @three(%out: memref<?x192xf32>, %rows: index, %unit: index) attributes {schedule = {splits = 3 : i32, threads = 256 : i32, transposed}} {
}

// -----

// expected-error @+1 {{expected crews of a warpgroup each, in a persistent transposed schedule without parts, got 3}}
tile.kernel @crews(%out: memref<?x192xf32>, %rows: index, %unit: index) attributes {schedule = {crews = 3 : i32, persistent, producers = 128 : i32, threads = 256 : i32, transposed}} {
}
