//===- TileOps.td - operations of the tile dialect ----------*- tablegen -*-===//
#ifndef LLMC_TILE_OPS
#define LLMC_TILE_OPS

include "dialects/Tile/TileDialect.td"
include "dialects/Tile/TileAsyncOps.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_Packed : Type<CPred<"::llvm::isa<::llmc::tile::PackedType>($_self)">, "packed operand">;
def Tile_F32Vector : VectorOfAnyRankOf<[F32]>;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "the computation of one unit of a kernel";
  let description = [{
    Block arguments: memrefs (row strides and inner sizes static), then the dynamic row count and the unit's number.
    Units are independent. Activation buffers may be read (never written) up to 16 rows past the row count.

    Example:
    ```mlir
    tile.kernel @copy(%in: memref<?x64xf32>, %out: memref<?x64xf32>, %rows: index, %unit: index) {
      %v = tile.load %in[%unit, %unit] : memref<?x64xf32> -> vector<8xf32>
      tile.store %v, %out[%unit, %unit] : vector<8xf32>, memref<?x64xf32>
      tile.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The memref arguments.
    ::mlir::MutableArrayRef<::mlir::BlockArgument> getBuffers() { return getBody().front().getArguments().drop_back(2); }
    ::mlir::BlockArgument getRows() { return getBody().front().getArguments().drop_back(1).back(); }
    ::mlir::BlockArgument getUnit() { return getBody().front().getArguments().back(); }
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Terminator, HasParent<"KernelOp">, Pure]> {
  let summary = "ends a kernel";
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Tile_ViewOp : Tile_Op<"view", [Pure]> {
  let summary = "bytes seen as elements, from a constant byte offset on";
  let description = [{
    Example: `%k = tile.view %kv at 0 : memref<?xi8> -> memref<?x3x2048xi8, strided<[46080, 4096, 1]>>`
  }];
  let arguments = (ins AnyMemRef:$source, I64Attr:$offset);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$source `at` $offset attr-dict `:` type($source) `->` type($result)";
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "loads a block (or one element) of memory";
  let description = [{
    The vector's dimensions are the last ones of the memref; the block's first element is at the indices. A result
    that is no vector is one element.

    Constraints: (1) as many indices as the memref has dimensions; (2) vector rank <= memref rank, equal element types.

    Example: `%x = tile.load %m[%row, %col] : memref<?x576xf32> -> vector<4x16xf32>`
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$memref `[` $indices `]` attr-dict `:` type($memref) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "stores a block (or one element); rows from `limit` on are dropped";
  let description = [{
    As tile.load. With `limit`, row r of the block (outermost dimension of the vector) is written only where
    indices[of that dimension] + r < limit; with `columns`, only columns that the memref has.

    Example: `tile.store %y, %m[%row, %col] limit %rows : vector<4x16xf32>, memref<?x576xf32>`
  }];
  let arguments = (ins AnyType:$value, AnyMemRef:$memref, Variadic<Index>:$indices, Optional<Index>:$limit,
                       UnitAttr:$columns);
  let assemblyFormat = "$value `,` $memref `[` $indices `]` (`limit` $limit^)? (`columns` $columns^)? attr-dict `:` type($value) `,` type($memref)";
  let hasVerifier = 1;
}

def Tile_LoadPackedOp : Tile_Op<"load_packed", [Pure]> {
  let summary = "names a packed right operand in memory";
  let description = [{
    The operand starts at the indexed element; its bytes are not written while the kernel runs (or only before, in
    program order, by the same unit). Panels of 16 columns follow each other along the memref's first dimension; in a
    panel, q* and bf16_pairs have records along the last but one dimension, bf16_nk has [16 columns, k] in its last two.
    `first` is the k within its record at which a q* or iq* operand starts, a multiple of 32. `prefetch` > 0 asks for the
    bytes that far ahead.

    Example: `%w = tile.load_packed %m[%panel, %record, %c0] : memref<36x18x320xi8> -> !tile.packed<32 x 16, q4_1>`
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, DefaultValuedAttr<I64Attr, "0">:$prefetch,
                       DefaultValuedAttr<I64Attr, "0">:$first);
  let results = (outs Tile_Packed:$result);
  let assemblyFormat = "$memref `[` $indices `]` attr-dict `:` type($memref) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_GatherPackedOp : Tile_Op<"gather_packed", [Pure]> {
  let summary = "names a packed right operand whose tokens lie in several pages of memory";
  let description = [{
    The memref's first dimension is the page. With bf16_nk, columns n of B are tokens: n lies in page pages[n / p] at row
    n % p of the memref's last two dimensions [tokens of a page, k], with p = n / number of pages; with bf16_kn the same
    for rows k of B and [tokens of a page, n]. The other indices are those of the remaining dimensions.

    Example: `%k = tile.gather_packed %keys[%pages : %head, %c0, %c0] : memref<?x3x16x64xbf16>, vector<4xi32> -> !tile.packed<64 x 64, bf16_nk>`
  }];
  let arguments = (ins AnyMemRef:$memref, VectorOfRankAndType<[1], [I32]>:$pages, Variadic<Index>:$indices);
  let results = (outs Tile_Packed:$result);
  let assemblyFormat = "$memref `[` $pages `:` $indices `]` attr-dict `:` type($memref) `,` type($pages) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreSliceOp : Tile_Op<"store_slice", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes one row or column of a packed operand in memory";
  let description = [{
    With axis k the vector holds k = first, first + 1, ... of column `at`; with axis n, n = first, ... of row `at`.
    Elements are rounded to the format (f32 and the bf16 ones only).

    Example: `tile.store_slice %k, %m[%b, %h, %c0] axis k at %t : vector<64xf32>, memref<...>, !tile.packed<64 x 16, bf16_pairs>`
  }];
  let arguments = (ins Tile_F32Vector:$value, AnyMemRef:$memref, Variadic<Index>:$indices, Tile_AxisAttr:$axis, Index:$at,
                       DefaultValuedAttr<I64Attr, "0">:$first, TypeAttr:$packed);
  let assemblyFormat = "$value `,` $memref `[` $indices `]` `axis` $axis `at` $at attr-dict `:` type($value) `,` type($memref) `,` $packed";
  let hasVerifier = 1;
}

def Tile_UnpackRowOp : Tile_Op<"unpack_row", [Pure]> {
  let summary = "32 consecutive k of column n of a packed operand, widened to f32";
  let description = [{
    result[i] = B[first + i, n]. (A row of an embedding table is a column of the packed right operand.)

    Example: `%x = tile.unpack_row %w[%lane] first 0 : !tile.packed<32 x 16, q4_1> -> vector<32xf32>`
  }];
  let arguments = (ins Tile_Packed:$source, Index:$column, I64Attr:$first);
  let results = (outs Tile_F32Vector:$result);
  let assemblyFormat = "$source `[` $column `]` `first` $first attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc[m, n] + sum_k a[m, k] B[k, n]";
  let description = [{
    Rounding and order as `arith` says; B is widened exactly (with arith bf16: dequantised in f32, then rounded to bf16).

    With arith bf16_g32 B has codes whose scales hold for 32 k: for each group g of 32 k, ascending, s = sum_k a[m, k] code[n, k] from 0 as
    arith bf16 sums (a code less its zero is a whole number that bf16 holds), acc = fma(d[n, g], s, acc); formats with a minimum
    then acc = fma(minimum[n, g], sum_k a[m, k], acc).

    Example: `%s = tile.dot %q, %k, %zero {arith = #tile.arith<f32>} : vector<4x64xf32>, !tile.packed<64 x 16, bf16_pairs>, vector<4x16xf32>`
  }];
  let arguments = (ins VectorOfRankAndType<[2], [F32, BF16, F8E4M3FN]>:$a, Tile_Packed:$b, Tile_F32Vector:$acc, Tile_ArithAttr:$arith);
  let results = (outs Tile_F32Vector:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)";
  let hasVerifier = 1;
}

def Tile_ScaledDotOp : Tile_Op<"scaled_dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "dot of int8 or int16 codes with a quantised operand, scaled per group of 32 k";
  let description = [{
    For each group g of 32 k, ascending: i = exact integer dot of codes[m, g] and the operand's codes;
    acc = fma(float(i), d[n, g] * scales[m, g, 0], acc); formats with a minimum (q4_1: m[n, g]; q4_0: -8 d[n, g]) then
    acc = fma(minimum, scales[m, g, 1], acc). These are `#lm.arith<q8_g32>` and `#lm.arith<q16_g32>`; int16 codes are in
    pair order (tile.pair_order).

    Example: `%r = tile.scaled_dot %c, %s, %w, %acc : vector<4x32xi8>, vector<4x1x2xf32>, !tile.packed<32 x 16, q4_1>, vector<4x16xf32>`
  }];
  let arguments = (ins VectorOfRankAndType<[2], [I8, I16]>:$codes, VectorOfRankAndType<[3], [F32]>:$scales, Tile_Packed:$b, Tile_F32Vector:$acc);
  let results = (outs Tile_F32Vector:$result);
  let assemblyFormat = "$codes `,` $scales `,` $b `,` $acc attr-dict `:` type($codes) `,` type($scales) `,` type($b) `,` type($acc)";
  let hasVerifier = 1;
}

def Tile_PairOrderOp : Tile_Op<"pair_order", [Pure, SameOperandsAndResultType]> {
  let summary = "of each four elements of the last dimension, swaps the middle two";
  let description = [{
    int16 codes are kept as (0, 2, 1, 3): then a pair of neighbours meets the pair of weight codes that one mask takes out
    of a 32-bit lane of packed bytes (bytes 0 and 2, or 1 and 3), so that unpacking costs no shuffle.

    Example: `%p = tile.pair_order %c : vector<4x32xi16>`
  }];
  let arguments = (ins VectorOfAnyRankOf<[I16]>:$source);
  let results = (outs VectorOfAnyRankOf<[I16]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "reduces the last dimension";
  let description = [{
    vector<RxC> -> vector<R>, vector<C> -> element. The order of an f32 sum is fixed: elements i and i + C/2 are combined while C > 8,
    then neighbours ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)); it does not depend on R. Rows that come out of a dot with
    arith bf16 are summed in an order fixed by the target.

    Constraint: C is 8 times a power of two, or, of a matrix on a GPU, of 8.

    Example: `%m = tile.reduce max %s : vector<4x16xf32> -> vector<4xf32>`
  }];
  let arguments = (ins Tile_ReductionAttr:$kind, VectorOfAnyRankOf<[F32, I32]>:$source);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ExpandOp : Tile_Op<"expand", [Pure]> {
  let summary = "repeats a vector along a new last dimension: result[r, c] = source[r]";
  let description = [{
    Example: `%b = tile.expand %m : vector<4xf32> -> vector<4x16xf32>`
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F32, I32]>:$source);
  let results = (outs VectorOfRankAndType<[2], [F32, I32]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Debugging
//===----------------------------------------------------------------------===//

def Tile_CheckOp : Tile_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "stops the program where an id is out of bounds";
  let description = [{
    Traps unless 0 <= value < limit (of every element), both i32. `what` names the value for whoever reads the code.

    Example: `tile.check %page below %blocks, "block id" : i32`
  }];
  let arguments = (ins AnyTypeOf<[I32, VectorOfRankAndType<[1], [I32]>]>:$value, I32:$limit, StrAttr:$what);
  let assemblyFormat = "$value `below` $limit `,` $what attr-dict `:` type($value)";
}

#endif // LLMC_TILE_OPS
