//===- StagedRows.cpp - f32 results of warpgroups, row by row -------------===//
//
// A thread holds two neighbouring rows (tokens) of a column of a transposed product, so its
// elements go through shared memory, from where whole rows are written, 16 bytes a thread.
// What is added to the result from another buffer (a residual) is read the same way; it is
// in the L2 cache by then, its first rows in registers. A warpgroup has 64 columns, or 128
// where it is a crew, and waits for no other.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kThreads = 128; // of a warpgroup
static constexpr int64_t kPiece = 16, kLine = 128; // bytes of a thread's access, of the cache
static constexpr int64_t kFewRows = 16;            // units of so many are written from where their sums are

/// Rows that go through shared memory at a time, bytes from one to the next there: 16 are between them.
static int64_t chunkOf(int64_t rows, int64_t columns) { return std::min<int64_t>(rows, 64 * 64 / columns); }
static int64_t stagedBytes(int64_t columns) { return 4 * columns + 16; }
/// Of addends in registers: a crew writes alone, with fewer loads in flight.
static int64_t chunksAhead(const Shape &cta) { return cta.crews > 1 ? 2 : 1; }

static int64_t rowStride(MemRefType memref) { // elements
  SmallVector<int64_t> strides;
  int64_t offset;
  return failed(memref.getStridesAndOffset(strides, offset)) || strides.size() != 2 || strides[1] != 1 ? 0 : strides[0];
}

void Emitter::warpgroupMeets() {
  Value warpgroup = arith::DivUIOp::create(b, loc, warpOfCTA, index(4));
  meet(arith::AddIOp::create(b, loc, arith::IndexCastOp::create(b, loc, b.getI32Type(), warpgroup), i32(kFirstWarpgroup)), kThreads);
}

void Emitter::crewMeets() { cta.crews > 1 ? warpgroupMeets() : consumersMeet(); }

Value Emitter::threadOfCrew() { return cta.crews > 1 ? Value(arith::RemUIOp::create(b, loc, thread, index(kThreads))) : thread; }

Value Emitter::firstColumnOfWarpgroup(int64_t columns) { return mul(arith::DivUIOp::create(b, loc, warp, index(4)), columns); }

int64_t Emitter::columnsOfWarpgroup(tile::StoreOp op) {
  return cast<VectorType>(op.getValue().getType()).getDimSize(1) / (cta.warps() / 4);
}

bool Emitter::storesRows(tile::StoreOp op, const Layout &layout) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  auto vector = dyn_cast<VectorType>(op.getValue().getType());
  int64_t cols = vector ? vector.getShape().back() : 0;
  if (!cta.persistent || cols < 64 || !vector || vector.getRank() != 2 || !vector.getElementType().isF32() || !rowStride(memref))
    return false;
  return layout.kind == Layout::Accumulator && layout.col == Axis{Axis::Group, 1, 16} && !layout.colsPadded &&
         (cols == 16 * cta.warps() || cta.crews > 1) && layout.rows % 8 == 0 && layout.rows * cta.parts > kFewRows && rowStride(memref) % 4 == 0 &&
         memref.getDimSize(1) % 4 == 0 && divisorOf(op.getIndices()[1]) % 4 == 0;
}

/// The load of what a stored sum adds to a product: the same place of another buffer, read for nothing else.
tile::LoadOp Emitter::addendOf(tile::StoreOp op) {
  auto sum = op.getValue().getDefiningOp<arith::AddFOp>();
  if (!sum || !sum->hasOneUse() || !storesRows(op, layouts.of(op.getValue())))
    return {};
  for (Value operand : sum->getOperands()) {
    auto load = operand.getDefiningOp<tile::LoadOp>();
    if (load && load->hasOneUse() && load.getIndices() == op.getIndices() && load.getMemref().getType() == op.getMemref().getType())
      return load;
  }
  return {};
}

tile::StoreOp Emitter::storeOfSum(Operation *sum) {
  if (!isa<arith::AddFOp>(sum) || !sum->hasOneUse())
    return {};
  auto store = dyn_cast<tile::StoreOp>(*sum->user_begin());
  return store && addendOf(store) ? store : tile::StoreOp();
}

bool Emitter::isAddend(tile::LoadOp op) {
  if (!op->hasOneUse())
    return false;
  tile::StoreOp store = storeOfSum(*op->user_begin());
  return store && addendOf(store) == op;
}

namespace {

/// Where a thread's pieces of a chunk are: every so many rows, 16 bytes each.
struct Pieces {
  int64_t step; ///< rows from one to the next
  Value row, own, column, inside; ///< of the first: row of the chunk; column of the warpgroup, of the memory; whether there (null: yes)
};

} // namespace

static Value warpgroupOf(Emitter &e, OpBuilder &b, Location loc, Value thread) {
  return arith::DivUIOp::create(b, loc, thread, e.index(kThreads));
}

static Pieces piecesOf(Emitter &e, OpBuilder &b, Location loc, tile::StoreOp op, Value thread, int64_t columns, Value firstColumn) {
  Value within = arith::RemUIOp::create(b, loc, thread, e.index(kThreads));
  Pieces pieces;
  pieces.step = kThreads / (columns / 4);
  pieces.row = arith::DivUIOp::create(b, loc, within, e.index(columns / 4));
  pieces.own = e.mul(arith::RemUIOp::create(b, loc, within, e.index(columns / 4)), 4);
  pieces.column = e.add(e.scalar(op.getIndices()[1]), e.add(firstColumn, pieces.own));
  if (op.getColumns())
    pieces.inside = e.less(pieces.column, e.index(cast<MemRefType>(op.getMemref().getType()).getDimSize(1)));
  return pieces;
}

/// The address of the first in a buffer as the stored one.
static Value addressOf(Emitter &e, tile::StoreOp op, Value buffer, const Pieces &pieces, Value column) {
  int64_t stride = 4 * rowStride(cast<MemRefType>(op.getMemref().getType()));
  return e.at(e.scalar(buffer), e.add(e.mul(e.add(e.scalar(op.getIndices()[0]), pieces.row), stride), e.mul(column, 4)));
}

/// A thread's pieces of the rows from `first` on of what a store adds.
Values Emitter::addendPieces(tile::StoreOp op, int64_t first, int64_t count) {
  if (count <= 0)
    return {};
  int64_t columns = columnsOfWarpgroup(op);
  Pieces pieces = piecesOf(*this, b, loc, op, thread, columns, firstColumnOfWarpgroup(columns));
  int64_t stride = 4 * rowStride(cast<MemRefType>(op.getMemref().getType()));
  Value column = pieces.column;
  if (pieces.inside) // else any column, for nothing
    column = arith::SelectOp::create(b, loc, pieces.inside, column, index(0));
  Value from = addressOf(*this, op, addendOf(op).getMemref(), pieces, column);
  Values result;
  for (int64_t i = 0; i < count; i += pieces.step)
    result.push_back(load(VectorType::get({4}, b.getF32Type()), at(from, (first + i) * stride), kPiece));
  return result;
}

/// Before a unit's last products are waited for: the first rows of what its store adds are asked for.
void Emitter::askForAddends(tile::WaitOp op) {
  for (Value result : op.getResults()) {
    Operation *first = result.hasOneUse() ? *result.user_begin() : nullptr; // of a part its rows of all sums are what is stored
    for (Operation *user : isa_and_nonnull<tile::SumPartsOp>(first) ? first->getResult(0).getUsers() : result.getUsers()) {
      tile::StoreOp store = storeOfSum(user);
      if (!store || !llvm::all_of(store.getIndices(), [&](Value index) { return mapping.contains(index); }))
        continue;
      int64_t rows = layouts.of(store.getValue()).rows;
      addendsAhead[store] = addendPieces(store, 0, std::min(rows, chunksAhead(cta) * chunkOf(rows, columnsOfWarpgroup(store))));
    }
  }
}

/// At a unit's start what its store adds is asked for, a line a thread: at its end the CTAs of the card would all wait for memory.
void Emitter::fetchAddends() {
  kernel.walk([&](tile::StoreOp store) {
    if (addendOf(store) && llvm::all_of(store.getIndices(), [&](Value index) { return mapping.contains(index); }))
      fetchAddend(store);
  });
}

void Emitter::fetchAddend(tile::StoreOp op) {
  int64_t columns = columnsOfWarpgroup(op), lines = 4 * columns / kLine, step = kThreads / lines;
  auto memref = cast<MemRefType>(op.getMemref().getType());
  Value within = arith::RemUIOp::create(b, loc, thread, index(kThreads)), line = arith::RemUIOp::create(b, loc, within, index(lines));
  Value column = add(firstColumnOfWarpgroup(columns), mul(line, kLine / 4));
  column = add(scalar(op.getIndices()[1]), column);
  when(op.getColumns() ? less(column, index(memref.getDimSize(1))) : Value(), [&] {
    Value own = arith::DivUIOp::create(b, loc, within, index(lines)), row = add(scalar(op.getIndices()[0]), own);
    Value from = at(scalar(addendOf(op).getMemref()), add(mul(row, 4 * rowStride(memref)), mul(column, 4)));
    int64_t rows = layouts.of(op.getValue()).rows;
    for (int64_t first = 0; first < rows; first += step)
      when(rows < step ? less(own, index(rows)) : Value(),
           [&] { intrinsic("llvm.nvvm.prefetch.global.L2", {}, at(from, first * 4 * rowStride(memref))); });
  });
}

/// Whole rows at a time, with what is added to them.
void Emitter::storePieces(tile::StoreOp op, Value staging, int64_t first, int64_t count, const Values &addends) {
  int64_t columns = columnsOfWarpgroup(op);
  Pieces pieces = piecesOf(*this, b, loc, op, thread, columns, firstColumnOfWarpgroup(columns));
  int64_t stride = 4 * rowStride(cast<MemRefType>(op.getMemref().getType()));
  Value from = at(staging, add(mul(pieces.row, stagedBytes(columns)), mul(pieces.own, 4)));
  Value to = addressOf(*this, op, op.getMemref(), pieces, pieces.column);
  Value left;
  if (op.getLimit())
    left = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, scalar(op.getLimit()), scalar(op.getIndices()[0])), pieces.row);
  when(pieces.inside, [&] {
    for (int64_t i = 0; i < count; i += pieces.step)
      when(left ? less(index(first + i), left) : Value(), [&] {
        Value value = load(VectorType::get({4}, b.getF32Type()), at(from, i * stagedBytes(columns)), kPiece);
        if (!addends.empty())
          value = arith::AddFOp::create(b, loc, value, addends[i / pieces.step]);
        LLVM::StoreOp::create(b, loc, value, at(to, (first + i) * stride), kPiece);
      });
  });
}

LogicalResult Emitter::emitStoreRows(tile::StoreOp op, const Layout &layout) {
  tile::LoadOp addend = addendOf(op);
  int64_t columns = columnsOfWarpgroup(op), rows = chunkOf(layout.rows, columns), rowBytes = stagedBytes(columns), bytes = rows * rowBytes;
  dynamicOffset = llvm::alignTo(dynamicOffset, kPiece);
  Value staging = at(dynamicShared(dynamicOffset), mul(warpgroupOf(*this, b, loc, thread), bytes));
  Value column = arith::RemUIOp::create(b, loc, base(layout.col), index(64));
  Value own = at(staging, add(mul(base(layout.row), rowBytes), mul(column, 4)));
  dynamicOffset += bytes * (cta.threads / kThreads);
  Value product = op.getValue();
  if (addend) {
    auto sum = product.getDefiningOp<arith::AddFOp>();
    product = sum.getLhs() == addend.getResult() ? sum.getRhs() : sum.getLhs();
  }
  Values values = regsIn(product, layout), ahead = addendsAhead.lookup(op);
  int64_t asked = std::min(layout.rows, chunksAhead(cta) * rows);
  if (addend && ahead.empty())
    ahead = addendPieces(op, 0, asked);
  for (int64_t first = 0; first < layout.rows; first += rows) {
    warpgroupMeets(); // the last chunk has been read
    for (auto [place, value] : llvm::zip_equal(layout.regs, values))
      if (place.first >= first && place.first < first + rows)
        LLVM::StoreOp::create(b, loc, value, at(own, (place.first - first) * rowBytes + place.second * 4), 4);
    int64_t more = addend ? std::min(rows, layout.rows - asked) : 0, here = std::min(rows, layout.rows - first);
    ahead.append(addendPieces(op, asked, more));
    asked += more;
    warpgroupMeets();
    storePieces(op, staging, first, here, ahead);
    if (addend)
      ahead.erase(ahead.begin(), ahead.begin() + here * columns / 4 / kThreads);
  }
  return success();
}
