//===- Schedule.h - how linear kernels are blocked --------------*- C++ -*-===//
#ifndef LLMC_CONVERSION_LMTOTILE_SCHEDULE_H
#define LLMC_CONVERSION_LMTOTILE_SCHEDULE_H

#include "dialects/LM/LM.h"

namespace llmc {

/// One M class of a matrix product (D6: the variants are explicit in the IR).
struct LinearSchedule {
  llvm::StringLiteral name;
  uint32_t maxRows;   ///< taken up to this many tokens
  uint32_t rowBlock;  ///< tokens of a unit
  int64_t tokens;     ///< tokens of a register tile
  int64_t tailTokens; ///< of the tiles that cover what is left
  int64_t prefetch;   ///< bytes ahead in the weight's panel; 0: none
  int64_t panels = 1; ///< of 16 output columns in a unit, where the product has a multiple of them
  int64_t stepK = 32; ///< k of one step, at least a record
  int64_t parts = 1;      ///< of k, whose sums are added in order
  bool pipelined = false; ///< tile-pipeline-cuda takes it: the last unit may have panels, the last step k past the end
  int64_t splits = 1;     ///< warps of a GPU that share the k of a unit
  int64_t crews = 1;      ///< warpgroups that take units by turns
  int64_t stepTime = 0;   ///< nanoseconds of a step of a pipeline, where tilesFor chooses from it
  int64_t ownRows = 0;    ///< rows that a unit normalises together, where it does so itself (NormedRows.h)
  int64_t beside = 1;     ///< such columns of panels of a unit, each with sums of its own, multiplied with one left operand
};

/// Units that run at a time take so many blocks of rows by turns with as many blocks of columns as there are CTAs for: both
/// operands of such a group stay in L2.
inline constexpr int64_t kRasterRows = 8;

/// What comes behind the sums, and needs time or registers beside them: a bias, a residual (ragged: its columns end inside a unit), a
/// second tile of sums; or records of codes so long that their scales and addresses need registers.
enum class Epilogue { None, Bias, Residual, RaggedResidual, Gated, LongRecords };

/// The classes of an arithmetic for a product of `panels` panels over `k`, ascending; `wide`: dense bf16 weights in whole steps of k, on
/// a GPU; `wanted`: the tile of more than 64 tokens where there is a choice. Measured: docs/performance.md.
llvm::SmallVector<LinearSchedule> linearSchedules(lm::Arith arith, bool wide, Epilogue epilogue, int64_t panels, int64_t k, bool unpacks = false,
                                                  llvm::StringRef wanted = {});

/// The classes of arithmetic bf16 on a CPU, with weights as pairs.
llvm::SmallVector<LinearSchedule> pairSchedules();

/// Query tokens of an attention tile: decode and prefill.
inline constexpr uint32_t kDecodeQueryTokens = 1;
inline constexpr uint32_t kPrefillQueryTokens = 4;

/// On a GPU a step of attention reads so many blocks of the cache (a warp's queries, scores and sums share its registers),
/// and steps of up to so many tokens take one query token a tile: most of them decode.
constexpr int64_t gpuPages(int64_t headDim) { return headDim > 128 ? 1 : headDim > 96 ? 2 : 4; }
inline constexpr uint32_t kGPUDecodeTokens = 64;

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_SCHEDULE_H
