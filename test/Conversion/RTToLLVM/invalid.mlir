// RUN: llmc-opt %s -split-input-file --rt-to-llvm -verify-diagnostics

// expected-error @below {{expected a module attribute lm.model}}
// expected-error @below {{expected a module attribute rt.limits}}
// expected-error @below {{expected a module attribute rt.kv_group}}
// expected-error @below {{expected a module attribute lm.weights_bytes}}
module {}

// -----

// expected-error @below {{expected a number vocab in lm.model}}
// expected-error @below {{expected a number hidden in lm.model}}
// expected-error @below {{expected a number max_context in lm.model}}
// expected-error @below {{expected a number layers in lm.model}}
// expected-error @below {{expected a number max_tokens in rt.limits}}
// expected-error @below {{expected a number max_seqs in rt.limits}}
// expected-error @below {{expected a number max_logits in rt.limits}}
module attributes {lm.model = {}, lm.weights_bytes = 0, rt.limits = {},
    rt.kv_group = {element = 0, layers = 1, heads = 1, k_dim = 1, v_dim = 1, window = 0, block_bytes = 1, layer_bytes = 1, head_bytes = 1}} {
  rt.program @step attributes {arena_bytes = 64, logits_offset = 0, hidden_offset = -1} {
  }
}

// -----

module attributes {lm.model = {}, lm.weights_bytes = 0, rt.limits = {}, rt.kv_group = {}} {
  // expected-error @below {{expected a layout before rt-to-llvm}}
  lm.weight @w [4] f32 {sources = [#lm.span<file = 0, offset = 0, bytes = 16, rows = 4>]}
  rt.program @step attributes {arena_bytes = 64, logits_offset = 0, hidden_offset = -1} {
  }
}

// -----

module attributes {lm.model = {}, lm.weights_bytes = 0, rt.limits = {}, rt.kv_group = {}} {
  rt.program @step attributes {arena_bytes = 64, logits_offset = 0, hidden_offset = -1} {
    // expected-error @below {{expected @w to be a lm.weight}}
    rt.launch "x" {rows = #rt.rows<tokens>, variants = [#rt.variant<max_rows = 4294967295, kernel = @k, row_block = 1, col_blocks = 1>],
      args = [#rt.arg<kind = weight, weight = @w>], values = []}
  }
}
