//===- Dequantize.h - scalar reference of the storage types -----*- C++ -*-===//
#ifndef LLMC_FRONTEND_DEQUANTIZE_H
#define LLMC_FRONTEND_DEQUANTIZE_H

#include "llmc/Frontend/ModelFacts.h"

namespace llmc {

/// Widens `count` stored values at `source` (storageBytes(type, count) bytes, any
/// alignment) to f32. `count` must be a multiple of blockSize(type). Equal bit for bit to
/// ggml's dequantize_row_* where scales are finite; of E4M3 the codes' values, without the rows' scales; llmc/Frontend/CodedBlock.h has the blocks.
void dequantizeRow(DType type, const void *source, int64_t count, float *destination);

} // namespace llmc

#endif // LLMC_FRONTEND_DEQUANTIZE_H
