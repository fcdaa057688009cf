//===- TileToNVVM.cpp - scheduled tile kernels to the program of a thread -===//
//
// Each tile.kernel becomes an llvm.func with the parameters that llmc/abi.h says
// (llmc_cuda_kernel_v1): a pointer per buffer, the row count, in a persistent kernel the
// number of units. Elsewhere a unit is a CTA.
//
//===----------------------------------------------------------------------===//

#include "llmc/Conversion/TileToNVVM.h"

#include "Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cuda;

/// Whether a buffer (or a view of it) is ever stored to.
static bool isWritten(Value buffer) {
  return llvm::any_of(buffer.getUses(), [](OpOperand &use) {
    if (auto view = dyn_cast<tile::ViewOp>(use.getOwner()))
      return isWritten(view.getResult());
    if (auto store = dyn_cast<tile::StoreOp>(use.getOwner()))
      return store.getMemref() == use.get();
    if (auto store = dyn_cast<tile::StoreStagedOp>(use.getOwner()))
      return store.getMemref() == use.get();
    return isa<tile::StoreSliceOp, tile::ArriveOp>(use.getOwner()) ||
           (isa<tile::ScatterOp>(use.getOwner()) && cast<tile::ScatterOp>(use.getOwner()).getMemref() == use.get());
  });
}

static Value bufferOf(Value memref) {
  while (auto view = memref.getDefiningOp<tile::ViewOp>())
    memref = view.getSource();
  return memref;
}

static LLVM::LLVMFuncOp declare(tile::KernelOp kernel, const Shape &cta, OpBuilder &b) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Type> types(kernel.getBuffers().size(), LLVM::LLVMPointerType::get(context, 1));
  types.append(cta.persistent ? 2 : 1, b.getI64Type());
  size_t copies = 0; // with a tensor map of their own
  llvm::DenseSet<std::tuple<Value, Type, Attribute>> boxes;
  kernel.walk([&](Operation *op) {
    auto copy = dyn_cast<tile::CopyAsyncOp>(op);
    copies += copy ? boxes.insert({bufferOf(copy.getMemref()), copy.getMemref().getType(), copy.getBoxAttr()}).second : isa<tile::GatherAsyncOp>(op);
  });
  types.append(copies, LLVM::LLVMPointerType::get(context));
  auto function = LLVM::LLVMFuncOp::create(b, kernel.getLoc(), kernel.getSymName(),
                                           LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), b.getDenseI32ArrayAttr({static_cast<int32_t>(cta.all()), 1, 1}));
  // Without it ptxas aims at an occupancy of its own and spills to reach it.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(static_cast<int32_t>(cta.residents)));
  if (cta.parts > 1)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), b.getDenseI32ArrayAttr({static_cast<int32_t>(cta.parts), 1, 1}));
  for (auto [i, buffer] : llvm::enumerate(kernel.getBuffers())) {
    // Launches never share memory between operands and results, but for caches, which come once.
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    if (!isWritten(buffer))
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
  for (unsigned i = types.size() - copies; i < types.size(); ++i) { // tensor maps, by value
    auto map = TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), 128));
    function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(), map);
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
  }
  function.addEntryBlock(b);
  return function;
}

/// What nobody uses has no layout to agree with.
static void eraseDead(tile::KernelOp kernel) {
  kernel.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}

namespace {

struct TileToNVVMPass : PassWrapper<TileToNVVMPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileToNVVMPass)

  StringRef getArgument() const override { return "tile-to-nvvm"; }
  StringRef getDescription() const override { return "lower scheduled tile kernels to the program of a GPU thread"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    OpBuilder b(&getContext());
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>())) {
      FailureOr<Shape> cta = shapeOf(kernel);
      eraseDead(kernel);
      Assignment layouts;
      if (failed(cta) || failed(layouts.run(kernel, *cta)))
        return signalPassFailure();
      b.setInsertionPoint(kernel);
      LLVM::LLVMFuncOp function = declare(kernel, *cta, b);
      Emitter emitter(kernel, *cta, layouts, b);
      if (failed(emitter.run(function)))
        return signalPassFailure();
      getOperation()->setAttr("llmc.threads", b.getI32IntegerAttr(static_cast<int32_t>(cta->all())));
      getOperation()->setAttr("llmc.shared_bytes", b.getI32IntegerAttr(static_cast<int32_t>(emitter.dynamicBytes())));
      if (cta->persistent)
        getOperation()->setAttr("llmc.persistent", b.getI32IntegerAttr(static_cast<int32_t>(cta->parts)));
      if (!emitter.tensorMaps().empty())
        getOperation()->setAttr("llmc.tensor_maps", b.getArrayAttr(emitter.tensorMaps()));
      kernel.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTileToNVVMPass() { return std::make_unique<TileToNVVMPass>(); }
