//===- Lowering.cpp - what the lm to tile patterns share ------------------===//

#include "Lowering.h"

#include "llmc/Target/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace llmc;

static DictionaryAttr targetOf(Operation *op) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  return module->getAttrOfType<DictionaryAttr>("tile.target");
}

bool llmc::isForGPU(Operation *op) {
  DictionaryAttr target = targetOf(op);
  auto name = target ? target.getAs<StringAttr>("name") : StringAttr();
  return name && name.getValue() == "cuda";
}

bool llmc::wantsTrapChecks(Operation *op) { return isForGPU(op) && targetOf(op).contains("trap_checks"); }

StringRef llmc::wantedTile(Operation *op) {
  auto name = isForGPU(op) ? targetOf(op).getAs<StringAttr>("linear_tile") : StringAttr();
  return name ? name.getValue() : StringRef();
}

int64_t llmc::stepColumns(Operation *op, int64_t columns) {
  if (!isForGPU(op))
    return 32;
  int64_t groups = pad32(columns) / 32;
  return 32 * std::min<int64_t>(groups & -groups, 64); // the largest power of two that divides the row
}

void llmc::forEachStep(KernelBuilder &k, int64_t columns, int64_t step, llvm::function_ref<void(Value)> body) {
  k.loop(k.index(0), k.index(pad32(columns) / step), 1, [&](Value i) { body(k.mulIndex(i, step)); });
}

std::string llmc::valueName(Operation *op) {
  StringRef name = lm::nameOf(op->getLoc());
  return name.empty() ? op->getName().stripDialect().str() : name.str();
}

rt::Rows llmc::rowsOf(Value activation) {
  auto dispatch = activation.getDefiningOp<rt::DispatchOp>();
  return dispatch && dispatch.getRows() == rt::Rows::Logits ? rt::Rows::Logits : rt::Rows::Tokens;
}

Dispatch::Dispatch(Operation *op, rt::Rows rows) : op(op), module(op->getParentOfType<ModuleOp>()), rows(rows) {}

void Dispatch::variant(uint32_t maxRows, uint32_t rowBlock, uint32_t colBlocks, StringRef name, ArrayRef<Type> buffers,
                       llvm::function_ref<void(KernelBuilder &)> build, uint32_t spanRows) {
  if (!module.lookupSymbol(name)) {
    // Kernels are shared by equal layers, so they carry no layer in their location.
    KernelBuilder builder(module, NameLoc::get(StringAttr::get(context(), name)), name, buffers);
    build(builder);
  }
  variants.push_back(rt::VariantAttr::get(context(), maxRows, FlatSymbolRefAttr::get(context(), name), rowBlock, colBlocks, spanRows));
}

rt::DispatchOp Dispatch::replace(PatternRewriter &rewriter) {
  std::string name = valueName(op);
  SmallVector<Type> results(op->getResultTypes());
  llvm::append_range(results, scratch);
  auto dispatch = rt::DispatchOp::create(
      rewriter, op->getLoc(), results, rewriter.getStringAttr(name), inputs, rewriter.getArrayAttr(weights),
      rewriter.getArrayAttr(fields), rt::RowsAttr::get(context(), rows), rewriter.getArrayAttr(variants),
      rewriter.getI32IntegerAttr(lm::layerOf(name)), /*reference_weights=*/UnitAttr(), cost ? cost : costOf(*this));
  rewriter.replaceOp(op, dispatch.getResults().take_front(op->getNumResults()));
  return dispatch;
}

lm::WeightOp llmc::lookupWeight(Operation *user, FlatSymbolRefAttr symbol) {
  return SymbolTable::lookupNearestSymbolFrom<lm::WeightOp>(user, symbol);
}

tile::Format llmc::formatOf(lm::Layout layout) {
  switch (layout) {
  case lm::Layout::RowsF32:
  case lm::Layout::N16F32: return tile::Format::F32;
  case lm::Layout::N16F16: return tile::Format::F16;
  case lm::Layout::N16BF16: return tile::Format::BF16Pairs;
  case lm::Layout::RowsBF16: return tile::Format::BF16NK;
  case lm::Layout::N16Q4_0: return tile::Format::Q4_0;
  case lm::Layout::N16Q4_1: return tile::Format::Q4_1;
  case lm::Layout::N16Q8_0: return tile::Format::Q8_0;
  case lm::Layout::N16Q5_0: return tile::Format::Q5_0;
  case lm::Layout::N16Q5_1: return tile::Format::Q5_1;
  case lm::Layout::N16Q2_K: return tile::Format::Q2_K;
  case lm::Layout::N16Q3_K: return tile::Format::Q3_K;
  case lm::Layout::N16Q4_K: return tile::Format::Q4_K;
  case lm::Layout::N16Q5_K: return tile::Format::Q5_K;
  case lm::Layout::N16Q6_K: return tile::Format::Q6_K;
  case lm::Layout::N16IQ4_NL: return tile::Format::IQ4_NL;
  case lm::Layout::N16IQ4_XS: return tile::Format::IQ4_XS;
  case lm::Layout::N16E4M3: return tile::Format::E4M3Pairs;
  case lm::Layout::RowsE4M3: return tile::Format::E4M3NK;
  }
  llvm_unreachable("unknown layout");
}

MemRefType llmc::weightType(lm::WeightOp weight) {
  MLIRContext *context = weight.getContext();
  ArrayRef<int64_t> shape = weight.getShape();
  lm::Layout layout = *weight.getLayout();
  if (layout == lm::Layout::RowsF32) {
    int64_t rows = shape.size() == 1 ? 1 : shape[0];
    return MemRefType::get({rows, pad32(shape.back())}, Float32Type::get(context));
  }
  if (layout == lm::Layout::RowsBF16)
    return MemRefType::get({pad32(shape[0]) / 16, 16, pad32(shape[1])}, BFloat16Type::get(context));
  if (layout == lm::Layout::RowsE4M3) {
    int64_t k = pad32(shape[1]);
    auto strides = StridedLayoutAttr::get(context, 0, {static_cast<int64_t>(panelBytes(LLMC_LAYOUT_ROWS_E4M3, k)), k, 1});
    return MemRefType::get({pad32(shape[0]) / 16, 16, k}, Float8E4M3FNType::get(context), strides);
  }
  tile::Format format = formatOf(layout);
  int64_t k = tile::recordK(format), records = (pad32(shape[1]) + k - 1) / k;
  if (layout == lm::Layout::N16E4M3) // behind them the scales
    records += tailBytes(LLMC_LAYOUT_N16_E4M3) / tile::recordBytes(format);
  return MemRefType::get({pad32(shape[0]) / 16, records, tile::recordBytes(format)}, IntegerType::get(context, 8));
}

SmallVector<Type> llmc::formatTypes(MLIRContext *context, int64_t columns, lm::Format format) {
  switch (format) {
  case lm::Format::F32:
    return {rowsType(context, columns, Float32Type::get(context))};
  case lm::Format::BF16:
    return {rowsType(context, columns, BFloat16Type::get(context))};
  case lm::Format::E4M3:
    return {rowsType(context, columns, Float8E4M3FNType::get(context)), rowsType(context, 1, Float32Type::get(context))};
  case lm::Format::Q8:
  case lm::Format::Q16:
    return {rowsType(context, columns, IntegerType::get(context, format == lm::Format::Q8 ? 8 : 16)),
            scalesType(context, columns)};
  }
  llvm_unreachable("unknown format");
}

Quantized llmc::quantize(KernelBuilder &k, Value y, lm::Format format) {
  double top = format == lm::Format::Q8 ? 127.0 : 32767.0;
  auto type = cast<VectorType>(y.getType());
  Value largest = k.reduce(tile::Reduction::Max, math::AbsFOp::create(k.b, k.loc, y));
  auto constant = [&](double value) {
    Value scalar = k.number(value);
    return type.getRank() == 2 ? k.spread(scalar, {type.getDimSize(0)}) : scalar;
  };
  // Below 2^-100 (zero rows above all) top / largest could overflow: all codes are 0 there.
  Value usable = k.greater(largest, constant(0x1p-100));
  Value inverse = k.select(usable, k.div(constant(top), largest), constant(0.0));
  Value spread = type.getRank() == 2 ? k.expand(inverse, type.getDimSize(1)) : k.spread(inverse, type.getShape());
  Value rounded = math::RoundEvenOp::create(k.b, k.loc, k.mul(y, spread));
  Value integers = arith::FPToSIOp::create(k.b, k.loc, k.vecOf(type.getShape(), k.b.getI32Type()), rounded);
  Value sum = k.reduce(tile::Reduction::Add, integers);
  Value scale = k.div(largest, constant(top));
  Type sumType = scale.getType();
  Value scaledSum = k.mul(scale, arith::SIToFPOp::create(k.b, k.loc, sumType, sum));
  Type codeType = k.b.getIntegerType(format == lm::Format::Q8 ? 8 : 16);
  Value codes = arith::TruncIOp::create(k.b, k.loc, k.vecOf(type.getShape(), codeType), integers);
  if (format == lm::Format::Q16)
    codes = tile::PairOrderOp::create(k.b, k.loc, codes.getType(), codes);
  return {codes, scale, scaledSum};
}

// x / 2 * (1 + tanh(u)) is x / (1 + exp(-2 u)), so that both activations are a quotient: silu with x for 2 u.
Value llmc::gated(KernelBuilder &k, lm::Activation activation, Value gate, Value up) {
  ArrayRef<int64_t> shape = cast<VectorType>(gate.getType()).getShape();
  Value exponent;
  if (activation == lm::Activation::SiLU) {
    exponent = arith::NegFOp::create(k.b, k.loc, gate);
  } else {
    constexpr double kFactor = -1.5957691216057308; // -2 sqrt(2 / pi)
    exponent = k.mul(k.fma(k.mul(gate, gate), k.splat(shape, 0.044715 * kFactor), k.splat(shape, kFactor)), gate);
  }
  Value e = math::ExpOp::create(k.b, k.loc, exponent);
  return k.mul(k.div(gate, k.add(k.splat(shape, 1.0), e)), up);
}

void llmc::writeColumns(KernelBuilder &k, Value y, lm::Format format, unsigned first, Value row, Value column) {
  switch (format) {
  case lm::Format::F32:
    k.store(y, k.buffer(first), {row, column});
    return;
  case lm::Format::BF16:
    k.store(arith::TruncFOp::create(k.b, k.loc, cast<VectorType>(y.getType()).clone(k.b.getBF16Type()), y), k.buffer(first), {row, column});
    return;
  case lm::Format::Q8:
  case lm::Format::Q16: {
    Quantized q = quantize(k, y, format);
    Value group = k.divIndex(column, 32);
    k.store(q.codes, k.buffer(first), {row, column});
    k.store(q.scale, k.buffer(first + 1), {row, group, k.index(0)});
    k.store(q.scaledSum, k.buffer(first + 1), {row, group, k.index(1)});
    return;
  }
  case lm::Format::E4M3:
    llvm_unreachable("needs the whole row");
  }
}

KVGeometry llmc::kvGeometry(Operation *op, lm::KVType type) {
  KVGeometry g;
  MLIRContext *context = op->getContext();
  g.element = type.getElement();
  g.heads = type.getHeads();
  g.kDim = type.getKDim();
  g.vDim = type.getVDim();
  g.elementBytes = g.element.getIntOrFloatBitWidth() / 8;
  int64_t block = type.getBlock();
  g.valuesOffset = block * g.kDim * g.elementBytes;
  g.headBytes = block * (g.kDim + g.vDim) * g.elementBytes;
  g.layerBytes = g.heads * g.headBytes;
  int64_t layers = 0;
  for (Type argument : op->getParentOfType<func::FuncOp>().getArgumentTypes())
    layers += argument == type;
  g.blockBytes = layers * g.layerBytes;
  g.gpu = isForGPU(op);
  if (g.gpu) {
    auto view = [&](int64_t dim) {
      auto layout = StridedLayoutAttr::get(context, 0, {g.blockBytes / g.elementBytes, g.headBytes / g.elementBytes, dim, 1});
      return MemRefType::get({ShapedType::kDynamic, g.heads, block, dim}, g.element, layout);
    };
    g.keys = tile::PackedType::get(context, g.kDim, block, tile::Format::BF16NK);
    g.values = tile::PackedType::get(context, block, g.vDim, tile::Format::BF16KN);
    g.keysType = view(g.kDim);
    g.valuesType = view(g.vDim);
    return g;
  }
  tile::Format format = g.element.isF32() ? tile::Format::F32 : tile::Format::BF16Pairs;
  g.keys = tile::PackedType::get(context, g.kDim, block, format);
  g.values = tile::PackedType::get(context, block, g.vDim, format);
  auto view = [&](int64_t elements) {
    auto layout = StridedLayoutAttr::get(context, 0, {g.blockBytes / g.elementBytes, g.headBytes / g.elementBytes, 1});
    return MemRefType::get({ShapedType::kDynamic, g.heads, elements}, g.element, layout);
  };
  g.keysType = view(block * g.kDim);
  g.valuesType = view(block * g.vDim);
  return g;
}
