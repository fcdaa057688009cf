//===- TileDialect.td - blocks of kernels -------------------*- tablegen -*-===//
#ifndef LLMC_TILE_DIALECT
#define LLMC_TILE_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::llmc::tile";
  let summary = "how one block of a kernel is computed, on any target";
  let description = [{
    Tile values are builtin vectors of any size (`vector<12x64xf32>`): virtual vectors that a target lowering breaks
    into its registers; elementwise work is `arith` and `math` on them, control flow is `scf`. The dialect adds what
    those lack: memory by block, packed right operands, dot products with a numerics contract, row reductions.
    No op is named after an algorithm and the neutral level knows neither memory levels nor asynchrony.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

class Tile_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::llmc::tile";
  let genSpecializedAttr = 0;
}

/// Memory form of a right operand B[k, n] (docs/packing.md). 16-bit and 32-bit forms are dense; q* are
/// records of panels of n = 16 with their scales.
def Tile_Format : Tile_I32Enum<"Format", "memory form of a packed right operand", [
  I32EnumAttrCase<"F32", 0, "f32">,              // [k][n]
  I32EnumAttrCase<"F16", 1, "f16">,              // [k][n]
  I32EnumAttrCase<"BF16Pairs", 2, "bf16_pairs">, // [k / 2][n][2]
  I32EnumAttrCase<"Q4_0", 3, "q4_0">, I32EnumAttrCase<"Q4_1", 4, "q4_1">, I32EnumAttrCase<"Q8_0", 5, "q8_0">,
  I32EnumAttrCase<"BF16NK", 6, "bf16_nk">,      // [n][k]
  I32EnumAttrCase<"BF16KN", 7, "bf16_kn">,      // [k][n]
  I32EnumAttrCase<"Q5_0", 8, "q5_0">, I32EnumAttrCase<"Q5_1", 9, "q5_1">, I32EnumAttrCase<"Q2_K", 10, "q2_k">,
  I32EnumAttrCase<"Q3_K", 11, "q3_k">, I32EnumAttrCase<"Q4_K", 12, "q4_k">, I32EnumAttrCase<"Q5_K", 13, "q5_k">,
  I32EnumAttrCase<"Q6_K", 14, "q6_k">, I32EnumAttrCase<"IQ4_NL", 15, "iq4_nl">, I32EnumAttrCase<"IQ4_XS", 16, "iq4_xs">,
  I32EnumAttrCase<"E4M3Pairs", 17, "e4m3_pairs">, // [k / 2][n][2], without scales
  I32EnumAttrCase<"E4M3NK", 18, "e4m3_nk">]>;    // [n][k], without scales

def Tile_FormatAttr : EnumAttr<Tile_Dialect, Tile_Format, "format">;

def Tile_Arith : Tile_I32Enum<"DotArith", "rounding and order of a dot product", [
  I32EnumAttrCase<"F32", 0, "f32">,             // one f32 FMA chain per result over ascending k
  I32EnumAttrCase<"BF16_EO32", 1, "bf16_eo32">, // per 32 k: even-k and odd-k FMA chains from 0, then c + (even + odd)
  I32EnumAttrCase<"BF16", 2, "bf16">,           // operands rounded to bf16; CPU: one FMA chain, of each pair of k the odd first;
                                                // GPU: f32 sums in the order of its matrix unit
  I32EnumAttrCase<"BF16_G32", 3, "bf16_g32">,   // codes: per 32 k such a sum with the codes themselves, then scale and minimum
  I32EnumAttrCase<"E4M3", 4, "e4m3">            // GPU: e4m3 operands, f32 sums in the order and with the rounding of its matrix unit
]>;
def Tile_ArithAttr : EnumAttr<Tile_Dialect, Tile_Arith, "arith"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_Reduction : Tile_I32Enum<"Reduction", "row reduction", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">]>;
def Tile_ReductionAttr : EnumAttr<Tile_Dialect, Tile_Reduction, "reduction">;

def Tile_Axis : Tile_I32Enum<"Axis", "axis of a packed operand", [
  I32EnumAttrCase<"K", 0, "k">, I32EnumAttrCase<"N", 1, "n">]>;
def Tile_AxisAttr : EnumAttr<Tile_Dialect, Tile_Axis, "axis">;

def Tile_PackedType : TypeDef<Tile_Dialect, "Packed"> {
  let mnemonic = "packed";
  let summary = "a right operand B[k, n] in packed form, with its scales";
  let description = [{
    Stands for immutable data in memory; a target decides when it is loaded and unpacked.
    Example: `!tile.packed<32 x 16, q4_1>`
  }];
  let parameters = (ins "int64_t":$k, "int64_t":$n, EnumParameter<Tile_Format>:$format);
  let assemblyFormat = "`<` $k `x` $n `,` $format `>`";
  let genVerifyDecl = 1;
}

#endif // LLMC_TILE_DIALECT
