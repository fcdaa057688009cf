//===- AttentionLoops.cpp -------------------------------------------------===//

#include "lib/Transforms/Tile/AttentionLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::tile;

static constexpr int64_t kMostRows = 128; // of two warpgroups

/// null: fits; else why not.
static const char *matchLoop(scf::ForOp loop, Attention::Steps &steps) {
  steps.loop = loop;
  if (!loop.getOps<tile::CheckOp>().empty())
    return "expected no checks";
  for (auto dot : loop.getOps<tile::DotOp>()) {
    if (dot.getArith() != tile::DotArith::BF16 || (steps.scores && steps.update))
      return "expected two bf16 products";
    (steps.scores ? steps.update : steps.scores) = dot;
  }
  if (!steps.update)
    return "expected two products";
  steps.keys = steps.scores.getB().getDefiningOp<tile::GatherPackedOp>();
  steps.values = steps.update.getB().getDefiningOp<tile::GatherPackedOp>();
  auto rounding = steps.update.getA().getDefiningOp<arith::TruncFOp>();
  if (!steps.keys || !steps.values || !rounding || !matchPattern(steps.scores.getAcc(), m_AnyZeroFloat()))
    return "expected products with gathered pages, the first from zero, the second of rounded values";
  steps.p = rounding.getIn();
  steps.pages = steps.keys.getPages().getDefiningOp<tile::LoadOp>();
  if (!steps.pages || steps.values.getPages() != steps.keys.getPages())
    return "expected one load of page numbers";
  unsigned users = llvm::range_size(steps.update.getResult().getUses());
  for (auto [i, yielded] : llvm::enumerate(loop.getYieldedValues()))
    if (yielded == steps.update.getResult() && users == 1) {
      steps.accIndex = i;
      return nullptr;
    }
  return "expected an update that is carried";
}

/// Of the memref [pages, heads, tokens, columns] that is a view of a buffer; -1: none.
static int64_t viewOffset(tile::GatherPackedOp gather) {
  auto view = gather.getMemref().getDefiningOp<tile::ViewOp>();
  return view && isa<BlockArgument>(view.getSource()) ? static_cast<int64_t>(view.getOffset()) : -1;
}

/// Indices behind the page: [head, 0, 0].
static bool wholePages(tile::GatherPackedOp gather) {
  auto indices = gather.getIndices();
  return indices.size() == 3 && matchPattern(indices[1], m_Zero()) && matchPattern(indices[2], m_Zero());
}

const char *Attention::matchShape() {
  Steps &first = loops.front();
  auto scores = cast<VectorType>(first.scores.getType()), update = cast<VectorType>(first.update.getType());
  auto keys = cast<MemRefType>(first.keys.getMemref().getType()), values = cast<MemRefType>(first.values.getMemref().getType());
  rows = scores.getDimSize(0), width = scores.getDimSize(1);
  depth = cast<VectorType>(first.scores.getA().getType()).getDimSize(1), columns = update.getDimSize(1);
  pageTokens = keys.getRank() == 4 ? keys.getDimSize(2) : 0;
  if (keys != values || keys.getRank() != 4 || depth != keys.getDimSize(3) || columns != depth || !wholePages(first.keys) ||
      !wholePages(first.values) || viewOffset(first.keys) != 0 || viewOffset(first.values) != 2 * pageTokens * depth)
    return "expected whole pages of keys, followed by values of the same shape";
  if (rows > kMostRows || width % pageTokens || width / pageTokens > 32 || depth > 256 ||
      pageTokens % 8)
    return "expected rows for at most two warpgroups and at most 32 pages in a step";
  Value operand = first.scores.getA();
  if (auto reshape = operand.getDefiningOp<vector::ShapeCastOp>())
    operand = reshape.getSource();
  query = operand.getDefiningOp<tile::LoadOp>();
  return query && cast<VectorType>(query.getType()).getRank() == 3 ? nullptr : "expected a query that is loaded";
}

const char *Attention::match(KernelOp kernel) {
  for (auto loop : kernel.getBody().getOps<scf::ForOp>())
    if (const char *why = matchLoop(loop, loops.emplace_back()))
      return why;
  if (loops.empty())
    return "expected loops";
  for (size_t i = 1; i < loops.size(); ++i) {
    Steps &before = loops[i - 1], &after = loops[i];
    if (after.loop.getLowerBound() != before.loop.getUpperBound() || after.accIndex != before.accIndex ||
        !llvm::equal(after.loop.getInitArgs(), before.loop.getResults()) || after.scores.getA() != before.scores.getA())
      return "expected loops that go on where the one before ends";
  }
  return matchShape();
}
