//===- AttentionProducer.cpp - copies of queries, keys and values ---------===//

#include "lib/Transforms/Tile/AttentionRole.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace llmc;
using tile::AttentionRole;

namespace {

class Producer : AttentionRole {
public:
  explicit Producer(const AttentionRole &role) : AttentionRole(role) {}

  /// Copies follow each other as the consumers need them: the values of a step come behind the keys of the next.
  void produce(Block &block) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&block);
    tile::SnakeOrder order(kernel, b, loc);
    Value zero = number(0);
    SmallVector<Value> inits{zero, index(0), index(0)}; // the unit's first round, head and first page of the last step
    if (hasRoom())
      llvm::append_range(inits, loadFields(order, zero));
    auto loop = scf::ForOp::create(b, loc, zero, order.visits(), number(1), inits);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToEnd(loop.getBody());
      ValueRange carried = loop.getRegionIterArgs();
      Value visit = loop.getInductionVar();
      SmallVector<Value> own(carried.drop_front(3)), next;
      if (hasRoom())
        next = loadNextFields(order, visit);
      else
        own = loadFields(order, visit);
      Unit unit = unitAt(order, visit, own, carried[0]);
      if (!alone())
        copyQuery(unit);
      SmallVector<Value> yielded{endRound(unit)};
      llvm::append_range(yielded, copySteps(unit, carried.slice(1, 2)));
      llvm::append_range(yielded, next);
      scf::YieldOp::create(b, loc, yielded);
    }
    gather(valuesReady, values, before(loop.getResult(0)), loop.getResults().slice(1, 2), a.pageTokens);
  }

private:
  void copyQuery(Unit &unit) {
    auto loaded = cast<VectorType>(a.query.getType());
    SmallVector<Value> indices = unit.again.values(a.query.getIndices());
    Value visit = wide(unit.visit);
    tile::AcquireOp::create(b, loc, queryReady, visit, 2 * kPanel * panels * a.rows);
    for (int64_t panel = 0; panel < panels; ++panel) {
      indices.back() = index(panel * kPanel); // whole heads
      tile::CopyAsyncOp::create(b, loc, a.query.getMemref(), indices, ArrayRef<int64_t>{loaded.getDimSize(0), loaded.getDimSize(1), kPanel},
                                query, visit, queryReady, panel);
    }
  }

  /// There is one place for the query of one warpgroup, which is free when the last unit's scores are done. So it is copied behind
  /// the keys that the ring has room for until then, and all of these are on their way meanwhile.
  void copyQueryAt(Unit &unit, Value round) {
    Value room = number(cast<tile::RingType>(keys.getType()).getStages() - 1);
    Value last = arith::SubIOp::create(b, loc, before(endRound(unit)), unit.firstRound);
    Value turn = plus(unit.firstRound, arith::MinSIOp::create(b, loc, room, last));
    auto branch = scf::IfOp::create(b, loc, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, round, turn), /*withElseRegion=*/false);
    OpBuilder::InsertionGuard then(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    copyQuery(unit);
  }

  /// Head and first page of the unit's last step.
  SmallVector<Value> copySteps(Unit &unit, ValueRange last) {
    Steps &model = a.loops.back();
    Value pages = model.pages.getIndices().front(), head = unit.again.value(model.keys.getIndices().front());
    prepare(unit, pages, model.loop);
    unit.again.values(a.query.getIndices());
    auto loop = scf::ForOp::create(b, loc, unit.begin, unit.end, unit.step, last);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value round = roundOf(unit, loop.getInductionVar());
    IRMapping known;
    known.map(model.loop.getInductionVar(), wide(loop.getInductionVar()));
    SmallVector<Value> own{head, copyOf(unit, pages, model.loop, known)};
    if (alone())
      copyQueryAt(unit, round);
    gather(keysReady, keys, round, own, 0);
    auto branch = scf::IfOp::create(b, loc, isLess(number(0), round), /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard then(b);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      gather(valuesReady, values, before(round), loop.getRegionIterArgs(), a.pageTokens);
    }
    scf::YieldOp::create(b, loc, own);
    return SmallVector<Value>(loop.getResults());
  }

  /// The pages of a step, of which head and the first are given, from a token of each on.
  void gather(Value pipeline, Value ring, Value round, ValueRange step, int64_t token) {
    // Keys and values of a page are one box of twice the tokens.
    auto view = cast<tile::ViewOp>(a.loops.back().keys.getMemref().getDefiningOp());
    auto type = cast<MemRefType>(view.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[2] *= 2;
    auto both = MemRefType::get(shape, type.getElementType(), type.getLayout());
    Value pool = tile::ViewOp::create(b, loc, both, view.getSource(), 0);
    round = wide(round);
    tile::AcquireOp::create(b, loc, pipeline, round, 2 * kPanel * panels * a.width);
    tile::GatherAsyncOp::create(b, loc, pool, ValueRange{step[0], index(token)}, a.loops.back().pages.getMemref(), step[1], a.pageTokens, ring,
                                round, pipeline);
  }
};

} // namespace

void tile::produceAttention(const AttentionRole &role, Block &block) { Producer(role).produce(block); }
