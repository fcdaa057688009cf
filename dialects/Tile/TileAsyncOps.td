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
    A row is 128 bytes (64 bf16, k contiguous); rows are swizzled as bulk tensor copies write them and warpgroup products
    read them (PTX ISA 9.7.16.5.1, 128-byte swizzling).

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
    The producer's region is run by one thread of the last warp, the consumers' by all other warps. They run side by side and
    meet only at pipelines.

    Example: `tile.roles producer { ... } consumers { ... }`
  }];
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumers);
  let assemblyFormat = "`producer` $producer `consumers` $consumers attr-dict";
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
    dimension, product of all but the last = rows of the ring, last = its columns. What lies outside the memref is zero;
    a dynamic dimension counts as endless. The slot is full when all announced bytes have come.

    Example: `tile.copy_async %w[%panel, %c0, %k] box [8, 16, 64] to %ring[%i] signals %p : memref<36x16x576xbf16>, !tile.ring<128 x 64, 4>, !tile.pipeline<4>`
  }];
  let arguments = (ins AnyMemRef:$memref, Variadic<Index>:$indices, DenseI64ArrayAttr:$box, Tile_Ring:$ring, Index:$round,
                       Tile_Pipeline:$pipeline);
  let assemblyFormat = [{
    $memref `[` $indices `]` `box` $box `to` $ring `[` $round `]` `signals` $pipeline attr-dict
    `:` type($memref) `,` type($ring) `,` type($pipeline)
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
// Products
//===----------------------------------------------------------------------===//

def Tile_WarpgroupDotOp : Tile_AsyncOp<"warpgroup_dot", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "starts acc[m, n] + sum_k a[m, k] b[n, k] on slots of two rings";
  let description = [{
    b's rows (a weight's outputs) are the instruction's rows, 64 a warpgroup; a's rows (tokens) its columns. Starts a group of
    products; `tile.wait` counts groups.

    Example: `%x = tile.warpgroup_dot %tokens[%i], %weights[%i], %acc : !tile.ring<256 x 64, 4>, !tile.ring<128 x 64, 4>, !tile.in_flight<vector<256x128xf32>>`
  }];
  let arguments = (ins Tile_Ring:$a, Index:$roundA, Tile_Ring:$b, Index:$roundB, Tile_InFlight:$acc);
  let results = (outs Tile_InFlight:$result);
  let assemblyFormat = [{
    $a `[` $roundA `]` `,` $b `[` $roundB `]` `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($result)
  }];
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
    With pending 0 the results are the vectors; else they are still in flight.

    Example: `%y = tile.wait %x pending 0 : (!tile.in_flight<vector<256x128xf32>>) -> vector<256x128xf32>`
  }];
  let arguments = (ins Variadic<Tile_InFlight>:$operands, I64Attr:$pending);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$operands `pending` $pending attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

#endif // LLMC_TILE_ASYNC_OPS
