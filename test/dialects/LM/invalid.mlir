// Every constraint of the ops, the types and the attributes.
// RUN: llmc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{expected positive heads, k_dim and v_dim, got 0, 64, 64}}
func.func private @kv_heads(!lm.kv<heads = 0, k_dim = 64, v_dim = 64, element = f32, block = 0>)

// -----

// expected-error @below {{expected element f32, f16 or bf16, got 'i8'}}
func.func private @kv_element(!lm.kv<heads = 1, k_dim = 64, v_dim = 64, element = i8, block = 0>)

// -----

// expected-error @below {{expected block to be 0 or a multiple of 16, got 8}}
func.func private @kv_block(!lm.kv<heads = 1, k_dim = 64, v_dim = 64, element = f32, block = 8>)

// -----

// Constraint 1: rows.
// expected-error @below {{expected sources of 32 rows, got 16}}
lm.weight @w [32, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 16>]}

// -----

// expected-error @below {{expected a span of at least one row, got 0}}
lm.weight @w [32, 64] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 0, rows = 0>]}

// -----

// Constraint 2: bytes of a span.
// expected-error @below {{expected a span of 1280 bytes, got 1281}}
lm.weight @w [32, 64] q4_1 {sources = [#lm.span<file = 0, offset = 0, bytes = 1281, rows = 32>]}

// -----

// Constraint 3: sources or value.
// expected-error @below {{expected exactly one of sources and value}}
lm.weight @w [32, 64] f32

// -----

// expected-error @below {{expected exactly one of sources and value}}
lm.weight @w [1, 2] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 8, rows = 1>], value = dense<1.0> : tensor<1x2xf32>}

// -----

// expected-error @below {{expected a value of f32 and of the weight's shape, got 'tensor<2xf32>'}}
lm.weight @w [1, 2] f32 {value = dense<1.0> : tensor<2xf32>}

// -----

// expected-error @below {{expected a value of f32 and of the weight's shape, got 'tensor<1x2xf16>'}}
lm.weight @w [1, 2] f32 {value = dense<1.0> : tensor<1x2xf16>}

// -----

// expected-error @below {{expected no interleave with a value, got 16}}
lm.weight @w [1, 2] f32 {interleave = 16, value = dense<1.0> : tensor<1x2xf32>}

// -----

// Constraint 4: block storage.
// expected-error @below {{expected two dimensions and columns that are a multiple of 32 for q4_0}}
lm.weight @w [32, 40] q4_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 720, rows = 32>]}

// -----

// expected-error @below {{expected two dimensions and columns that are a multiple of 32 for q8_0}}
lm.weight @w [32] q8_0 {sources = [#lm.span<file = 0, offset = 0, bytes = 34, rows = 32>]}

// -----

// Constraint 5: heads to deinterleave.
// expected-error @below {{expected deinterleave to be even and to divide 32 rows, got 12}}
lm.weight @w [32] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 128, rows = 32, deinterleave = 12>]}

// -----

// expected-error @below {{expected deinterleave to be even and to divide 3 rows, got 3}}
lm.weight @w [3] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 12, rows = 3, deinterleave = 3>]}

// -----

// Constraint 6: interleaving.
// expected-error @below {{expected two sources of equal rows, a multiple of the interleave 16}}
lm.weight @w [24] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 48, rows = 12>, #lm.span<file = 0, offset = 0, bytes = 48, rows = 12>]}

// -----

// expected-error @below {{expected two sources of equal rows, a multiple of the interleave 16}}
lm.weight @w [16] f32 {interleave = 16, sources = [#lm.span<file = 0, offset = 0, bytes = 64, rows = 16>]}

// -----

// Constraint 7: packing.
// expected-error @below {{expected layout and offset together}}
lm.weight @w [1, 2] f32 {offset = 64, value = dense<1.0> : tensor<1x2xf32>}

// -----

// expected-error @below {{expected an offset that is a multiple of 64, got 32}}
lm.weight @w [1, 2] f32 {layout = #lm.layout<rows_f32>, offset = 32, value = dense<1.0> : tensor<1x2xf32>}

// -----

// expected-error @below {{expected one or two dimensions, got 3}}
lm.weight @w [1, 1, 2] f32 {value = dense<1.0> : tensor<1x1x2xf32>}

// -----

// expected-error @below {{expected positive sizes, got -2}}
lm.weight @w [1, -2] f32 {value = dense<1.0> : tensor<1x2xf32>}

// -----

func.func @no_weight(%ids: tensor<?xi32>) {
  // expected-error @below {{expected @missing to be a lm.weight}}
  %x = lm.embedding %ids, @missing : tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @embedding_columns(%ids: tensor<?xi32>) {
  // expected-error @below {{expected weight @w of shape [?, 4], got [2, 8]}}
  %x = lm.embedding %ids, @w : tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @embedding_rank(%ids: tensor<?xi32>) {
  // expected-error @below {{expected a result of rank 2 with static columns of 'f32', got 'tensor<?x?xf32>'}}
  %x = lm.embedding %ids, @w : tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_weight(%x: tensor<?x4xf32>) {
  // expected-error @below {{expected weight @w of shape [4], got [8]}}
  %n = lm.rms_norm %x, @w {eps = 1.0e-5} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_eps(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected a positive eps}}
  %n = lm.rms_norm %x, @w {eps = 0.0} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_columns(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected results with 8 columns, got 9}}
  %n = lm.rms_norm %x, @w {eps = 1.0e-5} : (tensor<?x8xf32>) -> tensor<?x9xf32>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_format_count(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected 2 results for q8, got 1}}
  %n = lm.rms_norm %x, @w {eps = 1.0e-5, format = #lm.format<q8>} : (tensor<?x8xf32>) -> tensor<?x8xi8>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_format_element(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected results of rank 2 with static columns of 'bf16', got 'tensor<?x8xf32>'}}
  %n = lm.rms_norm %x, @w {eps = 1.0e-5, format = #lm.format<bf16>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

lm.weight @w [8] f32 {value = dense<1.0> : tensor<8xf32>}
func.func @norm_scales(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected results (scales) of type 'tensor<?x1x2xf32>', got 'tensor<?x2x2xf32>'}}
  %n:2 = lm.rms_norm %x, @w {eps = 1.0e-5, format = #lm.format<q8>} : (tensor<?x8xf32>) -> (tensor<?x8xi8>, tensor<?x2x2xf32>)
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @linear_weight(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected weight @w of shape [3, 8], got [2, 8]}}
  %y = lm.linear %x, @w : (tensor<?x8xf32>) -> tensor<?x3xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
lm.weight @b [3] f32 {value = dense<1.0> : tensor<3xf32>}
func.func @linear_bias(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected weight @b of shape [2], got [3]}}
  %y = lm.linear %x, @w bias @b : (tensor<?x8xf32>) -> tensor<?x2xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @linear_residual(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected a residual of type 'tensor<?x2xf32>', got 'tensor<?x8xf32>'}}
  %y = lm.linear %x residual %x, @w : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x2xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @linear_undecided(%x: tensor<?x8xbf16>) {
  // expected-error @below {{expected inputs of rank 2 with static columns of 'f32', got 'tensor<?x8xbf16>'}}
  %y = lm.linear %x, @w : (tensor<?x8xbf16>) -> tensor<?x2xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @linear_arith(%x: tensor<?x8xbf16>) {
  // expected-error @below {{expected 2 inputs for q8, got 1}}
  %y = lm.linear %x, @w {arith = #lm.arith<q8_g32>} : (tensor<?x8xbf16>) -> tensor<?x2xf32>
  return
}

// -----

lm.weight @w [2, 8] f32 {value = dense<1.0> : tensor<2x8xf32>}
func.func @linear_scales(%c: tensor<?x8xi8>, %s: tensor<?x2x2xf32>) {
  // expected-error @below {{expected inputs (scales) of type 'tensor<?x1x2xf32>', got 'tensor<?x2x2xf32>'}}
  %y = lm.linear %c, %s, @w {arith = #lm.arith<q8_g32>} : (tensor<?x8xi8>, tensor<?x2x2xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @linear_syntax(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected ','}}
  %y = lm.linear %x @w : (tensor<?x8xf32>) -> tensor<?x2xf32>
  return
}

// -----

func.func @table_columns(%p: tensor<?xi32>) {
  // expected-error @below {{expected an even number of columns, got 3}}
  %t = lm.rope_table %p, @f : tensor<?xi32> -> tensor<?x3xf32>
  return
}

// -----

lm.weight @f [1, 3] f32 {value = dense<1.0> : tensor<1x3xf32>}
func.func @table_frequencies(%p: tensor<?xi32>) {
  // expected-error @below {{expected weight @f of shape [1, 2], got [1, 3]}}
  %t = lm.rope_table %p, @f : tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

// Constraint 1 of lm.rope.
func.func @rope_heads(%x: tensor<?x10xf32>, %t: tensor<?x4xf32>) {
  // expected-error @below {{expected head_dim to divide 10 columns, got 4}}
  %r = lm.rope %x, %t {head_dim = 4} : tensor<?x10xf32>, tensor<?x4xf32>
  return
}

// -----

// Constraint 2 of lm.rope.
func.func @rope_table(%x: tensor<?x8xf32>, %t: tensor<?x6xf32>) {
  // expected-error @below {{expected a table of an even number of columns up to head_dim 4, got 6}}
  %r = lm.rope %x, %t {head_dim = 4} : tensor<?x8xf32>, tensor<?x6xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 8, element = f32, block = 0>
func.func @append_keys(%kv: !kv, %k: tensor<?x16xf32>) -> !kv {
  // expected-error @below {{expected keys with 8 columns, got 16}}
  %r = lm.kv_append %kv, %k, %k : !kv, tensor<?x16xf32>, tensor<?x16xf32>
  return %r : !kv
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 8, element = f32, block = 0>
func.func @append_values(%kv: !kv, %k: tensor<?x8xf32>) -> !kv {
  // expected-error @below {{expected values with 16 columns, got 8}}
  %r = lm.kv_append %kv, %k, %k : !kv, tensor<?x8xf32>, tensor<?x8xf32>
  return %r : !kv
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @attention_head_dim(%kv: !kv, %q: tensor<?x16xf32>) {
  // expected-error @below {{expected head_dim to be the cache's k_dim 4, got 8}}
  %a = lm.attention %q, %kv {head_dim = 8, scale = 1.0} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @attention_heads(%kv: !kv, %q: tensor<?x12xf32>) {
  // expected-error @below {{expected a multiple of 2 heads of 4 columns, got 12 columns}}
  %a = lm.attention %q, %kv {head_dim = 4, scale = 1.0} : (tensor<?x12xf32>, !kv) -> tensor<?x12xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @attention_window(%kv: !kv, %q: tensor<?x16xf32>) {
  // expected-error @below {{expected window >= 0, got -1}}
  %a = lm.attention %q, %kv {head_dim = 4, scale = 1.0, window = -1} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @attention_cap(%kv: !kv, %q: tensor<?x16xf32>) {
  // expected-error @below {{expected a positive finite cap, got 0}}
  %a = lm.attention %q, %kv {head_dim = 4, scale = 1.0, soft_cap = 0.0} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
lm.weight @sinks [2] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 8, rows = 2>]}
func.func @attention_sinks(%kv: !kv, %q: tensor<?x16xf32>) {
  // expected-error @below {{expected weight @sinks of shape [4], got [2]}}
  %a = lm.attention %q, %kv {head_dim = 4, scale = 1.0, sinks = @sinks} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32>
  return
}

// -----

func.func @soft_cap(%x: tensor<?x16xf32>) {
  // expected-error @below {{expected a positive finite cap, got -1}}
  %y = lm.soft_cap %x {cap = -1.0} : tensor<?x16xf32>
  return
}

// -----

// expected-error @below {{expected an addend for a vector of sources only}}
lm.weight @w [1, 2] f32 {addend = 1.0 : f32, value = dense<1.0> : tensor<1x2xf32>}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 8, element = f32, block = 0>
func.func @attention_result(%kv: !kv, %q: tensor<?x16xf32>) {
  // expected-error @below {{expected results with 32 columns, got 16}}
  %a = lm.attention %q, %kv {head_dim = 4, scale = 1.0} : (tensor<?x16xf32>, !kv) -> tensor<?x16xf32>
  return
}

// -----

func.func @gather(%x: tensor<?x8xf32>, %rows: tensor<?xi32>) {
  // expected-error @below {{expected a result with 8 columns, got 4}}
  %g = lm.gather_rows %x, %rows : tensor<?x8xf32>, tensor<?xi32> -> tensor<?x4xf32>
  return
}

// -----

func.func @quantize(%x: tensor<?x40xf32>) {
  // expected-error @below {{expected results (scales) of type 'tensor<?x2x2xf32>', got 'tensor<?x1x2xf32>'}}
  %c, %s = lm.quantize %x : tensor<?x40xf32> -> tensor<?x40xi8>, tensor<?x1x2xf32>
  return
}

// -----

func.func @round(%x: tensor<?x40xf32>) {
  // expected-error @below {{expected results of rank 2 with static columns of 'bf16', got 'tensor<?x40xf32>'}}
  %r = lm.round %x : tensor<?x40xf32> -> tensor<?x40xf32>
  return
}

// -----

lm.weight @w [32, 8] f32 {value = dense<1.0> : tensor<32x8xf32>}
func.func @gated_interleave(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected weight @w with interleave 16, got 0}}
  %y = lm.gated_linear silu %x, @w : (tensor<?x8xf32>) -> tensor<?x16xf32>
  return
}

// -----

lm.weight @w [32, 8] f32 {value = dense<1.0> : tensor<32x8xf32>}
func.func @gated_format(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected format f32 or bf16, got q8}}
  %y = lm.gated_linear silu %x, @w {format = #lm.format<q8>} : (tensor<?x8xf32>) -> tensor<?x16xi8>
  return
}

// -----

lm.weight @w [32, 8] f32 {value = dense<1.0> : tensor<32x8xf32>}
func.func @gated_element(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected results of rank 2 with static columns of 'bf16', got 'tensor<?x16xf32>'}}
  %y = lm.gated_linear silu %x, @w {format = #lm.format<bf16>} : (tensor<?x8xf32>) -> tensor<?x16xf32>
  return
}

// -----

lm.weight @w [32, 8] f32 {value = dense<1.0> : tensor<32x8xf32>}
func.func @gated_rows(%x: tensor<?x8xf32>) {
  // expected-error @below {{expected weight @w of shape [64, 8], got [32, 8]}}
  %y = lm.gated_linear silu %x, @w : (tensor<?x8xf32>) -> tensor<?x32xf32>
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 8, element = f32, block = 0>
func.func @rope_append_dims(%x: tensor<?x32xf32>, %t: tensor<?x4xf32>, %kv: !kv) {
  // expected-error @below {{expected a cache with k_dim and v_dim equal to head_dim 4, got 4 and 8}}
  %q, %r = lm.rope_append %x, %t, %kv {head_dim = 4} : (tensor<?x32xf32>, tensor<?x4xf32>, !kv) -> (tensor<?x16xf32>, !kv)
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
func.func @rope_append_query(%x: tensor<?x32xf32>, %t: tensor<?x4xf32>, %kv: !kv) {
  // expected-error @below {{expected a query with 16 columns, got 24}}
  %q, %r = lm.rope_append %x, %t, %kv {head_dim = 4} : (tensor<?x32xf32>, tensor<?x4xf32>, !kv) -> (tensor<?x24xf32>, !kv)
  return
}

// -----

!kv = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>
!paged = !lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 16>
func.func @rope_append_cache(%x: tensor<?x32xf32>, %t: tensor<?x4xf32>, %kv: !kv) {
  // expected-error @below {{expected the result cache to be of type '!lm.kv<heads = 2, k_dim = 4, v_dim = 4, element = f32, block = 0>'}}
  %q, %r = lm.rope_append %x, %t, %kv {head_dim = 4} : (tensor<?x32xf32>, tensor<?x4xf32>, !kv) -> (tensor<?x16xf32>, !paged)
  return
}

// -----

// expected-error @below {{expected scales of a source of e4m3, got none}}
lm.weight @w [2, 8] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 16, rows = 2>]}

// -----

// expected-error @below {{expected no scales but those of e4m3, got some}}
lm.weight @w [2, 8] bf16 {sources = [#lm.span<file = 0, offset = 0, bytes = 32, rows = 2, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}

// -----

// expected-error @below {{expected one scale, or 2 (one for each row), got 3}}
lm.weight @w [2, 8] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 16, rows = 2, scales = <file = 0, offset = 0, count = 3, storage = f32>>]}

// -----

// expected-error @below {{expected scales of f32, f16 or bf16, got q8_0}}
lm.weight @w [2, 8] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 16, rows = 2, scales = <file = 0, offset = 0, count = 1, storage = q8_0>>]}

// -----

// expected-error @below {{expected two dimensions for e4m3, got 1}}
lm.weight @w [8] e4m3 {sources = [#lm.span<file = 0, offset = 0, bytes = 8, rows = 8, scales = <file = 0, offset = 0, count = 1, storage = f32>>]}

// -----

// expected-error @below {{expected a matrix of f32, f16 or bf16 to quantise to e4m3, got q8_0 to e4m3}}
lm.weight @w [32, 32] q8_0 {quantize = #lm<storage e4m3>, sources = [#lm.span<file = 0, offset = 0, bytes = 1088, rows = 32>]}

// -----

lm.weight @w [32, 32] f32 {quantize = #lm<storage e4m3>, sources = [#lm.span<file = 0, offset = 0, bytes = 4096, rows = 32>]}
func.func @table_of_e4m3(%ids: tensor<?xi32>) {
  // expected-error @below {{expected a table that is not e4m3, got @w}}
  %x = lm.embedding %ids, @w : tensor<?xi32> -> tensor<?x32xf32>
  return
}

// -----

func.func @scales_of_rows(%x: tensor<?x32xf32>) {
  // expected-error @below {{expected results (scales) with 1 columns, got 2}}
  %c, %s = lm.quantize %x : tensor<?x32xf32> -> tensor<?x32xf8E4M3FN>, tensor<?x2xf32>
  return
}
