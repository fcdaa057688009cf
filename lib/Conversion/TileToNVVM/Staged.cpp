//===- Staged.cpp - results of warpgroups on their way to memory ----------===//
//
// A thread holds two neighbouring rows (tokens) of a column of a transposed product.
// Written from there, memory would be touched in pieces of 4 bytes a thread. So results go
// through shared memory, matrices of 8 x 8 bf16 transposed (stmatrix, PTX ISA 9.7.14.5.16),
// from where whole rows are written, 16 bytes a thread. f32: StagedRows.cpp.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kRowBytes = 128, kPiece = 16; // of a ring: bytes of a row, of a store; eight pieces a row, swizzled

LogicalResult Emitter::emitDealColumns(tile::DealColumnsOp op) {
  const Layout &from = layouts.of(op.getSource()), &to = layouts.of(op.getEven());
  if (!cta.transposed || from.kind != Layout::Accumulator || from.colsPadded || from.cols > 32 * cta.warps())
    return op.emitOpError("expected a transposed product of 16 or 32 columns a warp, got ") << op.getSource().getType();
  const Values source = regsIn(op.getSource(), from);
  for (auto [result, half] : {std::pair(op.getEven(), 0), std::pair(op.getOdd(), 8)}) {
    Values dealt;
    for (auto [row, col] : to.regs)
      dealt.push_back(source[llvm::find(from.regs, std::pair<int32_t, int32_t>(row, 2 * col + half)) - from.regs.begin()]);
    set(result, dealt);
  }
  return success();
}

/// The place of a row's piece.
static Value placeOf(Emitter &e, OpBuilder &b, Location loc, Value ring, Value row, Value piece) {
  Value swizzled = arith::XOrIOp::create(b, loc, piece, arith::AndIOp::create(b, loc, row, e.index(7)));
  return e.at(ring, e.add(e.mul(row, kRowBytes), e.mul(swizzled, kPiece)));
}

/// Warp w has the columns of piece w of every row, and of piece w + warps where its registers are those of two products; lane i
/// says where row i of up to four matrices, one below the other, goes.
void Emitter::stage(Value ring, const Values &registers, int64_t rows) {
  Value lane = arith::AndIOp::create(b, loc, thread, index(31));
  int64_t each = rows / 4; // registers of a piece
  for (int64_t block = 0; block * each < static_cast<int64_t>(registers.size()); ++block)
    for (int64_t first = 0; first < rows; first += 32) {
      int64_t matrices = std::min<int64_t>(4, (rows - first) / 8);
      Values words;
      for (int64_t i = block * each + first / 4; i < block * each + first / 4 + 2 * matrices; i += 2)
        words.push_back(pair(registers[i], registers[i + 1]));
      Value row = arith::AndIOp::create(b, loc, lane, index(8 * matrices - 1)), piece = add(warp, block * cta.warps());
      NVVM::StMatrixOp::create(b, loc, placeOf(*this, b, loc, ring, add(row, first), piece), words, NVVM::MMALayout::col,
                               NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
    }
}

/// This thread's lane, read where the builder stands: what is computed from it is computed behind what stands before, and needs no
/// registers there.
Value Emitter::laneHere() {
  Value lane = assembly("mov.u32 $0, %laneid;", "=r", b.getI32Type(), {});
  return arith::AndIOp::create(b, loc, lane, i32(31));
}

/// Rows of three dimensions, the last contiguous, as a warp writes them: 16 bytes a lane.
void Emitter::storeRows(tile::StoreStagedOp op, Value ring, Value lane) {
  auto vector = cast<VectorType>(op.getValue().getType());
  SmallVector<int64_t> strides;
  int64_t offset, panelBytes = cast<tile::RingType>(op.getRing().getType()).getRows() * kRowBytes, rows = layouts.of(op.getValue()).rows;
  (void)cast<MemRefType>(op.getMemref().getType()).getStridesAndOffset(strides, offset);
  int32_t pieces = static_cast<int32_t>(vector.getShape().back() / 8), inner = static_cast<int32_t>(vector.getDimSize(1));
  Value start = scalar(op.getMemref()), firstRow = mul(warp, 16);
  for (auto [index, stride] : llvm::zip_equal(op.getIndices(), strides))
    start = at(start, mul(scalar(index), 2 * stride));
  auto split = [&](Value x, int32_t by) { // 32 bits, where a division is cheaper
    Value high = arith::DivUIOp::create(b, loc, x, i32(by)), low = arith::RemUIOp::create(b, loc, x, i32(by));
    auto wide = [&](Value x) -> Value { return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x); };
    return std::pair(wide(high), wide(low));
  };
  auto type = VectorType::get({4}, b.getI32Type());
  Value outerIndex = scalar(op.getIndices().take_back(3).front());
  for (int32_t first = 0; first < 16 * pieces; first += 32) {
    auto [row, piece] = split(arith::AddIOp::create(b, loc, lane, i32(first)), pieces);
    Value whole = add(firstRow, row);
    auto [outer, within] = split(arith::IndexCastUIOp::create(b, loc, b.getI32Type(), whole), inner);
    Value inside = rows < 16 * cta.warps() ? less(whole, index(rows)) : Value();
    if (op.getLimit())
      inside = both(inside, less(add(outerIndex, outer), scalar(op.getLimit())));
    Value bytes = add(add(mul(outer, 2 * strides.rbegin()[2]), mul(within, 2 * strides.rbegin()[1])), mul(piece, kPiece));
    when(inside, [&] { LLVM::StoreOp::create(b, loc, load(type, placeIn(ring, row, piece, panelBytes), kPiece), at(start, bytes), kPiece); });
  }
}

Value Emitter::placeIn(Value ring, Value row, Value piece, int64_t panelBytes) {
  Value panel = arith::ShRUIOp::create(b, loc, piece, index(3)), within = arith::AndIOp::create(b, loc, piece, index(7));
  return placeOf(*this, b, loc, at(ring, mul(panel, panelBytes)), row, within);
}

// A warp has 16 rows of all columns: it writes them to its rows of the ring, 16 x 16 at a time (matrices below and beside each
// other), and reads them back row by row.
LogicalResult Emitter::emitStoreStagedRows(tile::StoreStagedOp op) {
  const Layout &layout = layouts.of(op.getValue());
  auto memref = cast<MemRefType>(op.getMemref().getType());
  auto ringType = cast<tile::RingType>(op.getRing().getType());
  SmallVector<int64_t> strides;
  int64_t offset, pieces = layout.cols / 8;
  (void)memref.getStridesAndOffset(strides, offset);
  if (layout.kind != Layout::Accumulator || cta.transposed || layout.col != Axis{Axis::Quad, 2, 0} || layout.cols % 16 ||
      layout.rows > 16 * cta.warps() || ringType.getRows() != 16 * cta.warps())
    return op.emitOpError("expected rows of a product, 16 a warp, got ") << op.getValue().getType();
  if (memref.getRank() < 3 || strides.back() != 1 || strides.rbegin()[1] % 8 || strides.rbegin()[2] % 8 || divisorOf(op.getIndices().back()) % 8)
    return op.emitOpError("expected rows of multiples of 16 bytes, got ") << memref;
  auto meetWarp = [&] { NVVM::SyncWarpOp::create(b, loc, i32(-1)); };
  Value lane = laneHere(), wideLane = arith::IndexCastUIOp::create(b, loc, b.getIndexType(), lane);
  Value ring = at(dynamicShared(dynamicPlaces.at(op.getRing())), mul(mul(warp, 16), kRowBytes));
  Value row = arith::AndIOp::create(b, loc, wideLane, index(15)), ownPiece = arith::ShRUIOp::create(b, loc, wideLane, index(4));
  const Values &registers = regs(op.getValue());
  meetWarp(); // the last unit's rows have been read
  for (int64_t piece = 0; piece < pieces; piece += 2) {
    Values words;
    for (int64_t i = 4 * piece; i < 4 * piece + 8; i += 2)
      words.push_back(pair(registers[i], registers[i + 1]));
    NVVM::StMatrixOp::create(b, loc, placeIn(ring, row, add(ownPiece, piece), ringType.getRows() * kRowBytes), words, NVVM::MMALayout::row,
                             NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  }
  meetWarp();
  storeRows(op, ring, lane);
  return success();
}

LogicalResult Emitter::emitStoreStaged(tile::StoreStagedOp op) {
  if (cast<VectorType>(op.getValue().getType()).getRank() == 3)
    return emitStoreStagedRows(op);
  const Layout &layout = layouts.of(op.getValue());
  auto memref = cast<MemRefType>(op.getMemref().getType());
  SmallVector<int64_t> strides;
  int64_t offset, rows = layout.rows, columns = memref.getShape().back();
  (void)memref.getStridesAndOffset(strides, offset);
  if (!cta.transposed || layout.kind != Layout::Accumulator || layout.col != Axis{Axis::Group, 1, 8} || layout.colsPadded ||
      layout.cols != 64 || rows % 8 || (rows > 8 && rows % 16) || (rows > 32 && rows % 32))
    return op.emitOpError("expected 64 dealt columns, got ") << op.getValue().getType();
  if (memref.getRank() != 2 || strides[1] != 1 || strides[0] % 8 || columns % 8 || divisorOf(op.getIndices()[1]) % 8)
    return op.emitOpError("expected rows of multiples of 16 bytes from such a column on, got ") << memref;
  Value ring = slotAddress(op.getRing(), cta.crews > 1 ? crew() : index(0)), thread = threadOfCrew();
  crewMeets(); // the last unit's rows have been read
  stage(ring, regs(op.getValue()), rows);
  crewMeets();
  auto type = VectorType::get({4}, b.getI32Type());
  Value row0 = scalar(op.getIndices()[0]), column0 = scalar(op.getIndices()[1]);
  Value piece = arith::AndIOp::create(b, loc, thread, index(7)), column = add(column0, mul(piece, 8)), ownRow = arith::ShRUIOp::create(b, loc, thread, index(3));
  Value within = less(column, index(columns));
  int64_t step = cta.threads / cta.crews / 8;
  for (int64_t first = 0; first < rows; first += step) {
    Value row = add(ownRow, first), to = add(row0, row), inside = within;
    if (rows - first < step)
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
