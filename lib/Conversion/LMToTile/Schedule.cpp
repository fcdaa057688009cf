//===- Schedule.cpp - how linear kernels are blocked ----------------------===//

#include "Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

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

// Of few tokens the time is that of the weights' bytes if there are enough loads in flight: units of one panel, whose k eight
// warps share. As many k a step as keep loads in flight and leave registers to the sums; a gated product has two tiles of them.
static constexpr LinearSchedule kTensorCoreFew[] = {
    {"m1", 1, 1, 1, 1, 0, 1, 128, 1, false, 8},
    {"m8", 8, 8, 8, 8, 0, 1, 128, 1, false, 8},
    {"m16", 16, 16, 16, 16, 0, 1, 64, 1, false, 8},
    {"m32", 32, 32, 32, 32, 0, 1, 64, 1, false, 8},
    {"m64", 64, 64, 64, 64, 0, 1, 32, 1, false, 8},
};
static constexpr LinearSchedule kTensorCoreFewGated[] = {
    {"m1", 1, 1, 1, 1, 0, 1, 64, 1, false, 8},
    {"m8", 8, 8, 8, 8, 0, 1, 64, 1, false, 8},
    {"m16", 16, 16, 16, 16, 0, 1, 32, 1, false, 8},
    {"m32", 32, 32, 32, 32, 0, 1, 32, 1, false, 8},
    {"m64", 64, 64, 64, 64, 0, 1, 32, 1, false, 8},
};
// Of many a unit is a CTA of four warps with a panel of 16 output columns each. Two tiles of sums, or the scales of records of 256 k,
// leave room for half as many tokens.
static constexpr LinearSchedule kTensorCoreMany = {"m128", UINT32_MAX, 128, 128, 128, 0, 4, 32};
static constexpr LinearSchedule kTensorCoreManyCrowded = {"m64", UINT32_MAX, 64, 64, 64, 0, 4, 32};

// More than one tile of tokens on dense weights: two warpgroups of 64 output columns each (n192: three), fed by copies through shared
// memory. The largest tile is 128 sums a thread. Units of two or four CTAs, each with a part of k, are for few tokens and few
// columns. From w64 on a table has what tilesFor chooses from.
static constexpr LinearSchedule kWarpgroups[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 8, 64, 1, true},
    {"w32", 32, 32, 32, 32, 0, 8, 64, 1, true},
    {"w64", 64, 64, 64, 64, 0, 8, 64, 1, true},
    {"w64p2", UINT32_MAX, 64, 64, 64, 0, 8, 64, 2, true},
    {"w128p4", UINT32_MAX, 128, 128, 128, 0, 8, 64, 4, true},
    {"w128p2", UINT32_MAX, 128, 128, 128, 0, 8, 64, 2, true},
    {"w128", UINT32_MAX, 128, 128, 128, 0, 8, 64, 1, true},
    {"w128n192", UINT32_MAX, 128, 128, 128, 0, 12, 64, 1, true},
    {"w256", UINT32_MAX, 256, 256, 256, 0, 8, 64, 1, true},
};

// A gated product is one of interleaved rows: four pairs of panels where others have eight.
static constexpr LinearSchedule kWarpgroupsGated[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 4, 64, 1, true},
    {"w32", 32, 32, 32, 32, 0, 4, 64, 1, true},
    {"w64", 64, 64, 64, 64, 0, 4, 64, 1, true},
    {"w64p2", UINT32_MAX, 64, 64, 64, 0, 4, 64, 2, true},
    {"w128p4", UINT32_MAX, 128, 128, 128, 0, 4, 64, 4, true},
    {"w128p2", UINT32_MAX, 128, 128, 128, 0, 4, 64, 2, true},
    {"w128", UINT32_MAX, 128, 128, 128, 0, 4, 64, 1, true},
    {"w256", UINT32_MAX, 256, 256, 256, 0, 4, 64, 1, true},
};

// Of a weight with few panels a few tokens' time is that of its bytes if there are enough loads in flight: small units, whose k
// four warps share. The same order of k for one token as for eight.
static constexpr LinearSchedule kFewTokens[] = {
    {"m1", 1, 1, 1, 1, 0, 1, 256, 1, false, 4},
    {"m8", 8, 8, 8, 8, 0, 2, 256, 1, false, 4},
    {"m16", 16, 16, 16, 16, 0, 2, 128, 1, false, 4},
};
static constexpr LinearSchedule kFewTokensGated[] = {
    {"m1", 1, 1, 1, 1, 0, 1, 128, 1, false, 4},
    {"m8", 8, 8, 8, 8, 0, 2, 128, 1, false, 4},
};
// A weight with so many units for warpgroups is read by their copies as fast, be it for one token.
static constexpr int64_t kManyUnits = 100;

// Measured on an H200. Units that run at a time, by the CTAs of a unit: clusters have to fit the groups of multiprocessors.
static int64_t unitsAtATime(int64_t parts) { return parts == 1 ? 132 : parts == 2 ? 66 : 30; }

/// Nanoseconds that `rows` tokens take in units of such a tile: rounds of units on the card, each with its steps of 64 k, whose
/// products (800 TFLOP/s on the whole card) or, where the tile is small, copies (110 bytes a nanosecond for each multiprocessor)
/// bound it, and with its end: results on their way to memory, sums of parts to their CTAs.
static int64_t timeOf(const LinearSchedule &tile, int64_t rows, int64_t panels, int64_t k, bool gated) {
  int64_t tokens = tile.tokens, columns = 16 * tile.panels * (gated ? 2 : 1);
  int64_t units = llvm::divideCeil(rows, tile.rowBlock) * llvm::divideCeil(panels, tile.panels);
  int64_t step = std::max(tokens * columns * 128 / 6060, (tokens + columns) * 128 / 110);
  int64_t end = 700 + tokens * columns / (gated ? 20 : 10) + (tile.parts > 1 ? 3000 : 0);
  return llvm::divideCeil(units, unitsAtATime(tile.parts)) * (int64_t(llvm::divideCeil(k, 64 * tile.parts)) * step + end);
}

/// The table's small classes as they are, then for every number of tokens the tile that fills the card best. A bias beside the
/// sums leaves no registers for the two largest.
static llvm::SmallVector<LinearSchedule> tilesFor(llvm::ArrayRef<LinearSchedule> table, Epilogue epilogue, int64_t panels, int64_t k) {
  constexpr size_t kFixed = 4; // up to w64
  constexpr uint32_t kMost = 8192, kStep = 64;
  bool gated = epilogue == Epilogue::Gated;
  int64_t blocks = llvm::divideCeil(panels, table.back().panels);
  llvm::SmallVector<LinearSchedule> classes(table.take_front(kFixed)), tiles;
  for (const LinearSchedule &tile : table.drop_front(kFixed - 1).drop_back(epilogue == Epilogue::Bias ? 2 : 0))
    if (k > 64 * tile.parts) // a loop of one step is none
      tiles.push_back(tile);
  for (uint32_t rows = 2 * kStep; rows <= kMost; rows += kStep) {
    const LinearSchedule &best = *std::min_element(tiles.begin(), tiles.end(), [&](const LinearSchedule &x, const LinearSchedule &y) {
      int64_t of = timeOf(x, rows, panels, k, gated), other = timeOf(y, rows, panels, k, gated);
      return of != other ? of < other : x.tokens > y.tokens;
    });
    if (classes.back().name != best.name)
      classes.push_back(best);
    classes.back().maxRows = rows;
  }
  if (classes.back().name != tiles.back().name)
    classes.push_back(tiles.back());
  classes.back().maxRows = UINT32_MAX;
  if (blocks >= kManyUnits) {
    classes.erase(classes.begin()); // w16 takes what m8 would
  } else {
    llvm::ArrayRef<LinearSchedule> few = gated ? llvm::ArrayRef<LinearSchedule>(kFewTokensGated) : kFewTokens;
    llvm::erase_if(classes, [&](const LinearSchedule &x) { return x.maxRows <= few.back().maxRows; });
    classes.insert(classes.begin(), few.begin(), few.end());
  }
  return classes;
}

/// Weights of codes, or dense ones of an odd shape. `unpacks`: of many tokens pipelines whose producers unpack.
static llvm::SmallVector<LinearSchedule> tensorCoreSchedules(Epilogue epilogue, int64_t panels, int64_t k, bool unpacks) {
  bool gated = epilogue == Epilogue::Gated, records = epilogue == Epilogue::LongRecords;
  llvm::SmallVector<LinearSchedule> classes(gated ? llvm::ArrayRef(kTensorCoreFewGated) : llvm::ArrayRef(kTensorCoreFew));
  for (LinearSchedule &x : classes)
    while (x.splits > 1 && k / std::max<int64_t>(x.stepK, records ? 256 : 32) < x.splits) // none without a step
      x.splits /= 2;
  if (!unpacks) { // the scales of long records leave no registers for 64 tokens
    classes.pop_back();
    classes.push_back(gated || records ? kTensorCoreManyCrowded : kTensorCoreMany);
    return classes;
  }
  llvm::SmallVector<LinearSchedule> table(gated ? llvm::ArrayRef(kWarpgroupsGated) : llvm::ArrayRef(kWarpgroups));
  llvm::erase_if(table, [](const LinearSchedule &x) { return x.panels > 8; }); // a third warpgroup's registers are the producers'
  for (const LinearSchedule &x : tilesFor(table, epilogue, panels, k))
    if (x.maxRows > classes.back().maxRows)
      classes.push_back(x);
  return classes;
}

llvm::SmallVector<LinearSchedule> llmc::linearSchedules(lm::Arith arith, bool wide, Epilogue epilogue, int64_t panels, int64_t k, bool unpacks) {
  using Table = llvm::ArrayRef<LinearSchedule>;
  if (arith == lm::Arith::BF16 && wide)
    return tilesFor(epilogue == Epilogue::Gated ? Table(kWarpgroupsGated) : kWarpgroups, epilogue, panels, k);
  if (arith == lm::Arith::BF16)
    return tensorCoreSchedules(epilogue, panels, k, unpacks);
  bool codes = arith == lm::Arith::Q8_G32 || arith == lm::Arith::Q16_G32;
  return llvm::SmallVector<LinearSchedule>(codes ? Table(kQuantized) : Table(kWide));
}
