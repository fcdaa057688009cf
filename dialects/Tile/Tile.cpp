//===- Tile.cpp - the tile dialect ----------------------------------------===//

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::tile;

#include "dialects/Tile/TileDialect.cpp.inc"
#include "dialects/Tile/TileEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/TileAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Tile/TileOps.cpp.inc"

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tile/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/TileOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

llmc::CodedForm llmc::tile::codedForm(Format format) {
  switch (format) {
  case Format::F32:
  case Format::F16:
  case Format::BF16Pairs:
  case Format::BF16NK:
  case Format::BF16KN:
  case Format::E4M3Pairs:
  case Format::E4M3NK:
    return {};
  case Format::Q4_0: return llmc::codedForm(LLMC_LAYOUT_N16_Q4_0);
  case Format::Q4_1: return llmc::codedForm(LLMC_LAYOUT_N16_Q4_1);
  case Format::Q8_0: return llmc::codedForm(LLMC_LAYOUT_N16_Q8_0);
  case Format::Q5_0: return llmc::codedForm(LLMC_LAYOUT_N16_Q5_0);
  case Format::Q5_1: return llmc::codedForm(LLMC_LAYOUT_N16_Q5_1);
  case Format::Q2_K: return llmc::codedForm(LLMC_LAYOUT_N16_Q2_K);
  case Format::Q3_K: return llmc::codedForm(LLMC_LAYOUT_N16_Q3_K);
  case Format::Q4_K: return llmc::codedForm(LLMC_LAYOUT_N16_Q4_K);
  case Format::Q5_K: return llmc::codedForm(LLMC_LAYOUT_N16_Q5_K);
  case Format::Q6_K: return llmc::codedForm(LLMC_LAYOUT_N16_Q6_K);
  case Format::IQ4_NL: return llmc::codedForm(LLMC_LAYOUT_N16_IQ4_NL);
  case Format::IQ4_XS: return llmc::codedForm(LLMC_LAYOUT_N16_IQ4_XS);
  }
  llvm_unreachable("unknown format");
}

int64_t llmc::tile::recordK(Format format) {
  if (CodedForm form = codedForm(format))
    return form.recordK;
  return format == Format::BF16Pairs || format == Format::E4M3Pairs ? 2 : 1;
}

int64_t llmc::tile::recordBytes(Format format) {
  if (CodedForm form = codedForm(format))
    return form.recordBytes();
  return format == Format::F32 || format == Format::BF16Pairs ? 64 : 32;
}

bool llmc::tile::isQuantized(Format format) { return bool(codedForm(format)); }

bool llmc::tile::hasScalesOf32(Format format) { return isQuantized(format) && codedForm(format).scaleGroup == 32; }

LogicalResult PackedType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t k, int64_t n, Format format) {
  if (k <= 0 || n <= 0 || n % 16)
    return emitError() << "expected positive k and a multiple of 16 columns, got " << k << " x " << n;
  if ((format == Format::BF16Pairs || format == Format::E4M3Pairs) && k % 2)
    return emitError() << "expected an even k for " << stringifyFormat(format) << ", got " << k;
  if (isQuantized(format) && k % 32)
    return emitError() << "expected whole groups of 32 k for " << stringifyFormat(format) << ", got " << k << " x " << n;
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {SymbolTable::getSymbolAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  SmallVector<Type> argumentTypes(getBody().getArgumentTypes());
  ArrayRef<Type> types = argumentTypes;
  if (types.size() < 2 || !types.back().isIndex() || !types.drop_back().back().isIndex())
    return emitOpError("expected the last two arguments to be the row count and the unit, of type index");
  for (Type type : types.drop_back(2)) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return emitOpError("expected memref arguments before the row count, got ") << type;
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(memref.getStridesAndOffset(strides, offset)) || offset != 0 ||
        llvm::any_of(strides, [](int64_t stride) { return ShapedType::isDynamic(stride); }))
      return emitOpError("expected static strides and offset 0, got ") << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyAccess(Operation *op, MemRefType memref, Type value, size_t indices) {
  if (static_cast<int64_t>(indices) != memref.getRank())
    return op->emitOpError("expected ") << memref.getRank() << " indices, got " << indices;
  auto vector = dyn_cast<VectorType>(value);
  if (!vector) {
    if (value != memref.getElementType())
      return op->emitOpError("expected element type ") << memref.getElementType() << ", got " << value;
    return success();
  }
  if (vector.getElementType() != memref.getElementType())
    return op->emitOpError("expected element type ") << memref.getElementType() << ", got " << vector.getElementType();
  if (vector.getRank() > memref.getRank())
    return op->emitOpError("expected a vector of rank at most ") << memref.getRank() << ", got " << vector.getRank();
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, cast<MemRefType>(getMemref().getType()), getResult().getType(), getIndices().size());
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, cast<MemRefType>(getMemref().getType()), getValue().getType(), getIndices().size());
}

LogicalResult LoadPackedOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  if (static_cast<int64_t>(getIndices().size()) != memref.getRank())
    return emitOpError("expected ") << memref.getRank() << " indices, got " << getIndices().size();
  auto packed = cast<PackedType>(getResult().getType());
  int64_t first = getFirst(), record = recordK(packed.getFormat());
  if (first && (first < 0 || first % 32 || first + packed.getK() > record || !isQuantized(packed.getFormat())))
    return emitOpError("expected a first k that is a multiple of 32 inside a record of codes, got ") << first << " for " << packed;
  return success();
}

LogicalResult GatherPackedOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  auto packed = cast<PackedType>(getResult().getType());
  if (static_cast<int64_t>(getIndices().size()) + 1 != memref.getRank() || memref.getRank() < 3)
    return emitOpError("expected ") << memref.getRank() - 1 << " indices behind the pages, got " << getIndices().size();
  int64_t pages = getPages().getType().getDimSize(0);
  if (packed.getFormat() == Format::BF16NK ? packed.getN() % pages : packed.getFormat() != Format::BF16KN || packed.getK() % pages)
    return emitOpError("expected bf16_nk or bf16_kn whose tokens are a multiple of ") << pages << " pages, got " << packed;
  return success();
}

LogicalResult StoreSliceOp::verify() {
  auto packed = dyn_cast<PackedType>(getPacked());
  if (!packed)
    return emitOpError("expected a packed operand type, got ") << getPacked();
  if (isQuantized(packed.getFormat()) || packed.getFormat() == Format::F16)
    return emitOpError("expected format f32 or a form of bf16, got ") << stringifyFormat(packed.getFormat());
  int64_t size = getAxis() == Axis::K ? packed.getK() : packed.getN();
  auto vector = cast<VectorType>(getValue().getType());
  int64_t first = getFirst();
  if (vector.getRank() != 1 || first < 0 || first + vector.getDimSize(0) > size)
    return emitOpError("expected at most ") << size << " elements along " << stringifyAxis(getAxis()) << " from " << first
                                            << ", got " << vector;
  if (static_cast<int64_t>(getIndices().size()) != cast<MemRefType>(getMemref().getType()).getRank())
    return emitOpError("expected one index per dimension of the memref");
  return success();
}

LogicalResult UnpackRowOp::verify() {
  auto packed = cast<PackedType>(getSource().getType());
  auto vector = cast<VectorType>(getResult().getType());
  if (vector.getRank() != 1 || getFirst() < 0 || static_cast<int64_t>(getFirst()) + vector.getDimSize(0) > packed.getK())
    return emitOpError("expected at most k = ") << packed.getK() << " elements from " << getFirst() << ", got " << vector;
  return success();
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

static LogicalResult verifyProduct(Operation *op, VectorType a, PackedType b, VectorType acc) {
  if (a.getDimSize(1) != b.getK())
    return op->emitOpError("expected k = ") << b.getK() << " columns of the left operand, got " << a.getDimSize(1);
  if (acc.getRank() != 2 || acc.getDimSize(0) != a.getDimSize(0) || acc.getDimSize(1) != b.getN())
    return op->emitOpError("expected an accumulator of ") << a.getDimSize(0) << "x" << b.getN() << ", got " << acc;
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<VectorType>(getA().getType());
  auto b = cast<PackedType>(getB().getType());
  bool pairsOrCodes = b.getFormat() == Format::BF16Pairs || isQuantized(b.getFormat());
  if (getArith() == DotArith::BF16_EO32 && (!a.getElementType().isBF16() || !pairsOrCodes || b.getK() % 32))
    return emitOpError("expected a bf16 left operand, a right one of bf16_pairs or codes, and k a multiple of 32 for bf16_eo32, got ")
           << a << " and " << b;
  if (getArith() == DotArith::BF16 && (!a.getElementType().isBF16() || b.getK() % 16))
    return emitOpError("expected a bf16 left operand and k a multiple of 16 for bf16, got ") << a << " and " << b;
  if (getArith() == DotArith::BF16_G32 && (!a.getElementType().isBF16() || b.getK() % 32 || !hasScalesOf32(b.getFormat())))
    return emitOpError("expected a bf16 left operand and codes with scales of 32 k for arith bf16_g32, got ") << a << " and " << b;
  bool e4m3 = isa<Float8E4M3FNType>(a.getElementType());
  if ((getArith() == DotArith::E4M3 || e4m3) && (getArith() != DotArith::E4M3 || !e4m3 || b.getFormat() != Format::E4M3NK || b.getK() % 32))
    return emitOpError("expected operands in e4m3, the right one e4m3_nk, and k a multiple of 32 for e4m3, got ") << a << " and " << b;
  if (getArith() == DotArith::F32 && !a.getElementType().isF32())
    return emitOpError("expected an f32 left operand for arithmetic f32, got ") << a;
  return verifyProduct(*this, a, b, cast<VectorType>(getAcc().getType()));
}

LogicalResult ScaledDotOp::verify() {
  auto codes = cast<VectorType>(getCodes().getType());
  auto scales = cast<VectorType>(getScales().getType());
  auto b = cast<PackedType>(getB().getType());
  if (!isQuantized(b.getFormat()))
    return emitOpError("expected a quantised right operand, got ") << b;
  if (scales.getDimSize(0) != codes.getDimSize(0) || scales.getDimSize(1) * 32 != b.getK() || scales.getDimSize(2) != 2)
    return emitOpError("expected scales of ") << codes.getDimSize(0) << "x" << b.getK() / 32 << "x2, got " << scales;
  return verifyProduct(*this, codes, b, cast<VectorType>(getAcc().getType()));
}

LogicalResult PairOrderOp::verify() {
  auto type = cast<VectorType>(getSource().getType());
  if (type.getShape().back() % 4)
    return emitOpError("expected a multiple of 4 columns, got ") << type;
  return success();
}

LogicalResult ReduceOp::verify() {
  auto source = cast<VectorType>(getSource().getType());
  int64_t columns = source.getShape().back();
  bool rows = source.getRank() == 2; // of a product on a GPU these may be as many as its instructions give
  if (columns < 8 || (rows ? columns % 8 : columns & (columns - 1)))
    return emitOpError("expected ") << (rows ? "a multiple of 8" : "8 times a power of two") << " columns, got " << columns;
  Type expected = source.getElementType();
  if (source.getRank() == 2)
    expected = VectorType::get({source.getDimSize(0)}, expected);
  else if (source.getRank() != 1)
    return emitOpError("expected a vector of rank 1 or 2, got ") << source;
  if (getResult().getType() != expected)
    return emitOpError("expected result type ") << expected << ", got " << getResult().getType();
  return success();
}

LogicalResult ExpandOp::verify() {
  auto source = cast<VectorType>(getSource().getType());
  auto result = cast<VectorType>(getResult().getType());
  if (result.getDimSize(0) != source.getDimSize(0) || result.getElementType() != source.getElementType())
    return emitOpError("expected ") << source.getDimSize(0) << " rows of " << source.getElementType() << ", got " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// The scheduled level
//===----------------------------------------------------------------------===//

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t columns, int64_t stages) {
  if (rows <= 0 || rows % 8 || columns <= 0 || columns % 64 || stages < 1)
    return emitError() << "expected multiples of 8 rows and 64 columns in at least one stage, got " << rows << " x " << columns
                       << ", " << stages;
  return success();
}

LogicalResult AllocRowsOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  int64_t rows = memref.getRank() == 2 && memref.hasStaticShape() ? memref.getDimSize(0) : 0;
  if (!memref.getElementType().isBF16() || rows < 1 || (rows > 8 && rows != 16) || memref.getDimSize(1) % 64)
    return emitOpError("expected bf16, 1 to 8 or 16 rows of a multiple of 64 columns, got ") << memref;
  return success();
}

LogicalResult CopyAsyncOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  auto ring = cast<RingType>(getRing().getType());
  ArrayRef<int64_t> box = getBox();
  bool e4m3 = isa<Float8E4M3FNType>(memref.getElementType());
  if ((!memref.getElementType().isBF16() && !e4m3) || memref.getRank() > 5 || box.size() != static_cast<size_t>(memref.getRank()) ||
      getIndices().size() != box.size())
    return emitOpError("expected a bf16 or e4m3 memref of at most 5 dimensions with a box and an index for each, got ") << memref;
  int64_t columns = e4m3 ? 128 : 64; // of a panel
  int64_t rows = 1;
  for (int64_t size : box.drop_back())
    rows *= size;
  if (rows > ring.getRows() || box.back() != columns || llvm::any_of(box, [](int64_t size) { return size < 1 || size > 256; }))
    return emitOpError("expected a box of at most ") << ring.getRows() << " x " << columns << " elements, at most 256 a dimension";
  if (static_cast<int64_t>(getPanel()) < 0 || static_cast<int64_t>(getPanel()) >= ring.getColumns() / 64)
    return emitOpError("expected a panel below ") << ring.getColumns() / 64 << ", got " << static_cast<int64_t>(getPanel());
  return success();
}

LogicalResult UnpackAsyncOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  auto ring = cast<RingType>(getRing().getType());
  bool paired = memref.getRank() == 4;
  if (!isQuantized(getFormat()) || recordK(getFormat()) > 64)
    return emitOpError("expected a format with records of at most 64 k, got ") << stringifyFormat(getFormat());
  if (!memref.getElementType().isInteger(8) || !memref.hasStaticShape() || (memref.getRank() != 3 && !paired) ||
      (paired && memref.getDimSize(1) != 2) || memref.getShape().back() != recordBytes(getFormat()))
    return emitOpError("expected a memref [panels, records, ") << recordBytes(getFormat()) << "] or [pairs, 2, records, ..] of i8, got " << memref;
  if (ring.getColumns() != 64 || ring.getRows() % 64 || (paired && ring.getRows() != 128))
    return emitOpError("expected a ring of a multiple of 64 rows (for pairs 128) and 64 columns, got ") << ring;
  auto roles = getOperation()->getParentOfType<RolesOp>();
  if (!roles || !roles.getUnpacking())
    return emitOpError("expected the producer of tile.roles with unpacking");
  return success();
}

LogicalResult GatherAsyncOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType()), table = cast<MemRefType>(getTable().getType());
  auto ring = cast<RingType>(getRing().getType());
  int64_t rank = memref.getRank(), tokens = getPageTokens();
  if (!memref.getElementType().isBF16() || rank < 3 || rank > 5 || static_cast<int64_t>(getIndices().size()) != rank - 2)
    return emitOpError("expected a bf16 memref of 3 to 5 dimensions and an index for each but the first and the last, got ") << memref;
  if (table.getRank() != 1 || !table.getElementType().isInteger(32))
    return emitOpError("expected a table of i32, got ") << table;
  if (tokens < 8 || tokens % 8 || tokens > 256 || ring.getRows() % tokens || ring.getRows() / tokens > 32)
    return emitOpError("expected at most 32 pages of a multiple of 8 tokens that fill ") << ring.getRows() << " rows, got pages of " << tokens;
  if (memref.getShape().back() > ring.getColumns())
    return emitOpError("expected at most ") << ring.getColumns() << " columns, got " << memref.getShape().back();
  return success();
}

LogicalResult WarpgroupDotRowsOp::verify() {
  VectorType type = cast<InFlightType>(getResult().getType()).getVector();
  auto a = cast<RingType>(getA().getType()), b = cast<RingType>(getB().getType());
  int64_t depth = getDepth();
  if (type.getRank() != 2 || type.getDimSize(0) > a.getRows() || type.getDimSize(1) != b.getRows() || !type.getElementType().isF32())
    return emitOpError("expected a result of at most ") << a.getRows() << "x" << b.getRows() << " f32, got " << type;
  if (a.getRows() % 64 || b.getRows() > 256)
    return emitOpError("expected a multiple of 64 rows and at most 256 columns, got ") << type;
  if (depth <= 0 || depth % 16 || depth > a.getColumns() || depth > b.getColumns())
    return emitOpError("expected a depth that is a multiple of 16 and at most the rings' columns, got ") << depth;
  return success();
}

LogicalResult WarpgroupUpdateOp::verify() {
  VectorType type = cast<InFlightType>(getResult().getType()).getVector(), a = getA().getType();
  auto b = cast<RingType>(getB().getType());
  if (type.getRank() != 2 || type.getDimSize(0) != a.getDimSize(0) || a.getDimSize(1) != b.getRows() || type.getDimSize(1) > b.getColumns() ||
      !type.getElementType().isF32())
    return emitOpError("expected ") << b.getRows() << " columns of a and at most " << b.getColumns() << " of the f32 result, got " << a << " and "
                                    << type;
  if (a.getDimSize(1) % 16 || type.getDimSize(1) % 8 || type.getDimSize(1) > 256)
    return emitOpError("expected multiples of 16 k and 8 columns, at most 256, got ") << a << " and " << type;
  return success();
}

LogicalResult WarpgroupDotOp::verify() {
  VectorType type = cast<InFlightType>(getResult().getType()).getVector();
  int64_t rows = cast<RingType>(getA().getType()).getRows(), cols = cast<RingType>(getB().getType()).getRows();
  if (type.getRank() != 2 || type.getDimSize(0) != rows || type.getDimSize(1) != cols || !type.getElementType().isF32())
    return emitOpError("expected a result of ") << rows << "x" << cols << " f32, got " << type;
  if (rows % 8 || rows > 256 || cols % 64)
    return emitOpError("expected at most 256 rows, a multiple of 8, and a multiple of 64 columns, got ") << type;
  if (getArith() != DotArith::BF16 && getArith() != DotArith::E4M3)
    return emitOpError("expected arith bf16 or e4m3, got ") << stringifyDotArith(getArith());
  return success();
}

LogicalResult WarpgroupDotOwnOp::verify() {
  VectorType type = cast<InFlightType>(getResult().getType()).getVector();
  auto b = cast<RingType>(getB().getType());
  if (!getOwn().getDefiningOp<AllocRowsOp>())
    return emitOpError("expected rows of tile.alloc_rows");
  if (type.getRank() != 2 || (type.getDimSize(0) != 8 && type.getDimSize(0) != 16) || type.getDimSize(1) != b.getRows() ||
      b.getRows() % 64 || b.getColumns() != 64 || !type.getElementType().isF32())
    return emitOpError("expected a result of 8 or 16 rows by the multiple of 64 rows of a ring of 64 columns, got ") << type << " and " << b;
  return success();
}

LogicalResult StartOp::verify() {
  if (cast<InFlightType>(getResult().getType()).getVector() != getVector().getType())
    return emitOpError("expected a result of ") << getVector().getType() << " in flight, got " << getResult().getType();
  return success();
}

LogicalResult WaitOp::verify() {
  if (getOperands().size() != getResults().size())
    return emitOpError("expected a result for each operand");
  for (auto [operand, result] : llvm::zip(getOperands(), getResults())) {
    auto flight = dyn_cast<InFlightType>(operand.getType());
    Type vector = flight ? Type(flight.getVector()) : operand.getType();
    if (!isa<VectorType>(vector))
      return emitOpError("expected vectors, in flight or not, got ") << vector;
    if (result.getType() != vector && (getPending() == 0 || result.getType() != operand.getType()))
      return emitOpError("expected a result of type ") << vector << ", got " << result.getType();
  }
  return success();
}

LogicalResult DealColumnsOp::verify() {
  auto source = cast<VectorType>(getSource().getType()), result = cast<VectorType>(getEven().getType());
  if (source.getRank() != 2 || source.getDimSize(1) % 16)
    return emitOpError("expected a source of a multiple of 16 columns, got ") << source;
  auto half = VectorType::get({source.getDimSize(0), source.getDimSize(1) / 2}, source.getElementType());
  if (result != half)
    return emitOpError("expected results of type ") << half << ", got " << result;
  return success();
}

LogicalResult SumPartsOp::verify() {
  auto source = cast<VectorType>(getSource().getType()), result = cast<VectorType>(getResult().getType());
  if (source.getRank() != 2 || result.getRank() != 2 || !source.getElementType().isF32() || !result.getElementType().isF32() ||
      source.getDimSize(1) != result.getDimSize(1) || source.getDimSize(0) % result.getDimSize(0))
    return emitOpError("expected a result with a part of the source's rows of f32, got ") << source << " and " << result;
  return success();
}

LogicalResult StoreStagedOp::verify() {
  auto vector = cast<VectorType>(getValue().getType());
  auto ring = cast<RingType>(getRing().getType());
  int64_t columns = vector.getShape().back(), rows = vector.getNumElements() / columns, rank = vector.getRank();
  bool fits = rank == 2 ? rows == ring.getRows() && columns == ring.getColumns() : rows <= ring.getRows() && columns <= ring.getColumns();
  auto schedule = (*this)->getParentOfType<KernelOp>()->getAttrOfType<DictionaryAttr>("schedule");
  auto crews = schedule ? schedule.getAs<IntegerAttr>("crews") : IntegerAttr();
  int64_t stages = crews ? crews.getInt() : 1;
  if (!vector.getElementType().isBF16() || rank < 2 || rank > 3 || !fits || ring.getStages() != stages)
    return emitOpError("expected a ring of a stage for each crew, of the block's size, and a block of bf16, got ") << ring << " and " << vector;
  return verifyAccess(*this, cast<MemRefType>(getMemref().getType()), vector, getIndices().size());
}

LogicalResult ScatterOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType()), slots = cast<MemRefType>(getSlots().getType());
  int64_t rank = memref.getRank();
  if (!memref.getElementType().isBF16() || rank < 3 || static_cast<int64_t>(getIndices().size()) != rank - 2 || memref.isDynamicDim(rank - 2))
    return emitOpError("expected a bf16 memref of at least 3 dimensions, the tokens of a page a constant, and an index for each but two, got ") << memref;
  if (slots.getRank() != 1 || !slots.getElementType().isInteger(32))
    return emitOpError("expected slots of i32, got ") << slots;
  return success();
}
