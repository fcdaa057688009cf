//===- NormedRows.cpp - normalisation inside a product --------------------===//

#include "NormedRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace llmc;

static constexpr llvm::StringLiteral kMark = "rms_norm"; // attribute of a dispatch: {eps, rows}

// Of more rows every CTA would read and compute more than the launch that is saved takes. Rows side by side: as many as registers hold.
static constexpr uint32_t kMostRows = 4;
static constexpr int64_t kTogether = 4, kRowRegisters = 160;
// Consumers share a row evenly.
static constexpr int64_t kLeastStep = 256;
// Shared memory that the ring of weights leaves.
static constexpr int64_t kOwnBytes = 64 * 1024;

Value llmc::normFactor(KernelBuilder &k, Value squares, int64_t columns, double eps) {
  Value mean = k.div(k.reduce(tile::Reduction::Add, squares), k.number(static_cast<double>(columns)));
  Value root = math::SqrtOp::create(k.b, k.loc, k.add(mean, k.number(eps)));
  return k.spread(k.div(k.number(1.0), root), cast<VectorType>(squares.getType()).getShape());
}

SmallVector<Value> llmc::normalise(KernelBuilder &k, ArrayRef<Value> xs, ArrayRef<Value> ws, int64_t columns, double eps) {
  Value squares = k.splat(cast<VectorType>(xs.front().getType()).getShape(), 0.0);
  for (Value x : xs)
    squares = k.fma(x, x, squares);
  Value factor = normFactor(k, squares, columns, eps);
  SmallVector<Value> ys;
  for (auto [x, w] : llvm::zip_equal(xs, ws))
    ys.push_back(k.mul(k.mul(x, factor), w));
  return ys;
}

void llmc::takeNormInput(Dispatch &dispatch, NormedRows &normed, SmallVectorImpl<Type> &buffers) {
  MLIRContext *context = dispatch.context();
  normed.inputBuffer = buffers.size();
  dispatch.inputs.push_back(normed.input);
  buffers.push_back(rowsType(context, normed.columns, Float32Type::get(context)));
}

void llmc::takeNormWeight(Dispatch &dispatch, NormedRows &normed, SmallVectorImpl<Type> &buffers) {
  normed.weightBuffer = buffers.size();
  dispatch.weight(normed.weight);
  buffers.push_back(weightType(lookupWeight(dispatch.op, normed.weight)));
}

std::string llmc::epsName(double eps) {
  if (static_cast<float>(eps) == 1e-5f)
    return "";
  return "_eps" + llvm::utohexstr(llvm::bit_cast<uint32_t>(static_cast<float>(eps)));
}

uint32_t llmc::rowsNormed(const LinearSchedule &schedule, int64_t k, int64_t step) {
  if (!schedule.pipelined || schedule.crews > 1 || step < kLeastStep || k % (64 * schedule.parts) || schedule.parts > 2)
    return 0;
  uint32_t most = std::min<uint32_t>(kMostRows, schedule.parts == 2 ? 16 : 8);
  return std::min(most, llvm::bit_floor(static_cast<uint32_t>(kOwnBytes / (2 * k))));
}

void llmc::markNormed(rt::DispatchOp norm, double eps, uint32_t most) {
  Builder b(norm.getContext());
  norm->setAttr(kMark, b.getDictionaryAttr({b.getNamedAttr("eps", b.getF64FloatAttr(eps)),
                                            b.getNamedAttr("rows", b.getI32IntegerAttr(static_cast<int32_t>(most)))}));
}

std::optional<NormedRows> llmc::normedRows(Value activation) {
  auto norm = activation.getDefiningOp<rt::DispatchOp>();
  auto mark = norm ? norm->getAttrOfType<DictionaryAttr>(kMark) : DictionaryAttr();
  if (!mark)
    return std::nullopt;
  return NormedRows{norm.getInputs().front(), cast<FlatSymbolRefAttr>(norm.getWeights()[0]),
                    cast<FloatAttr>(mark.get("eps")).getValueAsDouble(), columnsOf(activation),
                    static_cast<uint32_t>(cast<IntegerAttr>(mark.get("rows")).getInt())};
}

static constexpr llvm::StringLiteral kRotatedMark = "rotated"; // attribute of a product's dispatch: parts of k

bool llmc::rotatesProducts(lm::LinearOp product) {
  Value result = product.getResult();
  if (!result.hasOneUse() || product.getBias() || product.getResidual())
    return false;
  auto rope = dyn_cast<lm::RopeAppendOp>(*result.user_begin());
  if (!rope || !getElementTypeOrSelf(rope.getQuery().getType()).isBF16())
    return false;
  int64_t headDim = rope.getHeadDim(), pairs = columnsOf(rope.getTable()) / 2;
  auto cache = cast<lm::KVType>(rope.getCache().getType());
  return headDim == 2 * pairs && pairs % kRotatedPairs == 0 && cache.getKDim() == headDim && cache.getVDim() == headDim &&
         cache.getElement().isBF16() && columnsOf(result) % headDim == 0;
}

void llmc::markRotated(rt::DispatchOp product, int64_t parts) {
  product->setAttr(kRotatedMark, Builder(product.getContext()).getI64IntegerAttr(parts));
}

std::optional<RotatedProduct> llmc::rotatedProduct(Value activation) {
  auto product = activation.getDefiningOp<rt::DispatchOp>();
  auto parts = product ? product->getAttrOfType<IntegerAttr>(kRotatedMark) : IntegerAttr();
  if (!parts)
    return std::nullopt;
  return RotatedProduct{*normedRows(product.getInputs().front()), cast<FlatSymbolRefAttr>(product.getWeights()[0]), parts.getInt()};
}

/// Rows that a consumer, one of 32 for each panel, has registers for, beside the weight.
static int64_t rowsTogether(const LinearSchedule &schedule, int64_t columns) {
  int64_t rows = kRowRegisters * 32 * schedule.panels / pad32(columns) - 1;
  return std::min<int64_t>(kTogether, llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(rows, 1))));
}

SmallVector<LinearSchedule> llmc::normedSchedules(const LinearSchedule &one, const NormedRows &normed) {
  LinearSchedule form = one;
  form.tokens = form.tailTokens = 8 * form.parts; // columns of the instruction, of which each part of k gets eight
  form.rowBlock = static_cast<uint32_t>(form.tokens);
  SmallVector<LinearSchedule> forms;
  for (uint32_t most : {1u, normed.most}) {
    if (!forms.empty() && most == 1)
      continue;
    form.maxRows = most;
    form.ownRows = std::min<int64_t>(most, rowsTogether(one, normed.columns));
    forms.push_back(form);
  }
  return forms;
}

void llmc::addNormedSchedules(SmallVectorImpl<LinearSchedule> &schedules, const NormedRows &normed) {
  SmallVector<LinearSchedule> forms = normedSchedules(schedules.front(), normed);
  schedules.insert(schedules.begin(), forms.begin(), forms.end());
}

Value llmc::buildNormedRows(KernelBuilder &k, const NormedRows &normed, const LinearSchedule &schedule) {
  int64_t columns = pad32(normed.columns), step = stepColumns(k.kernel, columns), together = schedule.ownRows;
  int64_t rows = schedule.maxRows > 8 ? 16 : schedule.maxRows;
  Value own = tile::AllocRowsOp::create(k.b, k.loc, MemRefType::get({rows, columns}, k.b.getBF16Type()));
  SmallVector<Value> ws;
  for (int64_t column = 0; column < columns; column += step)
    ws.push_back(k.load(k.vec({step}), k.buffer(normed.weightBuffer), {k.index(0), k.index(column)}));
  Value last = k.addIndex(k.rows(), -1);
  k.loop(k.index(0), k.rows(), together, [&](Value first) {
    SmallVector<SmallVector<Value>> all;
    for (int64_t i = 0; i < together; ++i) { // where there are no more rows, the last again
      Value row = i ? k.minIndex(k.addIndex(first, i), last) : first;
      SmallVector<Value> &xs = all.emplace_back();
      for (int64_t column = 0; column < columns; column += step)
        xs.push_back(k.load(k.vec({step}), k.buffer(normed.inputBuffer), {row, k.index(column)}));
    }
    for (auto [i, xs] : llvm::enumerate(all))
      for (auto [number, y] : llvm::enumerate(normalise(k, xs, ws, normed.columns, normed.eps))) {
        Value rounded = arith::TruncFOp::create(k.b, k.loc, k.vecOf({step}, k.b.getBF16Type()), y);
        k.store(rounded, own, {k.addIndex(first, static_cast<int64_t>(i)), k.index(static_cast<int64_t>(number) * step)});
      }
  });
  return own;
}
