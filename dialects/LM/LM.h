//===- LM.h - the lm dialect ------------------------------------*- C++ -*-===//
//
// Declarations generated from LMOps.td, and the few facts about storages and
// arithmetic that passes and lowerings share.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_DIALECTS_LM_LM_H
#define LLMC_DIALECTS_LM_LM_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/LM/LMDialect.h.inc"
#include "dialects/LM/LMEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/LM/LMAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/LM/LMTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/LM/LMOps.h.inc"

namespace llmc::lm {

/// Values per block of a storage: 32 for the q storages, else 1.
unsigned blockSize(Storage storage);
/// Bytes of `count` stored values; count is a multiple of blockSize(storage).
uint64_t storageBytes(Storage storage, uint64_t count);
/// True for the q storages.
inline bool isBlockStorage(Storage storage) { return blockSize(storage) != 1; }

/// What a weight's rows are once they are packed, apart from their order: their file's storage, or what `quantize` says.
Storage packedStorage(WeightOp weight);

/// Columns of one source row: shape[1], or 1 for a vector.
int64_t sourceColumns(WeightOp weight);

/// The form in which a matrix product of this arithmetic reads its activations.
Format inputFormat(Arith arith);

/// Result types of a [rows, columns] f32 activation written in `format`: one type, or (codes, scales) for q8, q16 and e4m3.
llvm::SmallVector<mlir::Type> formattedTypes(mlir::RankedTensorType f32Rows, Format format);

/// The canonical name that a location carries ("blk.3.attn_q"), empty without one. Every lm op's location
/// is the name of what it computes; launches, dumps and `diff` are named after it.
llvm::StringRef nameOf(mlir::Location location);
inline llvm::StringRef nameOf(mlir::Operation *op) { return nameOf(op->getLoc()); }
/// N for "blk.N.…", else -1.
int64_t layerOf(llvm::StringRef name);

} // namespace llmc::lm

#endif // LLMC_DIALECTS_LM_LM_H
