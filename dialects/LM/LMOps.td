//===- LMOps.td - operations of the lm dialect --------------*- tablegen -*-===//
#ifndef LLMC_LM_OPS
#define LLMC_LM_OPS

include "dialects/LM/LMAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class LM_Op<string mnemonic, list<Trait> traits = []> : Op<LM_Dialect, mnemonic, traits>;

/// Activations: [tokens, columns].
def LM_F32Rows : RankedTensorOf<[F32]>;
def LM_Rows : RankedTensorOf<[F32, BF16, I8, I16, F8E4M3FN]>;
def LM_Ids : 1DTensorOf<[I32]>;
def LM_KV : Type<CPred<"::llvm::isa<::llmc::lm::KVType>($_self)">, "KV cache of a layer">;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

def LM_WeightOp : LM_Op<"weight", [Symbol]> {
  let summary = "a weight: shape, storage and where its rows are";
  let description = [{
    Rows of `sources` are concatenated; with `interleave` = n (two sources of equal size) they alternate in
    blocks of n rows (gate and up projections). `value` holds small computed tables instead of a file span.
    `layout` is absent until `lm-pack-weights`, which also sets `offset` (bytes into the package's weights). With `quantize`
    the rows of a matrix of plain values are quantised when packed: e4m3 codes with a scale per row (`lm-quantize-weights`).

    A vector (norm weight, bias) has shape [N]: N source rows of one value, packed as one row of N columns. `addend` is added to each
    of its values, in f32, when it is packed (normalisations that multiply by 1 + w).

    Constraints: (1) rows of the sources sum to shape[0]; (2) bytes of a span = rows * storage bytes of shape[1];
    (3) exactly one of sources and value, a value being f32 of the weight's shape; (4) block storage needs two dimensions
    and shape[1] % 32 == 0; (5) rows of a span are a multiple of its `deinterleave`, which is even; (6) interleaving needs
    two sources of equal rows, a multiple of `interleave`; (7) `offset` and `layout` come together, offset % 64 == 0; (8) sources
    have `scales` exactly where the storage is e4m3, in two dimensions, one or as many as rows; (9) `quantize` is e4m3, of a matrix of f32, f16 or bf16;
    (10) only vectors of sources have an `addend`.

    Example:
    ```mlir
    lm.weight @blk.0.attn_q [576, 576] q4_1 {sources = [#lm.span<file = 0, offset = 1024, bytes = 207360, rows = 576, deinterleave = 64>]}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$shape, LM_StorageAttr:$storage,
                       OptionalAttr<LM_SpanArrayAttr>:$sources, DefaultValuedAttr<I64Attr, "0">:$interleave,
                       OptionalAttr<ElementsAttr>:$value, OptionalAttr<LM_StorageAttr>:$quantize,
                       OptionalAttr<LM_LayoutAttr>:$layout, OptionalAttr<I64Attr>:$offset, OptionalAttr<F32Attr>:$addend);
  let assemblyFormat = "$sym_name $shape `` $storage attr-dict"; // the storage prints a space itself
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Model ops (as imported)
//===----------------------------------------------------------------------===//

def LM_EmbeddingOp : LM_Op<"embedding", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "rows of a table: result[t, :] = weight[ids[t], :] * scale";
  let description = [{
    `scale` (absent: 1) is rounded to f32.

    Example: `%x = lm.embedding %ids, @token_embd : tensor<?xi32> -> tensor<?x576xf32>`
  }];
  let arguments = (ins LM_Ids:$ids, FlatSymbolRefAttr:$weight, OptionalAttr<F64Attr>:$scale);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$ids `,` $weight attr-dict `:` type($ids) `->` type($result)";
}

def LM_RMSNormOp : LM_Op<"rms_norm", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "root mean square normalisation (Zhang, Sennrich 2019, eq. 4)";
  let description = [{
    result[t, c] = x[t, c] / sqrt(mean_c(x[t, c]^2) + eps) * weight[c], then written in `format`.
    Two results (codes, scales) for format q8.

    Example: `%n = lm.rms_norm %x, @blk.0.attn_norm {eps = 1.0e-5} : (tensor<?x576xf32>) -> tensor<?x576xf32>`
  }];
  let arguments = (ins LM_F32Rows:$input, FlatSymbolRefAttr:$weight, F64Attr:$eps,
                       DefaultValuedAttr<LM_FormatAttr, "::llmc::lm::Format::F32">:$format);
  let results = (outs Variadic<LM_Rows>:$results);
  let assemblyFormat = "$input `,` $weight attr-dict `:` functional-type($input, $results)";
  let hasVerifier = 1;
}

def LM_LinearOp : LM_Op<"linear", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "result[t, n] = sum_k input[t, k] * weight[n, k] + bias[n] + residual[t, n]";
  let description = [{
    `arith` fixes the sum's rounding and order (absent: undecided, set by `lm-set-arith`). Inputs: one f32 tensor
    (f32, undecided, or before `lm-quantize-activations`), one bf16 tensor (bf16_eo32, bf16), or codes and scales (q8_g32, q16_g32,
    e4m3). The finished sum is multiplied by the scale of an e4m3 weight's row (with arith e4m3 by its product with that of the
    input's row), then bias and residual are added in f32, in this order.

    Example:
    ```mlir
    %q = lm.linear %x, @blk.0.attn_q : (tensor<?x576xf32>) -> tensor<?x576xf32>
    %o = lm.linear %c, %s residual %x, @blk.0.attn_output {arith = #lm.arith<q8_g32>}
       : (tensor<?x576xi8>, tensor<?x18x2xf32>, tensor<?x576xf32>) -> tensor<?x576xf32>
    ```
  }];
  let arguments = (ins Variadic<LM_Rows>:$inputs, Optional<LM_F32Rows>:$residual, FlatSymbolRefAttr:$weight,
                       OptionalAttr<FlatSymbolRefAttr>:$bias, OptionalAttr<LM_ArithAttr>:$arith);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "custom<InputsAndWeight>($inputs, $residual, $weight) (`bias` $bias^)? attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
}

def LM_GatedActivationOp : LM_Op<"gated_activation", [Pure, SameOperandsAndResultType]> {
  let summary = "result = act(gate) * up (Shazeer 2020, SwiGLU for silu)";
  let description = [{
    Example: `%h = lm.gated_activation silu %g, %u : tensor<?x1536xf32>`
  }];
  let arguments = (ins LM_ActivationAttr:$activation, LM_F32Rows:$gate, LM_F32Rows:$up);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "`` $activation $gate `,` $up attr-dict `:` type($result)";
}

def LM_AddOp : LM_Op<"add", [Pure, Commutative, SameOperandsAndResultType]> {
  let summary = "elementwise sum (residual stream)";
  let description = [{
    Example: `%y = lm.add %x, %o : tensor<?x576xf32>`
  }];
  let arguments = (ins LM_F32Rows:$lhs, LM_F32Rows:$rhs);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def LM_RopeTableOp : LM_Op<"rope_table", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "cosines and sines of position * inverse frequency";
  let description = [{
    result[t, i] = cos(a), result[t, P + i] = sin(a) with a = f32(positions[t]) * frequencies[0, i] rounded to f32, P pairs.

    Example: `%t = lm.rope_table %positions, @rope.frequencies : tensor<?xi32> -> tensor<?x64xf32>`
  }];
  let arguments = (ins LM_Ids:$positions, FlatSymbolRefAttr:$frequencies);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$positions `,` $frequencies attr-dict `:` type($positions) `->` type($result)";
  let hasVerifier = 1;
}

def LM_RopeOp : LM_Op<"rope", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotary position embedding (Su et al. 2021, sec. 3.4.2), rotating halves";
  let description = [{
    Per head of `head_dim` columns, with P = table columns / 2 and i < P:
    y[i] = x[i] cos_i - x[P + i] sin_i; y[P + i] = x[P + i] cos_i + x[i] sin_i; columns from 2P on pass through.

    Constraints: (1) columns % head_dim == 0; (2) 2P <= head_dim.

    Example: `%r = lm.rope %q, %t {head_dim = 64} : tensor<?x576xf32>, tensor<?x64xf32>`
  }];
  let arguments = (ins LM_F32Rows:$input, LM_F32Rows:$table, I64Attr:$head_dim);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$input `,` $table attr-dict `:` type($input) `,` type($table)";
  let hasVerifier = 1;
}

def LM_KVAppendOp : LM_Op<"kv_append", [AllTypesMatch<["cache", "result"]>]> {
  let summary = "appends the step's keys and values to a layer's cache";
  let description = [{
    Example: `%kv1 = lm.kv_append %kv, %k, %v : !lm.kv<...>, tensor<?x192xf32>, tensor<?x192xf32>`
  }];
  let arguments = (ins LM_KV:$cache, LM_F32Rows:$keys, LM_F32Rows:$values);
  let results = (outs LM_KV:$result);
  let assemblyFormat = "$cache `,` $keys `,` $values attr-dict `:` type($cache) `,` type($keys) `,` type($values)";
  let hasVerifier = 1;
}

def LM_AttentionOp : LM_Op<"attention", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "causal scaled dot-product attention over a cache, exact";
  let description = [{
    For query head h reading KV head h / (heads / kv_heads), at token position p:
    result[t, h, :] = sum_j softmax_j(scale * q[t, h, :] . k[j, :]) v[j, :] over cached positions j of the token's own
    sequence with p - window < j <= p (window 0: j <= p). Written in `format`.
    With `soft_cap` c a score s is c * tanh(s / c) (Gemma 2, sec. 2). With `sinks`, a vector of one number a query head, the softmax's sum
    has the term exp(sinks[h]) beside those of the positions, which multiplies no value (StreamingLLM, Xiao et al. 2023, sec. 3.3).

    Numerics (D1): online softmax (Dao 2023, alg. 1) over KV tiles at absolute positions, ascending, all in f32; with arith bf16 the
    query and the probabilities are rounded to bf16 as operands of the products.

    Example: `%a = lm.attention %q, %kv1 {head_dim = 64, scale = 0.125} : (tensor<?x576xf32>, !lm.kv<...>) -> tensor<?x576xf32>`
  }];
  let arguments = (ins LM_Rows:$query, LM_KV:$cache, I64Attr:$head_dim, F64Attr:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<LM_FormatAttr, "::llmc::lm::Format::F32">:$format,
                       OptionalAttr<LM_ArithAttr>:$arith, OptionalAttr<F64Attr>:$soft_cap, OptionalAttr<FlatSymbolRefAttr>:$sinks);
  let results = (outs Variadic<LM_Rows>:$results);
  let assemblyFormat = "$query `,` $cache attr-dict `:` functional-type(operands, $results)";
  let hasVerifier = 1;
}

def LM_SoftCapOp : LM_Op<"soft_cap", [Pure, SameOperandsAndResultType]> {
  let summary = "result = cap * tanh(input / cap): numbers kept between -cap and cap (Bello et al. 2016, sec. 5)";
  let description = [{
    Example: `%c = lm.soft_cap %logits {cap = 30.0} : tensor<?x49152xf32>`
  }];
  let arguments = (ins LM_F32Rows:$input, F64Attr:$cap);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def LM_ScaleOp : LM_Op<"scale", [Pure, SameOperandsAndResultType]> {
  let summary = "result = input * factor, the factor rounded to f32";
  let description = [{
    Example: `%s = lm.scale %o {factor = 0.22} : tensor<?x576xf32>`
  }];
  let arguments = (ins LM_F32Rows:$input, F64Attr:$factor);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def LM_GatherRowsOp : LM_Op<"gather_rows", [Pure]> {
  let summary = "result[i, :] = input[rows[i], :] (the rows that want logits)";
  let description = [{
    Example: `%l = lm.gather_rows %x, %rows : tensor<?x576xf32>, tensor<?xi32> -> tensor<?x576xf32>`
  }];
  let arguments = (ins LM_F32Rows:$input, LM_Ids:$rows);
  let results = (outs LM_F32Rows:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` type($input) `,` type($rows) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Ops made by the model passes
//===----------------------------------------------------------------------===//

def LM_QuantizeOp : LM_Op<"quantize", [Pure]> {
  let summary = "int8 or int16 codes per group of 32 columns, or e4m3 codes per row";
  let description = [{
    Per row and group g: a = max |x|; scale = a / top; code = round_to_even(x * (top / a)) (0 where a < 2^-100), with
    top = 127 for i8 and 32767 for i16; results: codes [tokens, C], scales f32 [tokens, ceil(C / 32), 2] = (scale, scale * sum of codes).

    e4m3 (f8E4M3FN): per row a = max(max |x|, 2^-100); scale = a / 448; code = x * (448 / a), to nearest even; scales f32 [tokens, 1].
    The input may be bf16.

    Example: `%c, %s = lm.quantize %x : tensor<?x576xf32> -> tensor<?x576xi8>, tensor<?x18x2xf32>`
  }];
  let arguments = (ins RankedTensorOf<[F32, BF16]>:$input);
  let results = (outs LM_Rows:$codes, LM_F32Rows:$scales);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($codes) `,` type($scales)";
  let hasVerifier = 1;
}

def LM_RoundOp : LM_Op<"round", [Pure]> {
  let summary = "rounds to bf16, nearest even";
  let description = [{
    Example: `%b = lm.round %x : tensor<?x576xf32> -> tensor<?x576xbf16>`
  }];
  let arguments = (ins LM_F32Rows:$input);
  let results = (outs LM_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def LM_GatedLinearOp : LM_Op<"gated_linear", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "two linear projections and their gated activation in one";
  let description = [{
    The weight holds gate and up rows interleaved in blocks of 16 (`interleave = 16`): 2F rows, F result columns.
    result[t, f] = act(gate) * up, written in `format` (f32 or bf16).

    Example: `%h = lm.gated_linear silu %c, %s, @blk.0.ffn_gate_up {arith = #lm.arith<q8_g32>} : (tensor<?x576xi8>, tensor<?x18x2xf32>) -> tensor<?x1536xf32>`
  }];
  let arguments = (ins LM_ActivationAttr:$activation, Variadic<LM_Rows>:$inputs, FlatSymbolRefAttr:$weight, OptionalAttr<LM_ArithAttr>:$arith,
                       DefaultValuedAttr<LM_FormatAttr, "::llmc::lm::Format::F32">:$format);
  let results = (outs LM_Rows:$result);
  let assemblyFormat = "`` $activation custom<InputsAndWeight>($inputs, $weight) attr-dict `:` functional-type($inputs, $result)";
  let hasVerifier = 1;
}

def LM_RopeAppendOp : LM_Op<"rope_append"> {
  let summary = "rotates q and k, writes k and v to the cache";
  let description = [{
    `input` columns are q heads, then k heads, then v heads, each of head_dim. One op for lm.rope, lm.rope and
    lm.kv_append after a joint projection. The query is written as f32 or bf16.

    Example: `%q, %kv1 = lm.rope_append %qkv, %t, %kv {head_dim = 64} : (tensor<?x960xf32>, tensor<?x64xf32>, !lm.kv<...>) -> (tensor<?x576xf32>, !lm.kv<...>)`
  }];
  let arguments = (ins LM_F32Rows:$input, LM_F32Rows:$table, LM_KV:$cache, I64Attr:$head_dim);
  let results = (outs LM_Rows:$query, LM_KV:$result);
  let assemblyFormat = "$input `,` $table `,` $cache attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LM_SampleOp : LM_Op<"sample", [Pure]> {
  let summary = "the token of each row of logits, by the step's sampler settings";
  let description = [{
    Greedy: the id of the largest logit, the lowest on ties. Else one of the tokens that top-k, top-p and min-p keep, drawn with
    probability proportional to exp(logit / temperature); a function of the row, the seed and the position (llmc_row_sampler). A row
    with a NaN or an infinity gives -1: no token.

    Example: `%i = lm.sample %logits : tensor<?x49152xf32> -> tensor<?xi32>`
  }];
  let arguments = (ins LM_F32Rows:$input);
  let results = (outs LM_Ids:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

#endif // LLMC_LM_OPS
