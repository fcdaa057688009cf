//===- TileToCPU.cpp - tile kernels to vectors of a CPU -------------------===//
//
// 1. Each tile.kernel becomes an llvm.func that loads its buffers' pointers and loops
//    over the units it is given. 2. Tile values are split into registers (1:N type
//    conversion) and tile ops lowered, one pattern file per op family.
//
//===----------------------------------------------------------------------===//

#include "llmc/Conversion/TileToCPU.h"

#include "Lowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace llmc;
using namespace llmc::cpu;

/// llvm.func @name(args: ptr to pointers, rows, begin, end) { for unit in begin..end: body }
static LLVM::LLVMFuncOp outlineKernel(tile::KernelOp kernel) {
  OpBuilder b(kernel);
  Location loc = kernel.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64, i64});
  auto function = LLVM::LLVMFuncOp::create(b, loc, kernel.getSymName(), type);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  auto toIndex = [&](unsigned argument) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), entry->getArgument(argument));
  };
  SmallVector<Value> arguments;
  for (auto [i, buffer] : llvm::enumerate(kernel.getBuffers())) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, entry->getArgument(0), ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    Value base = LLVM::LoadOp::create(b, loc, pointer, slot);
    arguments.push_back(UnrealizedConversionCastOp::create(b, loc, buffer.getType(), base).getResult(0));
  }
  arguments.push_back(toIndex(1));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto units = scf::ForOp::create(b, loc, toIndex(2), toIndex(3), one);
  arguments.push_back(units.getInductionVar());
  LLVM::ReturnOp::create(b, loc, ValueRange{});
  Block &body = kernel.getBody().front();
  body.getTerminator()->erase();
  units.getBody()->getOperations().splice(units.getBody()->begin(), body.getOperations());
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  kernel.erase();
  return function;
}

/// A register: at most `lanes` elements, or at most its bits. The lowering itself makes no wider bf16 vectors: those are a
/// kernel's own, which the converter splits by lanes.
static bool fitsRegister(Type type, int64_t lanes) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return !isa<MemRefType, tile::PackedType>(type);
  int64_t count = vector.getNumElements();
  bool fits = count <= lanes || (!vector.getElementType().isBF16() && count * vector.getElementTypeBitWidth() <= lanes * 32);
  return fits && vector.getRank() == 1;
}

namespace {

struct TileToCPUPass : PassWrapper<TileToCPUPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TileToCPUPass)
  TileToCPUPass() = default;
  TileToCPUPass(const TileToCPUPass &other) : PassWrapper(other) {}
  explicit TileToCPUPass(StringRef name) {
    emulateAmx = name.consume_back("-emulated");
    isa = name.str();
  }

  Option<std::string> isa{*this, "isa", llvm::cl::desc("instruction set: avx2, avx512vnni, avx512bf16, amxbf16, neon_dotprod"), llvm::cl::init("avx2")};
  Option<bool> emulateAmx{*this, "emulate-amx", llvm::cl::desc("amxbf16 without tiles, for tests: the same with AVX-512"), llvm::cl::init(false)};

  StringRef getArgument() const override { return "tile-to-cpu"; }
  StringRef getDescription() const override { return "lower tile kernels to functions on a CPU's registers"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  }

  void runOnOperation() override {
    Machine machine;
    if (isa == "avx512vnni" || isa == "avx512bf16") {
      machine = {16, true, 8, isa == "avx512bf16"};
      machine.roundsBF16 = machine.bf16;
    } else if (isa == "amxbf16") { // on such CPUs multiply-adds are faster than vdpbf16ps
      machine = {16, true, 8};
      machine.roundsBF16 = machine.amx = true;
      machine.emulateAmx = emulateAmx;
    } else if (isa == "neon_dotprod") {
      machine.neon = true;
    } else if (isa != "avx2") {
      getOperation().emitError("expected instruction set avx2, avx512vnni, avx512bf16, amxbf16 or neon_dotprod, got '") << isa << "'";
      return signalPassFailure();
    }
    MLIRContext *context = &getContext();
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      outlineKernel(kernel);
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      if (failed(unpackPanels(function, machine)))
        return signalPassFailure();
      useTiles(function, machine);
    }

    Converter converter(context, machine);
    ConversionTarget target(*context);
    RewritePatternSet patterns(context);
    target.addIllegalDialect<tile::TileDialect>();
    target.addLegalDialect<LLVM::LLVMDialect, scf::SCFDialect>();
    target.addLegalOp<UnrealizedConversionCastOp, ModuleOp>();
    target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect, vector::VectorDialect>([&](Operation *op) {
      auto fits = [&](Type type) { return fitsRegister(type, machine.lanes); };
      return llvm::all_of(op->getOperandTypes(), fits) && llvm::all_of(op->getResultTypes(), fits);
    });
    populateElementwisePatterns(converter, patterns);
    populateMemoryPatterns(converter, patterns);
    populateReductionPatterns(converter, patterns);
    populateDotPatterns(converter, patterns);
    populateScaledDotPatterns(converter, patterns);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> llmc::createTileToCPUPass(StringRef isa) { return std::make_unique<TileToCPUPass>(isa); }
