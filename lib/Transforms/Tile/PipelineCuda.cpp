//===- PipelineCuda.cpp - matrix products as pipelines --------------------===//
//
// A loop over k whose only work is tile.dot on dense panels becomes two roles that run
// side by side: a producer that copies the operands of step after step into rings of
// slots in shared memory, and warpgroups that multiply them from there. Both walk over
// the units of their CTA (UnitLoop.h). Sound because the operands are immutable while
// the kernel runs and the loop carries nothing but the sums; the order of the sums over
// k stays the loop's.
//
// Two products of 64 columns whose panels alternate in memory (gate and up) become one
// of 128: a copy lands eight rows of one and eight of the other by turns, so that a
// thread holds both sums of an output.
//
// Where the loop over k is inside one over parts of it, whose sums are added, the parts are
// the CTAs of a cluster (Parts.cpp): each multiplies its part, gets some rows of all sums,
// adds them and computes what follows for its rows.
//
// Where the kernel asks for crews, each warpgroup has units of its own, which the producer
// feeds one after the other: while one crew multiplies, the other writes its results
// (ping-pong, as CUTLASS calls it). Crews multiply by turns, in the order of the rounds: no
// crew waits for a slot more than one filling ahead, which its parity could not tell.
//
//===----------------------------------------------------------------------===//

#include "llmc/Transforms/Tile/Passes.h"

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Tile/UnitLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;

namespace {

constexpr int64_t kStepK = 64; // k of a slot, of bf16; columns of a ring
constexpr int64_t kCrewSums = 128 * 128; // of a warpgroup
constexpr int64_t kFewRows = 128; // up to so many, sums and addresses fit the registers that each thread of a CTA can have
constexpr int64_t kEarlyRows = 64, kNarrowRows = 16, kFewRowsOfParts = 64;
// Slots of so few rows are small: as many as take more than half of a multiprocessor's memory, which then has one CTA. Two could crowd
// where the kernel before left first. Rings of 216 KiB are slower (H200, whole steps of the 8B shape).
constexpr int64_t kNarrowRingBytes = 126 * 1024;
// Of the 227 KiB of an sm_90 CTA, without the barriers.
constexpr int64_t kSharedBytes = 226 * 1024, kMostUnpacked = 6, kRowBytes = 2 * kStepK;

/// What the pass looks for: a loop of one product or of a pair, and where the operands come from.
struct Products {
  scf::ForOp loop;  // over k, of a part
  scf::ForOp parts; // around it; null: one part
  int64_t count = 1;
  tile::LoadOp left;
  tile::AllocRowsOp own;           // where the left operand is, if the unit computes it itself,
  SmallVector<scf::ForOp> prologue; // by these
  SmallVector<tile::LoadPackedOp, 2> panels; // in the order of the loop's results
  tile::Format format = tile::Format::BF16NK;
  int64_t rows = 0, columns = 0; // of a unit; of the weights' rows: 64 for each warpgroup, 64 or 128 for a crew
  int64_t crews = 1;

  bool paired() const { return panels.size() == 2; }
  bool codes() const { return tile::isQuantized(format); } // the producers unpack them
  tile::DotArith arith() const { return format == tile::Format::E4M3NK ? tile::DotArith::E4M3 : tile::DotArith::BF16; }
  int64_t stepK() const { return stepOf(arith()); }

  /// k of a slot: as many as 128 bytes hold.
  static int64_t stepOf(tile::DotArith arith) { return arith == tile::DotArith::E4M3 ? 2 * kStepK : kStepK; }
};

/// Whether two operands are the first and the second half of the same pairs of panels: [pairs, 2, 16, k] or [pairs, 2, records, bytes],
/// or of the same pairs of several panels: [pairs, 2, panels, 16, k].
bool alternate(tile::LoadPackedOp first, tile::LoadPackedOp second) {
  if (first.getMemref() != second.getMemref())
    return false;
  auto type = cast<MemRefType>(first.getMemref().getType());
  int64_t rank = type.getRank();
  bool codes = type.getElementType().isInteger(); // else rows of k, which may have something behind each panel
  if ((rank != 4 && rank != 5) || type.getDimSize(1) != 2 || (!type.getLayout().isIdentity() && (codes || rank != 4)))
    return false;
  if (codes ? rank != 4 : type.getDimSize(rank - 2) != 16)
    return false;
  for (int64_t i = 0; i < rank; ++i)
    if (i != 1 && first.getIndices()[i] != second.getIndices()[i])
      return false;
  return matchPattern(first.getIndices()[1], m_Zero()) && matchPattern(second.getIndices()[1], m_One());
}

/// null: `products.loop` is the kernel's loop over k; else why not.
const char *matchLoops(tile::KernelOp kernel, Products &products) {
  for (auto loop : kernel.getBody().getOps<scf::ForOp>()) {
    if (!loop.getNumResults() && !products.loop) {
      products.prologue.push_back(loop);
      continue;
    }
    if (products.loop)
      return "expected one loop";
    products.loop = loop;
  }
  scf::ForOp outer = products.loop;
  if (!outer || outer.getOps<scf::ForOp>().empty())
    return nullptr;
  std::optional<llvm::APInt> count = outer.getStaticTripCount();
  if (!count || !matchPattern(outer.getLowerBound(), m_Zero()) || !matchPattern(outer.getStep(), m_One()))
    return "expected parts from 0 by 1, as many as a constant";
  products.parts = outer;
  products.loop = *outer.getOps<scf::ForOp>().begin();
  products.count = count->getSExtValue();
  for (auto [i, argument, init, yielded] : llvm::enumerate(outer.getRegionIterArgs(), outer.getInitArgs(), outer.getYieldedValues())) {
    auto sum = yielded.getDefiningOp<arith::AddFOp>();
    if (!sum || sum.getLhs() != argument || !argument.hasOneUse() || i >= products.loop.getNumResults() ||
        sum.getRhs() != products.loop.getResult(i) || !sum.getRhs().hasOneUse() || !matchPattern(init, m_AnyZeroFloat()))
      return "expected sums of the sums of parts";
  }
  for (Value bound : {products.loop.getLowerBound(), products.loop.getUpperBound(), products.loop.getStep()})
    if (!bound.getDefiningOp<arith::ConstantOp>())
      return "expected as many steps in each part";
  return nullptr;
}

/// Whether what follows the loops can be computed for some rows only: blocks of rows of the unit, or the same for all rows.
bool followsByRows(tile::KernelOp kernel, Products &products) {
  Value row = products.left.getIndices()[0];
  auto follows = [&](Operation *op) {
    auto load = dyn_cast<tile::LoadOp>(op);
    auto store = dyn_cast<tile::StoreOp>(op);
    if (auto scatter = dyn_cast<tile::ScatterOp>(op))
      return scatter.getFirst() == row;
    auto block = dyn_cast_or_null<VectorType>(load ? load.getType() : store ? store.getValue().getType() : Type());
    if (block && block.getRank() == 2 && block.getDimSize(0) == products.rows && (load ? load.getIndices() : store.getIndices())[0] != row)
      return false;
    // Where it branches the results have been computed, with their new types.
    return op->getNumRegions() ? isa<scf::IfOp>(op) && !op->getNumResults() : isa<tile::KernelOp>(op->getParentOp()) || !op->getNumResults();
  };
  for (Operation *op = products.parts->getNextNode(); op; op = op->getNextNode())
    if (op->walk([&](Operation *inner) { return follows(inner) ? WalkResult::advance() : WalkResult::interrupt(); }).wasInterrupted())
      return false;
  return true;
}

/// Whether producers can unpack the panels of all steps: records of at most 64 k, as many as the steps are long.
bool unpacks(tile::LoadPackedOp panels) {
  auto type = cast<MemRefType>(panels.getMemref().getType());
  int64_t record = tile::recordK(cast<tile::PackedType>(panels.getType()).getFormat());
  return record <= kStepK && type.getRank() >= 3 && type.getDimSize(type.getRank() - 2) * record % kStepK == 0 && panels.getFirst() == 0;
}

/// Whether the loops before the products compute all their rows, and nothing else.
bool computes(Products &products) {
  auto type = cast<MemRefType>(products.own.getMemref().getType());
  bool stores = true;
  for (scf::ForOp loop : products.prologue)
    loop.walk([&](tile::StoreOp store) { stores &= store.getMemref() == products.own.getMemref(); });
  return stores && !products.codes() && products.crews == 1 && type.getDimSize(0) <= products.rows && products.rows <= 16;
}

/// null: fits; else why not.
const char *match(tile::KernelOp kernel, Products &products) {
  if (const char *reason = matchLoops(kernel, products))
    return reason;
  int64_t dots = 0;
  kernel.walk([&](tile::DotOp) { ++dots; });
  if (auto crews = kernel->getAttrOfType<IntegerAttr>("crews"))
    products.crews = crews.getInt();
  scf::ForOp loop = products.loop;
  if (!loop || !matchPattern(loop.getLowerBound(), m_Zero()) || !matchPattern(loop.getStep(), m_One()))
    return "expected a loop from 0 by 1";
  if (loop.getNumResults() != static_cast<unsigned>(dots) || dots < 1 || dots > 2)
    return "expected a loop that carries the sums of all products, at most two";
  for (auto [argument, init, yielded] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues())) {
    auto dot = yielded.getDefiningOp<tile::DotOp>();
    if (!dot || dot.getAcc() != argument || dot->getParentOp() != loop || !argument.hasOneUse() || !yielded.hasOneUse() ||
        !matchPattern(init, m_AnyZeroFloat()))
      return "expected sums of nothing but products";
    auto left = dot.getA().getDefiningOp<tile::LoadOp>();
    auto panels = dot.getB().getDefiningOp<tile::LoadPackedOp>();
    if ((dot.getArith() != tile::DotArith::BF16 && dot.getArith() != tile::DotArith::E4M3) || !left || !panels || (products.left && products.left != left))
      return "expected bf16 or e4m3 products with one left operand";
    auto a = cast<VectorType>(dot.getA().getType());
    auto b = cast<tile::PackedType>(dot.getB().getType());
    products.columns = b.getN() * dots;
    products.format = b.getFormat();
    bool codes = tile::isQuantized(b.getFormat());
    if (codes ? !unpacks(panels) || products.crews > 1 : b.getFormat() != tile::Format::BF16NK && b.getFormat() != tile::Format::E4M3NK)
      return "expected panels of bf16_nk or e4m3_nk, or of codes in whole records and no crews";
    bool dense = dots == 1 && !codes; // other widths are for it
    bool halves = cast<MemRefType>(panels.getMemref().getType()).getRank() == 5 && products.columns == 64;
    bool fits = products.columns == 128 || halves || (dense && (products.columns == 64 || (products.columns == 192 && products.crews == 1)));
    if (b.getK() != Products::stepOf(dot.getArith()) || !fits)
      return "expected panels of 64 x 64, 64 x 128, 64 x 192 (of crews 64 x 64; bf16_nk) or two of 64 x 64 or 64 x 32; of e4m3 128 k";
    if (a.getRank() != 2 || cast<MemRefType>(left.getMemref().getType()).getRank() != 2 || a.getDimSize(0) % 8 || a.getDimSize(0) > 256)
      return "expected a multiple of 8 rows, at most 256";
    products.left = left;
    products.own = left.getMemref().getDefiningOp<tile::AllocRowsOp>();
    products.rows = a.getDimSize(0);
    if (products.rows % 16 && !products.own)
      return "expected a multiple of 16 rows of memory";
    products.panels.push_back(panels);
  }
  if (products.own ? !computes(products) : !products.prologue.empty())
    return "expected a loop, or another before it that computes the unit's own rows";
  if (products.paired() && !alternate(products.panels[0], products.panels[1]))
    return "expected two products with alternating panels";
  if (products.crews > 1 && (products.parts || products.rows * products.columns > kCrewSums))
    return "expected units of crews without parts, of at most 128 sums a thread";
  // Of few rows a part has few, as few as a product's block; else as many as leave in one piece through shared memory.
  int64_t block = products.rows <= kFewRowsOfParts ? 8 : 32;
  if (products.parts && (products.rows % (block * products.count) || !followsByRows(kernel, products)))
    return "expected parts of whole blocks of 32 rows (of 8, if there are at most 64 in all), and blocks of rows behind them";
  return nullptr;
}

class Rewriter {
public:
  Rewriter(tile::KernelOp kernel, Products &products) : kernel(kernel), p(products), b(kernel.getContext()), loc(products.loop.getLoc()) {}

  void run() {
    b.setInsertionPoint(outermost());
    for (Value bound : {p.loop.getLowerBound(), p.loop.getUpperBound(), p.loop.getStep()})
      if (p.parts && bound.getParentRegion() == &p.parts.getRegion())
        bound.getDefiningOp()->moveBefore(p.parts);
    staged = stagedStore();
    int64_t slot = kRowBytes * ((p.own ? 0 : p.rows) + p.columns), staging = p.crews * (staged ? kRowBytes * ownRows() : storeBytes());
    if (p.own)
      staging += 2 * cast<MemRefType>(p.own.getMemref().getType()).getNumElements() + kRowBytes;
    if (p.parts) // what the parts send each other
      staging += 4 * p.rows * p.columns;
    int64_t stages = std::clamp<int64_t>((kSharedBytes - staging) / slot, 2, mostStages(slot));
    auto ring = [&](int64_t rows, int64_t stages) -> Value {
      return tile::AllocRingOp::create(b, loc, tile::RingType::get(b.getContext(), rows, kStepK, stages));
    };
    if (!p.own)
      tokens = ring(p.rows, stages);
    weights = ring(p.columns, stages);
    if (staged)
      stagingRing = ring(ownRows(), p.crews);
    if (p.own) // behind the rings, which are aligned
      tokens = tile::AllocRowsOp::create(b, loc, p.own.getMemref().getType());
    pipeline = tile::AllocPipelineOp::create(b, loc, tile::PipelineType::get(b.getContext(), stages));
    panels = p.paired() && !p.codes() ? interleavedPanels() : p.panels.front().getMemref();
    auto roles = tile::RolesOp::create(b, loc, /*warps=*/false, /*unpacking=*/p.codes());
    produce(roles.getProducer().emplaceBlock(), slot, stages);
    consume(roles.getConsumers().emplaceBlock(), roles);
    tile::eraseUnused(kernel);
    auto number = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI32IntegerAttr(static_cast<int32_t>(value))); };
    SmallVector<NamedAttribute> schedule{number("threads", p.crews > 1 ? 128 * p.crews : 2 * p.columns),
                                         number("producers", p.crews > 1 || p.rows > kFewRows || p.codes() ? 128 : 32),
                                         b.getNamedAttr("persistent", b.getUnitAttr()), b.getNamedAttr("transposed", b.getUnitAttr())};
    if (p.parts)
      schedule.push_back(number("parts", p.count));
    if (p.crews > 1)
      schedule.push_back(number("crews", p.crews));
    kernel->setAttr("schedule", b.getDictionaryAttr(schedule));
  }

private:
  scf::ForOp outermost() { return p.parts ? p.parts : p.loop; }
  /// Whether the first weights are worth asking for before the kernels before this one have ended: a few tokens' time is that.
  bool comesEarly() { return p.rows <= kEarlyRows && p.crews == 1 && !p.codes(); }
  int64_t ownRows() { return p.rows / p.count; } ///< of the unit's, whose results a CTA computes
  /// The less a step's products take, the more of them should be on their way.
  int64_t mostStages(int64_t slot) {
    if (p.rows <= kNarrowRows)
      return kNarrowRingBytes / slot;
    return p.codes() ? kMostUnpacked : kSharedBytes / slot;
  }
  int64_t storeBytes() { ///< of an f32 store (TileToNVVM/StagedRows.cpp)
    int64_t columns = p.crews > 1 ? p.columns : 64;
    return p.columns / columns * std::min<int64_t>(ownRows(), 64 * 64 / columns) * (4 * columns + 16);
  }

  /// The store of a pair's result in bf16, which a thread has in pieces of two bytes.
  tile::StoreOp stagedStore() {
    tile::StoreOp found;
    for (auto store : kernel.getBody().getOps<tile::StoreOp>()) {
      auto type = dyn_cast<VectorType>(store.getValue().getType());
      if (type && type.getElementType().isBF16() && type.getShape() == ArrayRef<int64_t>{p.rows, kStepK})
        found = store;
    }
    return p.paired() ? found : tile::StoreOp();
  }

  /// [pairs, 2, 16, k] as [pairs, half of the 16, which of the two, 8, k]; of several panels the same with all their eighths.
  Value interleavedPanels() {
    auto type = cast<MemRefType>(p.panels.front().getMemref().getType());
    int64_t pairs = type.getDimSize(0), k = type.getShape().back(), rows = type.getRank() == 5 ? 16 * type.getDimSize(2) : 16, offset;
    SmallVector<int64_t> strides;
    (void)type.getStridesAndOffset(strides, offset);
    auto layout = StridedLayoutAttr::get(b.getContext(), 0, {strides[0], 8 * k, strides[1], k, 1});
    return tile::ViewOp::create(b, loc, MemRefType::get({pairs, rows / 8, 2, 8, k}, type.getElementType(), layout), p.panels.front().getMemref(), 0);
  }

  void produce(Block &block, int64_t bytes, int64_t stages) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    Value ahead = comesEarly() ? produceAhead(bytes, stages) : Value();
    tile::Again here(kernel, b);
    tile::UnitLoop units(kernel, b, loc, here);
    if (p.parts)
      here.map(p.parts.getInductionVar(), tile::PartOp::create(b, loc));
    for (ValueRange indices : {p.own ? ValueRange() : ValueRange(p.left.getIndices()), ValueRange(p.panels.front().getIndices())})
      for (Value index : indices) // those of the unit once, before the loop
        if (!outermost()->isAncestor(index.getParentBlock()->getParentOp()))
          here.value(index);
    Value first = p.loop.getLowerBound();
    if (ahead) {
      Value opens = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, units.firstRound, first);
      first = arith::SelectOp::create(b, loc, opens, ahead, first);
    }
    auto loop = scf::ForOp::create(b, loc, first, p.loop.getUpperBound(), p.loop.getStep());
    b.setInsertionPoint(loop.getBody()->getTerminator());
    here.map(p.loop.getInductionVar(), loop.getInductionVar());
    Value round = arith::AddIOp::create(b, loc, units.firstRound, loop.getInductionVar());
    SmallVector<Value> indices = here.values(p.panels.front().getIndices());
    if (p.codes()) // [panel, record, 0] or [pair, 0, record, 0]
      tile::UnpackAsyncOp::create(b, loc, panels, indices.front(), indices[indices.size() - 2], p.format, weights, round, pipeline,
                                  kRowBytes * p.rows);
    else
      tile::AcquireOp::create(b, loc, pipeline, round, bytes);
    if (!p.own)
      copyTokens(here, round);
    if (!p.codes())
      copyPanels(indices, round);
    b.setInsertionPointAfter(loop);
    units.close(b, roundBehind(units));
  }

  /// The first unit's first rounds, as many as there are slots: weights before the wait for the kernels before this one, tokens
  /// behind it. How many rounds these are.
  Value produceAhead(int64_t bytes, int64_t stages) {
    int64_t rounds = std::min(stages, static_cast<int64_t>(p.loop.getStaticTripCount()->getZExtValue()));
    Value zero = p.loop.getLowerBound(), one = p.loop.getStep();
    Value count = arith::ConstantIndexOp::create(b, loc, rounds), part = p.parts ? tile::PartOp::create(b, loc) : Value();
    auto eachRound = [&](llvm::function_ref<void(tile::Again &, Value)> body) {
      auto loop = scf::ForOp::create(b, loc, zero, count, one);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(loop.getBody()->getTerminator());
      tile::Again here(kernel, b);
      if (p.parts)
        here.map(p.parts.getInductionVar(), part);
      here.map(p.loop.getInductionVar(), loop.getInductionVar());
      body(here, loop.getInductionVar());
    };
    eachRound([&](tile::Again &here, Value round) {
      tile::AcquireOp::create(b, loc, pipeline, round, bytes);
      copyPanels(here.values(p.panels.front().getIndices()), round);
    });
    if (p.own) // all that is read here are weights
      return count;
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
    eachRound([&](tile::Again &here, Value round) { copyTokens(here, round); });
    return count;
  }

  void copyTokens(tile::Again &here, Value round) {
    tile::CopyAsyncOp::create(b, loc, p.left.getMemref(), here.values(p.left.getIndices()), ArrayRef<int64_t>{p.rows, p.stepK()}, tokens, round,
                              pipeline);
  }

  void copyPanels(SmallVector<Value> indices, Value round) {
    // [panels, 16, k], or the view of pairs: whole panels.
    SmallVector<int64_t> box{p.columns / 16, 16, p.stepK()};
    if (p.paired() && indices.size() == 5) { // [pair, which, panel, 0, k]
      Value eighth = arith::MulIOp::create(b, loc, indices[2], arith::ConstantIndexOp::create(b, loc, 2));
      indices = {indices[0], eighth, indices[1], indices[3], indices[4]};
      box = {1, p.columns / 16, 2, 8, p.stepK()};
    } else if (p.paired()) {
      indices.insert(indices.begin() + 1, indices[1]); // which of the two is 0, as the half is
      box = {p.columns / 32, 2, 2, 8, p.stepK()};
    }
    tile::CopyAsyncOp::create(b, loc, panels, indices, box, weights, round, pipeline);
  }

  Value roundBehind(const tile::UnitLoop &units) { return arith::AddIOp::create(b, loc, units.firstRound, p.loop.getUpperBound()); }

  /// The round that a crew's next unit starts with, behind those of the other crews.
  Value nextRound(Value behind) {
    if (p.crews == 1)
      return behind;
    Value others = arith::MulIOp::create(b, loc, p.loop.getUpperBound(), arith::ConstantIndexOp::create(b, loc, p.crews - 1));
    return arith::AddIOp::create(b, loc, behind, others);
  }

  tile::UnitLoop consumerUnits(tile::Again &here) {
    if (p.crews > 1)
      tile::OpenTurnsOp::create(b, loc);
    return tile::UnitLoop(kernel, b, loc, here, p.crews, p.loop.getUpperBound());
  }

  /// The loop over products, and what follows it.
  void consume(Block &block, tile::RolesOp roles) {
    SmallVector<Operation *> after;
    for (Operation *op = roles->getNextNode(); op; op = op->getNextNode())
      if (op != outermost() && !op->hasTrait<OpTrait::IsTerminator>())
        after.push_back(op);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    computeRows();
    tile::Again here(kernel, b);
    tile::UnitLoop units = consumerUnits(here);
    if (p.parts) {
      Value row = p.left.getIndices()[0], part = tile::PartOp::create(b, loc);
      Value first = arith::MulIOp::create(b, loc, part, arith::ConstantIndexOp::create(b, loc, ownRows()));
      here.map(row, arith::AddIOp::create(b, loc, here.value(row), first));
    }
    for (Operation *op : after) // what the unit's sums are added to is asked for before they are done
      if (auto load = dyn_cast<tile::LoadOp>(op))
        here.values(load.getIndices());
    llvm::SmallPtrSet<Operation *, 2> ahead = loadScales(after, here);
    Value behind = roundBehind(units), sum = multiply(here, units, behind);
    if (p.parts) {
      Value visit = arith::DivUIOp::create(b, loc, units.firstRound, p.loop.getUpperBound());
      sum = tile::SumPartsOp::create(b, loc, VectorType::get({ownRows(), p.columns}, b.getF32Type()), sum, visit);
    }
    ResultRange sums = outermost().getResults();
    if (p.paired()) {
      auto type = VectorType::get({ownRows(), p.columns / 2}, b.getF32Type());
      auto dealt = tile::DealColumnsOp::create(b, loc, type, type, sum);
      here.map(sums[0], dealt.getEven());
      here.map(sums[1], dealt.getOdd());
    } else {
      here.map(sums[0], sum);
    }
    for (Operation *op : after) {
      if (ahead.contains(op))
        continue;
      ownConstants(op, here);
      if (op == staged)
        tile::StoreStagedOp::create(b, loc, here.value(staged.getValue()), staged.getMemref(), here.values(staged.getIndices()),
                                    stagingRing, staged.getLimit() ? here.value(staged.getLimit()) : Value());
      else
        ownResults(here.clone(op));
    }
    units.close(b, nextRound(behind));
    for (Operation *op : llvm::reverse(after))
      op->erase();
    outermost().erase();
    for (scf::ForOp loop : p.prologue)
      loop.erase();
    if (p.own)
      p.own.erase();
  }

  /// Scales of the weight's rows, a few numbers a thread, are loaded before the products that they multiply.
  llvm::SmallPtrSet<Operation *, 2> loadScales(ArrayRef<Operation *> after, tile::Again &here) {
    llvm::SmallPtrSet<Operation *, 2> loads;
    for (Operation *op : after) {
      auto load = dyn_cast<tile::LoadOp>(op);
      auto view = load ? load.getMemref().getDefiningOp<tile::ViewOp>() : tile::ViewOp();
      if (p.arith() != tile::DotArith::E4M3 || !view || !cast<MemRefType>(view.getType()).hasStaticShape())
        continue;
      here.clone(view);
      here.clone(load);
      loads.insert(load);
    }
    return loads;
  }

  /// What consumers do before their first unit: ask for weights, wait for the kernels before this one, compute rows of their own, which
  /// are the same in all units.
  void computeRows() {
    tile::Again once(kernel, b);
    for (auto load : kernel.getBody().getOps<tile::LoadOp>()) {
      bool weight = cast<MemRefType>(load.getMemref().getType()).hasStaticShape();
      bool used = llvm::any_of(load->getUsers(), [&](Operation *user) {
        return llvm::any_of(p.prologue, [&](scf::ForOp loop) { return loop->isAncestor(user); });
      });
      if (weight && used)
        once.clone(load);
    }
    if (comesEarly())
      NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
    if (!p.own)
      return;
    for (scf::ForOp loop : p.prologue)
      once.clone(loop)->walk([&](tile::StoreOp store) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(store);
        tile::StageOp::create(b, loc, store.getValue(), tokens, store.getIndices()[0], store.getIndices()[1]);
        store.erase();
      });
    tile::PublishOp::create(b, loc);
    // Nothing uses the originals any more, when the loop of products has gone.
  }

  /// The products of a step of `loop`.
  Value dot(tile::Again &here, scf::ForOp loop, Value round) {
    Value sums = loop.getRegionIterArg(0);
    if (!p.own)
      return tile::WarpgroupDotOp::create(b, loc, sums.getType(), tokens, round, weights, round, sums, p.arith());
    here.map(p.loop.getInductionVar(), loop.getInductionVar());
    if (p.parts)
      here.map(p.parts.getInductionVar(), tile::PartOp::create(b, loc));
    return tile::WarpgroupDotOwnOp::create(b, loc, sums.getType(), tokens, here.value(p.left.getIndices()[1]), weights, round, sums);
  }

  Type ownType(Type type) {
    auto vector = dyn_cast<VectorType>(type);
    bool whole = vector && vector.getRank() == 2 && vector.getDimSize(0) == p.rows;
    return whole ? VectorType::get({ownRows(), vector.getDimSize(1)}, vector.getElementType()) : type;
  }

  /// Constants of all rows that `op` uses, of the rows of this part.
  void ownConstants(Operation *op, tile::Again &here) {
    for (Value operand : op->getOperands()) {
      DenseElementsAttr constant;
      if (Type own = ownType(operand.getType()); own != operand.getType() && matchPattern(operand, m_Constant(&constant)) && constant.isSplat())
        here.map(operand, arith::ConstantOp::create(b, loc, constant.resizeSplat(cast<ShapedType>(own))));
    }
  }

  void ownResults(Operation *op) {
    for (Value result : op->getResults())
      if (Type own = ownType(result.getType()); own != result.getType() && !isa<arith::ConstantOp>(op))
        result.setType(own);
  }

  /// The unit's sums, all its slots given back.
  Value multiply(tile::Again &here, const tile::UnitLoop &units, Value behind) {
    auto type = VectorType::get({p.rows, p.columns}, b.getF32Type());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    Value start = tile::StartOp::create(b, loc, tile::InFlightType::get(b.getContext(), type), zero);
    Value one = arith::ConstantIndexOp::create(b, loc, 1), none = arith::ConstantIndexOp::create(b, loc, -1);
    if (p.crews > 1)
      tile::TakeTurnOp::create(b, loc);
    auto loop = scf::ForOp::create(b, loc, p.loop.getLowerBound(), p.loop.getUpperBound(), p.loop.getStep(), start);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToEnd(loop.getBody());
      Value round = arith::AddIOp::create(b, loc, units.firstRound, loop.getInductionVar());
      tile::AwaitOp::create(b, loc, pipeline, round);
      Value sum = dot(here, loop, round);
      // This round's product goes on while the last round's slot is given back; the last unit's rounds have been.
      auto wait = tile::WaitOp::create(b, loc, start.getType(), sum, 1);
      Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, loop.getInductionVar(), p.loop.getLowerBound());
      Value last = arith::SelectOp::create(b, loc, first, none, arith::SubIOp::create(b, loc, round, one));
      tile::ReleaseOp::create(b, loc, pipeline, last);
      scf::YieldOp::create(b, loc, wait.getResults());
    }
    if (p.crews > 1)
      tile::PassTurnOp::create(b, loc);
    auto done = tile::WaitOp::create(b, loc, TypeRange(type), loop.getResults(), 0);
    tile::ReleaseOp::create(b, loc, pipeline, arith::SubIOp::create(b, loc, behind, one));
    return done.getResult(0);
  }

  tile::KernelOp kernel;
  Products &p;
  OpBuilder b;
  Location loc;
  Value tokens, weights, stagingRing, pipeline, panels;
  tile::StoreOp staged;
};

struct TilePipelineCudaPass : PassWrapper<TilePipelineCudaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TilePipelineCudaPass)

  StringRef getArgument() const override { return "tile-pipeline-cuda"; }
  StringRef getDescription() const override { return "matrix products as pipelines of bulk copies and warpgroup products"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NVVM::NVVMDialect>(); }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      if (kernel->hasAttr("schedule"))
        continue;
      Products products;
      const char *reason = match(kernel, products);
      if (!reason) {
        Rewriter(kernel, products).run();
      } else if (kernel->hasAttr("pipelined")) { // it counts on zeros past the ends of its operands
        kernel.emitOpError("expected a product for tile-pipeline-cuda: ") << reason;
        return signalPassFailure();
      }
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTilePipelineCudaPass() { return std::make_unique<TilePipelineCudaPass>(); }
