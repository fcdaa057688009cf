//===- Rows.cpp - lm ops that work row by row, to tile --------------------===//
//
// Embedding, normalisation, rounding and quantisation of activations, and the
// elementwise ops that are left where a fusion is off or does not apply. A unit is
// one row.
//
//===----------------------------------------------------------------------===//

#include "NormedRows.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace llmc;

namespace {

static Value scaled(KernelBuilder &k, Value x, double factor) {
  return factor == 1 ? x : k.mul(x, k.splat(cast<VectorType>(x.getType()).getShape(), factor));
}

/// What a kernel's name says of a number that its code has: kernels are shared by name.
static std::string numberName(const char *what, double value) { return what + llvm::utohexstr(llvm::bit_cast<uint32_t>(static_cast<float>(value))); }

/// Row `id` of a table of dense rows, all its columns asked for at once.
static void copyDenseRow(KernelBuilder &k, MemRefType table, Value id, int64_t columns, double scale) {
  Type bf16 = k.b.getBF16Type();
  Value rows = tile::ViewOp::create(k.b, k.loc, MemRefType::get({table.getDimSize(0) * 16, table.getDimSize(2)}, bf16), k.buffer(0), 0);
  int64_t step = stepColumns(k.kernel, columns);
  forEachStep(k, columns, step, [&](Value column) {
    Value x = k.load(k.vecOf({step}, bf16), rows, {id, column});
    k.store(scaled(k, arith::ExtFOp::create(k.b, k.loc, k.vec({step}), x), scale), k.buffer(2), {k.unit(), column});
  });
}

struct LowerEmbedding : OpRewritePattern<lm::EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::EmbeddingOp op, PatternRewriter &rewriter) const override {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t columns = columnsOf(op.getResult());
    tile::Format format = formatOf(*weight.getLayout());
    Dispatch dispatch(op, rt::Rows::Tokens);
    dispatch.weight(op.getWeightAttr());
    dispatch.field(rt::Field::TokenIds);
    MLIRContext *context = op.getContext();
    SmallVector<Type> buffers{weightType(weight), MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type()),
                              rowsType(context, columns, rewriter.getF32Type())};
    std::string name = ("embedding_" + tile::stringifyFormat(format) + "_" + Twine(columns)).str();
    double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
    if (scale != 1)
      name += numberName("_x", scale);
    dispatch.variant(kAllRows, 1, 1, name, buffers, [&](KernelBuilder &k) {
      Value id = k.toIndex(k.load(k.b.getI32Type(), k.buffer(1), {k.unit()}));
      Value panel = k.divIndex(id, 16), lane = k.remIndex(id, 16);
      if (wantsTrapChecks(op))
        tile::CheckOp::create(k.b, k.loc, k.load(k.b.getI32Type(), k.buffer(1), {k.unit()}), k.i32(weight.getShape()[0]), "token id");
      int64_t recordK = tile::recordK(format), width = std::max<int64_t>(recordK, 32);
      bool dense = format == tile::Format::BF16NK; // [panels, 16, k]
      if (dense && isForGPU(op))
        return copyDenseRow(k, cast<MemRefType>(buffers[0]), id, columns, scale);
      auto copy = [&](Value step, int64_t groups) {
        Value column = k.mulIndex(step, width);
        Value row = k.loadPacked(k.packed(groups * 32, 16, format), k.buffer(0),
                                 {panel, dense ? k.index(0) : k.divIndex(column, recordK), dense ? column : k.index(0)});
        for (int64_t group = 0; group < groups; ++group) {
          Value x = tile::UnpackRowOp::create(k.b, k.loc, k.vec({32}), row, lane, k.b.getI64IntegerAttr(group * 32));
          k.store(scaled(k, x, scale), k.buffer(2), {k.unit(), k.addIndex(column, group * 32)});
        }
      };
      int64_t padded = pad32(columns);
      k.loop(k.index(0), k.index(padded / width), 1, [&](Value step) { copy(step, width / 32); });
      if (padded % width)
        copy(k.index(padded / width), (padded % width) / 32);
    });
    dispatch.replace(rewriter);
    return success();
  }
};

/// x in e4m3: codes of `step` columns each and the scale of the row, to the buffers from `first` on. Parts of a row in registers come as
/// `held`; else `part` computes the columns from one on, twice.
static void writeRowE4M3(KernelBuilder &k, int64_t columns, int64_t step, unsigned first, ArrayRef<Value> held,
                         llvm::function_ref<Value(Value column)> part) {
  auto larger = [&](Value largest, Value x) { return k.max(largest, math::AbsFOp::create(k.b, k.loc, x)); };
  Value largest = k.splat({step}, 0.0);
  if (held.empty())
    largest = k.loop(k.index(0), k.index(pad32(columns)), step, {largest}, [&](Value column, ValueRange state) -> KernelBuilder::Values {
      return {larger(state[0], part(column))};
    })[0];
  for (Value x : held)
    largest = larger(largest, x);
  Value a = k.max(k.reduce(tile::Reduction::Max, largest), k.number(0x1p-100)), row = k.unit();
  Value inverse = k.spread(k.div(k.number(448.0), a), {step});
  auto rows = cast<MemRefType>(k.buffer(first).getType());
  Value codes = tile::ViewOp::create(k.b, k.loc, MemRefType::get(rows.getShape(), k.b.getI8Type()), k.buffer(first), 0);
  auto write = [&](Value x, Value column) {
    Value code = arith::TruncFOp::create(k.b, k.loc, k.vecOf({step}, k.b.getType<Float8E4M3FNType>()), k.mul(x, inverse));
    k.store(arith::BitcastOp::create(k.b, k.loc, k.vecOf({step}, k.b.getI8Type()), code), codes, {row, column});
  };
  for (auto [i, x] : llvm::enumerate(held))
    write(x, k.index(static_cast<int64_t>(i) * step));
  if (held.empty())
    forEachStep(k, columns, step, [&](Value column) { write(part(column), column); });
  k.store(k.div(a, k.number(448.0)), k.buffer(first + 1), {row, k.index(0)});
}

constexpr int64_t kHeldSteps = 16, kHeldColumns = 8192; // of a row in registers

struct LowerRMSNorm : OpRewritePattern<lm::RMSNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::RMSNormOp op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op.getInput());
    lm::Format format = op.getFormat();
    Dispatch dispatch(op, rowsOf(op.getInput()));
    dispatch.inputs.push_back(op.getInput());
    dispatch.weight(op.getWeightAttr());
    MLIRContext *context = op.getContext();
    SmallVector<Type> buffers{rowsType(context, columns, rewriter.getF32Type()), weightType(lookupWeight(op, op.getWeightAttr()))};
    llvm::append_range(buffers, formatTypes(context, columns, format));
    double eps = op.getEps().convertToDouble();
    std::string name = "rms_norm_" + std::to_string(columns) + "_" + formatName(format) + epsName(eps);
    int64_t step = stepColumns(op, columns);
    int64_t steps = pad32(columns) / step;
    // A GPU has the whole row in its registers: it is read once, the weight with it.
    bool held = isForGPU(op) && steps <= kHeldSteps && columns <= kHeldColumns;
    auto build = [&](KernelBuilder &k) {
      Value row = k.unit();
      SmallVector<Value> xs, ws;
      for (int64_t i = 0; held && i < steps; ++i) {
        xs.push_back(k.load(k.vec({step}), k.buffer(0), {row, k.index(i * step)}));
        ws.push_back(k.load(k.vec({step}), k.buffer(1), {k.index(0), k.index(i * step)}));
      }
      if (held && format == lm::Format::E4M3)
        return writeRowE4M3(k, columns, step, 2, normalise(k, xs, ws, columns, eps), {});
      if (held) {
        for (auto [i, y] : llvm::enumerate(normalise(k, xs, ws, columns, eps)))
          writeColumns(k, y, format, 2, row, k.index(static_cast<int64_t>(i) * step));
        return;
      }
      Value squares = k.loop(k.index(0), k.index(pad32(columns)), step, {k.splat({step}, 0.0)},
                             [&](Value column, ValueRange acc) -> KernelBuilder::Values {
        Value x = k.load(k.vec({step}), k.buffer(0), {row, column});
        return {k.fma(x, x, acc[0])};
      })[0];
      Value factor = normFactor(k, squares, columns, eps);
      auto normal = [&](Value column) {
        Value x = k.load(k.vec({step}), k.buffer(0), {row, column});
        Value w = k.load(k.vec({step}), k.buffer(1), {k.index(0), column});
        return k.mul(k.mul(x, factor), w);
      };
      if (format == lm::Format::E4M3)
        return writeRowE4M3(k, columns, step, 2, {}, normal);
      forEachStep(k, columns, step, [&](Value column) { writeColumns(k, normal(column), format, 2, row, column); });
    };
    uint32_t left = held && format == lm::Format::BF16 ? rowsNormedByUsers(op) : 0;
    if (left) // to the product behind
      dispatch.variant(left, 1, /*colBlocks=*/0, name, buffers, build, LLMC_FUSED);
    dispatch.variant(kAllRows, 1, 1, name, buffers, build);
    rt::DispatchOp norm = dispatch.replace(rewriter);
    if (left)
      markNormed(norm, eps, left);
    return success();
  }
};

/// To e4m3: from f32, or from bf16.
struct LowerQuantizeE4M3 : OpRewritePattern<lm::QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::QuantizeOp op, PatternRewriter &rewriter) const override {
    if (!isa<Float8E4M3FNType>(getElementTypeOrSelf(op.getCodes())))
      return rewriter.notifyMatchFailure(op, "no e4m3");
    int64_t columns = columnsOf(op.getInput()), step = stepColumns(op, columns);
    Type element = getElementTypeOrSelf(op.getInput());
    Dispatch dispatch(op, rowsOf(op.getInput()));
    dispatch.inputs.push_back(op.getInput());
    MLIRContext *context = op.getContext();
    SmallVector<Type> buffers{rowsType(context, columns, element)};
    llvm::append_range(buffers, formatTypes(context, columns, lm::Format::E4M3));
    std::string name = "quantize_" + std::to_string(columns) + (element.isF32() ? "_e4m3" : "_bf16_e4m3");
    dispatch.variant(kAllRows, 1, 1, name, buffers, [&](KernelBuilder &k) {
      auto part = [&](Value column) -> Value {
        Value x = k.load(k.vecOf({step}, element), k.buffer(0), {k.unit(), column});
        return element.isF32() ? x : arith::ExtFOp::create(k.b, k.loc, k.vec({step}), x).getResult();
      };
      SmallVector<Value> held;
      if (pad32(columns) / step <= kHeldSteps && columns <= kHeldColumns)
        for (int64_t column = 0; column < pad32(columns); column += step)
          held.push_back(part(k.index(column)));
      writeRowE4M3(k, columns, step, 1, held, part);
    });
    dispatch.replace(rewriter);
    return success();
  }
};

static lm::Format formatOfResult(Value result) {
  Type element = getElementTypeOrSelf(result);
  if (element.isF32())
    return lm::Format::F32;
  if (element.isBF16())
    return lm::Format::BF16;
  return element.isInteger(8) ? lm::Format::Q8 : lm::Format::Q16;
}

/// Ops that read groups of rows and write a group: result = compute(operands). Kernels are shared by what `name` gives.
template <typename OpTy>
struct LowerGroups : OpRewritePattern<OpTy> {
  using Name = std::string (*)(OpTy);
  using Compute = Value (*)(KernelBuilder &, OpTy, ArrayRef<Value>);
  LowerGroups(MLIRContext *context, Name name, Compute compute) : OpRewritePattern<OpTy>(context), name(name), compute(compute) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op->getOperand(0));
    Dispatch dispatch(op, rowsOf(op->getOperand(0)));
    llvm::append_range(dispatch.inputs, op->getOperands());
    MLIRContext *context = op.getContext();
    unsigned inputs = op->getNumOperands();
    lm::Format format = formatOfResult(op->getResult(0));
    SmallVector<Type> buffers(inputs, rowsType(context, columns, rewriter.getF32Type()));
    llvm::append_range(buffers, formatTypes(context, columns, format));
    std::string kernel = name(op) + "_" + std::to_string(columns) + "_" + formatName(format);
    dispatch.variant(kAllRows, 1, 1, kernel, buffers, [&](KernelBuilder &k) {
      int64_t step = stepColumns(op, columns);
      forEachStep(k, columns, step, [&](Value column) {
        SmallVector<Value> values;
        for (unsigned i = 0; i < inputs; ++i)
          values.push_back(k.load(k.vec({step}), k.buffer(i), {k.unit(), column}));
        writeColumns(k, compute(k, op, values), format, inputs, k.unit(), column);
      });
    });
    dispatch.replace(rewriter);
    return success();
  }
  Name name;
  Compute compute;
};

struct LowerGatherRows : OpRewritePattern<lm::GatherRowsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::GatherRowsOp op, PatternRewriter &rewriter) const override {
    int64_t columns = columnsOf(op.getInput());
    Dispatch dispatch(op, rt::Rows::Logits);
    dispatch.inputs.push_back(op.getInput());
    dispatch.field(rt::Field::LogitsRows);
    MLIRContext *context = op.getContext();
    Type rows = rowsType(context, columns, rewriter.getF32Type());
    SmallVector<Type> buffers{rows, MemRefType::get({ShapedType::kDynamic}, rewriter.getI32Type()), rows};
    dispatch.variant(kAllRows, 1, 1, "gather_rows_" + std::to_string(columns), buffers, [&](KernelBuilder &k) {
      Value source = k.toIndex(k.load(k.b.getI32Type(), k.buffer(1), {k.unit()}));
      int64_t step = stepColumns(op, columns);
      forEachStep(k, columns, step, [&](Value column) {
        k.store(k.load(k.vec({step}), k.buffer(0), {source, column}), k.buffer(2), {k.unit(), column});
      });
    });
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateRowPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerEmbedding, LowerRMSNorm, LowerGatherRows>(context);
  patterns.add<LowerQuantizeE4M3>(context, /*benefit=*/2);
  patterns.add<LowerGroups<lm::QuantizeOp>>(context, [](lm::QuantizeOp) { return std::string("quantize"); },
                                            [](KernelBuilder &, lm::QuantizeOp, ArrayRef<Value> x) { return x[0]; });
  patterns.add<LowerGroups<lm::RoundOp>>(context, [](lm::RoundOp) { return std::string("round"); },
                                         [](KernelBuilder &, lm::RoundOp, ArrayRef<Value> x) { return x[0]; });
  patterns.add<LowerGroups<lm::AddOp>>(context, [](lm::AddOp) { return std::string("add"); },
                                       [](KernelBuilder &k, lm::AddOp, ArrayRef<Value> x) { return k.add(x[0], x[1]); });
  patterns.add<LowerGroups<lm::GatedActivationOp>>(
      context, [](lm::GatedActivationOp op) { return "gated_activation_" + lm::stringifyActivation(op.getActivation()).str(); },
      [](KernelBuilder &k, lm::GatedActivationOp op, ArrayRef<Value> x) { return gated(k, op.getActivation(), x[0], x[1]); });
  patterns.add<LowerGroups<lm::ScaleOp>>(
      context, [](lm::ScaleOp op) { return numberName("scale_x", op.getFactor().convertToDouble()); },
      [](KernelBuilder &k, lm::ScaleOp op, ArrayRef<Value> x) { return scaled(k, x[0], op.getFactor().convertToDouble()); });
  patterns.add<LowerGroups<lm::SoftCapOp>>(
      context, [](lm::SoftCapOp op) { return numberName("soft_cap", op.getCap().convertToDouble()); },
      [](KernelBuilder &k, lm::SoftCapOp op, ArrayRef<Value> x) {
        double cap = op.getCap().convertToDouble();
        return scaled(k, k.tanh(scaled(k, x[0], 1 / cap), /*roughly=*/false), cap);
      });
}
