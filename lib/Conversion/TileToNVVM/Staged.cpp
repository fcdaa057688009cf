//===- Staged.cpp - results of warpgroups on their way to memory ----------===//
//
// A thread holds two neighbouring rows (tokens) of a column of a transposed product.
// Written from there, memory would be touched in pieces of 4 bytes a thread. So results go
// through shared memory, f32 element by element and matrices of 8 x 8 bf16 transposed
// (stmatrix, PTX ISA 9.7.14.5.16), from where whole rows are written, 16 bytes a thread.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kChunk = 64, kPad = 4; // f32: rows that go through shared memory at a time, elements between them
static constexpr int64_t kRowBytes = 128, kPiece = 16; // of a ring: bytes of a row, of a store; eight pieces a row, swizzled
static constexpr int kConsumersMeet = 1;               // number of the barrier; 0 is the CTA's

LogicalResult Emitter::emitDealColumns(tile::DealColumnsOp op) {
  const Layout &from = layouts.of(op.getSource()), &to = layouts.of(op.getEven());
  if (!cta.transposed || from.kind != Layout::Accumulator || from.colsPadded || from.cols != 16 * cta.warps())
    return op.emitOpError("expected a transposed product of 16 columns a warp, got ") << op.getSource().getType();
  const Values source = regsIn(op.getSource(), from);
  for (auto [result, half] : {std::pair(op.getEven(), 0), std::pair(op.getOdd(), 8)}) {
    Values dealt;
    for (auto [row, col] : to.regs)
      dealt.push_back(source[llvm::find(from.regs, std::pair<int32_t, int32_t>(row, half)) - from.regs.begin()]);
    set(result, dealt);
  }
  return success();
}

static void meet(OpBuilder &b, Location loc, Value number, Value threads) {
  NVVM::BarrierOp::create(b, loc, Type(), number, threads, NVVM::BarrierReductionAttr(), Value());
}

/// The place of a row's piece.
static Value placeOf(Emitter &e, OpBuilder &b, Location loc, Value ring, Value row, Value piece) {
  Value swizzled = arith::XOrIOp::create(b, loc, piece, arith::AndIOp::create(b, loc, row, e.index(7)));
  return e.at(ring, e.add(e.mul(row, kRowBytes), e.mul(swizzled, kPiece)));
}

/// Warp w has the columns of piece w of every row; lane i says where row i of up to four matrices, one below the other, goes.
void Emitter::stage(Value ring, const Values &registers, int64_t rows) {
  Value lane = arith::AndIOp::create(b, loc, thread, index(31));
  for (int64_t first = 0; first < rows; first += 32) {
    int64_t matrices = std::min<int64_t>(4, (rows - first) / 8);
    Values words;
    for (int64_t i = 0; i < matrices; ++i)
      words.push_back(pair(registers[(first / 8 + i) * 2], registers[(first / 8 + i) * 2 + 1]));
    Value row = arith::AndIOp::create(b, loc, lane, index(8 * matrices - 1));
    NVVM::StMatrixOp::create(b, loc, placeOf(*this, b, loc, ring, add(row, first), warp), words, NVVM::MMALayout::col,
                             NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  }
}

LogicalResult Emitter::emitStoreStaged(tile::StoreStagedOp op) {
  const Layout &layout = layouts.of(op.getValue());
  auto memref = cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset, rows = layout.rows, columns = memref.getShape().back();
  (void)memref.getStridesAndOffset(strides, offset);
  if (!cta.transposed || layout.kind != Layout::Accumulator || layout.col != Axis{Axis::Group, 1, 8} || layout.colsPadded ||
      8 * cta.warps() != layout.cols || rows % 16 || (rows > 32 && rows % 32))
    return op.emitOpError("expected dealt columns, eight a warp, got ") << op.getValue().getType();
  if (memref.getRank() != 2 || strides[1] != 1 || strides[0] % 8 || columns % 8 || divisorOf(op.getIndices()[1]) % 8)
    return op.emitOpError("expected rows of multiples of 16 bytes from such a column on, got ") << memref;
  Value ring = dynamicShared(dynamicPlaces.at(op.getRing())), number = i32(kConsumersMeet), threads = i32(cta.threads);
  meet(b, loc, number, threads); // the last unit's rows have been read
  stage(ring, regs(op.getValue()), rows);
  meet(b, loc, number, threads);
  auto type = VectorType::get({4}, b.getI32Type());
  Value row0 = scalar(op.getIndices()[0]), column0 = scalar(op.getIndices()[1]);
  Value piece = arith::AndIOp::create(b, loc, thread, index(7)), column = add(column0, mul(piece, 8)), ownRow = arith::ShRUIOp::create(b, loc, thread, index(3));
  Value within = less(column, index(columns));
  for (int64_t first = 0; first < rows; first += cta.threads / 8) {
    Value row = add(ownRow, first), to = add(row0, row), inside = within;
    if (rows - first < cta.threads / 8)
      inside = both(inside, less(row, index(rows)));
    if (op.getLimit())
      inside = both(inside, less(to, scalar(op.getLimit())));
    when(inside, [&] {
      Value value = load(type, placeOf(*this, b, loc, ring, row, piece), kPiece);
      Value pointer = at(scalar(op.getMemref()), add(mul(to, 2 * strides[0]), mul(column, 2)));
      LLVM::StoreOp::create(b, loc, value, pointer, kPiece);
    });
  }
  return success();
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

bool Emitter::storesInChunks(tile::StoreOp op, const Layout &layout) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  auto vector = dyn_cast<VectorType>(op.getValue().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!cta.persistent || !vector || vector.getRank() != 2 || !vector.getElementType().isF32() || memref.getRank() != 2 ||
      failed(memref.getStridesAndOffset(strides, offset)))
    return false;
  return layout.kind == Layout::Accumulator && layout.col == Axis{Axis::Group, 1, 16} && layout.cols == 16 * cta.warps() &&
         layout.cols == 128 && layout.rows % 32 == 0 && strides[1] == 1 && strides[0] % 4 == 0 && memref.getDimSize(1) % 4 == 0 &&
         divisorOf(op.getIndices()[1]) % 4 == 0;
}

/// A warp writes a row of 128 elements at a time.
void Emitter::storeChunk(tile::StoreOp op, Value staging, int64_t first, int64_t count, int64_t rowBytes) {
  auto memref = cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)memref.getStridesAndOffset(strides, offset);
  int64_t stride = strides[0];
  Value lane = arith::AndIOp::create(b, loc, thread, index(31));
  Value row = add(scalar(op.getIndices()[0]), warp), column = add(scalar(op.getIndices()[1]), mul(lane, 4));
  Value from = at(staging, add(mul(warp, rowBytes), mul(lane, kPiece)));
  Value to = at(scalar(op.getMemref()), add(mul(row, 4 * stride), mul(column, 4)));
  Value left = op.getLimit() ? arith::SubIOp::create(b, loc, scalar(op.getLimit()), row).getResult() : Value();
  when(op.getColumns() ? less(column, index(memref.getDimSize(1))) : Value(), [&] {
    for (int64_t i = 0; i < count; i += cta.warps())
      when(left ? less(index(first + i), left) : Value(), [&] {
        Value value = load(VectorType::get({4}, b.getI32Type()), at(from, i * rowBytes), kPiece);
        LLVM::StoreOp::create(b, loc, value, at(to, (first + i) * 4 * stride), kPiece);
      });
  });
}

LogicalResult Emitter::emitStoreInChunks(tile::StoreOp op, const Layout &layout) {
  int64_t rows = std::min(layout.rows, kChunk), rowBytes = 4 * (layout.cols + kPad);
  dynamicOffset = llvm::alignTo(dynamicOffset, kPiece);
  Value staging = dynamicShared(dynamicOffset);
  dynamicOffset += rows * rowBytes;
  Values values = regsIn(op.getValue(), layout);
  Value own = at(staging, add(mul(base(layout.row), rowBytes), mul(base(layout.col), 4)));
  Value number = i32(kConsumersMeet), threads = i32(cta.threads);
  for (int64_t first = 0; first < layout.rows; first += rows) {
    meet(b, loc, number, threads); // the last chunk has been read
    for (auto [place, value] : llvm::zip_equal(layout.regs, values))
      if (place.first >= first && place.first < first + rows)
        LLVM::StoreOp::create(b, loc, value, at(own, (place.first - first) * rowBytes + place.second * 4), 4);
    meet(b, loc, number, threads);
    storeChunk(op, staging, first, rows, rowBytes);
  }
  return success();
}
