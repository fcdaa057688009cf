// Ops of attention pipelines that do not fit together.
// RUN: llmc-opt %s --split-input-file --verify-diagnostics

tile.kernel @panel(%q: memref<?x128xbf16>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 128, 1>
  %p = tile.alloc_pipeline : !tile.pipeline<1>
  // expected-error @+1 {{expected a panel below 2, got 2}}
  tile.copy_async %q[%unit, %unit] box [64, 64] to %r[%unit] signals %p {panel = 2 : i64} : memref<?x128xbf16>, !tile.ring<64 x 128, 1>, !tile.pipeline<1>
  tile.return
}

// -----

tile.kernel @box(%q: memref<?x128xbf16>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 1>
  %p = tile.alloc_pipeline : !tile.pipeline<1>
  // expected-error @+1 {{expected a box of at most 64 x 64 elements}}
  tile.copy_async %q[%unit, %unit] box [72, 64] to %r[%unit] signals %p : memref<?x128xbf16>, !tile.ring<64 x 64, 1>, !tile.pipeline<1>
  tile.return
}

// -----

tile.kernel @ring(%rows: index, %unit: index) {
  // expected-error @+1 {{expected multiples of 8 rows and 64 columns in at least one stage, got 64 x 80, 1}}
  %r = tile.alloc_ring : !tile.ring<64 x 80, 1>
  tile.return
}

// -----

tile.kernel @pages(%k: memref<?x8x16x64xbf16>, %table: memref<?xi32>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 1>
  %p = tile.alloc_pipeline : !tile.pipeline<1>
  // expected-error @+1 {{expected at most 32 pages of a multiple of 8 tokens that fill 64 rows, got pages of 24}}
  tile.gather_async %k[%unit, %unit] of %table[%unit] page_tokens 24 to %r[%unit] signals %p : memref<?x8x16x64xbf16>, memref<?xi32>, !tile.ring<64 x 64, 1>, !tile.pipeline<1>
  tile.return
}

// -----

tile.kernel @columns(%k: memref<?x8x16x128xbf16>, %table: memref<?xi32>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 1>
  %p = tile.alloc_pipeline : !tile.pipeline<1>
  // expected-error @+1 {{expected at most 64 columns, got 128}}
  tile.gather_async %k[%unit, %unit] of %table[%unit] page_tokens 16 to %r[%unit] signals %p : memref<?x8x16x128xbf16>, memref<?xi32>, !tile.ring<64 x 64, 1>, !tile.pipeline<1>
  tile.return
}

// -----

tile.kernel @depth(%rows: index, %unit: index) {
  %q = tile.alloc_ring : !tile.ring<128 x 64, 1>
  %k = tile.alloc_ring : !tile.ring<64 x 64, 1>
  // expected-error @+1 {{expected a depth that is a multiple of 16 and at most the rings' columns, got 80}}
  %s = tile.warpgroup_dot_rows %q[%unit], %k[%unit] depth 80 : !tile.ring<128 x 64, 1>, !tile.ring<64 x 64, 1>, !tile.in_flight<vector<128x64xf32>>
  tile.return
}

// -----

tile.kernel @update(%rows: index, %unit: index) {
  %v = tile.alloc_ring : !tile.ring<64 x 64, 1>
  %p = arith.constant dense<0.0> : vector<128x32xbf16>
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %acc = tile.start %zero : vector<128x64xf32> -> !tile.in_flight<vector<128x64xf32>>
  // expected-error @+1 {{expected 64 columns of a and at most 64 of the f32 result}}
  %r = tile.warpgroup_update %p, %v[%unit], %acc : vector<128x32xbf16>, !tile.ring<64 x 64, 1>, !tile.in_flight<vector<128x64xf32>>
  tile.return
}

// -----

tile.kernel @wait(%rows: index, %unit: index) {
  %zero = arith.constant dense<0.0> : vector<128x64xf32>
  %x = tile.start %zero : vector<128x64xf32> -> !tile.in_flight<vector<128x64xf32>>
  // expected-error @+1 {{expected a result of type 'vector<128x64xf32>', got '!tile.in_flight<vector<128x64xf32>>'}}
  %y = tile.wait %x pending 0 : (!tile.in_flight<vector<128x64xf32>>) -> !tile.in_flight<vector<128x64xf32>>
  tile.return
}
