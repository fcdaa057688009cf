//===- Tile.h - the tile dialect --------------------------------*- C++ -*-===//
#ifndef LLMC_DIALECTS_TILE_TILE_H
#define LLMC_DIALECTS_TILE_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llmc/Target/CodedForm.h"

#include "dialects/Tile/TileDialect.h.inc"
#include "dialects/Tile/TileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/TileAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.h.inc"

namespace llmc::tile {
/// How the records of a format of codes are made; false for dense formats.
CodedForm codedForm(Format format);
/// k of one record of a format: 32, 64 or 256 (codes), 2 (bf16 pairs), 1.
int64_t recordK(Format format);
/// Bytes of one record for 16 columns (docs/packing.md).
int64_t recordBytes(Format format);
/// Whether the format carries scales (its products are tile.scaled_dot or widened by unpacking).
bool isQuantized(Format format);
/// Whether it has codes, and the same scale for 32 k.
bool hasScalesOf32(Format format);
} // namespace llmc::tile

#endif // LLMC_DIALECTS_TILE_TILE_H
