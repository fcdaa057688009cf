//===- Schedule.cpp - how linear kernels are blocked ----------------------===//

#include "MeasuredTiles.h"

#include "llmc/Conversion/LMToTile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llmc;

// int8 products unpack a record once per register tile: 16 tokens make that 4 % of the work. Prefill units
// take 256 tokens, whose activations stay in L2 while a panel's weights stay in L1. One token is bandwidth:
// prefetch runs about two panels' records ahead; without it 16 tokens wait for their weights, too.
static constexpr LinearSchedule kQuantized[] = {
    {"m1", 1, 1, 1, 1, 4096},
    {"m8", 8, 8, 4, 4, 2048},
    {"m16", 16, 16, 16, 16, 4096},
    {"m256", UINT32_MAX, 256, 16, 4, 2048},
};

static constexpr LinearSchedule kWide[] = {
    {"m1", 1, 1, 1, 1, 4096},
    {"m256", UINT32_MAX, 256, 4, 4, 0},
};

// bf16_eo32 is for prompts: AMX multiplies 16 tokens by 16 columns, two by two of such tiles at a time. A unit's panels are
// dequantised once for its tokens.
static constexpr LinearSchedule kEvenOdd[] = {
    {"m256", UINT32_MAX, 256, 32, 16, 0, 1, 32, 1, false, 1, 1, 0, 0, 2},
};

// bf16 on a CPU: a register of weights serves 16 tokens.
static constexpr LinearSchedule kPairs[] = {
    {"m1", 1, 1, 1, 1, 4096},
    {"m4", 4, 4, 4, 4, 2048},
    {"m8", 8, 8, 8, 8, 4096},
    {"m16", 16, 16, 16, 16, 4096},
    {"m256", UINT32_MAX, 256, 16, 4, 2048},
};

// Of few tokens the time is that of the weights' bytes if there are enough loads in flight: units of one panel, whose k eight
// warps share. As many k a step as keep loads in flight and leave registers to the sums, half of them where a gated product has two tiles of those.
static constexpr LinearSchedule kTensorCoreFew[] = {
    {"m1", 1, 1, 1, 1, 0, 1, 128, 1, false, 8},
    {"m8", 8, 8, 8, 8, 0, 1, 128, 1, false, 8},
    {"m16", 16, 16, 16, 16, 0, 1, 64, 1, false, 8},
    {"m32", 32, 32, 32, 32, 0, 1, 64, 1, false, 8},
    {"m64", 64, 64, 64, 64, 0, 1, 32, 1, false, 8},
};
// Of many a unit is a CTA of four warps with a panel of 16 output columns each. Two tiles of sums, or the scales of records of 256 k,
// leave room for half as many tokens.
static constexpr LinearSchedule kTensorCoreMany = {"m128", UINT32_MAX, 128, 128, 128, 0, 4, 32};
static constexpr LinearSchedule kTensorCoreManyCrowded = {"m64", UINT32_MAX, 64, 64, 64, 0, 4, 32};

// More than one tile of tokens on dense weights: two warpgroups of 64 output columns each (n64: one, n192: three), fed by copies through
// shared memory. The largest tile is 128 sums a thread. Units of two or four CTAs, each with a part of k, are for few tokens and few
// columns; of two crews (x2: each a warpgroup of 128 columns) for few k, whose results take as long as a part of the products. Those with
// the time of a step are what tilesForMany chooses from.
static constexpr LinearSchedule kWarpgroups[] = {
    {"m8", 8, 8, 8, 8, 0, 4, 128},
    {"w16", 16, 16, 16, 16, 0, 8, 64, 1, true},
    {"w64", 64, 64, 64, 64, 0, 8, 64, 1, true, 1, 1, 252},
    {"w64n64", UINT32_MAX, 64, 64, 64, 0, 4, 64, 1, true, 1, 1, 165},
    {"w96", UINT32_MAX, 96, 96, 96, 0, 8, 64, 1, true, 1, 1, 278},
    {"w128n64", UINT32_MAX, 128, 128, 128, 0, 4, 64, 1, true, 1, 1, 228},
    {"w128n64p2", UINT32_MAX, 128, 128, 128, 0, 4, 64, 2, true, 1, 1, 228},
    {"w128n64p4", UINT32_MAX, 128, 128, 128, 0, 4, 64, 4, true, 1, 1, 228},
    {"w128p4", UINT32_MAX, 128, 128, 128, 0, 8, 64, 4, true, 1, 1, 368},
    {"w128p2", UINT32_MAX, 128, 128, 128, 0, 8, 64, 2, true, 1, 1, 368},
    {"w128", UINT32_MAX, 128, 128, 128, 0, 8, 64, 1, true, 1, 1, 368},
    {"w128x2", UINT32_MAX, 128, 128, 128, 0, 8, 64, 1, true, 1, 2, 366},
    {"w160", UINT32_MAX, 160, 160, 160, 0, 8, 64, 1, true, 1, 1, 432},
    {"w128n192", UINT32_MAX, 128, 128, 128, 0, 12, 64, 1, true, 1, 1, 501},
    {"w256", UINT32_MAX, 256, 256, 256, 0, 8, 64, 1, true, 1, 1, 645},
};

// Of up to 64 tokens: 64 columns where a weight has few, so that most multiprocessors read some of it.
static constexpr LinearSchedule kFewWarpgroups[] = {
    {"w32", 32, 32, 32, 32, 0, 8, 64, 1, true},      {"w32n64", 32, 32, 32, 32, 0, 4, 64, 1, true},
    {"w32n64p2", 32, 32, 32, 32, 0, 4, 64, 2, true}, {"w32n64p4", 32, 32, 32, 32, 0, 4, 64, 4, true},
    {"w64", 64, 64, 64, 64, 0, 8, 64, 1, true},      {"w64n64", 64, 64, 64, 64, 0, 4, 64, 1, true},
    {"w64n64p2", 64, 64, 64, 64, 0, 4, 64, 2, true}, {"w64n64p4", 64, 64, 64, 64, 0, 4, 64, 4, true},
};

/// A gated product is one of interleaved rows: four pairs of panels where others have eight.
static llvm::SmallVector<LinearSchedule> warpgroups(llvm::ArrayRef<LinearSchedule> all, bool gated) {
  llvm::SmallVector<LinearSchedule> table(all);
  if (!gated)
    return table;
  llvm::erase_if(table, [](const LinearSchedule &x) { return x.panels > 8 || (x.pipelined && x.panels < 8); });
  for (LinearSchedule &x : table)
    if (x.pipelined)
      x.panels /= 2;
  return table;
}

// Of a weight with few panels: narrow units in one or two parts of k whose copies start while the kernels before run, if they are
// enough for most multiprocessors.
static constexpr LinearSchedule kFewNarrow[] = {
    {"v16", 16, 16, 16, 16, 0, 4, 64, 1, true},
    {"v16p2", 16, 16, 16, 16, 0, 4, 64, 2, true},
};
static constexpr int64_t kMostMultiprocessors = 96;
// In two parts half of them are enough for more tokens than one, of which small units would take eight at a time (H200, 1B shape: a step of
// 4 and of 16 tokens 5 and 8 % faster, of one 1 % slower).
static constexpr int64_t kHalfOfMultiprocessors = 64;

// Else a few tokens' time is that of the weight's bytes if there are enough loads in flight: small units, whose k
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

/// Picoseconds from a sum to memory, and with two crews, one of which writes while the other multiplies.
static int64_t picosecondsOfResult(Epilogue epilogue, bool crews) {
  switch (epilogue) {
  case Epilogue::Residual:
  case Epilogue::RaggedResidual:
    return crews ? 195 : 155;
  case Epilogue::Gated:
    return crews ? 120 : 95;
  default:
    return crews ? 15 : 65;
  }
}

static int64_t columnsOf(const LinearSchedule &tile, bool gated) { return 16 * tile.panels * (gated ? 2 : 1); }

/// Nanoseconds that the card's memory takes to give the weight.
static int64_t timeOfWeight(int64_t panels, int64_t k, bool gated) {
  constexpr int64_t kBytes = 3800; // in a nanosecond
  return 2 * k * 16 * panels * (gated ? 2 : 1) / kBytes;
}

/// Nanoseconds that `rows` tokens take in units of such a tile: the launch, then rounds of units on the card, each with its steps of
/// 64 k and its end: results on their way to memory, sums of parts to their CTAs. These times and stepTime are fitted to the 12 products of three
/// models at 256 to 8,192 tokens, within 7 % of what 422 kernels took, and units of 64 columns to those at 64 to 512 (H200, 2026-11-30).
static int64_t timeOf(const LinearSchedule &tile, int64_t rows, int64_t panels, int64_t k, Epilogue epilogue) {
  constexpr int64_t kLaunch = 2900, kParts = 3300;
  bool crews = tile.crews > 1, gated = epilogue == Epilogue::Gated;
  int64_t tokens = tile.tokens, columns = columnsOf(tile, gated);
  int64_t units = llvm::divideCeil(rows, tile.rowBlock) * llvm::divideCeil(panels, tile.panels);
  int64_t rounds = llvm::divideCeil(units, unitsAtATime(tile.parts));
  int64_t products = int64_t(llvm::divideCeil(k, 64 * tile.parts)) * tile.stepTime;
  int64_t end = tokens * columns * picosecondsOfResult(epilogue, crews) / 1000 + (tile.parts > 1 ? kParts : 0);
  int64_t weight = timeOfWeight(panels, k, gated), all = std::max(rounds * products, weight) + std::min(rounds * products, weight) / 10;
  if (!crews)
    return kLaunch + all + rounds * end;
  return kLaunch + std::max<int64_t>(all + end, llvm::divideCeil(rounds, 2) * (products + end));
}

/// The same, put right by what was measured.
static int64_t correctedTimeOf(const LinearSchedule &tile, uint32_t rows, int64_t panels, int64_t k, Epilogue epilogue) {
  auto predict = [&](const MeasuredTile &of, uint32_t at) { return timeOf(tile, at, of.panels, of.k, of.epilogue); };
  return timeOf(tile, rows, panels, k, epilogue) * measuredPerMille(tile.name, epilogue, panels, k, rows, predict) / 1000;
}

/// The same of up to 64 tokens. Theirs is the time of copies: of the weight's bytes, or of those that a multiprocessor takes in, weights and
/// tokens, at most so many at a time and a step at a time.
static int64_t timeOfFew(const LinearSchedule &tile, int64_t panels, int64_t k, bool gated) {
  constexpr int64_t kLaunch = 2900, kBytesOfOne = 110, kStep = 160, kPartsOfToken = 30;
  int64_t step = std::max<int64_t>(kStep, 128 * (tile.tokens + columnsOf(tile, gated)) / kBytesOfOne);
  int64_t rounds = llvm::divideCeil(llvm::divideCeil(panels, tile.panels), unitsAtATime(tile.parts));
  int64_t copies = rounds * int64_t(llvm::divideCeil(k, 64 * tile.parts)) * step;
  return kLaunch + std::max(copies, timeOfWeight(panels, k, gated)) + (tile.parts > 1 ? kPartsOfToken * tile.tokens : 0);
}

/// Whether a kernel with such an epilogue has registers enough.
static bool fits(const LinearSchedule &tile, Epilogue epilogue) {
  bool largest = tile.crews == 1 && tile.tokens == 256;
  return !(largest && (epilogue == Epilogue::Bias || epilogue == Epilogue::RaggedResidual)) && !(tile.panels == 12 && epilogue == Epilogue::Bias);
}

/// Of more than 64 tokens: for every number of them the tile that fills the card best, or the one `wanted`, if it is for such products.
/// `measured`: by times that the table of measured ones corrects.
static llvm::SmallVector<LinearSchedule> tilesForMany(llvm::ArrayRef<LinearSchedule> table, Epilogue epilogue, int64_t panels, int64_t k,
                                                      llvm::StringRef wanted = {}, bool measured = true) {
  constexpr uint32_t kMost = 8192, kStep = 64;
  constexpr int64_t kPerMille = 15; // so much better has another tile to be: the times are not exact
  llvm::SmallVector<LinearSchedule> tiles;
  for (const LinearSchedule &tile : table)
    if (tile.stepTime && k > 64 * tile.parts && fits(tile, epilogue)) // a loop of one step is none
      tiles.push_back(tile);
  if (auto *found = llvm::find_if(tiles, [&](const LinearSchedule &x) { return x.name == wanted; }); found != tiles.end())
    tiles = {*found};
  llvm::SmallVector<LinearSchedule> classes{tiles.front()};
  for (uint32_t rows = 2 * kStep; rows <= kMost; rows += kStep) {
    auto time = [&](const LinearSchedule &tile) {
      return measured ? correctedTimeOf(tile, rows, panels, k, epilogue) : timeOf(tile, rows, panels, k, epilogue);
    };
    const LinearSchedule &best = *std::min_element(tiles.begin(), tiles.end(), [&](const LinearSchedule &x, const LinearSchedule &y) {
      return time(x) != time(y) ? time(x) < time(y) : x.tokens > y.tokens;
    });
    if (time(classes.back()) * 1000 > time(best) * (1000 + kPerMille))
      classes.push_back(best);
    classes.back().maxRows = rows;
  }
  classes.back().maxRows = UINT32_MAX;
  if (classes.front().maxRows == kStep)
    classes.erase(classes.begin());
  return classes;
}

/// Of more than 16 and up to 64 tokens.
static llvm::SmallVector<LinearSchedule> tilesForFew(bool gated, int64_t panels, int64_t k) {
  llvm::SmallVector<LinearSchedule> classes;
  for (const LinearSchedule &tile : warpgroups(kFewWarpgroups, gated)) {
    if (k <= 64 * tile.parts)
      continue;
    if (classes.empty() || classes.back().maxRows != tile.maxRows)
      classes.push_back(tile);
    else if (timeOfFew(tile, panels, k, gated) < timeOfFew(classes.back(), panels, k, gated))
      classes.back() = tile;
  }
  return classes;
}

static llvm::SmallVector<LinearSchedule> tilesFor(llvm::ArrayRef<LinearSchedule> table, Epilogue epilogue, int64_t panels, int64_t k,
                                                  llvm::StringRef wanted) {
  constexpr size_t kFixed = 2; // up to w16
  bool gated = epilogue == Epilogue::Gated;
  int64_t blocks = llvm::divideCeil(panels, table.back().panels);
  llvm::SmallVector<LinearSchedule> classes(table.take_front(kFixed)), many = tilesForMany(table, epilogue, panels, k, wanted);
  llvm::append_range(classes, tilesForFew(gated, panels, k));
  if (classes.back().name == many.front().name) // one class
    classes.pop_back();
  llvm::append_range(classes, many);
  if (blocks >= kManyUnits) {
    classes.erase(classes.begin()); // w16 takes what m8 would
  } else {
    llvm::SmallVector<LinearSchedule> few(gated ? llvm::ArrayRef<LinearSchedule>(kFewTokensGated) : kFewTokens);
    for (const LinearSchedule &narrow : llvm::reverse(kFewNarrow)) { // one part, if that is enough
      int64_t ctas = int64_t(llvm::divideCeil(panels, narrow.panels)) * narrow.parts;
      if (gated || k <= 64 * narrow.parts || ctas < kHalfOfMultiprocessors)
        continue;
      if (ctas >= kMostMultiprocessors)
        few = {narrow};
      else if (narrow.parts > 1)
        few = {few.front(), narrow};
    }
    llvm::erase_if(classes, [&](const LinearSchedule &x) { return x.maxRows <= few.back().maxRows; });
    classes.insert(classes.begin(), few.begin(), few.end());
  }
  return classes;
}

/// Weights of codes, or dense ones of an odd shape. `unpacks`: of many tokens pipelines whose producers unpack.
static llvm::SmallVector<LinearSchedule> tensorCoreSchedules(Epilogue epilogue, int64_t panels, int64_t k, bool unpacks) {
  bool gated = epilogue == Epilogue::Gated, records = epilogue == Epilogue::LongRecords;
  llvm::SmallVector<LinearSchedule> classes(llvm::ArrayRef<LinearSchedule>{kTensorCoreFew});
  for (LinearSchedule &x : classes) {
    if (gated)
      x.stepK = std::max<int64_t>(32, x.stepK / 2);
    while (x.splits > 1 && k / std::max<int64_t>(x.stepK, records ? 256 : 32) < x.splits) // none without a step
      x.splits /= 2;
  }
  if (!unpacks) { // the scales of long records leave no registers for 64 tokens
    classes.pop_back();
    classes.push_back(gated || records ? kTensorCoreManyCrowded : kTensorCoreMany);
    return classes;
  }
  llvm::SmallVector<LinearSchedule> table = warpgroups(kWarpgroups, gated);
  // Other warpgroups' registers are the producers', and so are those that parts of k take.
  llvm::erase_if(table, [&](const LinearSchedule &x) { return !x.stepTime || columnsOf(x, gated) != 128 || x.crews > 1 || x.parts > 1; });
  for (LinearSchedule &x : table) // of a step producers take most: 770, 890 and 1,000 ns with 64, 128 and 256 tokens
    x.stepTime = 750 + x.stepTime / 3;
  llvm::append_range(classes, tilesForMany(table, epilogue, panels, k));
  return classes;
}

/// e4m3: pipelines for any number of tokens. A step has the bytes and takes the time of 64 k of bf16, but is 128 k; so all that is said of k
/// above is said of half of it.
static llvm::SmallVector<LinearSchedule> e4m3Schedules(Epilogue epilogue, int64_t panels, int64_t k, llvm::StringRef wanted) {
  bool gated = epilogue == Epilogue::Gated;
  int64_t halves = llvm::divideCeil(k, 2);
  llvm::SmallVector<LinearSchedule> table = warpgroups(kWarpgroups, gated), classes;
  // There are no registers for scales, nor for them and a bias, or the ends of columns of a residual.
  llvm::erase_if(table, [&](const LinearSchedule &x) { return x.panels == 12 || (x.crews > 1 && (epilogue == Epilogue::Bias || epilogue == Epilogue::RaggedResidual)); });
  for (const LinearSchedule &tile : table)
    if (tile.pipelined && tile.maxRows <= 16)
      classes.push_back(tile);
  for (const LinearSchedule &tile : kFewNarrow)
    if (!gated && halves > 64 * tile.parts && timeOfFew(tile, panels, halves, gated) < timeOfFew(classes.back(), panels, halves, gated))
      classes.back() = tile;
  llvm::SmallVector<LinearSchedule> many = tilesForMany(table, epilogue, panels, halves, wanted, /*measured=*/false);
  llvm::append_range(classes, tilesForFew(gated, panels, halves));
  if (classes.back().name == many.front().name) // one class
    classes.pop_back();
  llvm::append_range(classes, many);
  for (LinearSchedule &x : classes)
    x.stepK *= 2;
  return classes;
}

std::vector<std::string> llmc::linearTileNames() {
  std::vector<std::string> names;
  for (const LinearSchedule &tile : kWarpgroups)
    if (tile.stepTime)
      names.push_back(tile.name.str());
  return names;
}

llvm::SmallVector<LinearSchedule> llmc::pairSchedules() { return llvm::SmallVector<LinearSchedule>(llvm::ArrayRef(kPairs)); }

llvm::SmallVector<LinearSchedule> llmc::linearSchedules(lm::Arith arith, bool wide, Epilogue epilogue, int64_t panels, int64_t k, bool unpacks,
                                                         llvm::StringRef wanted) {
  using Table = llvm::ArrayRef<LinearSchedule>;
  if (arith == lm::Arith::E4M3)
    return e4m3Schedules(epilogue, panels, k, wanted);
  if (arith == lm::Arith::BF16 && wide)
    return tilesFor(warpgroups(kWarpgroups, epilogue == Epilogue::Gated), epilogue, panels, k, wanted);
  if (arith == lm::Arith::BF16)
    return tensorCoreSchedules(epilogue, panels, k, unpacks);
  if (arith == lm::Arith::BF16_EO32)
    return llvm::SmallVector<LinearSchedule>(Table(kEvenOdd));
  bool codes = arith == lm::Arith::Q8_G32 || arith == lm::Arith::Q16_G32;
  return llvm::SmallVector<LinearSchedule>(codes ? Table(kQuantized) : Table(kWide));
}
