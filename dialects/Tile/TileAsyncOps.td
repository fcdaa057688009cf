//===- TileAsyncOps.td - the scheduled level, GPU only ------*- tablegen -*-===//
//
// tile.async: the neutral body with its memory levels and its asynchrony written out. Made by the passes
// tile-pipeline-cuda and the like; never reaches a CPU.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TILE_ASYNC_OPS
#define LLMC_TILE_ASYNC_OPS

include "dialects/Tile/TileDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Tile_AsyncOp<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_RingType : TypeDef<Tile_Dialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "`stages` tiles [rows][columns] in shared memory, filled and read in turn";
  let description = [{
    Columns come in panels of 64: [panel][row][64 bf16]. A panel's row is 128 bytes, swizzled as bulk tensor copies write it and
    warpgroup products read it (PTX ISA 9.7.16.5.1, 128-byte swizzling). Of e4m3 a column of the type stands for two.

    Example: `!tile.ring<128 x 64, 4>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "int64_t":$stages);
  let assemblyFormat = "`<` $rows `x` $columns `,` $stages `>`";
  let genVerifyDecl = 1;
}

def Tile_PipelineType : TypeDef<Tile_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "a full and an empty barrier for each of `stages` slots";
  let parameters = (ins "int64_t":$stages);
  let assemblyFormat = "`<` $stages `>`";
}

def Tile_InFlightType : TypeDef<Tile_Dialect, "InFlight"> {
  let mnemonic = "in_flight";
  let summary = "a vector that tensor cores may still be writing";
  let description = [{
    Nothing reads it but the next product of the same chain; `tile.wait` gives the vector. A use before the wait cannot be
    written.

    Example: `!tile.in_flight<vector<256x128xf32>>`
  }];
  let parameters = (ins "::mlir::VectorType":$vector);
  let assemblyFormat = "`<` $vector `>`";
}

def Tile_Ring : Type<CPred<"::llvm::isa<::llmc::tile::RingType>($_self)">, "ring of tiles">;
def Tile_Pipeline : Type<CPred<"::llvm::isa<::llmc::tile::PipelineType>($_self)">, "pipeline">;
def Tile_InFlight : Type<CPred<"::llvm::isa<::llmc::tile::InFlightType>($_self)">, "vector in flight">;

//===----------------------------------------------------------------------===//
// Shared memory, roles and barriers
//===----------------------------------------------------------------------===//

def Tile_AllocRingOp : Tile_AsyncOp<"alloc_ring", [MemoryEffects<[MemAlloc]>]> {
  let summary = "shared memory for a ring";
  let description = [{
    Example: `%w = tile.alloc_ring : !tile.ring<128 x 64, 4>`
  }];
  let results = (outs Tile_Ring:$ring);
  let assemblyFormat = "attr-dict `:` type($ring)";
}

def Tile_AllocPipelineOp : Tile_AsyncOp<"alloc_pipeline", [MemoryEffects<[MemAlloc]>]> {
  let summary = "barriers of a pipeline, ready for use by all roles";
  let description = [{
    Example: `%p = tile.alloc_pipeline : !tile.pipeline<4>`
  }];
  let results = (outs Tile_Pipeline:$pipeline);
  let assemblyFormat = "attr-dict `:` type($pipeline)";
}

def Tile_RolesOp : Tile_AsyncOp<"roles", [SingleBlock, NoTerminator, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "what the copying warp and what the computing warps do";
  let description = [{
    The producer's region is run by the first thread of the schedule's `producers`, with `warps` by the first thread of each of
    their warps (copies that are dealt to warps, tile.gather_async, need them; the others take the first), with `unpacking` by all
    threads, a warpgroup (tile.unpack_async needs them; copies take the first); the consumers' by the `threads` before them. They run side by side and meet only at pipelines. Where the producers are a whole warpgroup, they
    leave their registers to the consumers.

    Example: `tile.roles producer { ... } consumers { ... }`
  }];
  let arguments = (ins UnitAttr:$warps, UnitAttr:$unpacking);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumers);
  let assemblyFormat = "`producer` $producer `consumers` $consumers attr-dict";
}

//===----------------------------------------------------------------------===//
// Persistent kernels: a CTA computes the units unit, unit + ctas, unit + 2 ctas, ...
//===----------------------------------------------------------------------===//

def Tile_UnitsOp : Tile_AsyncOp<"units", [Pure]> {
  let summary = "how many units the launch has";
  let description = [{
    Only in kernels whose `schedule` is `persistent`: their grid may be smaller than the units are many.

    Example: `%n = tile.units`
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_CTAsOp : Tile_AsyncOp<"ctas", [Pure]> {
  let summary = "how many CTAs the launch has";
  let description = [{
    Example: `%n = tile.ctas`
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Crews: warpgroups that take the units of a CTA by turns, so that one writes its results while another multiplies
//===----------------------------------------------------------------------===//

def Tile_CrewOp : Tile_AsyncOp<"crew", [Pure]> {
  let summary = "consumers: which of the CTA's crews this is";
  let description = [{
    From 0 to below the schedule's `crews`. Each is a warpgroup with units, sums and slots of its own: what the consumers' region
    says is what one crew does, and a slot is free when the crew that reads it has released it.

    Example: `%c = tile.crew`
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Units of several CTAs: those of a cluster, each with a part of a sum
//===----------------------------------------------------------------------===//

def Tile_PartOp : Tile_AsyncOp<"part", [Pure]> {
  let summary = "which of the CTAs of a unit this is";
  let description = [{
    From 0 to below the schedule's `parts`. All CTAs of a unit are in the same unit of their loops.

    Example: `%p = tile.part`
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_SumPartsOp : Tile_AsyncOp<"sum_parts", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: adds what the CTAs of a unit have, in their order; each gets some rows of the sum";
  let description = [{
    result[r, c] = ((source_0[s, c] + source_1[s, c]) + source_2[s, c]) + ... with s = part * rows of the result + r: of the sum of
    vector<128x128> over 4 parts part 1 has rows 32 to 63. `visit`: units that the CTA has had before this one.

    Example: `%y = tile.sum_parts %x visit %v : vector<128x128xf32> -> vector<32x128xf32>`
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$source, Index:$visit);
  let results = (outs AnyVectorOfNonZeroRank:$result);
  let assemblyFormat = "$source `visit` $visit attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ArriveOp : Tile_AsyncOp<"arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "counts a unit that has stored its part; true in the last of `parts`";
  let description = [{
    Only with consumers (all of them) or in kernels without roles. What the units before the last have stored is visible behind it
    there. The counter is 0 before the first unit, and again behind the last.

    Example: `%last = tile.arrive %counters[%i] of %parts : memref<?xi32>`
  }];
  let arguments = (ins AnyMemRef:$counters, Index:$index, Index:$parts);
  let results = (outs I1:$last);
  let assemblyFormat = "$counters `[` $index `]` `of` $parts attr-dict `:` type($counters)";
}

def Tile_AcquireOp : Tile_AsyncOp<"acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: waits until the slot of a round is free and announces how many bytes will come";
  let description = [{
    Round i uses slot i % stages.

    Example: `tile.acquire %p[%i] expects 49152 : !tile.pipeline<4>`
  }];
  let arguments = (ins Tile_Pipeline:$pipeline, Index:$round, I64Attr:$bytes);
  let assemblyFormat = "$pipeline `[` $round `]` `expects` $bytes attr-dict `:` type($pipeline)";
}

def Tile_CopyAsyncOp : Tile_AsyncOp<"copy_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: copies a box of global memory into the slot of a round";
  let description = [{
    One bulk tensor copy (PTX ISA 9.7.9.27.1.2) of the memref's elements from the indices on: `box` elements of each
    dimension, product of all but the last at most the rows of the ring (it fills the first ones), last = 64 (of e4m3 128), the columns of
    `panel`. What lies outside the memref is zero; a dynamic dimension counts as endless. The slot is full when all announced
    bytes have come.

    Example: `tile.copy_async %w[%panel, %c0, %k] box [8, 16, 64] to %ring[%i] signals %p : memref<36x16x576xbf16>, !tile.ring<128 x 64, 4>, !tile.pipeline<4>`
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, DenseI64ArrayAttr:$box, Tile_Ring:$ring, Index:$round,
                       Tile_Pipeline:$pipeline, DefaultValuedAttr<I64Attr, "0">:$panel);
  let assemblyFormat = [{
    $memref `[` $indices `]` `box` $box `to` $ring `[` $round `]` `signals` $pipeline attr-dict
    `:` type($memref) `,` type($ring) `,` type($pipeline)
  }];
  let hasVerifier = 1;
}

def Tile_UnpackAsyncOp : Tile_AsyncOp<"unpack_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: writes codes as bf16 to the slot of a round";
  let description = [{
    Memref [panels, records, bytes] of the format's records of 16 rows, from `panel` and `record` on: 64 k of as many panels as the
    ring has rows; in place of panels past the memref's end its last comes again. Of a memref [pairs, 2, records, bytes] the slot's
    rows are eight of a pair's first panel and eight of its second by turns. Values are dequantised in f32 and rounded to bf16.

    The codes are read first; then the threads wait until the slot is free, and the first announces how many bytes of copies will
    come beside them, as tile.acquire does.

    Example: `tile.unpack_async %w[%panel, %record] q4_0 to %ring[%i] signals %p expects 16384 : memref<36x9x576xi8>, !tile.ring<128 x 64, 4>, !tile.pipeline<4>`
  }];
  let arguments = (ins AnyMemRef:$memref, Index:$panel, Index:$record, Tile_FormatAttr:$format, Tile_Ring:$ring, Index:$round,
                       Tile_Pipeline:$pipeline, I64Attr:$bytes);
  let assemblyFormat = [{
    $memref `[` $panel `,` $record `]` $format `to` $ring `[` $round `]` `signals` $pipeline `expects` $bytes attr-dict
    `:` type($memref) `,` type($ring) `,` type($pipeline)
  }];
  let hasVerifier = 1;
}

def Tile_GatherAsyncOp : Tile_AsyncOp<"gather_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "producer: copies pages of global memory into the slot of a round, dealt to the producer's warps";
  let description = [{
    Memref [pages, ..., tokens of a page, columns]: tokens [i * p, (i + 1) * p) of the slot come from page table[first + i], with
    p = `page_tokens`, from the other indices on (those of the dimensions behind the page but the last, whose columns are all
    copied; columns past its end are zero). The producer must have its warps (tile.roles).

    Example: `tile.gather_async %keys[%head, %c0] of %table[%first] page_tokens 16 to %k[%i] signals %p : memref<?x8x32x128xbf16>, memref<?xi32>, !tile.ring<128 x 128, 2>, !tile.pipeline<2>`
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, AnyMemRef:$table, Index:$first, I64Attr:$page_tokens,
                       Tile_Ring:$ring, Index:$round, Tile_Pipeline:$pipeline);
  let assemblyFormat = [{
    $memref `[` $indices `]` `of` $table `[` $first `]` `page_tokens` $page_tokens `to` $ring `[` $round `]` `signals` $pipeline
    attr-dict `:` type($memref) `,` type($table) `,` type($ring) `,` type($pipeline)
  }];
  let hasVerifier = 1;
}

def Tile_AwaitOp : Tile_AsyncOp<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: wait until the slot of a round is full";
  let description = [{
    Example: `tile.await %p[%i] : !tile.pipeline<4>`
  }];
  let arguments = (ins Tile_Pipeline:$pipeline, Index:$round);
  let assemblyFormat = "$pipeline `[` $round `]` attr-dict `:` type($pipeline)";
}

def Tile_ReleaseOp : Tile_AsyncOp<"release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: the slot of a round has been read";
  let description = [{
    Every product that reads the slot must have been waited for. Rounds below 0 are ignored.

    Example: `tile.release %p[%i] : !tile.pipeline<4>`
  }];
  let arguments = (ins Tile_Pipeline:$pipeline, Index:$round);
  let assemblyFormat = "$pipeline `[` $round `]` attr-dict `:` type($pipeline)";
}

//===----------------------------------------------------------------------===//
// Rows that a unit computes for itself: the left operand of its products
//===----------------------------------------------------------------------===//

def Tile_AllocRowsOp : Tile_AsyncOp<"alloc_rows", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of a unit alone, for rows of a product's left operand";
  let description = [{
    The unit writes it before the loop of products that reads it; nobody else sees it. What is read past its rows may be anything.
    On a GPU it lies in shared memory as [columns / 8][rows][8 bf16].

    Example: `%own = tile.alloc_rows : memref<1x4096xbf16>`
  }];
  let results = (outs AnyMemRef:$memref);
  let assemblyFormat = "attr-dict `:` type($memref)";
  let hasVerifier = 1;
}

def Tile_StageOp : Tile_AsyncOp<"stage", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: writes columns of one of the unit's own rows";
  let description = [{
    `tile.publish` makes them an operand of products.

    Example: `tile.stage %x, %own[%row, %column] : vector<2048xbf16>, memref<1x4096xbf16>`
  }];
  let arguments = (ins VectorOfRankAndType<[1], [BF16]>:$value, AnyMemRef:$own, Index:$row, Index:$column);
  let assemblyFormat = "$value `,` $own `[` $row `,` $column `]` attr-dict `:` type($value) `,` type($own)";
}

def Tile_PublishOp : Tile_AsyncOp<"publish", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers meet: what any of them has staged is there for products of all";
  let description = [{
    Example: `tile.publish`
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_WarpgroupDotOp : Tile_AsyncOp<"warpgroup_dot", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "starts acc[m, n] + sum_k a[m, k] b[n, k] on slots of two rings";
  let description = [{
    b's rows (a weight's outputs) are the instruction's rows, 64 a warpgroup; a's rows (tokens) its columns. Starts a group of
    products; `tile.wait` counts groups. Operands are bf16, with `arith` e4m3 twice as many e4m3.

    Example: `%x = tile.warpgroup_dot %tokens[%i], %weights[%i], %acc : !tile.ring<256 x 64, 4>, !tile.ring<128 x 64, 4>, !tile.in_flight<vector<256x128xf32>>`
  }];
  let arguments = (ins Tile_Ring:$a, Index:$roundA, Tile_Ring:$b, Index:$roundB, Tile_InFlight:$acc,
                       DefaultValuedAttr<Tile_ArithAttr, "::llmc::tile::DotArith::BF16">:$arith);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = [{
    $a `[` $roundA `]` `,` $b `[` $roundB `]` `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_WarpgroupDotOwnOp : Tile_AsyncOp<"warpgroup_dot_own", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "starts acc[m, n] + sum_k own[m, first + k] b[n, k] on the unit's own rows and a slot of a ring";
  let description = [{
    As tile.warpgroup_dot, over the 64 columns of b. The result has 8 or 16 rows; those past the own rows may be anything.

    Example: `%x = tile.warpgroup_dot_own %own[%k], %weights[%i], %acc : memref<1x4096xbf16>, !tile.ring<128 x 64, 4>, !tile.in_flight<vector<8x128xf32>>`
  }];
  let arguments = (ins AnyMemRef:$own, Index:$first, Tile_Ring:$b, Index:$roundB, Tile_InFlight:$acc);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = [{
    $own `[` $first `]` `,` $b `[` $roundB `]` `,` $acc attr-dict `:` type($own) `,` type($b) `,` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_WarpgroupDotRowsOp : Tile_AsyncOp<"warpgroup_dot_rows", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts sum_k a[m, k] b[n, k] on slots of two rings, a's rows being the instruction's";
  let description = [{
    64 rows of a for each warpgroup, b's rows are the result's columns; k are the columns of both, `depth` of them. The sums start
    at zero. The result has no more rows than a; products of a's last rows may be dropped.

    Example: `%s = tile.warpgroup_dot_rows %q[%c0], %k[%i] depth 128 : !tile.ring<128 x 128, 1>, !tile.ring<128 x 128, 2>, !tile.in_flight<vector<128x128xf32>>`
  }];
  let arguments = (ins Tile_Ring:$a, Index:$roundA, Tile_Ring:$b, Index:$roundB, I64Attr:$depth);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = [{
    $a `[` $roundA `]` `,` $b `[` $roundB `]` `depth` $depth attr-dict `:` type($a) `,` type($b) `,` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_WarpgroupUpdateOp : Tile_AsyncOp<"warpgroup_update", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "starts acc[m, n] + sum_k a[m, k] b[k, n] with a in registers, b in a slot of a ring";
  let description = [{
    a lies as the result of a product lies, 64 rows a warpgroup; b's rows are k. Nothing may write a's registers before the wait.

    Example: `%o1 = tile.warpgroup_update %p, %v[%i], %o : vector<128x128xbf16>, !tile.ring<128 x 128, 2>, !tile.in_flight<vector<128x128xf32>>`
  }];
  let arguments = (ins VectorOfRankAndType<[2], [BF16]>:$a, Tile_Ring:$b, Index:$roundB, Tile_InFlight:$acc);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = "$a `,` $b `[` $roundB `]` `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($result)";
  let hasVerifier = 1;
}

def Tile_StartOp : Tile_AsyncOp<"start", [Pure]> {
  let summary = "hands a vector to the tensor cores: the start of a chain of products";
  let description = [{
    Example: `%x = tile.start %zero : vector<256x128xf32> -> !tile.in_flight<vector<256x128xf32>>`
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$vector);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = "$vector attr-dict `:` type($vector) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_AsyncOp<"wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most `pending` groups of products are unfinished";
  let description = [{
    A value in flight comes out as its vector where its products are among the finished ones (all are with pending 0), else as it
    went in. Vectors pass through: what reads the result is computed after the wait.

    Example: `%y = tile.wait %x pending 0 : (!tile.in_flight<vector<256x128xf32>>) -> vector<256x128xf32>`
  }];
  let arguments = (ins Variadic<AnyType>:$operands, I64Attr:$pending);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$operands `pending` $pending attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Turns: warpgroups that issue products one after the other, so that one computes while another's products run
// (FlashAttention-3, Shah et al. 2024, sec. 3.1)
//===----------------------------------------------------------------------===//

def Tile_OpenTurnsOp : Tile_AsyncOp<"open_turns", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: the first turn is the first warpgroup's";
  let description = [{
    Example: `tile.open_turns`
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_TakeTurnOp : Tile_AsyncOp<"take_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: a warpgroup waits until it is its turn";
  let description = [{
    Example: `tile.take_turn`
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PassTurnOp : Tile_AsyncOp<"pass_turn", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: the turn is the next warpgroup's";
  let description = [{
    Every warpgroup takes and passes its turn equally often.

    Example: `tile.pass_turn`
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_DealColumnsOp : Tile_AsyncOp<"deal_columns", [Pure, AllTypesMatch<["even", "odd"]>]> {
  let summary = "deals the columns of a product to two vectors, eight at a time";
  let description = [{
    even[r, 8p + i] = source[r, 16p + i], odd[r, 8p + i] = source[r, 16p + 8 + i] for i < 8. In the registers of a product whose
    columns are the instruction's rows, a thread has a column of both: nothing moves.

    Example: `%gate, %up = tile.deal_columns %y : vector<256x128xf32> -> vector<256x64xf32>`
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$source);
  let results = (outs AnyVectorOfNonZeroRank:$even, AnyVectorOfNonZeroRank:$odd);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($even)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

def Tile_StoreStagedOp : Tile_AsyncOp<"store_staged", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "consumers: stores a block of bf16 through shared memory, so that memory is written row by row";
  let description = [{
    As tile.store, on a ring of one stage (of crews: one each) that nothing else uses; what lies past the memref's columns is dropped. A block of two
    dimensions comes out of a transposed product, whose warps have columns: all consumers (of a crew) meet before they write the
    ring and before they read it. A block of three, the first two being the ring's rows, comes out of a product whose warps have rows, and
    each warp goes its own way.

    Example: `tile.store_staged %y, %m[%row, %col] through %r limit %rows : vector<256x64xbf16>, memref<?x14336xbf16>, !tile.ring<256 x 64, 1>`
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$value, AnyMemRef:$memref, Variadic<Index>:$indices, Tile_Ring:$ring, Optional<Index>:$limit);
  let assemblyFormat = [{
    $value `,` $memref `[` $indices `]` `through` $ring (`limit` $limit^)? attr-dict `:` type($value) `,` type($memref) `,` type($ring)
  }];
  let hasVerifier = 1;
}

def Tile_ScatterOp : Tile_AsyncOp<"scatter", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "stores the rows of a block where slots say";
  let description = [{
    Memref [pages, ..., tokens of a page, columns]: row r goes to page s / p, token s % p with s = slots[first + r] and p tokens a
    page, at the other indices (those of the dimensions behind the page but the tokens'). A row whose slot is negative goes nowhere, as do
    rows with first + r not below the limit.

    Example: `tile.scatter %k, %keys[%head, %c0] slots %slots[%row] limit %rows : vector<8x32xbf16>, memref<?x8x16x128xbf16>, memref<?xi32>`
  }];
  let arguments = (ins VectorOfRankAndType<[2], [BF16]>:$value, AnyMemRef:$memref, Variadic<Index>:$indices, AnyMemRef:$slots, Index:$first,
                       Optional<Index>:$limit);
  let assemblyFormat = [{
    $value `,` $memref `[` $indices `]` `slots` $slots `[` $first `]` (`limit` $limit^)? attr-dict
    `:` type($value) `,` type($memref) `,` type($slots)
  }];
  let hasVerifier = 1;
}

#endif // LLMC_TILE_ASYNC_OPS
