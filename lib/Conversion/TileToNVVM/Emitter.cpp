//===- Emitter.cpp - control flow and building blocks ---------------------===//

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Whether passes have placed such an op in the kernel.
static bool says(tile::KernelOp kernel, NVVM::GridDepActionKind kind) {
  return kernel.walk([&](NVVM::GriddepcontrolOp op) { return op.getKind() == kind ? WalkResult::interrupt() : WalkResult::advance(); }).wasInterrupted();
}

LogicalResult Emitter::run(LLVM::LLVMFuncOp target) {
  function = target;
  b.setInsertionPointToStart(&function.getBody().front());
  auto special = [&](Value x) -> Value { return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x); };
  Type type = b.getI32Type();
  Value tid = NVVM::ThreadIdXOp::create(b, loc, type);
  Value block = NVVM::BlockIdXOp::create(b, loc, type);
  auto shifted = [&](Value x, int64_t bits) -> Value { return arith::ShRUIOp::create(b, loc, x, i32(bits)); };
  auto masked = [&](Value x, int64_t mask) -> Value { return arith::AndIOp::create(b, loc, x, i32(mask)); };
  thread = special(tid);
  // The same in all lanes of a warp, and known to be: branches on it do not diverge.
  Value first = intrinsic("llvm.nvvm.shfl.sync.idx.i32", type, {i32(-1), shifted(tid, 5), i32(0), i32(31)});
  warp = special(first);
  warpOfCTA = warp;
  if (cta.warps() < cta.threads / 32)
    warp = arith::RemUIOp::create(b, loc, warp, index(cta.warps()));
  group = special(shifted(masked(tid, 31), 2));
  quad = special(masked(tid, 3));
  unsigned buffers = kernel.getBuffers().size();
  for (unsigned i = 0; i < buffers; ++i)
    mapping.map(kernel.getBuffers()[i], function.getArgument(i));
  mapping.map(kernel.getRows(), arith::IndexCastOp::create(b, loc, b.getIndexType(), function.getArgument(buffers)));
  if (cta.parts > 1)
    block = arith::DivUIOp::create(b, loc, block, i32(cta.parts));
  mapping.map(kernel.getUnit(), special(block));
  // The next kernel may come at once, of kernels with roles when the thread that copies is at its end, where passes say nothing else.
  const bool early = kernel.getBody().getOps<tile::RolesOp>().empty();
  const bool admits = says(kernel, NVVM::GridDepActionKind::launch_dependents);
  if (early && !admits)
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::launch_dependents);
  // All threads wait for the kernel before this one, so that no kernel ends before all those before it have: buffers may be
  // reused anywhere in the chain. Roles may wait by themselves, one that copies weights later than the others.
  if (!says(kernel, NVVM::GridDepActionKind::wait))
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::wait);
  if (failed(emit(kernel.getBody().front())))
    return failure();
  if (!early && !admits)
    NVVM::GriddepcontrolOp::create(b, loc, NVVM::GridDepActionKind::launch_dependents);
  LLVM::ReturnOp::create(b, loc, ValueRange{});
  return success();
}

LogicalResult Emitter::emit(Block &block) {
  for (Operation &op : block)
    if (failed(emit(&op)))
      return failure();
  return success();
}

LogicalResult Emitter::emit(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Case<scf::YieldOp, tile::ReturnOp>([](auto) { return success(); })
      .Case([&](tile::LoadOp x) { return emitLoad(x); })
      .Case([&](tile::StoreOp x) { return emitStore(x); })
      .Case([&](tile::ViewOp x) { return emitView(x); })
      .Case([&](tile::CheckOp x) { return emitCheck(x); })
      .Case([&](tile::LoadPackedOp x) { return emitLoadPacked(x); })
      .Case([&](tile::GatherPackedOp x) { return emitGatherPacked(x); })
      .Case([&](tile::StoreSliceOp x) { return emitStoreSlice(x); })
      .Case([&](tile::UnpackRowOp x) { return emitUnpackRow(x); })
      .Case([&](tile::ReduceOp x) { return emitReduce(x); })
      .Case([&](tile::DotOp x) { return emitDot(x); })
      .Case([&](tile::ScaledDotOp x) { return emitScaledDot(x); })
      .Case([&](tile::RolesOp x) { return emitRoles(x); })
      .Case([&](tile::AllocRingOp x) { return emitAllocRing(x); })
      .Case([&](tile::AllocPipelineOp x) { return emitAllocPipeline(x); })
      .Case([&](tile::AcquireOp x) { return emitAcquire(x); })
      .Case([&](tile::AwaitOp x) { return emitAwait(x); })
      .Case([&](tile::ReleaseOp x) { return emitRelease(x); })
      .Case([&](tile::CopyAsyncOp x) { return emitCopyAsync(x); })
      .Case([&](tile::UnpackAsyncOp x) { return emitUnpackAsync(x); })
      .Case([&](tile::StartOp x) { return emitStart(x); })
      .Case([&](tile::WarpgroupDotOp x) { return emitWarpgroupDot(x); })
      .Case([&](tile::WaitOp x) { return emitWait(x); })
      .Case([&](tile::GatherAsyncOp x) { return emitGatherAsync(x); })
      .Case([&](tile::WarpgroupDotRowsOp x) { return emitWarpgroupDotRows(x); })
      .Case([&](tile::WarpgroupUpdateOp x) { return emitWarpgroupUpdate(x); })
      .Case([&](NVVM::GriddepcontrolOp x) { return NVVM::GriddepcontrolOp::create(b, loc, x.getKind()), success(); })
      .Case<tile::OpenTurnsOp, tile::TakeTurnOp, tile::PassTurnOp>([&](auto x) { return emitTurn(x); })
      .Case([&](tile::DealColumnsOp x) { return emitDealColumns(x); })
      .Case([&](tile::AllocRowsOp x) { return emitAllocRows(x); })
      .Case([&](tile::WarpgroupDotOwnOp x) { return emitWarpgroupDotOwn(x); })
      .Case([&](tile::StageOp x) { return emitStage(x); })
      .Case([&](tile::PublishOp x) { return emitPublish(x); })
      .Case([&](tile::ScatterOp x) { return emitScatter(x); })
      .Case([&](tile::StoreStagedOp x) { return emitStoreStaged(x); })
      .Case([&](tile::UnitsOp x) { return mapping.map(x.getResult(), launchNumber(/*ctas=*/false)), success(); })
      .Case([&](tile::CTAsOp x) { return mapping.map(x.getResult(), launchNumber(/*ctas=*/true)), success(); })
      .Case([&](tile::CrewOp x) { return mapping.map(x.getResult(), crew()), success(); })
      .Case([&](tile::PartOp x) { return mapping.map(x.getResult(), part()), success(); })
      .Case([&](tile::SumPartsOp x) { return emitSumParts(x); })
      .Case([&](tile::ArriveOp x) { return emitArrive(x); })
      .Case([&](tile::PairOrderOp x) { return emitPairOrder(x); })
      .Case([&](tile::ExpandOp x) { return emitBroadcast(x, x.getSource()); })
      .Case([&](vector::BroadcastOp x) { return emitBroadcast(x, x.getSource()); })
      .Case([&](vector::ShapeCastOp x) {
        if (!isFree(x.getSource()))
          set(x.getResult(), regs(x.getSource()));
        return success();
      })
      .Default([&](Operation *other) { return storeOfSum(other) ? success() : emitElementwise(other); });
}

/// A thread's share of a vector as a loop carries it: bf16 in pairs, one register each.
Values Emitter::carried(Value value, Value argument) {
  if (!isa<VectorType>(argument.getType()))
    return {scalar(value)};
  Values parts = regsIn(value, layouts.of(argument));
  if (!getElementTypeOrSelf(argument.getType()).isBF16() || parts.size() % 2)
    return parts;
  Values pairs;
  for (size_t i = 0; i < parts.size(); i += 2)
    pairs.push_back(pair(parts[i], parts[i + 1]));
  return pairs;
}

/// Of what carried() makes for `argument`.
void Emitter::appendCarriedTypes(Value argument, SmallVectorImpl<Type> &types) {
  auto vector = dyn_cast<VectorType>(argument.getType());
  if (!vector) {
    types.push_back(argument.getType());
    return;
  }
  size_t count = layouts.of(argument).size();
  bool pairs = vector.getElementType().isBF16() && count % 2 == 0;
  types.append(pairs ? count / 2 : count, pairs ? Type(b.getI32Type()) : vector.getElementType());
}

/// What carried() made, as registers of `value`.
void Emitter::restore(Value value, ValueRange parts) {
  if (!isa<VectorType>(value.getType()))
    return mapping.map(value, parts.front());
  Values registers(parts);
  if (getElementTypeOrSelf(value.getType()).isBF16() && parts.front().getType().isInteger(32)) {
    registers.clear();
    for (Value part : parts) {
      Value both = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getBF16Type()), part);
      registers.append({extract(both, 0), extract(both, 1)});
    }
  }
  set(value, registers);
}

LogicalResult Emitter::emitFor(scf::ForOp op) {
  Values inits;
  SmallVector<size_t> counts;
  for (auto [init, argument] : llvm::zip_equal(op.getInitArgs(), op.getRegionIterArgs())) {
    Values parts = carried(init, argument);
    counts.push_back(parts.size());
    inits.append(parts);
  }
  Value first = scalar(op.getLowerBound()), step = scalar(op.getStep());
  bool splits = isSplit(op);
  if (splits) {
    first = add(first, arith::MulIOp::create(b, loc, splitNumber(), step).getResult());
    step = mul(step, cta.splits);
  }
  auto loop = scf::ForOp::create(b, loc, first, scalar(op.getUpperBound()), step, inits);
  auto split = [&](ValueRange originals, ValueRange parts) {
    for (auto [original, count] : llvm::zip_equal(originals, counts)) {
      restore(original, parts.take_front(count));
      parts = parts.drop_front(count);
    }
  };
  mapping.map(op.getInductionVar(), loop.getInductionVar());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = loop.getBody();
    if (inits.empty())
      b.setInsertionPoint(body->getTerminator());
    else
      b.setInsertionPointToEnd(body);
    split(op.getRegionIterArgs(), loop.getRegionIterArgs());
    if (failed(emit(*op.getBody())))
      return failure();
    Values yielded;
    for (auto [value, argument] : llvm::zip_equal(op.getYieldedValues(), op.getRegionIterArgs()))
      yielded.append(carried(value, argument));
    if (!inits.empty())
      scf::YieldOp::create(b, loc, yielded);
  }
  split(op.getResults(), splits ? foldSplits(loop.getResults()) : Values(loop.getResults()));
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<size_t> counts;
  for (Value result : op.getResults()) {
    size_t before = types.size();
    appendCarriedTypes(result, types);
    counts.push_back(types.size() - before);
  }
  auto branch = scf::IfOp::create(b, loc, types, scalar(op.getCondition()), /*withElseRegion=*/!!op.elseBlock());
  auto fill = [&](Block *from, Block *to) {
    OpBuilder::InsertionGuard guard(b);
    if (types.empty())
      b.setInsertionPoint(to->getTerminator());
    else
      b.setInsertionPointToEnd(to);
    if (failed(emit(*from)))
      return failure();
    Values yielded;
    for (auto [value, result] : llvm::zip_equal(from->getTerminator()->getOperands(), op.getResults()))
      yielded.append(carried(value, result));
    if (!types.empty())
      scf::YieldOp::create(b, loc, yielded);
    return success();
  };
  if (failed(fill(op.thenBlock(), branch.thenBlock())) || (op.elseBlock() && failed(fill(op.elseBlock(), branch.elseBlock()))))
    return failure();
  ValueRange parts = branch.getResults();
  for (auto [result, count] : llvm::zip_equal(op.getResults(), counts)) {
    restore(result, parts.take_front(count));
    parts = parts.drop_front(count);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

Value Emitter::base(const Axis &axis) {
  for (auto &[known, value] : bases)
    if (known == axis)
      return value;
  // Made at the start of the kernel, where it dominates every use.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(quad.getDefiningOp());
  Value result;
  if (axis.id == Axis::Thread)
    result = axis.modulo ? Value(arith::RemUIOp::create(b, loc, thread, index(axis.modulo))) : thread;
  else if (axis.id != Axis::None)
    result = axis.id == Axis::Group ? group : quad;
  result = result ? mul(result, axis.scale) : index(0);
  if (axis.warp)
    result = add(result, mul(warp, axis.warp));
  bases.push_back({axis, result});
  return result;
}

Value Emitter::holdsAlone(const Layout &layout) {
  if (layout.kind == Layout::Full)
    return less(thread, index(1));
  if (layout.kind != Layout::Spread)
    return cta.splits > 1 ? equal(splitNumber(), index(0)) : Value();
  return layout.col.modulo ? less(thread, index(layout.col.modulo)) : Value();
}

int64_t llmc::cuda::divisorOf(Value value) {
  constexpr int64_t kAny = int64_t(1) << 20;
  IntegerAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return constant.getInt() ? std::abs(constant.getInt()) : kAny;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument == loop.getInductionVar())
      return std::gcd(divisorOf(loop.getLowerBound()), divisorOf(loop.getStep()));
    return 1;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::MulIOp>(op))
    return std::min(kAny, divisorOf(op->getOperand(0)) * divisorOf(op->getOperand(1)));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::gcd(divisorOf(op->getOperand(0)), divisorOf(op->getOperand(1)));
  return 1;
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value Emitter::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value Emitter::i32(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))); }
Value Emitter::constantF32(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
Value Emitter::add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value Emitter::mul(Value x, int64_t y) { return y == 1 ? x : Value(arith::MulIOp::create(b, loc, x, index(y))); }
Value Emitter::less(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y); }
Value Emitter::equal(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y); }
Value Emitter::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, loc, x, y);
}

Value Emitter::at(Value pointer, Value bytes) {
  Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ValueRange{offset});
}

Value Emitter::at(Value pointer, int64_t bytes) {
  if (!bytes)
    return pointer;
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value Emitter::load(Type type, Value pointer, unsigned alignment) {
  return LLVM::LoadOp::create(b, loc, type, pointer, alignment);
}

Value Emitter::extract(Value vector, int64_t lane) {
  return LLVM::ExtractElementOp::create(b, loc, vector, i32(lane));
}

Value Emitter::intrinsic(StringRef name, Type result, ValueRange operands) {
  if (!result) {
    LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), operands);
    return {};
  }
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands).getResult(0);
}

Value Emitter::assembly(StringRef text, StringRef constraints, Type result, ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(b, loc, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
                                      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
  return result ? op.getResult(0) : Value();
}

void Emitter::meet(Value number, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, Type(), number, i32(threads), NVVM::BarrierReductionAttr(), Value());
}

void Emitter::when(Value condition, llvm::function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

Value Emitter::shared(Type element, int64_t count) {
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name = ("shared" + Twine(sharedCount++)).str();
  OpBuilder::InsertionGuard guard(b);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(element, count), /*isConstant=*/false, LLVM::Linkage::Internal,
                           name, Attribute(), /*alignment=*/16, /*addrSpace=*/3);
  }
  return LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), 3), name);
}
