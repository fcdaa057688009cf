//===- Schedule.cpp - how linear kernels are blocked ----------------------===//

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

// A GPU's unit is a CTA: four warps with a panel of 16 output columns each. One token costs as much as eight; long steps
// of k keep many loads in flight where there are few tokens, short ones leave registers to the sums where there are many.
static constexpr LinearSchedule kTensorCore[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"m32", 32, 32, 32, 32, 0, 4, 64},
    {"m128", UINT32_MAX, 128, 128, 128, 0, 4, 32},
};

// A gated product keeps two tiles of sums, one over records of 256 k their scales.
static constexpr LinearSchedule kTensorCoreGated[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"m32", 32, 32, 32, 32, 0, 4, 32},
    {"m64", UINT32_MAX, 64, 64, 64, 0, 4, 32},
};

// More than one tile of tokens on dense weights: two warpgroups of 64 output columns each, fed by copies through shared memory. The
// largest tile is 128 sums a thread.
static constexpr LinearSchedule kWarpgroups[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 8, 64, true},
    {"w32", 32, 32, 32, 32, 0, 8, 64, true},
    {"w64", 64, 64, 64, 64, 0, 8, 64, true},
    {"w128", 1024, 128, 128, 128, 0, 8, 64, true},
    {"w256", UINT32_MAX, 256, 256, 256, 0, 8, 64, true},
};

// A gated product is one of interleaved rows: four pairs of panels where others have eight.
static constexpr LinearSchedule kWarpgroupsGated[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 4, 64, true},
    {"w32", 32, 32, 32, 32, 0, 4, 64, true},
    {"w64", 64, 64, 64, 64, 0, 4, 64, true},
    {"w128", 1024, 128, 128, 128, 0, 4, 64, true},
    {"w256", UINT32_MAX, 256, 256, 256, 0, 4, 64, true},
};

// A bias beside the sums: half as many tokens.
static constexpr LinearSchedule kWarpgroupsBias[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 8, 64, true},
    {"w32", 32, 32, 32, 32, 0, 8, 64, true},
    {"w64", 64, 64, 64, 64, 0, 8, 64, true},
    {"w128", UINT32_MAX, 128, 128, 128, 0, 8, 64, true},
};

llvm::ArrayRef<LinearSchedule> llmc::linearSchedules(lm::Arith arith, bool wide, Epilogue epilogue) {
  using Table = llvm::ArrayRef<LinearSchedule>;
  if (arith == lm::Arith::BF16 && wide)
    return epilogue == Epilogue::Gated ? Table(kWarpgroupsGated) : epilogue == Epilogue::Bias ? Table(kWarpgroupsBias) : kWarpgroups;
  if (arith == lm::Arith::BF16)
    return epilogue == Epilogue::Gated || epilogue == Epilogue::LongRecords ? Table(kTensorCoreGated) : kTensorCore;
  if (arith == lm::Arith::Q8_G32 || arith == lm::Arith::Q16_G32)
    return kQuantized;
  return kWide;
}
