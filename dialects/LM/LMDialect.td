//===- LMDialect.td - the transformer dialect ---------------*- tablegen -*-===//
#ifndef LLMC_LM_DIALECT
#define LLMC_LM_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"

def LM_Dialect : Dialect {
  let name = "lm";
  let cppNamespace = "::llmc::lm";
  let summary = "what a language model computes, on tensors with a symbolic token count";
  let description = [{
    Activations are `tensor<?xCxf32>`: one row per token of a ragged step, whatever
    sequence it belongs to. Weights are symbols (`lm.weight`) with spans of files;
    ops name them. Model passes make fusions, quantised arithmetic, KV paging and
    packing explicit in the same dialect; see Rationale.md.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

#endif // LLMC_LM_DIALECT
