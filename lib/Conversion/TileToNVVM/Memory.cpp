//===- Memory.cpp - blocks of memory to the registers of a thread ---------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

namespace {

/// A block of memory, its vector's outer dimensions flattened to rows.
struct MemoryBlock {
  int64_t elementBytes;
  SmallVector<int64_t> strides;   ///< bytes, of the memref's dimensions
  int64_t inner = 1;              ///< rows of the innermost outer dimension (rank 3), else all
  int64_t outerStride = 0, rowStride = 0, colStride = 0;
  bool nested = false;            ///< rows are those of an outer and an inner dimension
  int64_t divisor = 1;            ///< bytes that the block's start is a multiple of
};

MemoryBlock blockOf(MemRefType memref, Type value, ValueRange indices) {
  MemoryBlock block;
  block.elementBytes = memref.getElementTypeBitWidth() / 8;
  int64_t offset;
  (void)memref.getStridesAndOffset(block.strides, offset);
  for (int64_t &stride : block.strides)
    stride *= block.elementBytes;
  block.divisor = 64; // arena buffers, weights and layers of the cache start at multiples of 64
  for (auto [index, stride] : llvm::zip_equal(indices, block.strides))
    block.divisor = std::gcd(block.divisor, divisorOf(index) * stride);
  auto vector = dyn_cast<VectorType>(value);
  int64_t rank = vector ? vector.getRank() : 0, last = block.strides.size();
  if (rank >= 1)
    block.colStride = block.strides[last - 1];
  if (rank >= 2)
    block.rowStride = block.strides[last - 2];
  if (rank == 3) {
    block.inner = vector.getDimSize(1);
    block.outerStride = block.strides[last - 3];
    block.nested = block.outerStride;
  }
  return block;
}

} // namespace

/// The byte offset of the block's first element.
static Value startOf(Emitter &e, const MemoryBlock &block, ValueRange indices) {
  Value sum = e.index(0);
  for (auto [i, stride] : llvm::zip_equal(indices, block.strides))
    sum = e.add(sum, e.mul(e.scalar(i), stride));
  return sum;
}

namespace {

/// Rows of a block as this thread sees them; one per distinct row constant.
struct RowPlace {
  Value row;         ///< flattened; null: the block has none
  Value outer;       ///< index of the outermost dimension
  Value offset;      ///< bytes, without those of the constant
  int64_t bytes = 0; ///< of the constant: an instruction's immediate, not a register for each row
};

class Rows {
public:
  Rows(Emitter &e, OpBuilder &b, Location loc, const MemoryBlock &block, const Layout &layout, bool clamp, bool here = false)
      : e(e), b(b), loc(loc), block(block), layout(layout), clamp(clamp), here(here) {}

  const RowPlace &operator[](int32_t constant) {
    auto found = places.find(constant);
    return found != places.end() ? found->second : places[constant] = make(constant);
  }

private:
  RowPlace make(int32_t constant) {
    if (!block.rowStride)
      return {};
    RowPlace place;
    place.row = e.coordinate(layout.row, constant);
    if (here)
      place.row = computedHere(place.row);
    if (clamp && layout.rowsPadded)
      place.row = arith::MinUIOp::create(b, loc, place.row, e.index(layout.rows - 1));
    place.outer = place.row;
    if (!block.nested && clamp && layout.rowsPadded) {
      place.offset = e.mul(place.row, block.rowStride);
      return place;
    }
    if (!block.nested) {
      place.offset = e.mul(e.base(layout.row), block.rowStride);
      place.bytes = constant * block.rowStride;
      return place;
    }
    Value inner = block.inner == 1 ? e.index(0) : arith::RemUIOp::create(b, loc, place.row, e.index(block.inner)).getResult();
    place.outer = block.inner == 1 ? place.row : arith::DivUIOp::create(b, loc, place.row, e.index(block.inner)).getResult();
    place.offset = e.add(e.mul(place.outer, block.outerStride), e.mul(inner, block.rowStride));
    return place;
  }

  Emitter &e;
  OpBuilder &b;
  Location loc;
  const MemoryBlock &block;
  const Layout &layout;
  bool clamp;
  bool here;
  std::map<int32_t, RowPlace> places;

  /// What is computed from the result is computed behind what stands before, and takes no registers there.
  Value computedHere(Value x) {
    Value narrow = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), x);
    Value same = LLVM::InlineAsmOp::create(b, loc, b.getI32Type(), narrow, "mov.b32 $0, $1;", "=r,r", /*has_side_effects=*/true,
                                           /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                           LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr())
                     .getRes();
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), same);
  }
};

} // namespace

/// A register and where its element is.
struct Item {
  int32_t row, col;
  size_t reg;
};

/// Row by row, along the columns.
static std::map<int32_t, SmallVector<Item>> itemsByRow(const Layout &layout) {
  std::map<int32_t, SmallVector<Item>> rows;
  for (auto [i, at] : llvm::enumerate(layout.regs))
    rows[at.first].push_back({at.first, at.second, i});
  for (auto &[row, items] : rows)
    llvm::sort(items, [](const Item &x, const Item &y) { return x.col < y.col; });
  return rows;
}

/// Items from the first on that are neighbours in memory and may move as one access: a power of two.
static size_t runLength(const MemoryBlock &block, const Layout &layout, ArrayRef<Item> items) {
  if (block.colStride != block.elementBytes || layout.colsPadded)
    return 1;
  int64_t aligned = std::gcd(block.divisor, int64_t(16));
  for (int64_t stride : {layout.col.scale * block.colStride, layout.col.warp * block.colStride, block.rowStride, block.outerStride})
    aligned = std::gcd(aligned, stride);
  size_t best = 1;
  for (size_t count = 2; count <= 8 && count <= items.size(); count *= 2) {
    int64_t bytes = static_cast<int64_t>(count) * block.elementBytes;
    bool follows = bytes <= aligned && items.front().col * block.colStride % bytes == 0;
    for (size_t i = 1; i < count && follows; ++i)
      follows = items[i].col == items.front().col + static_cast<int32_t>(i);
    if (!follows)
      break;
    best = count;
  }
  return best;
}

LogicalResult Emitter::emitLoad(tile::LoadOp op) {
  if (isAddend(op))
    return success();
  auto memref = cast<MemRefType>(op.getMemref().getType());
  MemoryBlock block = blockOf(memref, op.getType(), op.getIndices());
  Value start = at(scalar(op.getMemref()), startOf(*this, block, op.getIndices()));
  auto vector = dyn_cast<VectorType>(op.getType());
  if (!vector) {
    mapping.map(op.getResult(), load(op.getType(), start, block.elementBytes));
    return success();
  }
  const Layout &layout = layouts.of(op.getResult());
  if (layout.kind == Layout::Rows) { // one value per row: the vector's only dimension, or both
    if (vector.getRank() == 2) {
      block.inner = vector.getDimSize(1);
      block.outerStride = block.rowStride;
      block.nested = true;
    }
    block.rowStride = block.colStride;
    block.colStride = 0;
  }
  Type element = vector.getElementType();
  Values results(layout.size());
  if (layout.kind == Layout::Columns && vector.getRank() == 2) { // whose columns lie in rows, one behind the other
    Value inner = index(vector.getDimSize(1));
    for (auto [result, place] : llvm::zip_equal(results, layout.regs)) {
      Value column = coordinate(layout.col, place.second);
      Value row = arith::DivUIOp::create(b, loc, column, inner), within = arith::RemUIOp::create(b, loc, column, inner);
      result = load(element, at(start, add(mul(row, block.rowStride), mul(within, block.colStride))), block.elementBytes);
    }
    set(op.getResult(), results);
    return success();
  }
  bool quotients = layout.kind == Layout::Rows && block.nested; // of row numbers: they stand behind loops that need the registers
  Rows rows(*this, b, loc, block, layout, /*clamp=*/true, /*here=*/quotients);
  for (auto &[row, items] : itemsByRow(layout)) {
    const RowPlace place = rows[row];
    Value pointer = place.offset ? at(start, place.offset) : start;
    if (block.colStride && !layout.colsPadded)
      pointer = at(pointer, mul(base(layout.col), block.colStride));
    for (ArrayRef<Item> rest = items; !rest.empty();) {
      size_t run = runLength(block, layout, rest);
      const Item &item = rest.front();
      int64_t constant = place.bytes + item.col * block.colStride;
      if (block.colStride && layout.colsPadded) { // what is past the columns is zero, and is not read
        Value column = coordinate(layout.col, item.col), inside = less(column, index(layout.cols));
        Value near = arith::SelectOp::create(b, loc, inside, column, index(0));
        Value x = load(element, at(at(pointer, mul(near, block.colStride)), place.bytes), block.elementBytes);
        Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
        results[item.reg] = arith::SelectOp::create(b, loc, inside, x, zero);
      } else if (run == 1) {
        results[item.reg] = load(element, at(pointer, constant), block.elementBytes);
      } else {
        Value many = load(VectorType::get({static_cast<int64_t>(run)}, element), at(pointer, constant), run * block.elementBytes);
        for (size_t k = 0; k < run; ++k)
          results[rest[k].reg] = extract(many, k);
      }
      rest = rest.drop_front(run);
    }
  }
  set(op.getResult(), results);
  return success();
}

/// How a constant lies that is stored: no other op says it.
static Layout layoutOfConstant(const Shape &cta, VectorType type) {
  int64_t cols = type.getShape().back();
  return type.getRank() == 1 ? spread(cta, cols) : accumulator(cta, type.getNumElements() / cols, cols);
}

LogicalResult Emitter::emitStore(tile::StoreOp op) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  MemoryBlock block = blockOf(memref, op.getValue().getType(), op.getIndices());
  Value start = at(scalar(op.getMemref()), startOf(*this, block, op.getIndices()));
  auto vector = dyn_cast<VectorType>(op.getValue().getType());
  if (!vector) {
    when(less(thread, index(1)), [&] { LLVM::StoreOp::create(b, loc, scalar(op.getValue()), start, block.elementBytes); });
    return success();
  }
  const Layout layout = isFree(op.getValue()) ? layoutOfConstant(cta, vector) : layouts.of(op.getValue());
  if (layout.kind == Layout::Rows) { // one value per row, as emitLoad
    block.rowStride = block.colStride;
    block.colStride = 0;
  }
  if (storesRows(op, layout))
    return emitStoreRows(op, layout);
  Values values = regsIn(op.getValue(), layout);
  Value limit = op.getLimit() ? scalar(op.getLimit()) : Value();
  Value outerIndex = limit ? scalar(op.getIndices()[memref.getRank() - vector.getRank()]) : Value();
  auto storeRun = [&](ArrayRef<Item> run, Value pointer) {
    Value value = values[run.front().reg];
    if (run.size() > 1) {
      value = LLVM::PoisonOp::create(b, loc, VectorType::get({static_cast<int64_t>(run.size())}, vector.getElementType()));
      for (auto [i, item] : llvm::enumerate(run))
        value = LLVM::InsertElementOp::create(b, loc, value, values[item.reg], i32(i));
    }
    LLVM::StoreOp::create(b, loc, value, pointer, run.size() * block.elementBytes);
  };
  base(layout.col);
  base(layout.row);
  // Rows that are left from this thread's first on: what a row's constant is compared with.
  Value left;
  if (limit && block.rowStride && !block.outerStride)
    left = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, limit, outerIndex), base(layout.row));
  when(holdsAlone(layout), [&] {
    Rows rows(*this, b, loc, block, layout, /*clamp=*/false);
    for (auto &[row, items] : itemsByRow(layout)) {
      const RowPlace place = rows[row];
      Value inside;
      if (place.row && layout.rowsPadded)
        inside = less(place.row, index(layout.rows));
      if (left)
        inside = both(inside, less(index(row), left));
      else if (limit)
        inside = both(inside, less(place.outer ? add(outerIndex, place.outer) : outerIndex, limit));
      when(inside, [&] {
        Value pointer = at(place.offset ? at(start, place.offset) : start, mul(base(layout.col), block.colStride));
        for (ArrayRef<Item> rest = items; !rest.empty();) {
          size_t run = runLength(block, layout, rest);
          Value column = coordinate(layout.col, rest.front().col);
          Value within = layout.colsPadded ? less(column, index(layout.cols)) : Value();
          if (op.getColumns())
            within = both(within, less(add(scalar(op.getIndices().back()), column), index(memref.getShape().back())));
          when(within, [&] { storeRun(rest.take_front(run), at(pointer, place.bytes + rest.front().col * block.colStride)); });
          rest = rest.drop_front(run);
        }
      });
    }
  });
  return success();
}

LogicalResult Emitter::emitView(tile::ViewOp op) {
  mapping.map(op.getResult(), at(scalar(op.getSource()), op.getOffset()));
  return success();
}

LogicalResult Emitter::emitCheck(tile::CheckOp op) {
  Value limit = scalar(op.getLimit());
  Values values = isa<VectorType>(op.getValue().getType()) ? regsIn(op.getValue(), layouts.of(op.getValue()))
                                                           : Values{scalar(op.getValue())};
  for (Value value : values) {
    Value outside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, value, limit); // negative ids are large ones
    when(outside, [&] { LLVM::Trap::create(b, loc); });
  }
  return success();
}
