//===- LMVerify.cpp - constraints of the lm ops ---------------------------===//
#include "dialects/LM/LM.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace llmc::lm;

/// Dimensions beyond this are no model; products of two still fit 64 bits.
static constexpr int64_t maxDimension = int64_t(1) << 30;

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static int64_t columns(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 ? type.getDimSize(1) : -1;
}

/// `value` is tensor<rows x columns x element> with static columns; columns < 0: any.
static LogicalResult verifyRows(Operation *op, const Twine &what, Type type, Type element,
                                int64_t columns = -1) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 2 || tensor.isDynamicDim(1) || tensor.getElementType() != element)
    return op->emitOpError() << "expected " << what << " of rank 2 with static columns of " << element
                             << ", got " << type;
  if (columns >= 0 && tensor.getDimSize(1) != columns)
    return op->emitOpError() << "expected " << what << " with " << columns << " columns, got "
                             << tensor.getDimSize(1);
  return success();
}

static LogicalResult verifyRows(Operation *op, const Twine &what, Value value, int64_t columns = -1) {
  return verifyRows(op, what, value.getType(), Float32Type::get(op->getContext()), columns);
}

/// `types` hold [rows, columns] in `format`.
static LogicalResult verifyFormat(Operation *op, const Twine &what, TypeRange types, Format format,
                                  int64_t columns = -1) {
  bool coded = format == Format::Q8 || format == Format::Q16 || format == Format::E4M3;
  size_t expected = coded ? 2 : 1;
  if (types.size() != expected)
    return op->emitOpError() << "expected " << expected << " " << what << " for " << stringifyFormat(format)
                             << ", got " << types.size();
  MLIRContext *context = op->getContext();
  Type f32 = Float32Type::get(context);
  if (format == Format::F32)
    return verifyRows(op, what, types[0], f32, columns);
  if (format == Format::BF16)
    return verifyRows(op, what, types[0], BFloat16Type::get(context), columns);
  if (format == Format::E4M3) {
    if (failed(verifyRows(op, what + " (codes)", types[0], Float8E4M3FNType::get(context), columns)))
      return failure();
    return verifyRows(op, what + " (scales)", types[1], f32, 1);
  }
  if (failed(verifyRows(op, what + " (codes)", types[0], IntegerType::get(context, format == Format::Q8 ? 8 : 16), columns)))
    return failure();
  auto codes = cast<RankedTensorType>(types[0]);
  int64_t groups = llvm::divideCeil(codes.getDimSize(1), 32);
  auto scales = RankedTensorType::get({codes.getDimSize(0), groups, 2}, f32);
  if (types[1] != scales)
    return op->emitOpError() << "expected " << what << " (scales) of type " << Type(scales) << ", got "
                             << types[1];
  return success();
}

/// f32 inputs stay legal with every arithmetic: lm-quantize-activations runs after lm-set-arith.
static LogicalResult verifyInputs(Operation *op, ValueRange inputs, std::optional<Arith> arith) {
  bool explicitForm = arith && !inputs.empty() && !getElementTypeOrSelf(inputs[0]).isF32();
  return verifyFormat(op, "inputs", inputs.getTypes(), explicitForm ? inputFormat(*arith) : Format::F32);
}

/// The weight `name`, of the given shape (-1: any size); emits an error otherwise.
static WeightOp lookUp(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name,
                       ArrayRef<int64_t> shape) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(op, name);
  if (!weight) {
    op->emitOpError() << "expected " << name << " to be a lm.weight";
    return {};
  }
  ArrayRef<int64_t> actual = weight.getShape();
  bool fits = actual.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] < 0 || shape[i] == actual[i];
  if (!fits) {
    InFlightDiagnostic error = op->emitOpError() << "expected weight " << name << " of shape [";
    llvm::interleaveComma(shape, error,
                          [&](int64_t size) { size < 0 ? void(error << "?") : void(error << size); });
    error << "], got [";
    llvm::interleaveComma(actual, error);
    error << "]";
    return {};
  }
  return weight;
}

//===----------------------------------------------------------------------===//
// Types, weights
//===----------------------------------------------------------------------===//

LogicalResult KVType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t heads, int64_t kDim,
                             int64_t vDim, Type element, int64_t block) {
  auto bad = [](int64_t size) { return size <= 0 || size > maxDimension; };
  if (bad(heads) || bad(kDim) || bad(vDim))
    return emitError() << "expected positive heads, k_dim and v_dim, got " << heads << ", " << kDim << ", "
                       << vDim;
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return emitError() << "expected element f32, f16 or bf16, got " << element;
  if (block < 0 || block % 16 != 0 || block > maxDimension)
    return emitError() << "expected block to be 0 or a multiple of 16, got " << block;
  return success();
}

/// Scales where rows are e4m3, and only there.
static LogicalResult verifyScales(WeightOp op, SpanAttr span) {
  ScalesAttr scales = span.getScales();
  bool wanted = op.getStorage() == Storage::E4M3;
  if (wanted != bool(scales))
    return op.emitOpError() << "expected " << (wanted ? "scales of a source of e4m3" : "no scales but those of e4m3") << ", got "
                            << (wanted ? "none" : "some");
  if (!scales)
    return success();
  if (scales.getCount() != 1 && scales.getCount() != span.getRows())
    return op.emitOpError() << "expected one scale, or " << span.getRows() << " (one for each row), got " << scales.getCount();
  if (scales.getStorage() != Storage::F32 && scales.getStorage() != Storage::F16 && scales.getStorage() != Storage::BF16)
    return op.emitOpError() << "expected scales of f32, f16 or bf16, got " << stringifyStorage(scales.getStorage());
  return success();
}

static LogicalResult verifySpans(WeightOp op, ArrayRef<Attribute> spans) {
  int64_t interleave = op.getInterleave(), rows = 0;
  uint64_t rowBytes = storageBytes(op.getStorage(), sourceColumns(op));
  for (Attribute attribute : spans) {
    auto span = cast<SpanAttr>(attribute);
    if (span.getRows() <= 0 || span.getRows() > maxDimension)
      return op.emitOpError() << "expected a span of at least one row, got " << span.getRows();
    if (span.getBytes() != rowBytes * span.getRows())
      return op.emitOpError() << "expected a span of " << rowBytes * span.getRows() << " bytes, got "
                              << span.getBytes();
    int64_t head = span.getDeinterleave();
    if (head < 0 || head % 2 != 0 || (head != 0 && span.getRows() % head != 0))
      return op.emitOpError() << "expected deinterleave to be even and to divide " << span.getRows()
                              << " rows, got " << head;
    rows += span.getRows();
    if (failed(verifyScales(op, span)))
      return failure();
  }
  if (rows != op.getShape()[0])
    return op.emitOpError() << "expected sources of " << op.getShape()[0] << " rows, got " << rows;
  if (interleave == 0)
    return success();
  if (interleave < 0 || spans.size() != 2 ||
      cast<SpanAttr>(spans[0]).getRows() != cast<SpanAttr>(spans[1]).getRows() ||
      cast<SpanAttr>(spans[0]).getRows() % interleave != 0)
    return op.emitOpError() << "expected two sources of equal rows, a multiple of the interleave "
                            << interleave;
  return success();
}

LogicalResult WeightOp::verify() {
  ArrayRef<int64_t> shape = getShape();
  if (shape.empty() || shape.size() > 2)
    return emitOpError() << "expected one or two dimensions, got " << shape.size();
  for (int64_t size : shape)
    if (size <= 0 || size > maxDimension)
      return emitOpError() << "expected positive sizes, got " << size;
  if (isBlockStorage(getStorage()) && (shape.size() != 2 || shape[1] % blockSize(getStorage()) != 0))
    return emitOpError() << "expected two dimensions and columns that are a multiple of "
                         << blockSize(getStorage()) << " for " << stringifyStorage(getStorage());
  if (getStorage() == Storage::E4M3 && shape.size() != 2)
    return emitOpError() << "expected two dimensions for e4m3, got " << shape.size();
  if (getQuantize() && (*getQuantize() != Storage::E4M3 || getStorage() == Storage::E4M3 || isBlockStorage(getStorage()) ||
                        shape.size() != 2 || !getSources()))
    return emitOpError() << "expected a matrix of f32, f16 or bf16 to quantise to e4m3, got " << stringifyStorage(getStorage())
                         << " to " << stringifyStorage(*getQuantize());
  if (bool(getSources()) == bool(getValue()))
    return emitOpError() << "expected exactly one of sources and value";
  if (bool(getLayout()) != bool(getOffset()))
    return emitOpError() << "expected layout and offset together";
  if (getOffset() && (int64_t(*getOffset()) < 0 || *getOffset() % 64 != 0))
    return emitOpError() << "expected an offset that is a multiple of 64, got " << int64_t(*getOffset());
  if (getAddend() && (shape.size() != 1 || !getSources()))
    return emitOpError() << "expected an addend for a vector of sources only";
  if (getSources())
    return verifySpans(*this, getSources()->getValue());
  ShapedType type = getValue()->getShapedType();
  if (getStorage() != Storage::F32 || !type.getElementType().isF32() || type.getShape() != shape)
    return emitOpError() << "expected a value of f32 and of the weight's shape, got " << Type(type);
  if (getInterleave() != 0)
    return emitOpError() << "expected no interleave with a value, got " << getInterleave();
  return success();
}

//===----------------------------------------------------------------------===//
// Model ops
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyRows(*this, "a result", getResult())))
    return failure();
  WeightOp weight = lookUp(*this, symbols, getWeightAttr(), {-1, columns(getResult())});
  if (weight && packedStorage(weight) == Storage::E4M3)
    return emitOpError() << "expected a table that is not e4m3, got " << getWeightAttr();
  return success(weight != nullptr);
}

LogicalResult RMSNormOp::verify() {
  if (failed(verifyRows(*this, "an input", getInput())))
    return failure();
  if (!(getEps().convertToDouble() > 0))
    return emitOpError() << "expected a positive eps";
  return verifyFormat(*this, "results", getResults().getTypes(), getFormat(), columns(getInput()));
}

LogicalResult RMSNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(lookUp(*this, symbols, getWeightAttr(), {columns(getInput())}) != nullptr);
}

LogicalResult LinearOp::verify() {
  if (failed(verifyInputs(*this, getInputs(), getArith())) ||
      failed(verifyRows(*this, "a result", getResult())))
    return failure();
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "expected a residual of type " << getResult().getType() << ", got "
                         << getResidual().getType();
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  int64_t n = columns(getResult()), k = columns(getInputs()[0]);
  if (!lookUp(*this, symbols, getWeightAttr(), {n, k}))
    return failure();
  return success(!getBiasAttr() || lookUp(*this, symbols, getBiasAttr(), {n}));
}

LogicalResult RopeTableOp::verify() {
  if (failed(verifyRows(*this, "a result", getResult())))
    return failure();
  if (columns(getResult()) % 2 != 0)
    return emitOpError() << "expected an even number of columns, got " << columns(getResult());
  return success();
}

LogicalResult RopeTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(lookUp(*this, symbols, getFrequenciesAttr(), {1, columns(getResult()) / 2}) != nullptr);
}

/// Shared by lm.rope and lm.rope_append.
static LogicalResult verifyRotation(Operation *op, Value input, Value table, int64_t headDim) {
  if (failed(verifyRows(op, "an input", input)) || failed(verifyRows(op, "a table", table)))
    return failure();
  if (headDim <= 0 || columns(input) % headDim != 0)
    return op->emitOpError() << "expected head_dim to divide " << columns(input) << " columns, got "
                             << headDim;
  if (columns(table) > headDim || columns(table) % 2 != 0)
    return op->emitOpError() << "expected a table of an even number of columns up to head_dim " << headDim
                             << ", got " << columns(table);
  return success();
}

LogicalResult RopeOp::verify() { return verifyRotation(*this, getInput(), getTable(), getHeadDim()); }

LogicalResult KVAppendOp::verify() {
  auto cache = cast<KVType>(getCache().getType());
  if (failed(verifyRows(*this, "keys", getKeys(), cache.getHeads() * cache.getKDim())))
    return failure();
  return verifyRows(*this, "values", getValues(), cache.getHeads() * cache.getVDim());
}

/// f32, or bf16 where `narrow` is allowed.
static LogicalResult verifyQuery(Operation *op, Value query, bool narrow, int64_t columns = -1) {
  Type element = getElementTypeOrSelf(query.getType());
  if (narrow && element.isBF16())
    return verifyRows(op, "a query", query.getType(), element, columns);
  return verifyRows(op, "a query", query, columns);
}

static LogicalResult verifyCap(Operation *op, const APFloat &cap) {
  if (double value = cap.convertToDouble(); !(value > 0) || !std::isfinite(value))
    return op->emitOpError() << "expected a positive finite cap, got " << value;
  return success();
}

LogicalResult AttentionOp::verify() {
  auto cache = cast<KVType>(getCache().getType());
  int64_t headDim = getHeadDim(), window = getWindow();
  if (failed(verifyQuery(*this, getQuery(), getArith() == Arith::BF16)))
    return failure();
  if (headDim != cache.getKDim())
    return emitOpError() << "expected head_dim to be the cache's k_dim " << cache.getKDim() << ", got "
                         << headDim;
  if (columns(getQuery()) % headDim != 0 || columns(getQuery()) / headDim % cache.getHeads() != 0)
    return emitOpError() << "expected a multiple of " << cache.getHeads() << " heads of " << headDim
                         << " columns, got " << columns(getQuery()) << " columns";
  if (window < 0)
    return emitOpError() << "expected window >= 0, got " << window;
  if (getSoftCap() && failed(verifyCap(*this, *getSoftCap())))
    return failure();
  return verifyFormat(*this, "results", getResults().getTypes(), getFormat(),
                      columns(getQuery()) / headDim * cache.getVDim());
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(!getSinksAttr() || lookUp(*this, symbols, getSinksAttr(), {columns(getQuery()) / static_cast<int64_t>(getHeadDim())}));
}

LogicalResult SoftCapOp::verify() { return verifyCap(*this, getCap()); }

LogicalResult GatherRowsOp::verify() {
  if (failed(verifyRows(*this, "an input", getInput())))
    return failure();
  return verifyRows(*this, "a result", getResult(), columns(getInput()));
}

//===----------------------------------------------------------------------===//
// Ops made by the model passes
//===----------------------------------------------------------------------===//

LogicalResult QuantizeOp::verify() {
  Type codes = getElementTypeOrSelf(getCodes());
  Format format = isa<Float8E4M3FNType>(codes) ? Format::E4M3 : codes.isInteger(16) ? Format::Q16 : Format::Q8;
  bool narrow = format == Format::E4M3 && getElementTypeOrSelf(getInput()).isBF16(); // of a gated product
  if (failed(verifyRows(*this, "an input", getInput().getType(), narrow ? Type(BFloat16Type::get(getContext())) : Float32Type::get(getContext()))))
    return failure();
  return verifyFormat(*this, "results", getResultTypes(), format, columns(getInput()));
}

LogicalResult RoundOp::verify() {
  if (failed(verifyRows(*this, "an input", getInput())))
    return failure();
  return verifyFormat(*this, "results", (*this)->getResultTypes(), Format::BF16, columns(getInput()));
}

LogicalResult GatedLinearOp::verify() {
  if (failed(verifyInputs(*this, getInputs(), getArith())))
    return failure();
  if (getFormat() != Format::F32 && getFormat() != Format::BF16)
    return emitOpError() << "expected format f32 or bf16, got " << stringifyFormat(getFormat());
  return verifyFormat(*this, "results", (*this)->getResultTypes(), getFormat(), columns(getResult()));
}

LogicalResult GatedLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  WeightOp weight =
      lookUp(*this, symbols, getWeightAttr(), {2 * columns(getResult()), columns(getInputs()[0])});
  if (!weight)
    return failure();
  if (weight.getInterleave() != 16)
    return emitOpError() << "expected weight " << getWeightAttr() << " with interleave 16, got "
                         << weight.getInterleave();
  return success();
}

LogicalResult RopeAppendOp::verify() {
  auto cache = cast<KVType>(getCache().getType());
  int64_t headDim = getHeadDim();
  if (failed(verifyRotation(*this, getInput(), getTable(), headDim)))
    return failure();
  if (cache.getKDim() != headDim || cache.getVDim() != headDim)
    return emitOpError() << "expected a cache with k_dim and v_dim equal to head_dim " << headDim << ", got "
                         << cache.getKDim() << " and " << cache.getVDim();
  if (getResult().getType() != Type(cache))
    return emitOpError() << "expected the result cache to be of type " << Type(cache) << ", got "
                         << getResult().getType();
  return verifyQuery(*this, getQuery(), /*narrow=*/true, columns(getInput()) - 2 * cache.getHeads() * headDim);
}
