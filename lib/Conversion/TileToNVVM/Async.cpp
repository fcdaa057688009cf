//===- Async.cpp - rings, pipelines and warpgroup products ----------------===//
//
// What the ops say, in the instructions of Hopper: a slot of a ring is filled by bulk
// tensor copies that count bytes on an mbarrier (PTX ISA 9.7.13.15, 9.7.9.27), read by
// wgmma through shared memory descriptors (9.7.16). Round i uses slot i % stages; the
// parity of i / stages tells which filling of the slot a barrier's phase is.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "llmc/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

static constexpr int64_t kRowBytes = 128; // of a panel of a ring

// Of a thread, where a whole warpgroup produces and one or two consume. A CTA of 384 threads starts with 168 for each, one of 256, two of
// which share a multiprocessor, with 128: the consumers would wait for ever for more than the producers give.
static constexpr int32_t kConsumerRegisters = 232, kLoneConsumerRegisters = 216, kProducerRegisters = 40;
static_assert(2 * kConsumerRegisters + kProducerRegisters <= 3 * 168 && kLoneConsumerRegisters + kProducerRegisters <= 2 * 128);
// The same where the producers unpack codes for two consumers: these need most for more than 160 tokens, else those do.
struct UnpackingRegisters {
  int32_t consumer, producer;
};
static constexpr UnpackingRegisters kUnpackingForMany{216, 72}, kUnpacking{184, 136};
static_assert(2 * kUnpackingForMany.consumer + kUnpackingForMany.producer <= 3 * 168);
static_assert(2 * kUnpacking.consumer + kUnpacking.producer <= 3 * 168);

static UnpackingRegisters unpackingRegisters(tile::RolesOp op) {
  int64_t tokens = 0;
  op.getConsumers().walk([&](tile::WarpgroupDotOp dot) { tokens = cast<tile::RingType>(dot.getA().getType()).getRows(); });
  return tokens > 160 ? kUnpackingForMany : kUnpacking;
}

//===----------------------------------------------------------------------===//
// Shared memory, roles and barriers
//===----------------------------------------------------------------------===//

Value Emitter::dynamicShared(int64_t offset) {
  static constexpr llvm::StringLiteral name = "dynamic_shared";
  auto module = kernel->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false, LLVM::Linkage::External, name,
                           Attribute(), /*alignment=*/1024, /*addrSpace=*/3); // swizzling repeats every 1024 bytes
  }
  return at(LLVM::AddressOfOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), 3), name), offset);
}

LogicalResult Emitter::emitAllocRing(tile::AllocRingOp op) {
  auto ring = cast<tile::RingType>(op.getType());
  if (slotBytes(ring) % 1024)
    return op.emitOpError("expected slots of a multiple of 1024 bytes, got ") << slotBytes(ring);
  dynamicPlaces[op.getResult()] = dynamicOffset;
  dynamicOffset += slotBytes(ring) * ring.getStages();
  return success();
}

LogicalResult Emitter::emitAllocPipeline(tile::AllocPipelineOp op) {
  int64_t stages = cast<tile::PipelineType>(op.getType()).getStages();
  dynamicPlaces[op.getResult()] = dynamicOffset;
  dynamicOffset += 16 * stages;
  // Copies count bytes for the thread that announces them; of those who unpack, every warp arrives.
  bool unpacked = llvm::any_of(op->getUsers(), [](Operation *user) { return isa<tile::UnpackAsyncOp>(user); });
  int64_t full = 1 + (unpacked ? cta.producers / 32 : 0);
  when(less(thread, index(1)), [&] {
    for (int64_t stage = 0; stage < stages; ++stage) {
      NVVM::MBarrierInitOp::create(b, loc, barrier(op.getResult(), index(stage), /*empty=*/false), i32(full), Value());
      NVVM::MBarrierInitOp::create(b, loc, barrier(op.getResult(), index(stage), /*empty=*/true), i32(cta.warps()), Value());
    }
    NVVM::FenceMbarrierInitOp::create(b, loc);
  });
  NVVM::Barrier0Op::create(b, loc);
  return success();
}

Value Emitter::barrier(Value pipeline, Value slot, bool empty) {
  int64_t stages = cast<tile::PipelineType>(pipeline.getType()).getStages();
  return at(dynamicShared(dynamicPlaces.at(pipeline) + (empty ? 8 * stages : 0)), mul(slot, 8));
}

std::pair<Value, Value> Emitter::slotOf(Value round, int64_t stages) {
  // Rounds of a CTA fit 32 bits, where a division is cheaper.
  Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), round);
  Value slot = arith::RemUIOp::create(b, loc, number, i32(stages)), filling = arith::DivUIOp::create(b, loc, number, i32(stages));
  Value parity = arith::AndIOp::create(b, loc, filling, i32(1));
  return {arith::IndexCastUIOp::create(b, loc, b.getIndexType(), slot), parity};
}

static constexpr int64_t kTicks = 10'000'000; // of one attempt to wait; it is repeated until the phase is over

/// Whether more than one of the producers' threads run an op.
static bool isMany(Operation *op) {
  auto roles = op->getParentOfType<tile::RolesOp>();
  return roles && (roles.getWarps() || roles.getUnpacking());
}

LogicalResult Emitter::emitAcquire(tile::AcquireOp op) {
  acquire(op.getPipeline(), op.getRound(), op.getBytes(), isMany(op));
  return success();
}

void Emitter::acquire(Value pipeline, Value round, int64_t bytes, bool manyThreads) {
  auto [slot, parity] = slotOf(scalar(round), cast<tile::PipelineType>(pipeline.getType()).getStages());
  // The first filling waits for the phase before the first, which counts as over.
  Value before = arith::XOrIOp::create(b, loc, parity, i32(1));
  NVVM::MBarrierTryWaitParityOp::create(b, loc, barrier(pipeline, slot, /*empty=*/true), before, i32(kTicks));
  when(manyThreads ? isFirstProducer() : Value(), [&] {
    NVVM::MBarrierArriveExpectTxOp::create(b, loc, Type(), barrier(pipeline, slot, /*empty=*/false), i32(bytes), NVVM::MemScopeKind::CTA,
                                           /*relaxed=*/false, Value());
  });
}

LogicalResult Emitter::emitAwait(tile::AwaitOp op) {
  auto [slot, parity] = slotOf(scalar(op.getRound()), cast<tile::PipelineType>(op.getPipeline().getType()).getStages());
  NVVM::MBarrierTryWaitParityOp::create(b, loc, barrier(op.getPipeline(), slot, /*empty=*/false), parity, i32(kTicks));
  return success();
}

/// One lane of each warp arrives.
LogicalResult Emitter::emitRelease(tile::ReleaseOp op) {
  Value round = scalar(op.getRound());
  Value lane = arith::AndIOp::create(b, loc, thread, index(31));
  Value arrives = both(less(lane, index(1)), less(index(-1), round));
  when(arrives, [&] {
    Value slot = slotOf(round, cast<tile::PipelineType>(op.getPipeline().getType()).getStages()).first;
    NVVM::MBarrierArriveOp::create(b, loc, Type(), barrier(op.getPipeline(), slot, /*empty=*/true), Value(), NVVM::MemScopeKind::CTA,
                                   /*relaxed=*/false);
  });
  return success();
}

Value Emitter::launchNumber(bool ctas) {
  if (ctas) { // that are in different units; read where it is asked for: what is computed from it takes no registers before
    Value number = assembly("mov.u32 $0, %nctaid.x;", "=r", b.getI32Type(), {});
    if (cta.parts > 1)
      number = arith::DivUIOp::create(b, loc, number, i32(cta.parts));
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
  }
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), function.getArgument(kernel.getBuffers().size() + 1));
}

static void setRegisters(OpBuilder &b, Location loc, int32_t count, NVVM::SetMaxRegisterAction action) {
  NVVM::SetMaxRegisterOp::create(b, loc, b.getI32IntegerAttr(count), NVVM::SetMaxRegisterActionAttr::get(b.getContext(), action));
}

// A warpgroup of producers gives most of its registers to the consumers (PTX ISA 9.7.19.5).
LogicalResult Emitter::emitRoles(tile::RolesOp op) {
  bool warpgroup = cta.producers == 128, unpacking = op.getUnpacking();
  if (unpacking && !warpgroup)
    return op.emitOpError("expected a warpgroup of producers that unpack, got ") << cta.producers << " threads";
  if (cta.producers % 32 || cta.producers < 32 || cta.producers > 128)
    return op.emitOpError("expected a schedule with one to four warps of producers, got ") << cta.producers << " threads";
  openParts();
  // The two roles are the branches of one condition, or ptxas ignores the change of registers.
  auto branch = scf::IfOp::create(b, loc, less(index(cta.threads / 32 - 1), warpOfCTA), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  if (warpgroup)
    setRegisters(b, loc, unpacking ? unpackingRegisters(op).producer : kProducerRegisters, NVVM::SetMaxRegisterAction::decrease);
  LogicalResult result = success();
  Value lane = arith::AndIOp::create(b, loc, thread, index(31));
  when(unpacking ? Value() : op.getWarps() ? equal(lane, index(0)) : isFirstProducer(), [&] { result = emit(op.getProducer().front()); });
  if (failed(result))
    return failure();
  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  if (warpgroup)
    setRegisters(b, loc, unpacking ? unpackingRegisters(op).consumer : cta.threads == 128 ? kLoneConsumerRegisters : kConsumerRegisters,
                 NVVM::SetMaxRegisterAction::increase);
  result = emit(op.getConsumers().front());
  b.setInsertionPointAfter(branch);
  closeParts();
  return result;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The 19 numbers of llmc_tensor_map_v1: the innermost dimension first.
static FailureOr<Attribute> tensorMap(Operation *op, Value source, ArrayRef<int64_t> wanted, OpBuilder &b) {
  auto memref = cast<MemRefType>(source.getType());
  while (auto view = source.getDefiningOp<tile::ViewOp>()) {
    if (view.getOffset())
      return op->emitOpError("expected a view from the buffer's start");
    source = view.getSource();
  }
  auto buffer = dyn_cast<BlockArgument>(source);
  SmallVector<int64_t> strides;
  int64_t offset, rank = memref.getRank(), bytes = memref.getElementTypeBitWidth() / 8;
  if (!buffer || failed(memref.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return op->emitOpError("expected one of the kernel's buffers, its last dimension contiguous");
  SmallVector<int64_t, 19> numbers{static_cast<int64_t>(buffer.getArgNumber()), bytes == 1 ? LLMC_I8 : LLMC_BF16, rank, kRowBytes};
  constexpr int64_t kEndless = int64_t(1) << 24; // rows: the arena is padded to what tiles read
  SmallVector<int64_t, 5> dims(5, 0), steps(5, 0), box(5, 0);
  for (int64_t i = 0; i < rank; ++i) {
    int64_t from = rank - 1 - i, size = memref.getDimSize(from);
    dims[i] = ShapedType::isDynamic(size) ? kEndless : size;
    steps[i] = strides[from] * bytes;
    box[i] = wanted[from];
  }
  numbers.append(dims);
  numbers.append(steps);
  numbers.append(box);
  return Attribute(b.getDenseI64ArrayAttr(numbers));
}

Value Emitter::mapArgument(size_t number) {
  return function.getArgument(kernel.getBuffers().size() + (cta.persistent ? 2 : 1) + number);
}

Value Emitter::addMap(Attribute map) {
  maps.push_back(map);
  return mapArgument(maps.size() - 1);
}

FailureOr<Value> Emitter::nextMap(Operation *op, Value memref, ArrayRef<int64_t> box) {
  FailureOr<Attribute> map = tensorMap(op, memref, box, b);
  if (failed(map))
    return failure();
  return addMap(*map);
}

void Emitter::copyBox(Value map, Value target, ValueRange coordinates, Value full) {
  target = LLVM::AddrSpaceCastOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext(), 7), target);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(b, loc, target, map, coordinates, full, ValueRange{}, Value(), Value(),
                                                         NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false, NVVM::CTAGroupKindAttr(), Value());
}

LogicalResult Emitter::emitCopyAsync(tile::CopyAsyncOp op) {
  FailureOr<Attribute> numbers = tensorMap(op, op.getMemref(), op.getBox(), b);
  if (failed(numbers))
    return failure();
  // Copies of the same boxes share a map; TileToNVVM.cpp counts them alike.
  auto *known = llvm::find(maps, *numbers);
  Value map = known == maps.end() ? addMap(*numbers) : mapArgument(known - maps.begin());
  auto ring = cast<tile::RingType>(op.getRing().getType());
  Value slot = slotOf(scalar(op.getRound()), ring.getStages()).first;
  Value target = at(slotAddress(op.getRing(), slot), static_cast<int64_t>(op.getPanel()) * ring.getRows() * kRowBytes);
  Values coordinates;
  for (Value index : llvm::reverse(op.getIndices()))
    coordinates.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), scalar(index)));
  when(isMany(op) ? isFirstProducer() : Value(), [&] { copyBox(map, target, coordinates, barrier(op.getPipeline(), slot, /*empty=*/false)); });
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Type llmc::cuda::structOf(MLIRContext *context, size_t count) {
  return LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(count, Float32Type::get(context)));
}

LogicalResult Emitter::emitStart(tile::StartOp op) {
  fetchAddends();
  auto type = cast<VectorType>(op.getVector().getType());
  Layout layout = accumulator(cta, type.getDimSize(0), type.getDimSize(1));
  bool fits = cta.transposed ? !layout.rowsPadded && type.getDimSize(1) <= 32 * cta.warps() : type.getDimSize(0) <= 16 * cta.warps();
  if (!fits || layout.colsPadded)
    return op.emitOpError("expected 64 ") << (cta.transposed ? "or 128 columns" : "rows") << " for each warpgroup, got " << type;
  Value chain = LLVM::PoisonOp::create(b, loc, structOf(b.getContext(), layout.size()));
  for (auto [i, x] : llvm::enumerate(regsIn(op.getVector(), layout)))
    chain = LLVM::InsertValueOp::create(b, loc, chain, x, i);
  mapping.map(op.getResult(), chain);
  return success();
}

/// Tile with 128-byte swizzling (PTX ISA 9.7.16.5.1): start, stride of 8 rows = 1024 bytes, mode 1.
Value Emitter::descriptor(Value ring, Value slot, Value rowOffset, int64_t leading) {
  auto type = cast<tile::RingType>(ring.getType());
  Value place = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), dynamicShared(dynamicPlaces.at(ring)));
  Value bytes = mul(slot, slotBytes(type));
  if (rowOffset)
    bytes = add(bytes, mul(rowOffset, kRowBytes));
  place = arith::AddIOp::create(b, loc, place, arith::IndexCastOp::create(b, loc, b.getI32Type(), bytes));
  Value start = arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, place, i32(4)), i32(0x3FFF));
  Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), start);
  uint64_t mode = (uint64_t(1) << 62) | (uint64_t(1024 >> 4) << 32) | (uint64_t(leading >> 4) << 16);
  return arith::OrIOp::create(b, loc, wide, arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(static_cast<int64_t>(mode))));
}

/// `count` of the registers of products in flight, from `first` on, as a chain of their own.
static Value registersOf(OpBuilder &b, Location loc, Value chain, size_t first, size_t count) {
  Value own = LLVM::PoisonOp::create(b, loc, structOf(b.getContext(), count));
  for (size_t i = 0; i < count; ++i)
    own = LLVM::InsertValueOp::create(b, loc, own, LLVM::ExtractValueOp::create(b, loc, chain, first + i), i);
  return own;
}

/// Chains of as many registers each as one.
static Value joined(OpBuilder &b, Location loc, const Values &chains, size_t each) {
  if (chains.size() == 1)
    return chains.front();
  Value all = LLVM::PoisonOp::create(b, loc, structOf(b.getContext(), each * chains.size()));
  for (auto [number, chain] : llvm::enumerate(chains))
    for (size_t i = 0; i < each; ++i)
      all = LLVM::InsertValueOp::create(b, loc, all, LLVM::ExtractValueOp::create(b, loc, chain, i), number * each + i);
  return all;
}

LogicalResult Emitter::emitWarpgroupDot(tile::WarpgroupDotOp op) {
  auto tokens = cast<tile::RingType>(op.getA().getType());
  Value slot = slotOf(scalar(op.getRoundA()), tokens.getStages()).first;
  // 16 k of bf16, or 32 of e4m3, are 32 bytes further in each row.
  return startProducts(op, op.getAcc(), descriptor(op.getA(), slot, {}), 2, tokens.getRows(), op.getB(), op.getRoundB());
}

LogicalResult Emitter::startProducts(Operation *op, Value acc, Value tokens, int64_t advance, int64_t rows, Value ring, Value round) {
  auto ringB = cast<tile::RingType>(ring.getType());
  int64_t blocks = ringB.getRows() / (16 * cta.warps()); // of 64 columns, of a warpgroup
  if (ringB.getRows() % (16 * cta.warps()) || blocks > 2)
    return op->emitOpError("expected 64 or 128 rows of the right operand for each warpgroup, got ") << ringB.getRows();
  Value slotB = slotOf(scalar(round), ringB.getStages()).first;
  Value first = mul(arith::DivUIOp::create(b, loc, warp, index(4)), 64);
  size_t each = static_cast<size_t>(rows / 2);
  Values weights, chains;
  for (int64_t block = 0; block < blocks; ++block) {
    weights.push_back(descriptor(ring, slotB, add(first, 16 * cta.warps() * block)));
    chains.push_back(blocks == 1 ? scalar(acc) : registersOf(b, loc, scalar(acc), each * block, each));
  }
  auto dot = dyn_cast<tile::WarpgroupDotOp>(op);
  bool e4m3 = dot && dot.getArith() == tile::DotArith::E4M3;
  NVVM::WGMMATypes operand = e4m3 ? NVVM::WGMMATypes::e4m3 : NVVM::WGMMATypes::bf16;
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t step = 0; step < 4; ++step)
    for (auto [chain, start] : llvm::zip_equal(chains, weights)) {
      auto advanced = [&](Value start, int64_t by) -> Value {
        return step ? arith::AddIOp::create(b, loc, start, arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(by * step))).getResult() : start;
      };
      chain = NVVM::WgmmaMmaAsyncOp::create(b, loc, chain.getType(), chain, advanced(start, 2), advanced(tokens, advance),
                                            NVVM::MMAShapeAttr::get(b.getContext(), 64, static_cast<int>(2 * each), e4m3 ? 32 : 16), operand,
                                            operand, NVVM::WGMMATypes::f32, NVVM::WGMMAScaleOut::one,
                                            NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row, NVVM::MMALayout::col,
                                            NVVM::MMAIntOverflowAttr());
    }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  mapping.map(op->getResult(0), joined(b, loc, chains, each));
  return success();
}

/// ptxas moves a wait above whatever does not touch memory: what should be computed while products run is computed behind
/// them. A load that never happens and depends on `rows` keeps what leads to them before the wait.
void Emitter::computeBefore(ValueRange rows, Value shared) {
  for (Value row : rows)
    assembly("{ .reg .pred p; .reg .b32 x; setp.eq.f32 p, $0, 0fFF800000; @p ld.volatile.shared.b32 x, [$1]; }", "f,r", {}, {row, shared});
}

// The registers pass through the wait, so that nothing that reads them can be moved before it.
LogicalResult Emitter::emitWait(tile::WaitOp op) {
  askForAddends(op);
  Values registers;
  SmallVector<size_t> counts;
  for (auto [operand, result] : llvm::zip_equal(op.getOperands(), op.getResults())) {
    counts.push_back(0);
    if (!isa<VectorType>(result.getType())) {
      mapping.map(result, scalar(operand));
      continue;
    }
    size_t before = registers.size();
    if (isa<VectorType>(operand.getType())) {
      registers.append(regsIn(operand, layouts.of(result)));
      if (layouts.of(result).kind == Layout::Rows)
        computeBefore(ArrayRef(registers).drop_front(before), LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), dynamicShared(0)));
    } else {
      Value chain = scalar(operand);
      for (size_t i = 0; i < cast<LLVM::LLVMStructType>(chain.getType()).getBody().size(); ++i)
        registers.push_back(LLVM::ExtractValueOp::create(b, loc, chain, i));
    }
    counts.back() = registers.size() - before;
  }
  if (registers.empty()) {
    NVVM::WgmmaWaitGroupSyncOp::create(b, loc, op.getPending());
    return success();
  }
  size_t count = registers.size();
  std::string constraints;
  for (size_t i = 0; i < count; ++i)
    constraints += "=f,";
  for (size_t i = 0; i < count; ++i)
    constraints += std::to_string(i) + (i + 1 < count ? "," : "");
  std::string text = "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
  Value after = assembly(text, constraints, structOf(b.getContext(), count), registers);
  size_t next = 0;
  for (auto [result, parts] : llvm::zip_equal(op.getResults(), counts)) {
    Values values;
    for (size_t i = 0; i < parts; ++i)
      values.push_back(LLVM::ExtractValueOp::create(b, loc, after, next++));
    if (parts)
      set(result, values);
  }
  return success();
}
