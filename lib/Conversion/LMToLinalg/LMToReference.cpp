//===- LMToReference.cpp - @step as the oracle ----------------------------===//
//
// One walk over @step: every op becomes a dispatch of a kernel whose name spells the op and its shapes, so that equal
// names are equal kernels. A cache value stands for the keys and values appended to it: with one sequence from
// position 0 nothing else is ever in the cache. That is sound since a cache is appended to once a step.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "llmc/Conversion/LMToLinalg.h"
#include "llmc/Target/Layout.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

namespace llmc {
#define GEN_PASS_DEF_LMTOREFERENCEPASS
#include "lib/Conversion/LMToLinalg/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;
using llvm::formatv;
using oracle::KernelBuilder;

namespace {

/// The name that the location of an lm op gives to its value; empty if none.
StringRef valueName(Operation *op) {
  auto name = op->getLoc()->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

/// N of "blk.N....", else -1.
int32_t layerOf(StringRef name) {
  int32_t layer;
  if (!name.consume_front("blk.") || name.consumeInteger(10, layer))
    return -1;
  return layer;
}

int64_t columns(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getDimSize(1); }

/// Everything about one dispatch but its name and layer.
struct Launch {
  std::string kernel;
  SmallVector<Value> inputs; // of @reference
  SmallVector<FlatSymbolRefAttr> weights;
  SmallVector<rt::Field> fields;
  Type result;
  rt::Rows rows;
  int64_t rowBlock = 1;
};

class Lowering {
public:
  Lowering(ModuleOp module, func::FuncOp step)
      : module(module), step(step), symbols(module), b(module.getContext()), kernelBuilder(module.getContext()) {}

  LogicalResult run();

private:
  LogicalResult lower(Operation *op);
  LogicalResult lower(lm::EmbeddingOp op);
  LogicalResult lower(lm::RMSNormOp op);
  LogicalResult lower(lm::LinearOp op);
  LogicalResult lower(lm::GatedLinearOp op);
  LogicalResult lower(lm::GatedActivationOp op);
  LogicalResult lower(lm::AddOp op);
  LogicalResult lower(lm::ScaleOp op);
  LogicalResult lower(lm::SoftCapOp op);
  LogicalResult lower(lm::RopeTableOp op);
  LogicalResult lower(lm::RopeOp op);
  LogicalResult lower(lm::RopeAppendOp op);
  LogicalResult lower(lm::KVAppendOp op);
  LogicalResult lower(lm::AttentionOp op);
  LogicalResult lower(lm::GatherRowsOp op);
  LogicalResult lower(func::ReturnOp op);

  /// Creates the dispatch, and its kernel if no equal one exists; `emit` writes the kernel's body.
  Value dispatch(Operation *source, StringRef suffix, const Launch &launch, llvm::function_ref<void(KernelBuilder &)> emit);
  void createKernel(Location loc, const Launch &launch, llvm::function_ref<void(KernelBuilder &)> emit);
  MemRefType weightType(FlatSymbolRefAttr name);
  Value rotate(Operation *source, StringRef suffix, Value input, Value table, Type result, int64_t first, int64_t headDim);

  /// The step field that an i32 argument of @step is.
  FailureOr<rt::Field> field(Operation *user, Value ids);
  Value mapped(Value value) const { return values.lookup(value); }
  rt::Rows rowsOf(Value tensor) const { return rows.lookup(tensor); }
  void define(Value original, Value tensor) { values[original] = tensor; }

  ModuleOp module;
  func::FuncOp step, reference;
  SymbolTable symbols;
  OpBuilder b, kernelBuilder;
  DenseMap<Value, Value> values;
  DenseMap<Value, rt::Rows> rows;
  DenseMap<Value, std::pair<Value, Value>> caches; // cache of @step -> keys and values of @reference
};

//===----------------------------------------------------------------------===//
// Dispatches and kernels
//===----------------------------------------------------------------------===//

MemRefType activationType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t stride = padded(tensor.getDimSize(1));
  return MemRefType::get({ShapedType::kDynamic, stride}, tensor.getElementType());
}

MemRefType Lowering::weightType(FlatSymbolRefAttr name) {
  ArrayRef<int64_t> shape = symbols.lookup<lm::WeightOp>(name.getValue()).getShape();
  SmallVector<int64_t> matrix(shape);
  if (matrix.size() == 1)
    matrix.insert(matrix.begin(), 1);
  return MemRefType::get(matrix, b.getF32Type());
}

void Lowering::createKernel(Location loc, const Launch &launch, llvm::function_ref<void(KernelBuilder &)> emit) {
  SmallVector<MemRefType> types;
  for (Value input : launch.inputs)
    types.push_back(activationType(input.getType()));
  for (FlatSymbolRefAttr weight : launch.weights)
    types.push_back(weightType(weight));
  types.append(launch.fields.size(), MemRefType::get({ShapedType::kDynamic}, b.getI32Type()));
  types.push_back(activationType(launch.result));
  OpBuilder::InsertionGuard guard(kernelBuilder);
  KernelBuilder kernel(kernelBuilder, loc, launch.kernel, types);
  emit(kernel);
  symbols.insert(kernel.func);
}

Value Lowering::dispatch(Operation *source, StringRef suffix, const Launch &launch,
                         llvm::function_ref<void(KernelBuilder &)> emit) {
  if (!symbols.lookup(launch.kernel))
    createKernel(UnknownLoc::get(b.getContext()), launch, emit);
  auto kernel = FlatSymbolRefAttr::get(b.getContext(), launch.kernel);
  Attribute variant = rt::VariantAttr::get(b.getContext(), UINT32_MAX, kernel, launch.rowBlock, /*col_blocks=*/1, /*span_rows=*/0);
  SmallVector<Attribute> weights(launch.weights.begin(), launch.weights.end()), fields;
  for (rt::Field field : launch.fields)
    fields.push_back(rt::FieldAttr::get(b.getContext(), field));
  std::string name = (valueName(source) + suffix).str();
  auto op = rt::DispatchOp::create(b, source->getLoc(), TypeRange{launch.result}, b.getStringAttr(name), launch.inputs,
                                   b.getArrayAttr(weights), b.getArrayAttr(fields),
                                   rt::RowsAttr::get(b.getContext(), launch.rows), b.getArrayAttr({variant}),
                                   b.getI32IntegerAttr(layerOf(name)), b.getUnitAttr(), /*cost=*/rt::CostAttr());
  rows[op.getResult(0)] = launch.rows;
  return op.getResult(0);
}

FailureOr<rt::Field> Lowering::field(Operation *user, Value ids) {
  auto argument = dyn_cast<BlockArgument>(ids);
  // Order of @step's arguments.
  static constexpr rt::Field fields[] = {rt::Field::TokenIds, rt::Field::Positions, rt::Field::LogitsRows};
  if (!argument || argument.getArgNumber() >= std::size(fields))
    return user->emitOpError("expected token ids, positions or logits rows to be one of the first three arguments of @step");
  return fields[argument.getArgNumber()];
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lower(lm::EmbeddingOp op) {
  FailureOr<rt::Field> ids = field(op, op.getIds());
  if (failed(ids))
    return failure();
  int64_t count = weightType(op.getWeightAttr()).getDimSize(0), cols = columns(op.getResult());
  double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
  std::string kernel = formatv("ref_embedding_{0}x{1}", count, cols);
  if (scale != 1)
    kernel += formatv("_scale{0:x-}", llvm::bit_cast<uint64_t>(scale));
  Launch launch{kernel, {}, {op.getWeightAttr()}, {*ids}, op.getType(), rt::Rows::Tokens};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::embedding(k, count, cols, scale); }));
  return success();
}

LogicalResult Lowering::lower(lm::RMSNormOp op) {
  if (op.getFormat() != lm::Format::F32)
    return op.emitOpError("expected format f32 before lm-to-reference, got ") << lm::stringifyFormat(op.getFormat());
  Value input = mapped(op.getInput());
  int64_t cols = columns(input);
  double eps = op.getEps().convertToDouble();
  Launch launch{formatv("ref_rms_norm_{0}_eps{1:x-}", cols, llvm::bit_cast<uint64_t>(eps)), {input}, {op.getWeightAttr()}, {},
                op.getResult(0).getType(), rowsOf(input)};
  define(op.getResult(0), dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::rmsNorm(k, cols, eps); }));
  return success();
}

LogicalResult Lowering::lower(lm::LinearOp op) {
  if (op.getArith() || op.getInputs().size() != 1)
    return op.emitOpError("expected one f32 input and no arith before lm-to-reference");
  Value input = mapped(op.getInputs().front());
  int64_t cols = columns(op.getResult()), depth = columns(input);
  bool bias = op.getBias().has_value(), residual = bool(op.getResidual());
  Launch launch{formatv("ref_linear_{0}x{1}{2}{3}", cols, depth, bias ? "_bias" : "", residual ? "_residual" : ""),
                {input}, {op.getWeightAttr()}, {}, op.getType(), rowsOf(input), oracle::kRowBlock};
  if (residual)
    launch.inputs.push_back(mapped(op.getResidual()));
  if (bias)
    launch.weights.push_back(op.getBiasAttr());
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::linear(k, cols, depth, bias, residual); }));
  return success();
}

LogicalResult Lowering::lower(lm::GatedLinearOp op) {
  if (op.getArith() || op.getInputs().size() != 1)
    return op.emitOpError("expected one f32 input and no arith before lm-to-reference");
  Value input = mapped(op.getInputs().front());
  int64_t cols = columns(op.getResult()), depth = columns(input);
  int64_t interleave = symbols.lookup<lm::WeightOp>(op.getWeight()).getInterleave();
  if (interleave <= 0 || cols % interleave != 0)
    return op.emitOpError("expected a weight whose interleave divides ") << cols << " columns, got " << interleave;
  lm::Activation activation = op.getActivation();
  Launch launch{formatv("ref_gated_linear_{0}_{1}x{2}_by{3}", lm::stringifyActivation(activation), cols, depth, interleave), {input}, {op.getWeightAttr()}, {},
                op.getType(), rowsOf(input), oracle::kRowBlock};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::gatedLinear(k, cols, depth, interleave, activation); }));
  return success();
}

LogicalResult Lowering::lower(lm::GatedActivationOp op) {
  Value gate = mapped(op.getGate());
  int64_t cols = columns(gate);
  lm::Activation activation = op.getActivation();
  Launch launch{formatv("ref_gated_activation_{0}_{1}", lm::stringifyActivation(activation), cols), {gate, mapped(op.getUp())}, {}, {}, op.getType(), rowsOf(gate)};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::gatedActivation(k, cols, activation); }));
  return success();
}

LogicalResult Lowering::lower(lm::AddOp op) {
  Value lhs = mapped(op.getLhs());
  int64_t cols = columns(lhs);
  Launch launch{formatv("ref_add_{0}", cols), {lhs, mapped(op.getRhs())}, {}, {}, op.getType(), rowsOf(lhs)};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::add(k, cols); }));
  return success();
}

LogicalResult Lowering::lower(lm::ScaleOp op) {
  Value input = mapped(op.getInput());
  int64_t cols = columns(input);
  double factor = op.getFactor().convertToDouble();
  Launch launch{formatv("ref_scale_{0}_by{1:x-}", cols, llvm::bit_cast<uint64_t>(factor)), {input}, {}, {}, op.getType(), rowsOf(input)};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::scale(k, cols, factor); }));
  return success();
}

LogicalResult Lowering::lower(lm::SoftCapOp op) {
  Value input = mapped(op.getInput());
  int64_t cols = columns(input);
  double cap = op.getCap().convertToDouble();
  Launch launch{formatv("ref_soft_cap_{0}_at{1:x-}", cols, llvm::bit_cast<uint64_t>(cap)), {input}, {}, {}, op.getType(), rowsOf(input)};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::softCap(k, cols, cap); }));
  return success();
}

LogicalResult Lowering::lower(lm::RopeTableOp op) {
  FailureOr<rt::Field> positions = field(op, op.getPositions());
  if (failed(positions))
    return failure();
  int64_t pairs = columns(op.getResult()) / 2;
  Launch launch{formatv("ref_rope_table_{0}", pairs), {}, {op.getFrequenciesAttr()}, {*positions}, op.getType(), rt::Rows::Tokens};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::ropeTable(k, pairs); }));
  return success();
}

Value Lowering::rotate(Operation *source, StringRef suffix, Value input, Value table, Type result, int64_t first,
                       int64_t headDim) {
  int64_t heads = cast<RankedTensorType>(result).getDimSize(1) / headDim, pairs = columns(table) / 2;
  Launch launch{formatv("ref_rope_{0}x{1}_pairs{2}_of{3}_from{4}", heads, headDim, pairs, columns(input), first),
                {input, table}, {}, {}, result, rowsOf(input)};
  return dispatch(source, suffix, launch, [&](KernelBuilder &k) { oracle::rope(k, first, heads, headDim, pairs); });
}

LogicalResult Lowering::lower(lm::RopeOp op) {
  define(op, rotate(op, "", mapped(op.getInput()), mapped(op.getTable()), op.getType(), 0, op.getHeadDim()));
  return success();
}

// Three dispatches: q, k rotated and v copied out of the joint projection.
LogicalResult Lowering::lower(lm::RopeAppendOp op) {
  Value input = mapped(op.getInput()), table = mapped(op.getTable());
  auto cache = cast<lm::KVType>(op.getCache().getType());
  int64_t headDim = op.getHeadDim(), queryColumns = columns(op.getQuery());
  int64_t keyColumns = cache.getHeads() * cache.getKDim(), valueColumns = cache.getHeads() * cache.getVDim();
  auto rowsOfColumns = [&](int64_t cols) { return RankedTensorType::get({ShapedType::kDynamic, cols}, b.getF32Type()); };
  define(op.getQuery(), rotate(op, "", input, table, op.getQuery().getType(), 0, headDim));
  Value keys = rotate(op, ".k", input, table, rowsOfColumns(keyColumns), queryColumns, headDim);
  int64_t first = queryColumns + keyColumns;
  Launch launch{formatv("ref_columns_{0}_of{1}_from{2}", valueColumns, columns(input), first), {input}, {}, {},
                rowsOfColumns(valueColumns), rowsOf(input)};
  Value copied = dispatch(op, ".v", launch, [&](KernelBuilder &k) { oracle::copyColumns(k, first, valueColumns); });
  caches[op.getResult()] = {keys, copied};
  return success();
}

LogicalResult Lowering::lower(lm::KVAppendOp op) {
  caches[op.getResult()] = {mapped(op.getKeys()), mapped(op.getValues())};
  return success();
}

LogicalResult Lowering::lower(lm::AttentionOp op) {
  if (op.getFormat() != lm::Format::F32)
    return op.emitOpError("expected format f32 before lm-to-reference, got ") << lm::stringifyFormat(op.getFormat());
  auto cached = caches.find(op.getCache());
  if (cached == caches.end())
    return op.emitOpError("expected a cache that this step has appended to");
  Value query = mapped(op.getQuery());
  auto cache = cast<lm::KVType>(op.getCache().getType());
  oracle::AttentionShape shape{columns(query) / cache.getKDim(), cache.getHeads(), cache.getKDim(), cache.getVDim(),
                               static_cast<int64_t>(op.getWindow()), op.getScale().convertToDouble(),
                               op.getSoftCap() ? op.getSoftCap()->convertToDouble() : 0, op.getSinks().has_value()};
  std::string kernel = formatv("ref_attention_{0}of{1}x{2}x{3}_window{4}_scale{5:x-}", shape.heads, shape.kvHeads,
                               shape.keyDim, shape.valueDim, shape.window, llvm::bit_cast<uint64_t>(shape.scale));
  if (shape.softCap > 0)
    kernel += formatv("_cap{0:x-}", llvm::bit_cast<uint64_t>(shape.softCap));
  if (shape.sinks)
    kernel += "_sinks";
  Launch launch{kernel, {query, cached->second.first, cached->second.second}, {}, {}, op.getResult(0).getType(), rowsOf(query)};
  if (shape.sinks)
    launch.weights.push_back(op.getSinksAttr());
  define(op.getResult(0), dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::attention(k, shape); }));
  return success();
}

LogicalResult Lowering::lower(lm::GatherRowsOp op) {
  FailureOr<rt::Field> indices = field(op, op.getRows());
  if (failed(indices))
    return failure();
  Value input = mapped(op.getInput());
  int64_t cols = columns(input);
  Launch launch{formatv("ref_gather_rows_{0}", cols), {input}, {}, {*indices}, op.getType(), rt::Rows::Logits};
  define(op, dispatch(op, "", launch, [&](KernelBuilder &k) { oracle::gatherRows(k, cols); }));
  return success();
}

LogicalResult Lowering::lower(func::ReturnOp op) {
  SmallVector<Value> results;
  for (Value value : op.getOperands())
    if (!isa<lm::KVType>(value.getType()))
      results.push_back(mapped(value));
  func::ReturnOp::create(b, op.getLoc(), results);
  reference.setType(b.getFunctionType(reference.getArgumentTypes(), ValueRange(results).getTypes()));
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lower(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<lm::EmbeddingOp, lm::RMSNormOp, lm::LinearOp, lm::GatedLinearOp, lm::GatedActivationOp, lm::AddOp, lm::ScaleOp, lm::SoftCapOp, lm::RopeTableOp,
            lm::RopeOp, lm::RopeAppendOp, lm::KVAppendOp, lm::AttentionOp, lm::GatherRowsOp, func::ReturnOp>(
          [&](auto typed) { return lower(typed); })
      .Default([](Operation *other) { return other->emitOpError("has no reference lowering"); });
}

LogicalResult Lowering::run() {
  if (!llvm::hasSingleElement(step.getBody()))
    return step.emitOpError("expected one block");
  SmallVector<Type> arguments;
  for (Type type : step.getArgumentTypes())
    if (!isa<lm::KVType>(type))
      arguments.push_back(type);
  reference = func::FuncOp::create(b, step.getLoc(), "reference", b.getFunctionType(arguments, {}));
  symbols.insert(reference, ++Block::iterator(step));
  b.setInsertionPointToStart(reference.addEntryBlock());
  for (Operation &op : step.front())
    if (failed(lower(&op)))
      return failure();
  return success();
}

struct LMToReferencePass : llmc::impl::LMToReferencePassBase<LMToReferencePass> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>("step");
    if (!step) {
      getOperation().emitError("expected a func @step");
      return signalPassFailure();
    }
    if (failed(Lowering(getOperation(), step).run()))
      signalPassFailure();
  }
};

} // namespace
