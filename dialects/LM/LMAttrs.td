//===- LMAttrs.td - attributes and types of the lm dialect --*- tablegen -*-===//
#ifndef LLMC_LM_ATTRS
#define LLMC_LM_ATTRS

include "dialects/LM/LMDialect.td"

class LM_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::lm";
  let genSpecializedAttr = 0;
}

/// Storage of a weight in its file.
def LM_Storage : LM_I32Enum<"Storage", "element storage of a weight in its file", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"F16", 1, "f16">, I32EnumAttrCase<"BF16", 2, "bf16">,
  I32EnumAttrCase<"Q4_0", 3, "q4_0">, I32EnumAttrCase<"Q4_1", 4, "q4_1">, I32EnumAttrCase<"Q8_0", 5, "q8_0">,
  I32EnumAttrCase<"Q5_0", 6, "q5_0">, I32EnumAttrCase<"Q5_1", 7, "q5_1">, I32EnumAttrCase<"Q2_K", 8, "q2_k">,
  I32EnumAttrCase<"Q3_K", 9, "q3_k">, I32EnumAttrCase<"Q4_K", 10, "q4_k">, I32EnumAttrCase<"Q5_K", 11, "q5_k">,
  I32EnumAttrCase<"Q6_K", 12, "q6_k">, I32EnumAttrCase<"IQ4_NL", 13, "iq4_nl">, I32EnumAttrCase<"IQ4_XS", 14, "iq4_xs">,
  I32EnumAttrCase<"E4M3", 15, "e4m3">]>;
def LM_StorageAttr : EnumAttr<LM_Dialect, LM_Storage, "storage">;

/// Arithmetic contract of a matrix product (DESIGN D1): fixes operand rounding and summation order, so
/// that every kernel of every target gives the same bits.
def LM_Arith : LM_I32Enum<"Arith", "numerics contract of a matrix product", [
  // f32 FMA over ascending k, one chain per output; weights widened exactly to f32 in registers.
  I32EnumAttrCase<"F32", 0, "f32">,
  // Operands in bf16; per 32 k an even-k and an odd-k f32 FMA chain from 0, then c + (even + odd), as AMX's tdpbf16ps computes it.
  I32EnumAttrCase<"BF16_EO32", 1, "bf16_eo32">,
  // Activations int8 per group of 32 k; exact int32 dot per group; f32 FMA over ascending groups:
  //   c = fma(float(dot), d_w * d_a, c), and with minimums c = fma(m_w, s_a, c) after it
  // (q8_0 and tables: dot over the signed codes; q4_0, q5_0: dot over q, then m_w = -zero * d_w).
  // Weights whose scales hold for 16 k (q2_k, q3_k, q6_k) have a dot over code - zero and an FMA for each 16 k, and minimums
  // c = fma(m_w, d_a * float(sum of the 16 activation codes), c).
  I32EnumAttrCase<"Q8_G32", 2, "q8_g32">,
  // The same with int16 activations: rounding them costs 2^-16 of a group's largest value instead of 2^-8.
  I32EnumAttrCase<"Q16_G32", 3, "q16_g32">,
  // Operands in bf16 (a quantised weight is dequantised in f32, then rounded). On a CPU one f32 FMA chain per output over
  // ascending pairs of k, of each the odd k first, as vdpbf16ps computes it. On a GPU f32 sums in the order of the
  // matrix unit: equal from run to run on one target, not across targets (D1, GPU).
  I32EnumAttrCase<"BF16", 4, "bf16">,
  // Operands in e4m3, activations with a scale per row, weights with one per output: f32 sums in the order and with the rounding of
  // the matrix unit, then sum * (scale of the row * scale of the output). GPU only.
  I32EnumAttrCase<"E4M3", 5, "e4m3">]>;
def LM_ArithAttr : EnumAttr<LM_Dialect, LM_Arith, "arith"> {
  let assemblyFormat = "`<` $value `>`";
}

/// Packed form of a weight; byte layouts in runtime/include/llmc/abi.h (same order as enum llmc_layout).
def LM_Layout : LM_I32Enum<"Layout", "packed form of a weight", [
  I32EnumAttrCase<"RowsF32", 0, "rows_f32">, I32EnumAttrCase<"N16F32", 1, "n16_f32">,
  I32EnumAttrCase<"N16F16", 2, "n16_f16">, I32EnumAttrCase<"N16BF16", 3, "n16_bf16">,
  I32EnumAttrCase<"N16Q4_0", 4, "n16_q4_0">, I32EnumAttrCase<"N16Q4_1", 5, "n16_q4_1">,
  I32EnumAttrCase<"N16Q8_0", 6, "n16_q8_0">, I32EnumAttrCase<"RowsBF16", 7, "rows_bf16">,
  I32EnumAttrCase<"N16Q5_0", 8, "n16_q5_0">, I32EnumAttrCase<"N16Q5_1", 9, "n16_q5_1">,
  I32EnumAttrCase<"N16Q2_K", 10, "n16_q2_k">, I32EnumAttrCase<"N16Q3_K", 11, "n16_q3_k">,
  I32EnumAttrCase<"N16Q4_K", 12, "n16_q4_k">, I32EnumAttrCase<"N16Q5_K", 13, "n16_q5_k">,
  I32EnumAttrCase<"N16Q6_K", 14, "n16_q6_k">, I32EnumAttrCase<"N16IQ4_NL", 15, "n16_iq4_nl">,
  I32EnumAttrCase<"N16IQ4_XS", 16, "n16_iq4_xs">, I32EnumAttrCase<"N16E4M3", 17, "n16_e4m3">,
  I32EnumAttrCase<"RowsE4M3", 18, "rows_e4m3">]>;
def LM_LayoutAttr : EnumAttr<LM_Dialect, LM_Layout, "layout"> {
  let assemblyFormat = "`<` $value `>`";
}

/// How an op writes its result: f32, bf16 (round to nearest even), int8 / int16 codes with f32
/// (scale, scale * sum) per group of 32, or e4m3 codes with an f32 scale per row (two results).
def LM_Format : LM_I32Enum<"Format", "form of an activation", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"BF16", 1, "bf16">, I32EnumAttrCase<"Q8", 2, "q8">,
  I32EnumAttrCase<"Q16", 3, "q16">, I32EnumAttrCase<"E4M3", 4, "e4m3">]>;
def LM_FormatAttr : EnumAttr<LM_Dialect, LM_Format, "format"> {
  let assemblyFormat = "`<` $value `>`";
}

/// silu(x) = x / (1 + exp(-x)); gelu_tanh(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016).
def LM_Activation : LM_I32Enum<"Activation", "gate activation", [
  I32EnumAttrCase<"SiLU", 0, "silu">, I32EnumAttrCase<"GELUTanh", 1, "gelu_tanh">]>;
def LM_ActivationAttr : EnumAttr<LM_Dialect, LM_Activation, "activation">;

def LM_ScalesAttr : AttrDef<LM_Dialect, "Scales"> {
  let mnemonic = "scales";
  let summary = "the scales of e4m3 rows in one of the model's files";
  let description = [{
    `count` values of `storage` (f32, f16 or bf16) from byte `offset` of file number `file` on: one for each row of the span, or one for all.

    Example: `#lm.scales<file = 0, offset = 4096, count = 1, storage = f32>`
  }];
  let parameters = (ins "uint32_t":$file, "uint64_t":$offset, "int64_t":$count, EnumParameter<LM_Storage>:$storage);
  let assemblyFormat = "`<` struct(params) `>`";
}

def LM_SpanAttr : AttrDef<LM_Dialect, "Span"> {
  let mnemonic = "span";
  let summary = "rows of a weight as a span of one of the model's files";
  let description = [{
    `rows` rows starting at byte `offset` of file number `file`. With `deinterleave` = head_dim the rows of
    each head are reordered when packing from (0, h/2, 1, h/2+1, ...) storage to halves, so that rotary
    embedding always rotates halves: packed row i of a head is stored row 2i for i < rotary/2, 2(i - rotary/2)+1 after it.
    Rows stored as e4m3 have `scales`.
  }];
  let parameters = (ins "uint32_t":$file, "uint64_t":$offset, "uint64_t":$bytes, "int64_t":$rows,
                        DefaultValuedParameter<"int64_t", "0">:$deinterleave, OptionalParameter<"ScalesAttr">:$scales);
  let assemblyFormat = "`<` struct(params) `>`";
}
def LM_SpanArrayAttr : TypedArrayAttrBase<LM_SpanAttr, "spans in row order">;

def LM_KVType : TypeDef<LM_Dialect, "KV"> {
  let mnemonic = "kv";
  let summary = "the key and value cache of one layer, used linearly";
  let description = [{
    Opaque: the layout is decided by `lm-page-kv` (block = 0 before it). At most one `lm.kv_append` (or
    `lm.rope_append`) per value; reads use the appended value.

    Example: `!lm.kv<heads = 3, k_dim = 64, v_dim = 64, element = f32, block = 0>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$k_dim, "int64_t":$v_dim, "::mlir::Type":$element, "int64_t":$block);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // LLMC_LM_ATTRS
