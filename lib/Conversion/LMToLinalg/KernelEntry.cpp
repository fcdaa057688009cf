//===- KernelEntry.cpp - kernels on memrefs as llmc_kernel_fn -------------===//
//
// A kernel gets one array of pointers. LLVM knows nothing about pointers it has loaded, so that no sum could stay in
// a register beside a store; as arguments of the body they are `noalias`. That is sound: a launch
// never writes a buffer that it reads (rt-plan-arena keeps results apart from inputs), and reads may overlap.
//
//===----------------------------------------------------------------------===//
#include "llmc/Conversion/LMToLinalg.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace llmc {
#define GEN_PASS_DEF_REFERENCEKERNELENTRYPASS
#include "lib/Conversion/LMToLinalg/Passes.h.inc"
} // namespace llmc

using namespace mlir;

namespace {

/// The value of type `memref` for the contiguous buffer at `pointer`; dynamic sizes become `rows` (nobody asks for them).
Value describe(OpBuilder &b, Location loc, const LLVMTypeConverter &types, MemRefType memref, Value pointer, Value rows) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)memref.getStridesAndOffset(strides, offset);
  auto descriptor = MemRefDescriptor::poison(b, loc, types.convertType(memref));
  descriptor.setAllocatedPtr(b, loc, pointer);
  descriptor.setAlignedPtr(b, loc, pointer);
  descriptor.setConstantOffset(b, loc, 0);
  for (auto [i, size] : llvm::enumerate(memref.getShape())) {
    if (ShapedType::isDynamic(size))
      descriptor.setSize(b, loc, i, rows);
    else
      descriptor.setConstantSize(b, loc, i, size);
    descriptor.setConstantStride(b, loc, i, strides[i]);
  }
  Value value = descriptor;
  return UnrealizedConversionCastOp::create(b, loc, memref, value).getResult(0);
}

struct ReferenceKernelEntryPass : llmc::impl::ReferenceKernelEntryPassBase<ReferenceKernelEntryPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr("llmc.kernel"))
        kernels.push_back(func);
    for (func::FuncOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  LogicalResult lower(func::FuncOp kernel) {
    TypeRange types = kernel.getArgumentTypes();
    if (types.size() < 3 || !llvm::all_of(types.take_back(3), [](Type type) { return type.isIndex(); }))
      return kernel.emitOpError("expected buffers, then three index arguments");
    unsigned buffers = types.size() - 3;
    for (unsigned i = 0; i < buffers; ++i) {
      auto memref = dyn_cast<MemRefType>(kernel.getArgument(i).getType());
      if (!memref || !memref.getLayout().isIdentity() || llvm::any_of(memref.getShape().drop_front(), ShapedType::isDynamic))
        return kernel.emitOpError("argument ") << i << ": expected a contiguous memref with static columns, got "
                                               << kernel.getArgument(i).getType();
    }
    std::string name = kernel.getName().str();
    kernel.setName(name + ".body");
    kernel->removeAttr("llmc.kernel");
    lowerBody(kernel, buffers);
    createEntry(name, kernel, buffers);
    return success();
  }

  /// Memref and index arguments become pointers and i64.
  void lowerBody(func::FuncOp body, unsigned buffers) {
    MLIRContext *context = &getContext();
    LLVMTypeConverter types(context);
    OpBuilder b = OpBuilder::atBlockBegin(&body.front());
    Location loc = body.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(context);
    SmallVector<Type> arguments(buffers, pointer);
    arguments.append(3, b.getI64Type());
    // From the end, so that `rows` exists when the descriptors are made.
    Value rows = body.getArgument(buffers);
    for (unsigned i = body.getNumArguments(); i-- > 0;) {
      BlockArgument argument = body.getArgument(i);
      Type old = argument.getType();
      Value placeholder = UnrealizedConversionCastOp::create(b, loc, old, ValueRange{}).getResult(0);
      argument.replaceAllUsesWith(placeholder);
      argument.setType(arguments[i]);
      Value replacement = i < buffers ? describe(b, loc, types, cast<MemRefType>(old), argument, rows)
                                      : arith::IndexCastOp::create(b, loc, old, argument).getResult();
      placeholder.replaceAllUsesWith(replacement);
      placeholder.getDefiningOp()->erase();
    }
    body.setType(b.getFunctionType(arguments, {}));
    for (unsigned i = 0; i < buffers; ++i)
      body.setArgAttr(i, "llvm.noalias", b.getUnitAttr());
    body->setAttr("llvm.linkage", LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
    body.setPrivate();
    setFunctionAttributes(body);
  }

  void createEntry(StringRef name, func::FuncOp body, unsigned buffers) {
    OpBuilder b(body);
    b.setInsertionPointAfter(body);
    Location loc = body.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    Type i64 = b.getI64Type();
    auto entry = func::FuncOp::create(b, loc, name, b.getFunctionType({pointer, i64, i64, i64}, {}));
    setFunctionAttributes(entry);
    b.setInsertionPointToStart(entry.addEntryBlock());
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < buffers; ++i) {
      Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, entry.getArgument(0), ArrayRef<LLVM::GEPArg>{int32_t(i)});
      arguments.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
    }
    for (unsigned i = 1; i <= 3; ++i)
      arguments.push_back(entry.getArgument(i));
    func::CallOp::create(b, loc, body, arguments);
    func::ReturnOp::create(b, loc);
  }

  /// no-builtins: LLVM must not turn a loop into a call of memset or memcpy, which nobody defines.
  void setFunctionAttributes(func::FuncOp func) {
    OpBuilder b(func);
    func->setAttr("passthrough", b.getStrArrayAttr({"no-builtins", "nounwind"}));
  }
};

} // namespace
