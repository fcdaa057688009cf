//===- Schedule.h - how linear kernels are blocked on a CPU -----*- C++ -*-===//
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
};

/// The classes of an arithmetic, ascending. Measured: docs/performance.md.
llvm::ArrayRef<LinearSchedule> linearSchedules(lm::Arith arith);

/// Query tokens of an attention tile: decode and prefill.
inline constexpr uint32_t kDecodeQueryTokens = 1;
inline constexpr uint32_t kPrefillQueryTokens = 4;

} // namespace llmc

#endif // LLMC_CONVERSION_LMTOTILE_SCHEDULE_H
