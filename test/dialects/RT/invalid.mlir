// RUN: llmc-opt %s -split-input-file -verify-diagnostics

func.func @no_variants(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected at least one kernel variant}}
  %0 = rt.dispatch "x"(%x) {rows = #rt.rows<tokens>, variants = []} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @last_variant(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected the last variant to have max_rows = 4294967295, got 16}}
  %0 = rt.dispatch "x"(%x) {rows = #rt.rows<tokens>,
    variants = [#rt.variant<max_rows = 16, kernel = @k, row_block = 1, col_blocks = 1>]} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @descending(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected variants with ascending max_rows, got 4 after 16}}
  %0 = rt.dispatch "x"(%x) {rows = #rt.rows<tokens>,
    variants = [#rt.variant<max_rows = 16, kernel = @k, row_block = 1, col_blocks = 1>,
                #rt.variant<max_rows = 4, kernel = @k, row_block = 1, col_blocks = 1>]} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @no_block(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected row_block and col_blocks of at least 1}}
  %0 = rt.dispatch "x"(%x) {rows = #rt.rows<tokens>,
    variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 0, col_blocks = 1>]} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @dynamic_columns(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected a tensor with static columns, got 'tensor<?x?xf32>'}}
  %0 = rt.dispatch "x"(%x) {rows = #rt.rows<tokens>,
    variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>]} : (tensor<?x?xf32>) -> tensor<?x8xf32>
  return
}

// -----

// expected-error @below {{expected arena_bytes to be a multiple of 64, got 100}}
rt.program @p attributes {arena_bytes = 100, logits_offset = 0, hidden_offset = -1} {
}

// -----

// expected-error @below {{expected logits_offset inside the arena, got 256}}
rt.program @p attributes {arena_bytes = 128, logits_offset = 256, hidden_offset = -1} {
}

// -----

rt.program @p attributes {arena_bytes = 128, logits_offset = 0, hidden_offset = -1} {
  // expected-error @below {{argument 0: expected an offset that is a multiple of 64 inside the arena of 128 bytes, got 128}}
  rt.launch "x" {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
    args = [#rt.arg<kind = arena, value = 128>], values = []}
}

// -----

rt.program @p attributes {arena_bytes = 128, logits_offset = 0, hidden_offset = -1} {
  // expected-error @below {{argument 0: expected a weight for kind weight}}
  rt.launch "x" {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
    args = [#rt.arg<kind = weight>], values = []}
}

// -----

rt.program @p attributes {arena_bytes = 128, logits_offset = 0, hidden_offset = -1} {
  // expected-error @below {{argument 0: expected a step field, got 99}}
  rt.launch "x" {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
    args = [#rt.arg<kind = step, value = 99>], values = []}
}

// -----

rt.program @p attributes {arena_bytes = 128, logits_offset = 0, hidden_offset = -1} {
  // expected-error @below {{value "x": expected an offset inside the arena, stride >= cols and a known element}}
  rt.launch "x" {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
    args = [], values = [#rt.value<name = "x", offset = 0, element = 0, cols = 33, stride = 32>]}
}

// -----

rt.program @p attributes {arena_bytes = 128, logits_offset = 0, hidden_offset = -1} {
  // expected-error @below {{expected rt.launch in a program}}
  %0 = arith.constant 0 : i32
}
