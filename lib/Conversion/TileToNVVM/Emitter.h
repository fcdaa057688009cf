//===- Emitter.h - writes a kernel for one thread ---------------*- C++ -*-===//
//
// Walks a scheduled tile.kernel and writes the program of one thread: each tile value
// becomes the scalars that this thread holds (Layout.h), control flow is copied. One
// file per op family implements the members.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CONVERSION_TILETONVVM_EMITTER_H
#define LLMC_CONVERSION_TILETONVVM_EMITTER_H

#include "Assignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace llmc::cuda {

using Values = llvm::SmallVector<mlir::Value>;

/// A packed right operand: where its columns (n) and rows (k) are.
struct PackedRef {
  tile::PackedType type;
  mlir::Value base;           ///< ptr<1> to panel 0, record or k 0
  int64_t panelBytes = 0;     ///< from one panel of 16 columns to the next
  int64_t firstGroup = 0;     ///< codes: the 32 k of the record at `base` that the operand starts with
  int64_t recordBytes = 0;    ///< from one record (q*) to the next; from one row to the next (bf16_nk: n, bf16_kn: k)
  Values pages;               ///< gathered: addresses of the pages (ptr<1>), each with `pageTokens` tokens
  int64_t pageTokens = 0;
};

/// A row's share of a group of 32 k of codes: this thread's eight, scale, minimum (or null).
struct RowCodes {
  /// Bytes of k 8t .. 8t + 3 and 8t + 4 .. 8t + 7, of a table its values + 128.
  mlir::Value first, second;
  mlir::Value scale, minimum;
};

class Emitter {
public:
  Emitter(tile::KernelOp kernel, const Shape &cta, const Assignment &layouts, mlir::OpBuilder &builder)
      : kernel(kernel), cta(cta), layouts(layouts), b(builder), loc(kernel.getLoc()) {}

  /// Fills the function's body.
  mlir::LogicalResult run(mlir::LLVM::LLVMFuncOp function);

private:
  // Control flow (Emitter.cpp).
  mlir::LogicalResult emit(mlir::Block &block);
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp op);
  mlir::LogicalResult emitIf(mlir::scf::IfOp op);
  Values carried(mlir::Value value, mlir::Value argument);
  void appendCarriedTypes(mlir::Value argument, llvm::SmallVectorImpl<mlir::Type> &types);
  void restore(mlir::Value value, mlir::ValueRange parts);

  // Splits.cpp
  bool isSplit(mlir::scf::ForOp op);          ///< warps share its steps
  mlir::Value splitNumber();                  ///< of this warp
  Values foldSplits(mlir::ValueRange values); ///< sums over the splits, in their order

  // Elementwise.cpp
  mlir::LogicalResult emitElementwise(mlir::Operation *op);
  mlir::Value emitMath(mlir::Operation *op, mlir::ValueRange operands);
  Values toE4M3(const Values &floats);
  mlir::LogicalResult emitBroadcast(mlir::Operation *op, mlir::Value source);
  mlir::LogicalResult emitPairOrder(tile::PairOrderOp op);

  // Memory.cpp
  mlir::LogicalResult emitLoad(tile::LoadOp op);
  mlir::LogicalResult emitStore(tile::StoreOp op);
  mlir::LogicalResult emitView(tile::ViewOp op);
  mlir::LogicalResult emitCheck(tile::CheckOp op);

  // Packed.cpp
  mlir::LogicalResult emitLoadPacked(tile::LoadPackedOp op);
  mlir::LogicalResult emitGatherPacked(tile::GatherPackedOp op);
  mlir::LogicalResult emitStoreSlice(tile::StoreSliceOp op);
  mlir::LogicalResult emitUnpackRow(tile::UnpackRowOp op);

  // Reduce.cpp
  mlir::LogicalResult emitReduce(tile::ReduceOp op);
  mlir::Value reduceSpread(tile::Reduction kind, Values regs, const Layout &layout);
  Values acrossWarps(tile::Reduction kind, Values regs);
  mlir::Value combine(tile::Reduction kind, mlir::Value x, mlir::Value y);
  mlir::Value shuffleXor(mlir::Value x, int64_t mask);

  // Async.cpp
  mlir::LogicalResult emitRoles(tile::RolesOp op);
  mlir::LogicalResult emitAllocRing(tile::AllocRingOp op);
  mlir::LogicalResult emitAllocPipeline(tile::AllocPipelineOp op);
  mlir::LogicalResult emitAcquire(tile::AcquireOp op);
  mlir::LogicalResult emitAwait(tile::AwaitOp op);
  mlir::LogicalResult emitRelease(tile::ReleaseOp op);
  mlir::LogicalResult emitCopyAsync(tile::CopyAsyncOp op);
  mlir::LogicalResult emitUnpackAsync(tile::UnpackAsyncOp op); ///< UnpackAsync.cpp
  void acquire(mlir::Value pipeline, mlir::Value round, int64_t bytes, bool manyThreads);
  mlir::LogicalResult emitStart(tile::StartOp op);
  mlir::LogicalResult emitWarpgroupDot(tile::WarpgroupDotOp op);
  /// `tokens`: descriptor of the first 16 k of `rows` tokens, the next `advance` further; the weights are in a slot of `ring`.
  mlir::LogicalResult startProducts(mlir::Operation *op, mlir::Value acc, mlir::Value tokens, int64_t advance, int64_t rows, mlir::Value ring,
                                    mlir::Value round);
  mlir::LogicalResult emitWait(tile::WaitOp op);
  void computeBefore(mlir::ValueRange rows, mlir::Value shared);
  mlir::Value mapArgument(size_t number); ///< the parameter of a tensor map
  mlir::Value addMap(mlir::Attribute map);
  mlir::FailureOr<mlir::Value> nextMap(mlir::Operation *op, mlir::Value memref, llvm::ArrayRef<int64_t> box); ///< the parameter
  void copyBox(mlir::Value map, mlir::Value target, mlir::ValueRange coordinates, mlir::Value full);
  mlir::Value slotAddress(mlir::Value ring, mlir::Value slot) { ///< in shared memory
    return at(dynamicShared(dynamicPlaces.at(ring)), mul(slot, slotBytes(mlir::cast<tile::RingType>(ring.getType()))));
  }
  mlir::Value isFirstProducer() { return equal(thread, index(cta.threads)); }
  mlir::Value launchNumber(bool ctas); ///< units or CTAs of the launch
  mlir::Value crew() { return mlir::arith::DivUIOp::create(b, loc, warpOfCTA, index(cta.warps())); } ///< of this thread
  void crewMeets();                    ///< the consumers of a unit
  mlir::Value threadOfCrew();
  /// Slot and parity of a round.
  std::pair<mlir::Value, mlir::Value> slotOf(mlir::Value round, int64_t stages);
  mlir::Value barrier(mlir::Value pipeline, mlir::Value slot, bool empty);
  mlir::Value dynamicShared(int64_t offset);
  /// `leading`: bytes from one panel of columns to the next where k runs down the rows (16: k runs along them, unused).
  mlir::Value descriptor(mlir::Value ring, mlir::Value slot, mlir::Value rowOffset, int64_t leading = 16);
  static int64_t slotBytes(tile::RingType ring) { return ring.getRows() * ring.getColumns() * 2; }

  // AsyncAttention.cpp
  mlir::LogicalResult emitGatherAsync(tile::GatherAsyncOp op);
  mlir::LogicalResult emitWarpgroupDotRows(tile::WarpgroupDotRowsOp op);
  mlir::LogicalResult emitWarpgroupUpdate(tile::WarpgroupUpdateOp op);
  mlir::LogicalResult emitTurn(mlir::Operation *op);

  // Arrive.cpp
  mlir::LogicalResult emitArrive(tile::ArriveOp op);

  // OwnRows.cpp
  mlir::LogicalResult emitAllocRows(tile::AllocRowsOp op);
  mlir::LogicalResult emitStage(tile::StageOp op);
  mlir::Value ownDescriptor(mlir::Value own, mlir::Value first);
  mlir::LogicalResult emitWarpgroupDotOwn(tile::WarpgroupDotOwnOp op);
  mlir::LogicalResult emitPublish(tile::PublishOp op);
  mlir::LogicalResult emitScatter(tile::ScatterOp op);

  // Staged.cpp
  mlir::LogicalResult emitDealColumns(tile::DealColumnsOp op);
  mlir::LogicalResult emitStoreStaged(tile::StoreStagedOp op);
  mlir::LogicalResult emitStoreStagedRows(tile::StoreStagedOp op);
  void storeRows(tile::StoreStagedOp op, mlir::Value ring, mlir::Value lane);
  mlir::Value placeIn(mlir::Value ring, mlir::Value row, mlir::Value piece, int64_t panelBytes); ///< of a ring's panels
  mlir::Value laneHere();
  void stage(mlir::Value ring, const Values &registers, int64_t rows);

  // StagedRows.cpp
  void warpgroupMeets();
  bool storesRows(tile::StoreOp op, const Layout &layout); ///< an f32 result goes through shared memory, and how
  int64_t columnsOfWarpgroup(tile::StoreOp op);
  mlir::Value firstColumnOfWarpgroup(int64_t columns);
  mlir::LogicalResult emitStoreRows(tile::StoreOp op, const Layout &layout);
  tile::LoadOp addendOf(tile::StoreOp op);
  tile::StoreOp storeOfSum(mlir::Operation *sum); ///< what computes it, or null
  bool isAddend(tile::LoadOp op);                 ///< the store reads it
  Values addendPieces(tile::StoreOp op, int64_t first, int64_t count);
  void askForAddends(tile::WaitOp op);
  void fetchAddends();
  void fetchAddend(tile::StoreOp op);
  void storePieces(tile::StoreOp op, mlir::Value staging, int64_t first, int64_t count, const Values &addends);

  // Parts.cpp
  mlir::Value part();
  void clusterMeets();
  void openParts();
  void closeParts();
  mlir::Value inPart(mlir::Value place, int64_t part);
  mlir::LogicalResult emitSumParts(tile::SumPartsOp op);

  // Dot.cpp
  mlir::LogicalResult emitDot(tile::DotOp op);
  mlir::LogicalResult dotRows(tile::DotOp op);       ///< rows of the left operand are rows of the instruction
  mlir::LogicalResult dotTransposed(tile::DotOp op); ///< columns of the right operand are
  void mma(llvm::ArrayRef<mlir::Value> a, mlir::Value b0, mlir::Value b1, mlir::Value *acc);

  // CodesDot.cpp: arithmetic bf16_g32
  void wholeNumbers(const RowCodes &codes, const CodedForm &form, mlir::Value words[4]);
  /// acc += the product with `groups` groups of 32 k; x: the left operand's registers.
  void dotCodes(const PackedRef &packed, const Values &x, int64_t tokenTiles, int64_t panelTiles, int64_t groups, Values &acc);

  // ScaledDot.cpp
  mlir::LogicalResult emitScaledDot(tile::ScaledDotOp op);
  mlir::Value panelOf(const PackedRef &packed, int64_t tile) { ///< of this warp in panel tile `tile`
    return at(packed.base, mul(add(warp, tile * cta.warps()), packed.panelBytes));
  }

  // Fragments.cpp: 32-bit registers of two bf16.
  /// Rows g and g + 8 of panel `panel`, k from 8t on of group `group` of 32: words [4] of each.
  struct WeightWords {
    mlir::Value low[4], high[4];
  };
  mlir::FailureOr<WeightWords> weightWords(const PackedRef &packed, int64_t tile, int64_t group);
  /// Of row `group` + offset of a panel.
  RowCodes rowCodes(const PackedRef &packed, mlir::Value panel, int64_t groupOfK, int64_t offset);
  void dequantize(const PackedRef &packed, mlir::Value panel, int64_t groupOfK, int64_t offset, mlir::Value words[4]);
  /// Right-operand registers of column tile `tile` (8 columns, or those of `block` tiles for bf16_kn).
  mlir::Value pair(mlir::Value low, mlir::Value high); ///< two bf16 (or f32, rounded) as one register
  mlir::Value wordsOfRow(const PackedRef &packed, int64_t tile, int64_t k);
  Values pairsOfRows(const PackedRef &packed, int64_t columnBlock, int64_t block, mlir::Value row, int64_t page);

public:
  /// Dynamic shared memory, and the tensor maps in the form of the module attribute `llmc.tensor_maps`.
  int64_t dynamicBytes() const { return dynamicOffset; }
  llvm::ArrayRef<mlir::Attribute> tensorMaps() const { return maps; }

  // Values.
  const Values &regs(mlir::Value value) const { return vectors.find(value)->second; }
  /// The registers of a vector in a layout; constants are made here.
  Values regsIn(mlir::Value value, const Layout &layout);
  /// The scalar that all elements are.
  mlir::Value uniform(mlir::Value value);
  void set(mlir::Value value, Values registers) { vectors[value] = std::move(registers); }
  mlir::Value scalar(mlir::Value value) { return mapping.lookup(value); }

  // Coordinates, as index values.
  mlir::Value base(const Axis &axis);
  mlir::Value coordinate(const Axis &axis, int64_t constant) { return add(base(axis), constant); }
  /// Whether this thread holds elements that no other thread holds; null: always.
  mlir::Value holdsAlone(const Layout &layout);

  // Building blocks.
  mlir::Value index(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value constantF32(float value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y) { return y ? add(x, index(y)) : x; }
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y); ///< and; null operands are true
  mlir::Value at(mlir::Value pointer, mlir::Value bytes);
  mlir::Value at(mlir::Value pointer, int64_t bytes);
  mlir::Value load(mlir::Type type, mlir::Value pointer, unsigned alignment);
  mlir::Value extract(mlir::Value vector, int64_t lane);
  /// Inline PTX, which stays where it stands; null without a result type.
  mlir::Value assembly(llvm::StringRef text, llvm::StringRef constraints, mlir::Type result, mlir::ValueRange operands);
  /// Named barriers: 0 is the CTA's.
  enum NamedBarrier { kConsumersMeet = 1, kFirstWarpgroup = 2, kFirstTurn = 8 };
  void meet(mlir::Value number, int64_t threads);
  void consumersMeet() { meet(i32(kConsumersMeet), cta.threads); }
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, mlir::ValueRange operands);
  /// Runs `body` where `condition` holds (null: always).
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Shared memory of `count` elements.
  mlir::Value shared(mlir::Type element, int64_t count);

private:
  tile::KernelOp kernel;
  Shape cta;
  const Assignment &layouts;
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::IRMapping mapping;                      // scalars and memrefs (base pointers)
  llvm::DenseMap<mlir::Value, Values> vectors;
  llvm::DenseMap<mlir::Value, PackedRef> packed;
  mlir::Value thread, warp, group, quad;        // index: of the CTA, warp of a split or crew; of the lane: lane / 4, lane % 4
  mlir::Value warpOfCTA, split;                 // of the warp, index
  llvm::SmallVector<std::pair<Axis, mlir::Value>> bases;
  mlir::LLVM::LLVMFuncOp function;
  int64_t sharedCount = 0;
  llvm::DenseMap<mlir::Value, int64_t> dynamicPlaces; // rings and pipelines, offsets in dynamic shared memory
  int64_t dynamicOffset = 0;
  llvm::SmallVector<mlir::Attribute> maps;
  llvm::DenseMap<mlir::Operation *, Values> addendsAhead; // of stores: pieces of their first rows
  int64_t partsBarriers = 0; // offset in dynamic shared memory: all parts have come, all have been read
};

/// `count` f32 registers as one value, as products in flight are.
mlir::Type structOf(mlir::MLIRContext *context, size_t count);

/// What every value of an index is a multiple of.
int64_t divisorOf(mlir::Value index);

} // namespace llmc::cuda

#endif // LLMC_CONVERSION_TILETONVVM_EMITTER_H
