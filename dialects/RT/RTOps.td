//===- RTOps.td - the host program --------------------------*- tablegen -*-===//
#ifndef LLMC_RT_OPS
#define LLMC_RT_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::llmc::rt";
  let summary = "the step as a list of kernel launches";
  let description = [{
    Two stages. `rt.dispatch` (made by lm-to-tile): a launch whose buffers are still SSA tensors. `rt.program` with
    `rt.launch` (made by rt-plan-arena): buffers are byte offsets into the arena, weights are symbols. RTToLLVM turns
    programs into the constant tables of llmc/abi.h; enum values are equal to abi.h's.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class RT_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::rt";
  let genSpecializedAttr = 0;
}

def RT_Rows : RT_I32Enum<"Rows", "what a launch's row count is (enum llmc_rows)", [
  I32EnumAttrCase<"Tokens", 0, "tokens">, I32EnumAttrCase<"Logits", 1, "logits">,
  I32EnumAttrCase<"Seqs", 2, "seqs">, I32EnumAttrCase<"QueryTiles", 3, "query_tiles">]>;
def RT_RowsAttr : EnumAttr<RT_Dialect, RT_Rows, "rows"> { let assemblyFormat = "`<` $value `>`"; }

def RT_Field : RT_I32Enum<"Field", "a field of the step (enum llmc_step_field)", [
  I32EnumAttrCase<"TokenIds", 0, "token_ids">, I32EnumAttrCase<"Positions", 1, "positions">,
  I32EnumAttrCase<"LogitsRows", 2, "logits_rows">, I32EnumAttrCase<"Slots", 3, "slots">,
  I32EnumAttrCase<"BlockTable", 4, "block_table">, I32EnumAttrCase<"QueryTiles", 5, "query_tiles">,
  I32EnumAttrCase<"Embeddings", 6, "embeddings">, I32EnumAttrCase<"NumBlocks", 7, "num_blocks">, I32EnumAttrCase<"Samplers", 8, "samplers">,
  I32EnumAttrCase<"KVSpans", 9, "kv_spans">, I32EnumAttrCase<"Arrivals", 10, "arrivals">]>;
def RT_FieldAttr : EnumAttr<RT_Dialect, RT_Field, "field"> { let assemblyFormat = "`<` $value `>`"; }
def RT_FieldArrayAttr : TypedArrayAttrBase<RT_FieldAttr, "step fields"> {
  let constBuilderCall = "$_builder.getArrayAttr($0)";
}
def RT_WeightArrayAttr : TypedArrayAttrBase<FlatSymbolRefAttr, "weights"> {
  let constBuilderCall = "$_builder.getArrayAttr($0)";
}

def RT_ArgKind : RT_I32Enum<"ArgKind", "what a kernel argument points to (enum llmc_arg_kind)", [
  I32EnumAttrCase<"Arena", 0, "arena">, I32EnumAttrCase<"Weight", 1, "weight">, I32EnumAttrCase<"KV", 2, "kv">,
  I32EnumAttrCase<"Step", 3, "step">, I32EnumAttrCase<"WeightF32", 4, "weight_f32">]>;

def RT_VariantAttr : AttrDef<RT_Dialect, "Variant"> {
  let mnemonic = "variant";
  let summary = "one form of a kernel, taken for row counts up to max_rows";
  let description = [{
    units = ceil(rows / row_block) * col_blocks. The last variant has max_rows = 4294967295. With `span_rows` units are spans of
    the cache times col_blocks, and the variant is taken where they fit (llmc_variant_v1).
  }];
  let parameters = (ins "uint32_t":$max_rows, "::mlir::FlatSymbolRefAttr":$kernel, "uint32_t":$row_block, "uint32_t":$col_blocks,
                        DefaultValuedParameter<"uint32_t", "0">:$span_rows);
  let assemblyFormat = "`<` struct(params) `>`";
}
def RT_VariantArrayAttr : TypedArrayAttrBase<RT_VariantAttr, "kernel variants, ascending max_rows">;

def RT_ArgAttr : AttrDef<RT_Dialect, "Arg"> {
  let mnemonic = "arg";
  let summary = "a kernel argument after planning: arena offset, KV layer offset, step field, or a weight's symbol";
  let parameters = (ins EnumParameter<RT_ArgKind>:$kind, DefaultValuedParameter<"uint64_t", "0">:$value,
                        OptionalParameter<"::mlir::FlatSymbolRefAttr">:$weight);
  let assemblyFormat = "`<` struct(params) `>`";
}
def RT_ArgArrayAttr : TypedArrayAttrBase<RT_ArgAttr, "kernel arguments">;

def RT_ValueAttr : AttrDef<RT_Dialect, "Value"> {
  let mnemonic = "value";
  let summary = "an lm value held by a launch's result (llmc_value_v1)";
  let description = [{ `element`: 0 f32, 1 bf16, 2 f16, 3 i8, 4 i32, 5 i16, 6 e4m3; i8, i16 and e4m3 are codes with scales at `scales_offset`. `stride` in elements. }];
  let parameters = (ins "::mlir::StringAttr":$name, "uint64_t":$offset, "uint32_t":$element, "uint32_t":$cols,
                        "uint32_t":$stride, DefaultValuedParameter<"uint64_t", "0">:$scales_offset);
  let assemblyFormat = "`<` struct(params) `>`";
}
def RT_ValueArrayAttr : TypedArrayAttrBase<RT_ValueAttr, "named results">;

def RT_Arithmetic : RT_I32Enum<"Arithmetic", "what does most of a launch's arithmetic (enum llmc_cost_arithmetic)", [
  I32EnumAttrCase<"F32", 0, "f32">, I32EnumAttrCase<"BF16", 1, "bf16">, I32EnumAttrCase<"I16", 2, "i16">,
  I32EnumAttrCase<"I8", 3, "i8">, I32EnumAttrCase<"E4M3", 4, "e4m3">]>;

def RT_CostAttr : AttrDef<RT_Dialect, "Cost"> {
  let mnemonic = "cost";
  let summary = "the least work of a launch as a function of the step (llmc_cost_v1)";
  let description = [{
    Per row (of query tiles: per token), per pair of a token and a cached token that it sees, and once a launch. It belongs to
    what is computed, not to a variant: how often a variant reads something again is not in it.
  }];
  let parameters = (ins EnumParameter<RT_Arithmetic>:$arithmetic, DefaultValuedParameter<"uint32_t", "0">:$window,
                        DefaultValuedParameter<"uint64_t", "0">:$flops_per_row,
                        DefaultValuedParameter<"uint64_t", "0">:$flops_per_pair,
                        DefaultValuedParameter<"uint64_t", "0">:$weight_bytes,
                        DefaultValuedParameter<"uint64_t", "0">:$weight_bytes_per_row,
                        DefaultValuedParameter<"uint64_t", "0">:$activation_bytes_per_row,
                        DefaultValuedParameter<"uint64_t", "0">:$kv_read_bytes,
                        DefaultValuedParameter<"uint64_t", "0">:$kv_write_bytes_per_row);
  let assemblyFormat = "`<` struct(params) `>`";
}


def RT_DispatchOp : Op<RT_Dialect, "dispatch", []> {
  let summary = "launches a kernel on SSA buffers";
  let description = [{
    Kernel arguments, in this order: inputs (tensors; a `!lm.kv` becomes the address of its layer inside block 0), weights,
    step fields, results (tensors only; a `!lm.kv` result is its operand updated in place and takes no argument).
    `op` is the lm value's name (its location), `layer` -1 where none. A result whose first dimension is static is memory for the
    launch alone: of that size, not a value of the model.

    Example:
    ```mlir
    %q = rt.dispatch "blk.0.attn_qkv"(%c, %s) {weights = [@blk.0.attn_qkv], rows = #rt.rows<tokens>, layer = 0 : i32,
      variants = [#rt.variant<max_rows = 4294967295, kernel = @linear, row_block = 16, col_blocks = 60>]}
      : (tensor<?x576xi8>, tensor<?x18x2xf32>) -> tensor<?x960xf32>
    ```
  }];
  let arguments = (ins StrAttr:$op, Variadic<AnyType>:$inputs, DefaultValuedAttr<RT_WeightArrayAttr, "{}">:$weights,
                       DefaultValuedAttr<RT_FieldArrayAttr, "{}">:$fields, RT_RowsAttr:$rows,
                       RT_VariantArrayAttr:$variants, DefaultValuedAttr<I32Attr, "-1">:$layer,
                       /// weights are passed as row-major f32 (reference program)
                       UnitAttr:$reference_weights, OptionalAttr<RT_CostAttr>:$cost);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$op `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def RT_ProgramOp : Op<RT_Dialect, "program", [Symbol, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "a launch list with a planned arena";
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$arena_bytes, I64Attr:$logits_offset, I64Attr:$hidden_offset,
                       DefaultValuedAttr<I64Attr, "-1">:$ids_offset);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def RT_LaunchOp : Op<RT_Dialect, "launch", [HasParent<"ProgramOp">]> {
  let summary = "one entry of a launch list (llmc_launch_v1)";
  let arguments = (ins StrAttr:$op, RT_RowsAttr:$rows, RT_VariantArrayAttr:$variants, RT_ArgArrayAttr:$args,
                       RT_ValueArrayAttr:$values, DefaultValuedAttr<I32Attr, "-1">:$layer,
                       OptionalAttr<RT_CostAttr>:$cost);
  let assemblyFormat = "$op attr-dict";
  let hasVerifier = 1;
}

#endif // LLMC_RT_OPS
