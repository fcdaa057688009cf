//===- Cost.cpp - what an lm op must compute and move ----------------------===//
//
// The least work of a launch, read from the op and not from its kernels, so that every schedule is judged by the same
// number: FLOPs of the op's formula on logical shapes (multiply-adds count 2; add, multiply, divide, compare, exp, cos count
// 1; softmax is not counted, as in the papers), bytes as they lie in memory, padding included, each once.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "llmc/Target/Layout.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc;

namespace {

/// The fields of a #rt.cost under construction.
struct Cost {
  rt::Arithmetic arithmetic = rt::Arithmetic::F32;
  uint64_t window = 0, flopsPerRow = 0, flopsPerPair = 0;
  bool gathers = false; // rows of its weight, not all of it
  uint64_t kvRead = 0, kvWrite = 0;
};

/// bf16_eo32 is computed by f32 multiply-adds, bf16 by tensor cores or vdpbf16ps.
rt::Arithmetic arithmeticOf(lm::Arith arith) {
  switch (arith) {
  case lm::Arith::BF16: return rt::Arithmetic::BF16;
  case lm::Arith::Q8_G32: return rt::Arithmetic::I8;
  case lm::Arith::Q16_G32: return rt::Arithmetic::I16;
  case lm::Arith::E4M3: return rt::Arithmetic::E4M3;
  default: return rt::Arithmetic::F32;
  }
}

/// Bytes of one token in the cache of one layer.
uint64_t kvBytes(Value cache) {
  auto type = cast<lm::KVType>(cache.getType());
  return type.getHeads() * (type.getKDim() + type.getVDim()) * type.getElement().getIntOrFloatBitWidth() / 8;
}

/// Largest, product, rounding and sum of the codes.
uint64_t formatFlops(lm::Format format, int64_t columns) { return isCoded(format) ? 4 * columns : 0; }

constexpr uint64_t kGateFlops = 5; // -x, exp, 1 +, /, *

uint64_t rotationFlops(uint64_t heads, Value table) { return heads * 6 * (columnsOf(table) / 2); }

Cost linearCost(lm::LinearOp op) {
  ArrayRef<int64_t> shape = lookupWeight(op, op.getWeightAttr()).getShape();
  uint64_t n = shape[0], k = shape[1];
  return {arithmeticOf(*op.getArith()), 0, 2 * n * k + (op.getBias() ? n : 0) + (op.getResidual() ? n : 0)};
}

Cost gatedCost(lm::GatedLinearOp op) {
  ArrayRef<int64_t> shape = lookupWeight(op, op.getWeightAttr()).getShape();
  uint64_t rows = shape[0], k = shape[1]; // of gate and up
  return {arithmeticOf(*op.getArith()), 0, 2 * rows * k + rows / 2 * kGateFlops};
}

Cost attentionCost(lm::AttentionOp op) {
  auto cache = cast<lm::KVType>(op.getCache().getType());
  uint64_t heads = columnsOf(op.getQuery()) / op.getHeadDim();
  Cost cost;
  cost.arithmetic = isForGPU(op) || op.getArith() == lm::Arith::BF16 ? rt::Arithmetic::BF16 : rt::Arithmetic::F32;
  cost.window = op.getWindow();
  cost.flopsPerRow = formatFlops(op.getFormat(), heads * cache.getVDim());
  cost.flopsPerPair = heads * 2 * (cache.getKDim() + cache.getVDim());
  cost.kvRead = kvBytes(op.getCache());
  return cost;
}

Cost ropeAppendCost(lm::RopeAppendOp op) {
  uint64_t heads = columnsOf(op.getQuery()) / op.getHeadDim() + cast<lm::KVType>(op.getCache().getType()).getHeads();
  Cost cost;
  cost.flopsPerRow = rotationFlops(heads, op.getTable());
  cost.kvWrite = kvBytes(op.getCache());
  return cost;
}

Cost rowCost(uint64_t flops) { return {rt::Arithmetic::F32, 0, flops}; }

Cost costOfOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, Cost>(op)
      .Case([](lm::LinearOp op) { return linearCost(op); })
      .Case([](lm::GatedLinearOp op) { return gatedCost(op); })
      .Case([](lm::AttentionOp op) { return attentionCost(op); })
      .Case([](lm::RopeAppendOp op) { return ropeAppendCost(op); })
      .Case([](lm::EmbeddingOp) {
        Cost cost;
        cost.gathers = true;
        return cost;
      })
      .Case([](lm::KVAppendOp op) {
        Cost cost;
        cost.kvWrite = kvBytes(op.getCache());
        return cost;
      })
      .Case([](lm::RMSNormOp op) {
        int64_t columns = columnsOf(op.getInput());
        return rowCost(4 * columns + formatFlops(op.getFormat(), columns));
      })
      .Case([](lm::QuantizeOp op) { return rowCost(4 * columnsOf(op.getInput())); })
      .Case([](lm::GatedActivationOp op) { return rowCost(kGateFlops * columnsOf(op.getGate())); })
      .Case([](lm::AddOp op) { return rowCost(columnsOf(op.getLhs())); })
      .Case([](lm::ScaleOp op) { return rowCost(columnsOf(op.getInput())); })
      .Case([](lm::SoftCapOp op) { return rowCost(3 * columnsOf(op.getInput())); })
      .Case([](lm::RopeTableOp op) { return rowCost(3 * columnsOf(op.getResult()) / 2); })
      .Case([](lm::RopeOp op) {
        return rowCost(rotationFlops(columnsOf(op.getInput()) / op.getHeadDim(), op.getTable()));
      })
      .Case([](lm::SampleOp op) { return rowCost(3 * columnsOf(op.getInput())); }) // greedy: -, *, compare
      .Default([](Operation *) { return Cost(); }); // moves only: gather_rows, round
}

/// Of the tensors that the op reads and writes; rows of ids are one number, of scales groups x 2.
uint64_t activationBytes(Operation *op) {
  uint64_t bytes = 0;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue; // a cache
    uint64_t elements = 1;
    for (int64_t extent : tensor.getShape().drop_front())
      elements *= extent;
    if (tensor.getRank() == 2)
      elements = pad32(elements);
    bytes += elements * tensor.getElementTypeBitWidth() / 8;
  }
  return bytes;
}

} // namespace

rt::CostAttr llmc::costOf(const Dispatch &dispatch) {
  Operation *op = dispatch.op;
  Cost cost = costOfOp(op);
  uint64_t weights = 0, gathered = 0;
  for (Attribute symbol : dispatch.weights) {
    lm::WeightOp weight = lookupWeight(op, cast<FlatSymbolRefAttr>(symbol));
    auto layout = llmc_layout(*weight.getLayout());
    ArrayRef<int64_t> shape = weight.getShape();
    uint64_t rows = shape.size() == 2 ? shape.front() : 1, columns = shape.back();
    if (cost.gathers) // in panels the 16 rows of a record lie side by side
      gathered += panelBytes(layout, columns);
    else
      weights += packedBytes(layout, rows, columns);
  }
  return rt::CostAttr::get(op->getContext(), cost.arithmetic, cost.window, cost.flopsPerRow, cost.flopsPerPair, weights, gathered,
                           activationBytes(op), cost.kvRead, cost.kvWrite);
}
