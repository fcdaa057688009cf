//===- Assignment.cpp - a layout for every tile value ---------------------===//

#include "Assignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

FailureOr<Shape> llmc::cuda::shapeOf(tile::KernelOp kernel) {
  auto schedule = kernel->getAttrOfType<DictionaryAttr>("schedule");
  auto threads = schedule ? schedule.getAs<IntegerAttr>("threads") : IntegerAttr();
  if (!threads || threads.getInt() < 32 || threads.getInt() > 1024 || threads.getInt() % 32)
    return kernel.emitOpError("expected a schedule with threads, a multiple of 32 up to 1024 (tile-schedule-cuda)");
  auto number = [&](StringRef name, int64_t otherwise) {
    auto value = schedule.getAs<IntegerAttr>(name);
    return value ? value.getInt() : otherwise;
  };
  Shape shape{threads.getInt(), !!schedule.getAs<UnitAttr>("transposed"), number("producers", 0), !!schedule.getAs<UnitAttr>("persistent")};
  shape.parts = number("parts", 1);
  shape.residents = number("residents", 1);
  if (schedule.contains("parts") && (!shape.persistent || shape.parts < 1 || shape.parts > 8))
    return kernel.emitOpError("expected 1 to 8 parts, in a persistent schedule, got ") << shape.parts;
  shape.crews = number("crews", 1);
  bool crews = shape.persistent && shape.transposed && shape.parts == 1 && shape.crews == threads.getInt() / 128;
  if (schedule.contains("crews") && (!crews || threads.getInt() % 128))
    return kernel.emitOpError("expected crews of a warpgroup each, in a persistent transposed schedule without parts, got ") << shape.crews;
  shape.splits = number("splits", 1);
  if (schedule.contains("splits") && (shape.splits < 1 || threads.getInt() % (32 * shape.splits) || shape.producers || !shape.transposed))
    return kernel.emitOpError("expected splits that divide the warps of a transposed schedule without producers, got ") << shape.splits;
  return shape;
}

bool llmc::cuda::isUniform(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    return !isa<VectorType>(broadcast.getSource().getType()) || isUniform(broadcast.getSource());
  if (auto expand = value.getDefiningOp<tile::ExpandOp>())
    return isUniform(expand.getSource());
  DenseElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.isSplat();
}

bool llmc::cuda::isFree(Value value) { return isUniform(value) || value.getDefiningOp<arith::ConstantOp>(); }

const Layout &Assignment::of(Value value) const {
  auto found = layouts.find(classes.getLeaderValue(value.getAsOpaquePointer()));
  assert(found != layouts.end() && "a value without a layout");
  return found->second;
}

void Assignment::tie(Value x, Value y) {
  if (!isa<VectorType>(x.getType()) || !isa<VectorType>(y.getType()) || isFree(x) || isFree(y))
    return;
  classes.unionSets(x.getAsOpaquePointer(), y.getAsOpaquePointer());
}

/// First what lies alike.
void Assignment::visit(Operation *op) {
  for (Value result : op->getResults())
    if (isa<VectorType>(result.getType()))
      classes.insert(result.getAsOpaquePointer());
  TypeSwitch<Operation *>(op)
      .Case([&](scf::ForOp loop) {
        for (auto [init, argument, yielded, result] :
             llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults())) {
          if (isa<VectorType>(argument.getType()))
            classes.insert(argument.getAsOpaquePointer());
          tie(argument, result);
          tie(argument, init);
          tie(argument, yielded);
        }
      })
      .Case([&](scf::IfOp branch) {
        for (Block *block : {branch.thenBlock(), branch.elseBlock()})
          if (block && branch.getNumResults())
            for (auto [result, yielded] : llvm::zip_equal(branch.getResults(), block->getTerminator()->getOperands()))
              tie(result, yielded);
      })
      .Case([&](vector::ShapeCastOp cast) { tie(cast.getSource(), cast.getResult()); })
      .Case([&](tile::DotOp dot) { tie(dot.getAcc(), dot.getResult()); })
      .Case([&](tile::WaitOp wait) {
        for (auto [operand, result] : llvm::zip_equal(wait.getOperands(), wait.getResults()))
          tie(operand, result);
      })
      .Case([&](tile::ScaledDotOp dot) { tie(dot.getAcc(), dot.getResult()); })
      .Case([&](tile::DealColumnsOp deal) { tie(deal.getEven(), deal.getOdd()); })
      .Default([&](Operation *other) {
        if (!other->hasTrait<OpTrait::Elementwise>() || other->getNumResults() != 1)
          return;
        for (Value operand : other->getOperands())
          tie(operand, other->getResult(0));
      });
}

void Assignment::markProduct(Value result, Value left) {
  products = true;
  classOf(result).product = true;
  if (!isFree(left))
    classOf(left).operand = true;
}

/// Then what is wanted of each class.
void Assignment::mark(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](tile::DotOp dot) {
        markProduct(dot.getResult(), dot.getA());
        auto packed = cast<tile::PackedType>(dot.getB().getType());
        if (packed.getFormat() == tile::Format::BF16KN)
          classOf(dot.getResult()).block = packed.getN() % 64 == 0 ? 8 : packed.getN() % 32 == 0 ? 4 : 2;
      })
      .Case([&](tile::ScaledDotOp dot) { // reads its scales where they lie
        markProduct(dot.getResult(), dot.getCodes());
      })
      .Case([&](tile::WarpgroupUpdateOp update) { classOf(update.getA()).product = true; })
      .Case([&](tile::WaitOp wait) {
        products = true;
        for (Value result : wait.getResults())
          if (isa<VectorType>(result.getType()))
            classOf(result).product = true;
      })
      .Case([&](tile::DealColumnsOp deal) { classOf(deal.getEven()).dealt = true; })
      .Case([&](tile::SumPartsOp sum) { classOf(sum.getResult()).product = true; })
      .Case([&](tile::ReduceOp reduce) {
        if (isa<VectorType>(reduce.getResult().getType()))
          classOf(reduce.getResult()).rowsOf = reduce.getSource();
      })
      .Case([&](tile::ExpandOp expand) {
        if (!isFree(expand.getSource()))
          classOf(expand.getSource()).rowsOf = expand.getResult();
      })
      .Case([&](vector::BroadcastOp broadcast) {
        if (isa<VectorType>(broadcast.getSource().getType()) && !isFree(broadcast.getSource()))
          classOf(broadcast.getSource()).columnsOf = broadcast.getResult();
      })
      .Case([&](tile::GatherPackedOp gather) { classOf(gather.getPages()).pages = true; });
}

FailureOr<Layout> Assignment::decide(Value value, const Shape &cta) {
  auto type = cast<VectorType>(value.getType());
  const Class &fact = classOf(value);
  if (type.getRank() == 1 || fact.columnsOf) { // columns may come from memory in rows
    if (fact.pages)
      return full(type.getDimSize(0));
    if (fact.rowsOf && fact.columnsOf)
      return failure();
    for (Value matrix : {fact.rowsOf, fact.columnsOf}) {
      if (!matrix)
        continue;
      FailureOr<Layout> layout = decide(matrix, cta);
      if (failed(layout))
        return failure();
      return matrix == fact.rowsOf ? rowsOf(*layout) : columnsOf(*layout);
    }
    return spread(cta, type.getDimSize(0));
  }
  if (fact.rowsOf) { // seen flattened, one value a row
    FailureOr<Layout> layout = decide(fact.rowsOf, cta);
    return failed(layout) ? layout : FailureOr<Layout>(rowsOf(*layout));
  }
  if (!products) // rows of kernels without products have one dimension
    return failure();
  int64_t cols = type.getShape().back(), rows = type.getNumElements() / cols;
  if (fact.dealt)
    return dealt(cta, rows, cols);
  if (fact.operand && !fact.product)
    return left(cta, rows, cols);
  if (!fact.product)
    return striped(cta, rows, cols);
  return accumulator(cta, rows, cols, fact.operand || cta.transposed ? 1 : fact.block);
}

LogicalResult Assignment::run(tile::KernelOp kernel, const Shape &cta) {
  kernel.walk([&](Operation *op) { visit(op); });
  kernel.walk([&](Operation *op) { mark(op); });
  WalkResult result = kernel.walk([&](Operation *op) {
    for (Value value : op->getResults()) {
      if (!isa<VectorType>(value.getType()) || isFree(value))
        continue;
      FailureOr<Layout> layout = decide(value, cta);
      if (failed(layout)) {
        op->emitOpError("expected a value with a layout on a GPU, got ") << value.getType();
        return WalkResult::interrupt();
      }
      layouts[classes.getOrInsertLeaderValue(value.getAsOpaquePointer())] = std::move(*layout);
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
