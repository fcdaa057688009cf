// RUN: llmc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected the last two arguments to be the row count and the unit, of type index}}
tile.kernel @no_rows(%x: memref<?x64xf32>) {
  tile.return
}

// -----

// expected-error @+1 {{expected memref arguments before the row count, got 'f32'}}
tile.kernel @scalar(%x: f32, %rows: index, %unit: index) {
  tile.return
}

// -----

// expected-error @+1 {{expected static strides and offset 0}}
tile.kernel @dynamic(%x: memref<?x?xf32>, %rows: index, %unit: index) {
  tile.return
}

// -----

tile.kernel @indices(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  // expected-error @+1 {{expected 2 indices, got 1}}
  %v = tile.load %x[%unit] : memref<?x64xf32> -> vector<8xf32>
  tile.return
}

// -----

tile.kernel @element(%x: memref<?x64xf32>, %rows: index, %unit: index) {
  // expected-error @+1 {{expected element type 'f32', got 'i32'}}
  %v = tile.load %x[%unit, %unit] : memref<?x64xf32> -> vector<8xi32>
  tile.return
}

// -----

tile.kernel @rank(%x: memref<?xf32>, %rows: index, %unit: index) {
  // expected-error @+1 {{expected a vector of rank at most 1, got 2}}
  %v = tile.load %x[%unit] : memref<?xf32> -> vector<2x8xf32>
  tile.return
}

// -----

// expected-error @+1 {{expected positive k and a multiple of 16 columns, got 32 x 8}}
func.func private @columns(!tile.packed<32 x 8, f32>)

// -----

// expected-error @+1 {{expected an even k for bf16_pairs, got 3}}
func.func private @odd(!tile.packed<3 x 16, bf16_pairs>)

// -----

// expected-error @+1 {{expected whole groups of 32 k for q4_1, got 48 x 16}}
func.func private @record(!tile.packed<48 x 16, q4_1>)

// -----

tile.kernel @k(%w: memref<36x18x320xi8>, %rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<4x64xf32>
  %acc = arith.constant dense<0.0> : vector<4x16xf32>
  %b = tile.load_packed %w[%unit, %unit, %unit] : memref<36x18x320xi8> -> !tile.packed<32 x 16, f32>
  // expected-error @+1 {{expected k = 32 columns of the left operand, got 64}}
  %r = tile.dot %a, %b, %acc {arith = #tile.arith<f32>} : vector<4x64xf32>, !tile.packed<32 x 16, f32>, vector<4x16xf32>
  tile.return
}

// -----

tile.kernel @pairs(%w: memref<36x18x320xi8>, %rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<4x32xbf16>
  %acc = arith.constant dense<0.0> : vector<4x16xf32>
  %b = tile.load_packed %w[%unit, %unit, %unit] : memref<36x18x320xi8> -> !tile.packed<32 x 16, f32>
  // expected-error @+1 {{expected a bf16 left operand, a right one of bf16_pairs or codes, and k a multiple of 32 for bf16_eo32}}
  %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16_eo32>} : vector<4x32xbf16>, !tile.packed<32 x 16, f32>, vector<4x16xf32>
  tile.return
}

// -----

tile.kernel @halves(%w: memref<1x1x3360xi8>, %rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<8x32xbf16>
  %acc = arith.constant dense<0.0> : vector<8x16xf32>
  %b = tile.load_packed %w[%unit, %unit, %unit] : memref<1x1x3360xi8> -> !tile.packed<32 x 16, q6_k>
  // expected-error @+1 {{expected a bf16 left operand and codes with scales of 32 k for arith bf16_g32}}
  %r = tile.dot %a, %b, %acc {arith = #tile.arith<bf16_g32>} : vector<8x32xbf16>, !tile.packed<32 x 16, q6_k>, vector<8x16xf32>
  tile.return
}

// -----

tile.kernel @unquantised(%w: memref<36x18x320xi8>, %rows: index, %unit: index) {
  %a = arith.constant dense<0> : vector<4x32xi8>
  %s = arith.constant dense<0.0> : vector<4x1x2xf32>
  %acc = arith.constant dense<0.0> : vector<4x16xf32>
  %b = tile.load_packed %w[%unit, %unit, %unit] : memref<36x18x320xi8> -> !tile.packed<32 x 16, f32>
  // expected-error @+1 {{expected a quantised right operand}}
  %r = tile.scaled_dot %a, %s, %b, %acc : vector<4x32xi8>, vector<4x1x2xf32>, !tile.packed<32 x 16, f32>, vector<4x16xf32>
  tile.return
}

// -----

tile.kernel @scales(%w: memref<36x18x320xi8>, %rows: index, %unit: index) {
  %a = arith.constant dense<0> : vector<4x32xi8>
  %s = arith.constant dense<0.0> : vector<4x2x2xf32>
  %acc = arith.constant dense<0.0> : vector<4x16xf32>
  %b = tile.load_packed %w[%unit, %unit, %unit] : memref<36x18x320xi8> -> !tile.packed<32 x 16, q4_1>
  // expected-error @+1 {{expected scales of 4x1x2, got 'vector<4x2x2xf32>'}}
  %r = tile.scaled_dot %a, %s, %b, %acc : vector<4x32xi8>, vector<4x2x2xf32>, !tile.packed<32 x 16, q4_1>, vector<4x16xf32>
  tile.return
}

// -----

tile.kernel @reduce(%rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<4x12xf32>
  // expected-error @+1 {{expected a multiple of 8 columns, got 12}}
  %r = tile.reduce add %a : vector<4x12xf32> -> vector<4xf32>
  tile.return
}

// -----

tile.kernel @reduce_row(%rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<24xf32>
  // expected-error @+1 {{expected 8 times a power of two columns, got 24}}
  %r = tile.reduce add %a : vector<24xf32> -> f32
  tile.return
}

// -----

tile.kernel @slice(%kv: memref<?x1024xbf16>, %rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<128xf32>
  // expected-error @+1 {{expected at most 64 elements along k from 0, got 'vector<128xf32>'}}
  tile.store_slice %a, %kv[%unit, %unit] axis k at %unit : vector<128xf32>, memref<?x1024xbf16>, !tile.packed<64 x 16, bf16_pairs>
  tile.return
}

// -----

tile.kernel @order(%rows: index, %unit: index) {
  %a = arith.constant dense<0> : vector<4x6xi16>
  // expected-error @+1 {{expected a multiple of 4 columns}}
  %r = tile.pair_order %a : vector<4x6xi16>
  tile.return
}

// -----

tile.kernel @first(%w: memref<1x1x576xi8>, %rows: index, %unit: index) {
  // expected-error @+1 {{expected a first k that is a multiple of 32 inside a record of codes, got 64 for '!tile.packed<32 x 16, q4_0>'}}
  %b = tile.load_packed %w[%unit, %unit, %unit] {first = 64 : i64} : memref<1x1x576xi8> -> !tile.packed<32 x 16, q4_0>
  tile.return
}

// -----

tile.kernel @deal(%rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<16x24xf32>
  // expected-error @+1 {{expected a source of a multiple of 16 columns, got 'vector<16x24xf32>'}}
  %e, %o = tile.deal_columns %a : vector<16x24xf32> -> vector<16x12xf32>
  tile.return
}

// -----

tile.kernel @deal_results(%rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<16x32xf32>
  // expected-error @+1 {{expected results of type 'vector<16x16xf32>', got 'vector<16x32xf32>'}}
  %e, %o = tile.deal_columns %a : vector<16x32xf32> -> vector<16x32xf32>
  tile.return
}

// -----

tile.kernel @parts(%rows: index, %unit: index) {
  %a = arith.constant dense<0.0> : vector<128x32xf32>
  // expected-error @+1 {{expected a result with a part of the source's rows of f32, got 'vector<128x32xf32>' and 'vector<48x32xf32>'}}
  %b = tile.sum_parts %a visit %unit : vector<128x32xf32> -> vector<48x32xf32>
  tile.return
}

// -----

tile.kernel @staged(%x: memref<?x64xbf16>, %rows: index, %unit: index) {
  %ring = tile.alloc_ring : !tile.ring<32 x 64, 1>
  %a = arith.constant dense<0.0> : vector<64x64xbf16>
  // expected-error @+1 {{expected a ring of a stage for each crew, of the block's size, and a block of bf16, got '!tile.ring<32 x 64, 1>' and 'vector<64x64xbf16>'}}
  tile.store_staged %a, %x[%unit, %unit] through %ring : vector<64x64xbf16>, memref<?x64xbf16>, !tile.ring<32 x 64, 1>
  tile.return
}

// -----

tile.kernel @unpack(%w: memref<4x1x2304xi8>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 2>
  %p = tile.alloc_pipeline : !tile.pipeline<2>
  tile.roles producer {
    // expected-error @+1 {{expected a format with records of at most 64 k, got q4_k}}
    tile.unpack_async %w[%unit, %unit] q4_k to %r[%unit] signals %p expects 8192 : memref<4x1x2304xi8>, !tile.ring<64 x 64, 2>, !tile.pipeline<2>
  } consumers {
  } {unpacking}
  tile.return
}

// -----

tile.kernel @unpack(%w: memref<4x1x576xi8>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 2>
  %p = tile.alloc_pipeline : !tile.pipeline<2>
  tile.roles producer {
    // expected-error @+1 {{expected the producer of tile.roles with unpacking}}
    tile.unpack_async %w[%unit, %unit] q4_0 to %r[%unit] signals %p expects 8192 : memref<4x1x576xi8>, !tile.ring<64 x 64, 2>, !tile.pipeline<2>
  } consumers {
  }
  tile.return
}

// -----

tile.kernel @unpack(%w: memref<4x1x576xi8>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<48 x 64, 2>
  %p = tile.alloc_pipeline : !tile.pipeline<2>
  tile.roles producer {
    // expected-error @+1 {{expected a ring of a multiple of 64 rows (for pairs 128) and 64 columns}}
    tile.unpack_async %w[%unit, %unit] q4_0 to %r[%unit] signals %p expects 8192 : memref<4x1x576xi8>, !tile.ring<48 x 64, 2>, !tile.pipeline<2>
  } consumers {
  } {unpacking}
  tile.return
}

// -----

tile.kernel @unpack(%w: memref<4x1x320xi8>, %rows: index, %unit: index) {
  %r = tile.alloc_ring : !tile.ring<64 x 64, 2>
  %p = tile.alloc_pipeline : !tile.pipeline<2>
  tile.roles producer {
    // expected-error @+1 {{expected a memref [panels, records, 576] or [pairs, 2, records, ..] of i8}}
    tile.unpack_async %w[%unit, %unit] q4_0 to %r[%unit] signals %p expects 8192 : memref<4x1x320xi8>, !tile.ring<64 x 64, 2>, !tile.pipeline<2>
  } consumers {
  } {unpacking}
  tile.return
}
// -----

tile.kernel @own(%rows: index, %unit: index) {
  // expected-error @+1 {{expected bf16, 1 to 8 or 16 rows of a multiple of 64 columns, got 'memref<12x64xbf16>'}}
  %own = tile.alloc_rows : memref<12x64xbf16>
  tile.return
}

// -----

tile.kernel @own(%own: memref<1x64xbf16>, %rows: index, %unit: index) {
  %ring = tile.alloc_ring : !tile.ring<64 x 64, 2>
  %zero = arith.constant dense<0.0> : vector<8x64xf32>
  %start = tile.start %zero : vector<8x64xf32> -> !tile.in_flight<vector<8x64xf32>>
  // expected-error @+1 {{expected rows of tile.alloc_rows}}
  %sum = tile.warpgroup_dot_own %own[%unit], %ring[%unit], %start : memref<1x64xbf16>, !tile.ring<64 x 64, 2>, !tile.in_flight<vector<8x64xf32>>
  tile.return
}

// -----

tile.kernel @scatter(%kv: memref<?x128xbf16>, %slots: memref<?xi32>, %rows: index, %unit: index) {
  %y = arith.constant dense<0.0> : vector<8x64xbf16>
  // expected-error @+1 {{expected a bf16 memref of at least 3 dimensions}}
  tile.scatter %y, %kv[] slots %slots[%unit] : vector<8x64xbf16>, memref<?x128xbf16>, memref<?xi32>
  tile.return
}

// -----

tile.kernel @e4m3_of_bf16(%w: memref<2x16x64xbf16>, %rows: index, %unit: index) {
  %c0 = arith.constant 0 : index
  %a = arith.constant dense<0.0> : vector<8x64xf8E4M3FN>
  %acc = arith.constant dense<0.0> : vector<8x16xf32>
  %b = tile.load_packed %w[%c0, %c0, %c0] : memref<2x16x64xbf16> -> !tile.packed<64 x 16, bf16_nk>
  // expected-error @below {{expected operands in e4m3, the right one e4m3_nk, and k a multiple of 32 for e4m3}}
  %r = tile.dot %a, %b, %acc {arith = #tile.arith<e4m3>} : vector<8x64xf8E4M3FN>, !tile.packed<64 x 16, bf16_nk>, vector<8x16xf32>
}
