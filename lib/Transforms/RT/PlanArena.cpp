//===- PlanArena.cpp - rt.dispatch on tensors to rt.launch on offsets -----===//
//
// The launches run in order, each complete before the next, so that the life of a buffer is an interval of
// launch numbers. Sound because a dispatch writes all rows of its results and nothing else but caches.
//
//===----------------------------------------------------------------------===//
#include "llmc/Transforms/RT/Passes.h"

#include "dialects/LM/LM.h"
#include "lib/Transforms/RT/Arena.h"
#include "llmc/Target/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace llmc {
#define GEN_PASS_DEF_RTPLANARENAPASS
#include "lib/Transforms/RT/Passes.h.inc"
} // namespace llmc

using namespace mlir;
using namespace llmc;

namespace {

/// Largest row counts of a step, and what the rows of every buffer are rounded up to.
struct Limits {
  int64_t tokens, seqs, logits, rowPad;

  int64_t rows(rt::Rows rows) const {
    switch (rows) {
    case rt::Rows::Tokens:
    case rt::Rows::QueryTiles: return tokens;
    case rt::Rows::Logits: return logits;
    case rt::Rows::Seqs: return seqs;
    }
    llvm_unreachable("unknown rows");
  }
};

/// enum llmc_element; -1: none.
int32_t elementCode(Type type) {
  if (type.isF32())
    return LLMC_F32;
  if (type.isBF16())
    return LLMC_BF16;
  if (type.isF16())
    return LLMC_F16;
  if (isa<Float8E4M3FNType>(type))
    return LLMC_E4M3;
  if (type.isInteger(8))
    return LLMC_I8;
  if (type.isInteger(16))
    return LLMC_I16;
  return type.isInteger(32) ? LLMC_I32 : -1;
}

/// Elements of one row of a buffer; columns of a matrix are padded.
int64_t rowElements(RankedTensorType type) {
  if (type.getRank() == 2)
    return padded(type.getDimSize(1));
  int64_t count = 1;
  for (int64_t size : type.getShape().drop_front())
    count *= size;
  return count;
}

/// Sizes of a group of caches with equal types, from the !lm.kv type (llmc_kv_group_v1).
struct KVGroup {
  lm::KVType type;
  int64_t layers = 0;

  uint64_t elementBytes() const { return type.getElement().getIntOrFloatBitWidth() / 8; }
  uint64_t headBytes() const { return LLMC_KV_BLOCK * (type.getKDim() + type.getVDim()) * elementBytes(); }
  uint64_t layerBytes() const { return type.getHeads() * headBytes(); }

  DictionaryAttr attribute(OpBuilder &b) const {
    auto number = [&](StringRef name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
    return b.getDictionaryAttr({number("element", elementCode(type.getElement())), number("layers", layers),
                                number("heads", type.getHeads()), number("k_dim", type.getKDim()),
                                number("v_dim", type.getVDim()), number("window", 0),
                                number("block_bytes", layers * layerBytes()), number("layer_bytes", layerBytes()),
                                number("head_bytes", headBytes())});
  }
};

/// One func to one rt.program.
class Planner {
public:
  Planner(func::FuncOp func, Limits limits) : func(func), limits(limits), b(func.getContext()) {}

  LogicalResult run();
  const KVGroup &kvGroup() const { return group; }

private:
  LogicalResult readArguments();
  LogicalResult collectBuffers();
  FailureOr<SmallVector<Attribute>> arguments(rt::DispatchOp op);
  SmallVector<Attribute> values(rt::DispatchOp op);
  LogicalResult emit(uint64_t arenaBytes);

  uint64_t offset(Value tensor) const { return buffers[bufferOf.lookup(tensor)].offset; }
  Attribute arg(rt::ArgKind kind, uint64_t value, FlatSymbolRefAttr weight = {}) {
    return rt::ArgAttr::get(b.getContext(), kind, value, weight);
  }

  func::FuncOp func;
  Limits limits;
  OpBuilder b;
  KVGroup group;
  DenseMap<Value, int64_t> kvLayer; // caches, updated in place, to their layer
  DenseMap<Value, rt::Field> fieldOf;
  DenseMap<Value, size_t> bufferOf;
  uint64_t largestRow = 0; // bytes, of the activations with a row per token
  std::vector<ArenaBuffer> buffers;
};

LogicalResult Planner::readArguments() {
  static constexpr rt::Field fields[] = {rt::Field::TokenIds, rt::Field::Positions, rt::Field::LogitsRows};
  for (BlockArgument argument : func.getArguments()) {
    if (auto kv = dyn_cast<lm::KVType>(argument.getType())) {
      if (group.type && group.type != kv)
        return func.emitOpError("expected caches of equal types, got ") << group.type << " and " << kv;
      if (kv.getBlock() != LLMC_KV_BLOCK || (!kv.getElement().isF32() && !kv.getElement().isBF16()))
        return func.emitOpError("expected caches of f32 or bf16 in blocks of ") << LLMC_KV_BLOCK << ", got " << kv;
      group.type = kv;
      kvLayer[argument] = group.layers++;
      continue;
    }
    if (argument.getArgNumber() >= std::size(fields))
      return func.emitOpError("expected ids, positions and logits rows, then caches, got argument ")
             << argument.getArgNumber() << " of type " << argument.getType();
    fieldOf[argument] = fields[argument.getArgNumber()];
  }
  return success();
}

LogicalResult Planner::collectBuffers() {
  uint32_t index = 0;
  for (Operation &op : func.front()) {
    auto dispatch = dyn_cast<rt::DispatchOp>(op);
    if (!dispatch && !isa<func::ReturnOp>(op))
      return op.emitOpError("expected every op to be an rt.dispatch before rt-plan-arena");
    for (Value operand : op.getOperands())
      if (auto buffer = bufferOf.find(operand); buffer != bufferOf.end())
        buffers[buffer->second].last = index;
    if (!dispatch)
      break;
    SmallVector<Value> caches;
    llvm::copy_if(dispatch.getInputs(), std::back_inserter(caches), [&](Value v) { return kvLayer.contains(v); });
    for (Value result : dispatch.getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type) { // the next cache operand, updated in place
        if (caches.empty())
          return dispatch.emitOpError("expected a cache operand for each cache result");
        kvLayer[result] = kvLayer[caches.front()];
        caches.erase(caches.begin());
        continue;
      }
      if (elementCode(type.getElementType()) < 0)
        return dispatch.emitOpError("expected results of f32, bf16, f16, i8, i16 or i32, got ") << type;
      bool scratch = !type.isDynamicDim(0);
      uint64_t rows = scratch ? type.getDimSize(0) : roundUp(limits.rows(dispatch.getRows()), limits.rowPad);
      uint64_t rowBytes = rowElements(type) * (type.getElementTypeBitWidth() / 8);
      bufferOf[result] = buffers.size();
      buffers.push_back({rows * rowBytes, index, index});
      if (dispatch.getRows() != rt::Rows::Logits && !scratch)
        largestRow = std::max(largestRow, rowBytes);
    }
    ++index;
  }
  return success();
}

// Kernel arguments, in order: inputs, weights, step fields, results (RTOps.td).
FailureOr<SmallVector<Attribute>> Planner::arguments(rt::DispatchOp op) {
  SmallVector<Attribute> args;
  for (auto [index, input] : llvm::enumerate(op.getInputs())) {
    if (auto layer = kvLayer.find(input); layer != kvLayer.end())
      args.push_back(arg(rt::ArgKind::KV, layer->second * group.layerBytes()));
    else if (auto field = fieldOf.find(input); field != fieldOf.end())
      args.push_back(arg(rt::ArgKind::Step, uint64_t(field->second)));
    else if (bufferOf.contains(input))
      args.push_back(arg(rt::ArgKind::Arena, offset(input)));
    else
      return op.emitOpError("expected input ") << index << " to be an argument or the result of a dispatch";
  }
  rt::ArgKind weightKind = op.getReferenceWeights() ? rt::ArgKind::WeightF32 : rt::ArgKind::Weight;
  for (auto weight : op.getWeights().getAsRange<FlatSymbolRefAttr>())
    args.push_back(arg(weightKind, 0, weight));
  for (auto field : op.getFields().getAsRange<rt::FieldAttr>())
    args.push_back(arg(rt::ArgKind::Step, uint64_t(field.getValue())));
  for (Value result : op.getResults())
    if (bufferOf.contains(result))
      args.push_back(arg(rt::ArgKind::Arena, offset(result)));
  return args;
}

SmallVector<Attribute> Planner::values(rt::DispatchOp op) {
  SmallVector<Attribute> values;
  SmallVector<Value> tensors;
  llvm::copy_if(op.getResults(), std::back_inserter(tensors), [&](Value v) {
    return bufferOf.contains(v) && cast<RankedTensorType>(v.getType()).isDynamicDim(0);
  });
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto type = cast<RankedTensorType>(tensors[i].getType());
    uint64_t scales = 0, at = offset(tensors[i]);
    std::string name = op.getOp().str() + (values.empty() ? "" : "." + std::to_string(values.size()));
    bool codes = type.getElementType().isInteger(8) || type.getElementType().isInteger(16) || isa<Float8E4M3FNType>(type.getElementType());
    if (codes && i + 1 < tensors.size()) // codes, then their scales
      scales = offset(tensors[++i]);
    int64_t columns = type.getRank() == 2 ? type.getDimSize(1) : rowElements(type);
    values.push_back(rt::ValueAttr::get(b.getContext(), b.getStringAttr(name), at, elementCode(type.getElementType()),
                                        columns, rowElements(type), scales));
  }
  return values;
}

LogicalResult Planner::emit(uint64_t arenaBytes) {
  Operation *terminator = func.front().getTerminator();
  Value logits = terminator->getNumOperands() ? terminator->getOperand(0) : Value();
  if (!logits || !bufferOf.contains(logits))
    return func.emitOpError("expected the result of a dispatch as the first result (the logits)");
  uint64_t hidden = UINT64_MAX;
  if (auto head = logits.getDefiningOp<rt::DispatchOp>(); head.getInputs().size() == 1)
    if (Value input = head.getInputs().front();
        bufferOf.contains(input) && cast<RankedTensorType>(input.getType()).getElementType().isF32())
      hidden = offset(input);

  uint64_t ids = UINT64_MAX;
  for (Value result : terminator->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && type.getRank() == 1 && bufferOf.contains(result))
      ids = offset(result);

  b.setInsertionPoint(func);
  auto program = rt::ProgramOp::create(b, func.getLoc(), func.getSymName(), arenaBytes, offset(logits), hidden, ids);
  b.setInsertionPointToStart(&program.getBody().emplaceBlock());
  for (auto dispatch : func.getOps<rt::DispatchOp>()) {
    auto args = arguments(dispatch);
    if (failed(args))
      return failure();
    rt::LaunchOp::create(b, dispatch.getLoc(), dispatch.getOpAttr(), dispatch.getRowsAttr(), dispatch.getVariantsAttr(),
                         b.getArrayAttr(*args), b.getArrayAttr(values(dispatch)), dispatch.getLayerAttr(), dispatch.getCostAttr());
  }
  func.erase();
  return success();
}

LogicalResult Planner::run() {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitOpError("expected one block");
  if (failed(readArguments()) || failed(collectBuffers()))
    return failure();
  // A query tile starts at any token and reads whole tiles: up to rowPad rows past the last buffer.
  return emit(planArena(buffers) + roundUp(limits.rowPad * largestRow, 64));
}

struct RTPlanArenaPass : llmc::impl::RTPlanArenaPassBase<RTPlanArenaPass> {
  using RTPlanArenaPassBase::RTPlanArenaPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder b(module.getContext());
    for (int64_t limit : {int64_t(maxTokens), int64_t(maxSeqs), int64_t(maxLogits)})
      if (limit < 1 || limit > (int64_t(1) << 24)) {
        module.emitError("expected limits of 1 to 16777216, got ") << limit;
        return signalPassFailure();
      }
    if (rowPad < LLMC_ROW_PAD || rowPad % LLMC_ROW_PAD || rowPad > 4096) {
      module.emitError("expected row-pad to be a multiple of ") << LLMC_ROW_PAD << " up to 4096, got " << rowPad.getValue();
      return signalPassFailure();
    }
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step) {
      module.emitError("expected a func @step");
      return signalPassFailure();
    }
    Planner planner(step, {maxTokens, maxSeqs, maxLogits, rowPad});
    if (failed(planner.run()))
      return signalPassFailure();
    if (planner.kvGroup().layers)
      module->setAttr("rt.kv_group", planner.kvGroup().attribute(b));
    module->setAttr("rt.limits", b.getDictionaryAttr({b.getNamedAttr("max_tokens", b.getI64IntegerAttr(maxTokens)),
                                                      b.getNamedAttr("max_seqs", b.getI64IntegerAttr(maxSeqs)),
                                                      b.getNamedAttr("max_logits", b.getI64IntegerAttr(maxLogits))}));
    auto prompt = module.lookupSymbol<func::FuncOp>("prompt");
    if (prompt && failed(Planner(prompt, {maxTokens, maxSeqs, maxLogits, rowPad}).run()))
      return signalPassFailure();
    auto reference = module.lookupSymbol<func::FuncOp>("reference");
    // verify asks for the logits of every token.
    if (reference && failed(Planner(reference, {maxTokens, maxSeqs, maxTokens, rowPad}).run()))
      signalPassFailure();
  }
};

} // namespace
