//===- MeasuredTiles.cpp - times of products on a card --------------------===//

#include "MeasuredTiles.h"

#include <cmath>

using namespace llmc;

static constexpr MeasuredTile kMeasured[] = {
#include "MeasuredH200.inc"
};

/// A product whose columns end inside a unit writes its sums as others do.
static Epilogue alike(Epilogue epilogue) { return epilogue == Epilogue::RaggedResidual ? Epilogue::Residual : epilogue; }

static const MeasuredTile *nearest(llvm::StringRef tile, Epilogue epilogue, int64_t panels, int64_t k) {
  auto apart = [](int64_t x, int64_t y) { return std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y))); };
  const MeasuredTile *best = nullptr;
  double least = 0;
  for (const MeasuredTile &x : kMeasured) {
    if (x.tile != tile || alike(x.epilogue) != alike(epilogue))
      continue;
    double distance = apart(x.panels, panels) + apart(x.k, k);
    if (!best || distance < least)
      best = &x, least = distance;
  }
  return best;
}

int64_t llmc::measuredPerMille(llvm::StringRef tile, Epilogue epilogue, int64_t panels, int64_t k, uint32_t rows,
                               llvm::function_ref<int64_t(const MeasuredTile &of, uint32_t rows)> predict) {
  constexpr int64_t kAsPredicted = 1000;
  const MeasuredTile *found = nearest(tile, epilogue, panels, k);
  if (!found)
    return kAsPredicted;
  int64_t below = 0, above = 0, from = 0, to = 0; // per mille, and of how many rows
  for (auto [at, nanoseconds] : llvm::zip_equal(kMeasuredRows, found->nanoseconds)) {
    if (!nanoseconds)
      continue;
    int64_t ratio = static_cast<int64_t>(nanoseconds) * kAsPredicted / predict(*found, at);
    if (at <= rows)
      below = ratio, from = at;
    else if (!above)
      above = ratio, to = at;
  }
  if (!below || !above)
    return below ? below : above ? above : kAsPredicted;
  return below + (above - below) * (rows - from) / (to - from);
}
