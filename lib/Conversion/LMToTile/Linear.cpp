//===- Linear.cpp - lm.linear and lm.gated_linear to tile -----------------===//
//
// One kernel unit computes one panel of 16 output rows of the weight (two panels
// for the gated form) for a block of tokens, looping over register tiles of tokens
// inside, so that a panel is read from memory once. Rows past the last token are
// computed on padding and not stored. Each token's sums are the same chain of
// operations whatever the tile, which is why all variants agree bit for bit (D1).
//
//===----------------------------------------------------------------------===//

#include "NormedRows.h"

#include "llmc/Target/Layout.h"
#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numeric>

using namespace mlir;
using namespace llmc;

namespace {

/// The product's shape, as the kernel needs it.
struct Product {
  lm::Arith arith;
  tile::Format format;  // of the weight
  int64_t k, n;         // padded k; result columns (padded)
  unsigned weightBuffer;
  Value rows = {}; // the left operand; null: the kernel's first buffer
  int64_t panels = 1, stepK = 32; // of a unit; k of a step
  int64_t partK = 32;             // k of a product: a step's record may be longer than the registers are many
  bool ragged = false;            // the last unit has panels past the weight's end
  bool codes = false;             // tile::DotArith::BF16_G32
  bool gated = false;

  int64_t columns() const { return 16 * panels; }
  bool pairs() const { return format == tile::Format::BF16Pairs || format == tile::Format::E4M3Pairs; }
  bool rowMajor() const { return format == tile::Format::BF16NK || format == tile::Format::E4M3NK; }
  /// Whether a weight's rows have scales that multiply the finished sums.
  bool scaled() const { return format == tile::Format::E4M3Pairs || format == tile::Format::E4M3NK; }
  /// Pipelines pay, and stay loops, from a few steps of k on.
  bool wide() const { return arith == lm::Arith::BF16 && format == tile::Format::BF16NK && k >= 256; }
  /// A pipeline's producers unpack its codes: records that fill whole steps.
  bool unpacks() const {
    int64_t record = tile::recordK(format);
    return arith == lm::Arith::BF16 && tile::isQuantized(format) && record <= 64 && k >= 256 && llvm::alignTo(k, record) % 64 == 0;
  }
  Epilogue needs(Epilogue epilogue) const { return tile::recordK(format) > 64 ? Epilogue::LongRecords : epilogue; }
  /// With more tokens the scaling of sums costs more than that of weights, which all tokens share; a minimum doubles the products,
  /// long records have many scales.
  bool takesCodes(const LinearSchedule &schedule) const {
    if (!tile::hasScalesOf32(format) || schedule.pipelined)
      return false;
    bool minimum = tile::codedForm(format).minimum, records = tile::recordK(format) > 64;
    return schedule.tokens <= (minimum ? (records && gated ? 8 : 16) : records ? 32 : 64);
  }
  /// Column blocks of a launch.
  int64_t take(const LinearSchedule &schedule, int64_t panelsOfAll) {
    // Copies of boxes give zeros past the end, of n as of k; other kernels read only what is there.
    panels = schedule.pipelined ? schedule.panels : std::gcd(schedule.panels, panelsOfAll);
    ragged = panelsOfAll % panels;
    stepK = std::max(schedule.stepK, tile::recordK(format));
    partK = arith == lm::Arith::BF16_EO32 || (arith == lm::Arith::BF16 && tile::recordK(format) > 64) ? schedule.stepK : stepK;
    codes = arith == lm::Arith::BF16 && takesCodes(schedule);
    return (panelsOfAll + panels - 1) / panels;
  }
};

} // namespace

/// Where a unit's panels are: leading indices into `memref` ([panels, records, bytes] or [panels, 16, k], in a gated product
/// with the projection's number behind the panel).
struct PanelPlace {
  Value memref;
  SmallVector<Value> indices;
};

/// The panels' right operand of `width` k from `column` + `part` on; a part starts inside the record at `column`.
static Value panelsAt(KernelBuilder &k, const Product &p, const PanelPlace &place, int64_t width, Value column, int64_t part,
                      int64_t prefetch) {
  SmallVector<Value> indices = place.indices;
  if (p.rowMajor())
    indices.append({k.index(0), column});
  else
    indices.append({k.divIndex(column, tile::recordK(p.format)), k.index(0)});
  return k.loadPacked(k.packed(width, p.columns(), p.format), place.memref, indices, prefetch, part);
}

/// accs[i] + the product with panels i over `width` k from `start` + `part` on; the left operand is loaded once.
static KernelBuilder::Values multiplyPart(KernelBuilder &k, const Product &p, ArrayRef<PanelPlace> places, Value row, int64_t tokens,
                                          int64_t prefetch, Value start, int64_t part, int64_t width, ValueRange accs) {
  SmallVector<Value> panels;
  for (const PanelPlace &place : places)
    panels.push_back(panelsAt(k, p, place, width, start, part, prefetch));
  Value column = part ? k.addIndex(start, part) : start;
  KernelBuilder::Values results;
  if (isCoded(lm::inputFormat(p.arith))) {
    Type code = k.b.getIntegerType(p.arith == lm::Arith::Q8_G32 ? 8 : 16);
    Value codes = k.load(k.vecOf({tokens, width}, code), k.buffer(0), {row, column});
    Value scales = k.load(k.vec({tokens, width / 32, 2}), k.buffer(1), {row, k.divIndex(column, 32), k.index(0)});
    for (auto [b, acc] : llvm::zip_equal(panels, accs))
      results.push_back(tile::ScaledDotOp::create(k.b, k.loc, acc.getType(), codes, scales, b, acc));
    return results;
  }
  lm::Format form = lm::inputFormat(p.arith);
  Type element = form == lm::Format::E4M3 ? Type(k.b.getType<Float8E4M3FNType>()) : form == lm::Format::BF16 ? k.b.getBF16Type() : k.f32();
  Value a = k.load(k.vecOf({tokens, width}, element), p.rows ? p.rows : k.buffer(0), {row, column});
  tile::DotArith arith = p.codes                           ? tile::DotArith::BF16_G32
                         : p.arith == lm::Arith::BF16      ? tile::DotArith::BF16
                         : p.arith == lm::Arith::BF16_EO32 ? tile::DotArith::BF16_EO32
                         : p.arith == lm::Arith::E4M3      ? tile::DotArith::E4M3
                                                           : tile::DotArith::F32;
  for (auto [b, acc] : llvm::zip_equal(panels, accs))
    results.push_back(tile::DotOp::create(k.b, k.loc, acc.getType(), a, b, acc, arith));
  return results;
}

/// accs[i] + the product with panels i over `width` k from step * p.stepK on.
static KernelBuilder::Values multiplyStep(KernelBuilder &k, const Product &p, ArrayRef<PanelPlace> places, Value row, int64_t tokens,
                                          int64_t prefetch, Value step, int64_t width, ValueRange accs) {
  Value start = k.mulIndex(step, p.stepK);
  KernelBuilder::Values sums(accs);
  for (int64_t part = 0; part < width; part += p.partK)
    sums = multiplyPart(k, p, places, row, tokens, prefetch, start, part, std::min(p.partK, width - part), sums);
  return sums;
}

/// Sums over `parts` parts of k, as many steps each, added in their order; steps past the end add zeros.
static KernelBuilder::Values accumulateParts(KernelBuilder &k, const Product &p, ArrayRef<PanelPlace> places, Value row, int64_t tokens,
                                             int64_t parts) {
  int64_t steps = llvm::divideCeil(p.k, p.stepK * parts);
  KernelBuilder::Values zeros(places.size(), k.splat({tokens, p.columns()}, 0.0));
  return k.loop(k.index(0), k.index(parts), 1, zeros, [&](Value part, ValueRange totals) {
    Value first = k.mulIndex(part, steps);
    KernelBuilder::Values sums = k.loop(k.index(0), k.index(steps), 1, zeros, [&](Value step, ValueRange state) {
      return multiplyStep(k, p, places, row, tokens, /*prefetch=*/0, k.addIndex(first, step), p.stepK, state);
    });
    for (auto [sum, total] : llvm::zip_equal(sums, totals))
      sum = k.add(total, sum);
    return sums;
  });
}

/// acc[tokens, p.columns()] of each place = the panels' sums for `tokens` tokens from `row` on.
static KernelBuilder::Values accumulate(KernelBuilder &k, const Product &p, ArrayRef<PanelPlace> places, Value row, int64_t tokens,
                                        const LinearSchedule &schedule) {
  int64_t prefetch = schedule.prefetch;
  if (schedule.parts > 1)
    return accumulateParts(k, p, places, row, tokens, schedule.parts);
  // A step is a record of one or two groups of 32, or as many k of a dense format; more on a GPU.
  int64_t steps = schedule.pipelined ? llvm::divideCeil(p.k, p.stepK) : p.k / p.stepK;
  KernelBuilder::Values accs(places.size(), k.splat({tokens, p.columns()}, 0.0));
  accs = k.loop(k.index(0), k.index(steps), 1, accs, [&](Value step, ValueRange state) {
    return multiplyStep(k, p, places, row, tokens, prefetch, step, p.stepK, state);
  });
  if (int64_t rest = p.k % p.stepK; rest && !schedule.pipelined) // groups of the last record or step
    accs = multiplyStep(k, p, places, row, tokens, prefetch, k.index(steps), rest, accs);
  return accs;
}

/// Which panels a unit's columns are: from `first` on, or where `weights` has pairs of panels the first or the second of each.
struct ScaledPanels {
  Value first;
  int64_t which = 0, ofPair = 1;
};

/// [tokens, p.columns()]: the scales of e4m3 activations, one number a row, seen as a row of them; null: there are none.
static Value scalesOfRows(KernelBuilder &k, const Product &p, Value row, int64_t tokens) {
  if (p.arith != lm::Arith::E4M3)
    return {};
  auto same = StridedLayoutAttr::get(k.b.getContext(), 0, {LLMC_PAD, 0});
  Value scales = tile::ViewOp::create(k.b, k.loc, MemRefType::get({ShapedType::kDynamic, p.columns()}, k.f32(), same), k.buffer(1), 0);
  return k.load(k.vec({tokens, p.columns()}), scales, {row, k.index(0)});
}

/// y[token, column] times the scale of the weight's row, and that of the token if it has one. The former lie behind the codes of each
/// panel of 16 rows.
static Value scale(KernelBuilder &k, const Product &p, Value y, ScaledPanels panels, Value ofTokens, int64_t tokens) {
  if (!p.scaled())
    return y;
  Value weights = k.buffer(p.weightBuffer);
  auto layout = p.rowMajor() ? LLMC_LAYOUT_ROWS_E4M3 : LLMC_LAYOUT_N16_E4M3;
  int64_t count = cast<MemRefType>(weights.getType()).getDimSize(0) / panels.ofPair, bytes = static_cast<int64_t>(panelBytes(layout, p.k));
  auto strides = StridedLayoutAttr::get(k.b.getContext(), 0, {bytes / 4, panels.ofPair * bytes / 4, 1});
  Value all = tile::ViewOp::create(k.b, k.loc, MemRefType::get({panels.ofPair, count, 16}, k.f32(), strides), weights, 16 * p.k);
  SmallVector<Value> place{k.index(panels.which), panels.first, k.index(0)};
  Value ofRows = p.panels == 1 ? k.load(k.vec({16}), all, place) : k.reshape(k.load(k.vec({p.panels, 16}), all, place), {p.columns()});
  Value factor = k.spread(ofRows, {tokens, p.columns()});
  return k.mul(y, ofTokens ? k.mul(ofTokens, factor) : factor);
}

/// Writes y to the columns from `column` on of the rows from `row` on.
static void writeColumns(KernelBuilder &k, const Product &p, Value y, Value out, Value row, Value column) {
  auto store = tile::StoreOp::create(k.b, k.loc, y, out, ValueRange{row, column}, k.rows());
  store.setColumns(p.ragged);
}

/// Block of columns and of rows of a unit: column after column, or where many run at a time by groups of kRasterRows rows.
static std::pair<Value, Value> blockOf(KernelBuilder &k, const LinearSchedule &schedule, int64_t colBlocks) {
  if (!schedule.pipelined)
    return {k.remIndex(k.unit(), colBlocks), k.divIndex(k.unit(), colBlocks)};
  Value group = k.divIndex(k.unit(), kRasterRows * colBlocks), inGroup = k.remIndex(k.unit(), kRasterRows * colBlocks);
  Value blocks = k.divIndex(k.addIndex(k.rows(), schedule.rowBlock - 1), schedule.rowBlock), first = k.mulIndex(group, kRasterRows);
  Value height = k.minIndex(arith::SubIOp::create(k.b, k.loc, blocks, first), k.index(kRasterRows));
  Value row = k.addIndex(first, arith::RemUIOp::create(k.b, k.loc, inGroup, height).getResult());
  return {arith::DivUIOp::create(k.b, k.loc, inGroup, height), row};
}

/// The kernel's loops over tokens: register tiles of schedule.tokens, then of schedule.tailTokens.
static void forEachTile(KernelBuilder &k, const LinearSchedule &schedule, int64_t colBlocks,
                        llvm::function_ref<void(Value column, Value row, int64_t tokens)> body) {
  auto [column, block] = blockOf(k, schedule, colBlocks);
  Value first = k.mulIndex(block, schedule.rowBlock);
  if (schedule.rowBlock == schedule.tokens) // one tile
    return body(column, first, schedule.tokens);
  Value last = k.minIndex(k.addIndex(first, schedule.rowBlock), k.rows());
  Value whole = first;
  if (schedule.tokens > schedule.tailTokens) {
    Value tiles = k.divIndex(arith::SubIOp::create(k.b, k.loc, last, first), schedule.tokens);
    whole = k.addIndex(first, k.mulIndex(tiles, schedule.tokens));
    k.loop(first, whole, schedule.tokens, [&](Value row) { body(column, row, schedule.tokens); });
  }
  k.loop(whole, last, schedule.tailTokens, [&](Value row) { body(column, row, schedule.tailTokens); });
}

/// What the passes behind have to know of a schedule.
static void describe(KernelBuilder &k, const LinearSchedule &schedule) {
  if (schedule.splits > 1)
    k.kernel->setAttr("splits", k.b.getI32IntegerAttr(static_cast<int32_t>(schedule.splits)));
  if (schedule.crews > 1)
    k.kernel->setAttr("crews", k.b.getI32IntegerAttr(static_cast<int32_t>(schedule.crews)));
  if (schedule.pipelined)
    k.kernel->setAttr("pipelined", k.b.getUnitAttr());
}

/// [2 pairs, ...] seen as [pairs, 2, ...]: gate and up panels alternate.
static Value splitPairs(KernelBuilder &k, Value weights) {
  auto type = cast<MemRefType>(weights.getType());
  SmallVector<int64_t> shape(type.getShape()), strides;
  shape[0] /= 2;
  shape.insert(shape.begin() + 1, 2);
  if (type.getLayout().isIdentity())
    return tile::ViewOp::create(k.b, k.loc, MemRefType::get(shape, type.getElementType()), weights, 0);
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  strides.insert(strides.begin(), 2 * strides.front());
  auto layout = StridedLayoutAttr::get(k.b.getContext(), 0, strides);
  return tile::ViewOp::create(k.b, k.loc, MemRefType::get(shape, type.getElementType(), layout), weights, 0);
}

/// The last argument of a product that may normalise its rows: the normalisation's weight.
static void takeWeightBehind(Dispatch &dispatch, std::optional<NormedRows> &normed, SmallVectorImpl<Type> &buffers) {
  if (!normed)
    return;
  dispatch.cost = costOf(dispatch); // of the product alone: the normalisation has its own
  takeNormWeight(dispatch, *normed, buffers);
}

/// Adds a variant to a product's dispatch; one that normalises its rows is named after how many.
static void addVariant(Dispatch &dispatch, const LinearSchedule &schedule, int64_t blocks, std::string name, const std::optional<NormedRows> &normed,
                       ArrayRef<Type> buffers, Product &p, llvm::function_ref<void(KernelBuilder &)> build) {
  if (schedule.ownRows)
    name += "n" + std::to_string(schedule.maxRows) + epsName(normed->eps);
  dispatch.variant(schedule.maxRows, schedule.rowBlock, blocks, name, buffers, [&](KernelBuilder &k) {
    describe(k, schedule);
    p.rows = schedule.ownRows ? buildNormedRows(k, *normed, schedule) : Value();
    build(k);
  }, schedule.ownRows || !blocks ? LLMC_FUSED : 0);
}

static std::string productName(const Product &p, int64_t k, int64_t n) {
  return (lm::stringifyArith(p.arith) + (p.codes ? "_g32_" : "_") + tile::stringifyFormat(p.format) + "_" + Twine(k) + "x" + Twine(n)).str();
}

static Epilogue epilogueOf(lm::LinearOp op, int64_t panels) {
  if (op.getBias())
    return Epilogue::Bias;
  return !op.getResidual() ? Epilogue::None : panels % 8 ? Epilogue::RaggedResidual : Epilogue::Residual;
}

static SmallVector<LinearSchedule> schedulesOf(Operation *op, const Product &p, Epilogue epilogue, int64_t panels,
                                               const std::optional<NormedRows> &normed = {}) {
  if (p.arith == lm::Arith::BF16 && p.pairs())
    return pairSchedules();
  SmallVector<LinearSchedule> schedules = linearSchedules(p.arith, p.wide(), p.needs(epilogue), panels, p.k, p.unpacks(), wantedTile(op));
  if (normed)
    addNormedSchedules(schedules, *normed);
  return schedules;
}

KernelBuilder::Values llmc::accumulateHalves(KernelBuilder &k, Value own, int64_t columns, Value halves, Value head, Value panel, Value row,
                                             const LinearSchedule &schedule) {
  Product p{lm::Arith::BF16, tile::Format::BF16NK, pad32(columns), 0, 0, own};
  p.panels = 2;
  p.stepK = p.partK = schedule.stepK;
  auto place = [&](int64_t which) -> PanelPlace { return {halves, {head, k.index(which), panel}}; };
  return accumulate(k, p, {place(0), place(1)}, row, schedule.tokens, schedule);
}

uint32_t llmc::rowsNormedByUsers(lm::RMSNormOp norm) {
  if (!norm->hasOneUse())
    return 0;
  Operation *user = *norm->user_begin();
  auto most = [&](auto op, Epilogue epilogue, int64_t panelColumns, bool gated) -> uint32_t {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t k = pad32(weight.getShape()[1]);
    Product p{*op.getArith(), formatOf(*weight.getLayout()), k, 0, 0};
    p.gated = gated;
    return p.wide() ? rowsNormed(schedulesOf(op, p, epilogue, panelColumns / 16).front(), k, stepColumns(op, k)) : 0;
  };
  if (auto linear = dyn_cast<lm::LinearOp>(user)) {
    int64_t n = pad32(columnsOf(linear.getResult()));
    return most(linear, epilogueOf(linear, n / 16), n, false);
  }
  auto gated = dyn_cast<lm::GatedLinearOp>(user);
  return gated ? most(gated, Epilogue::Gated, columnsOf(gated.getResult()), true) : 0;
}

namespace {

struct LowerLinear : OpRewritePattern<lm::LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::LinearOp op, PatternRewriter &rewriter) const override {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t n = columnsOf(op.getResult()), kLogical = weight.getShape()[1];
    Dispatch dispatch(op, rowsOf(op.getInputs().front()));
    Product p{*op.getArith(), formatOf(*weight.getLayout()), pad32(kLogical), pad32(n), 0};
    bool residual = !!op.getResidual(), bias = !!op.getBias();
    MLIRContext *context = op.getContext();
    std::optional<NormedRows> normed = normedRows(op.getInputs().front());
    bool rotated = normed && rotatesProducts(op);
    uint32_t left = rotated ? normed->most : 0; // to the op behind
    if (rotated)
      normed.reset();
    llvm::append_range(dispatch.inputs, op.getInputs());
    SmallVector<Type> buffers = formatTypes(context, kLogical, lm::inputFormat(p.arith));
    if (residual) {
      dispatch.inputs.push_back(op.getResidual());
      buffers.push_back(rowsType(context, n, rewriter.getF32Type()));
    }
    unsigned residualBuffer = buffers.size() - 1;
    if (normed)
      takeNormInput(dispatch, *normed, buffers);
    p.weightBuffer = buffers.size();
    dispatch.weight(op.getWeightAttr());
    buffers.push_back(weightType(weight));
    unsigned biasBuffer = buffers.size();
    if (bias) {
      dispatch.weight(op.getBiasAttr());
      buffers.push_back(weightType(lookupWeight(op, op.getBiasAttr())));
    }
    takeWeightBehind(dispatch, normed, buffers);
    unsigned out = buffers.size();
    buffers.push_back(rowsType(context, n, rewriter.getF32Type()));

    int64_t panels = p.n / 16;
    SmallVector<LinearSchedule> schedules = schedulesOf(op, p, epilogueOf(op, panels), panels, normed);
    if (rotated) {
      LinearSchedule none = schedules.front();
      none.maxRows = left;
      schedules.insert(schedules.begin(), none);
    }
    for (const LinearSchedule &schedule : schedules) {
      int64_t blocks = p.take(schedule, panels) / schedule.beside; // n is a multiple of two panels
      std::string name = "linear_" + productName(p, kLogical, n) + (bias ? "_bias" : "") + (residual ? "_residual" : "") +
                         (normed ? "_normed_" : "_") + schedule.name.str();
      bool elsewhere = rotated && &schedule == &schedules.front();
      addVariant(dispatch, schedule, elsewhere ? 0 : blocks, name, normed, buffers, p, [&](KernelBuilder &k) {
        forEachTile(k, schedule, blocks, [&](Value unit, Value row, int64_t tokens) {
          int64_t each = p.panels * schedule.beside;
          Value panel = each == 1 ? unit : k.mulIndex(unit, each), firstColumn = k.mulIndex(unit, 16 * each);
          SmallVector<PanelPlace> places;
          for (int64_t i = 0; i < schedule.beside; ++i)
            places.push_back({k.buffer(p.weightBuffer), {k.addIndex(panel, i * p.panels)}});
          for (auto [i, y] : llvm::enumerate(accumulate(k, p, places, row, tokens, schedule))) {
            y = scale(k, p, y, {panel}, scalesOfRows(k, p, row, tokens), tokens); // of weights that have them: `beside` is 1
            Value column = k.addIndex(firstColumn, static_cast<int64_t>(i) * p.columns());
            if (bias) {
              Value b = k.load(k.vec({p.columns()}), k.buffer(biasBuffer), {k.index(0), column});
              y = k.add(y, k.spread(b, {tokens, p.columns()}));
            }
            if (residual)
              y = k.add(y, k.load(k.vec({tokens, p.columns()}), k.buffer(residualBuffer), {row, column}));
            writeColumns(k, p, y, k.buffer(out), row, column);
          }
        });
      });
    }
    rt::DispatchOp product = dispatch.replace(rewriter);
    if (rotated)
      markRotated(product, schedules.front().parts);
    return success();
  }
};

struct LowerGatedLinear : OpRewritePattern<lm::GatedLinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(lm::GatedLinearOp op, PatternRewriter &rewriter) const override {
    lm::WeightOp weight = lookupWeight(op, op.getWeightAttr());
    int64_t n = columnsOf(op.getResult()), kLogical = weight.getShape()[1];
    Dispatch dispatch(op, rowsOf(op.getInputs().front()));
    Product p{*op.getArith(), formatOf(*weight.getLayout()), pad32(kLogical), n, 0};
    p.gated = true;
    MLIRContext *context = op.getContext();
    std::optional<NormedRows> normed = normedRows(op.getInputs().front());
    llvm::append_range(dispatch.inputs, op.getInputs());
    SmallVector<Type> buffers = formatTypes(context, kLogical, lm::inputFormat(p.arith));
    if (normed)
      takeNormInput(dispatch, *normed, buffers);
    p.weightBuffer = buffers.size();
    dispatch.weight(op.getWeightAttr());
    buffers.push_back(weightType(weight));
    takeWeightBehind(dispatch, normed, buffers);
    unsigned out = buffers.size();
    llvm::append_range(buffers, formatTypes(context, n, op.getFormat()));
    Type element = getElementTypeOrSelf(op.getResult());
    auto rounded = [&](KernelBuilder &k, Value y) -> Value {
      auto type = cast<VectorType>(y.getType()).clone(element);
      return element.isF32() ? y : arith::TruncFOp::create(k.b, k.loc, type, y).getResult();
    };

    // n is a multiple of 16 (lm-fuse-gate-up); an odd panel leaves 16 columns of padding to be zeroed.
    int64_t pairs = n / 16;
    bool ragged = n % 32;
    for (const LinearSchedule &schedule : schedulesOf(op, p, Epilogue::Gated, pairs, normed)) {
      int64_t blocks = p.take(schedule, pairs);
      std::string name = (op.getActivation() == lm::Activation::SiLU ? "gated_" : "gated_gelu_") + productName(p, kLogical, n) +
                         (element.isF32() ? "_" : "_bf16_") + (normed ? "normed_" : "") + schedule.name.str();
      addVariant(dispatch, schedule, blocks, name, normed, buffers, p, [&](KernelBuilder &k) {
        bool gpu = p.arith == lm::Arith::E4M3 || (p.arith == lm::Arith::BF16 && !p.pairs());
        Value weights = k.buffer(p.weightBuffer), split = gpu ? splitPairs(k, weights) : Value();
        forEachTile(k, schedule, blocks, [&](Value unit, Value row, int64_t tokens) {
          auto place = [&](int64_t which) -> PanelPlace {
            if (split)
              return {split, {k.mulIndex(unit, p.panels), k.index(which)}};
            return {weights, {k.addIndex(k.mulIndex(unit, 2), which)}};
          };
          KernelBuilder::Values sums; // one after the other where both would not fit the registers
          if (gpu || schedule.beside > 1)
            sums = accumulate(k, p, {place(0), place(1)}, row, tokens, schedule);
          else
            for (int64_t which : {0, 1})
              sums.push_back(accumulate(k, p, place(which), row, tokens, schedule)[0]);
          Value ofTokens = scalesOfRows(k, p, row, tokens);
          for (int64_t which : {0, 1})
            sums[which] = scale(k, p, sums[which], {p.panels == 1 ? unit : k.mulIndex(unit, p.panels), which, 2}, ofTokens, tokens);
          Value column = k.mulIndex(unit, p.columns());
          writeColumns(k, p, rounded(k, gated(k, op.getActivation(), sums[0], sums[1])), k.buffer(out), row, column);
          if (ragged) // every unit writes the same zeros: no condition, no race in values
            k.store(rounded(k, k.splat({tokens, 16}, 0.0)), k.buffer(out), {row, k.index(n)}, k.rows());
        });
      });
    }
    dispatch.replace(rewriter);
    return success();
  }
};

} // namespace

void llmc::populateLinearPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerLinear, LowerGatedLinear>(patterns.getContext());
}
