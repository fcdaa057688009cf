//===- Schedule.cpp - how linear kernels are blocked on a CPU -------------===//

#include "Schedule.h"

using namespace llmc;

// int8 products unpack a record once per register tile: 16 tokens make that 4 % of the work. Prefill units
// take 256 tokens, whose activations stay in L2 while a panel's weights stay in L1. One token is bandwidth:
// prefetch runs about two panels' records ahead.
static constexpr LinearSchedule kQuantized[] = {
    {"m1", 1, 1, 1, 1, 4096},
    {"m8", 8, 8, 4, 4, 2048},
    {"m256", UINT32_MAX, 256, 16, 4, 0},
};

static constexpr LinearSchedule kWide[] = {
    {"m1", 1, 1, 1, 1, 4096},
    {"m256", UINT32_MAX, 256, 4, 4, 0},
};

llvm::ArrayRef<LinearSchedule> llmc::linearSchedules(lm::Arith arith) {
  if (arith == lm::Arith::Q8_G32 || arith == lm::Arith::Q16_G32)
    return kQuantized;
  return kWide;
}
