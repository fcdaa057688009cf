//===- Kernels.cpp - compiled kernels of an lm module, in process ---------===//
#include "Kernels.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "dialects/Tile/Tile.h"
#include "llmc/Conversion/LMToTile.h"
#include "llmc/Pipelines/TileToLLVM.h"
#include "llmc/Target/CodeGen.h"
#include "llmc/Target/TargetInfo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

#include <cstdlib>
#include <immintrin.h>
#include <map>
#include <stdexcept>

using namespace mlir;
using namespace llmc;
using namespace llmc::test;

void llmc::test::forEveryIsa(const std::function<void()> &test) {
  std::vector<CPUTarget> targets = cpuTargets();
  targets.push_back(emulatedAmx());
  for (const CPUTarget &target : targets) {
    if (!runsHere(target))
      continue;
    setenv("LLMC_TEST_ISA", target.isa.c_str(), 1);
    test();
    unsetenv("LLMC_TEST_ISA");
  }
}

FlushDenormals::FlushDenormals() : saved(_mm_getcsr()) { _mm_setcsr(saved | 0x8040); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved); }

void Variant::launch(const std::vector<void *> &arguments, int64_t rows, int64_t blocks) const {
  FlushDenormals flush;
  if (blocks < 0)
    blocks = (rows + rowBlock - 1) / rowBlock;
  for (int64_t end = blocks * colBlocks; end > 0; end -= 3)
    function(arguments.data(), rows, std::max<int64_t>(0, end - 3), end);
}

struct Kernels::Impl {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::string diagnostics;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::map<std::string, Dispatch> dispatches;

  [[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what + ": " + diagnostics); }
  void check(LogicalResult result, const std::string &what) {
    if (failed(result))
      fail(what);
  }
  template <typename T> T take(llvm::Expected<T> value, const std::string &what) {
    if (!value)
      fail(what + ": " + llvm::toString(value.takeError()));
    return std::move(*value);
  }

  void parse(const std::string &source);
  void compile();
  void collect();
};

void Kernels::Impl::parse(const std::string &source) {
  registry.insert<lm::LMDialect, rt::RTDialect, tile::TileDialect, func::FuncDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "\n"; });
  module = parseSourceString<ModuleOp>(source, context.get());
  if (!module)
    fail("parse");
  PassManager passes(context.get());
  passes.addPass(createLMToTilePass());
  check(passes.run(*module), "lm-to-tile");
}

void Kernels::Impl::compile() {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(context.get()));
  for (auto kernel : module->getOps<tile::KernelOp>())
    kernels->push_back(kernel->clone());
  const char *isa = std::getenv("LLMC_TEST_ISA");
  CPUTarget target = lookupCPUTarget(isa ? isa : "avx2");
  PassManager passes(context.get());
  buildTileToLLVMPipeline(passes, target.isa);
  check(passes.run(*kernels), "tile-to-llvm");
  llvm::SmallVector<char, 0> object;
  check(generateCode(*kernels, target, CodeForm::Object, object), "code generation");

  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  jit = take(llvm::orc::LLJITBuilder()
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create(),
             "jit");
  if (auto error = jit->addObjectFile(std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), false)))
    fail("jit: " + llvm::toString(std::move(error)));
}

void Kernels::Impl::collect() {
  auto step = module->lookupSymbol<func::FuncOp>("step");
  for (auto op : step.getOps<rt::DispatchOp>()) {
    Dispatch &dispatch = dispatches[op.getOp().str()];
    dispatch.op = op.getOp().str();
    for (auto variant : op.getVariants().getAsRange<rt::VariantAttr>()) {
      std::string name = variant.getKernel().getValue().str();
      auto address = take(jit->lookup(name), "lookup");
      dispatch.variants.push_back({name, variant.getMaxRows(), variant.getRowBlock(), variant.getColBlocks(),
                                   address.toPtr<llmc_kernel_fn>()});
    }
  }
}

Kernels::Kernels(const std::string &source) : impl(std::make_unique<Impl>()) {
  impl->parse(source);
  impl->compile();
  impl->collect();
}
Kernels::~Kernels() = default;

const Dispatch &Kernels::operator[](const std::string &op) const {
  auto found = impl->dispatches.find(op);
  if (found == impl->dispatches.end())
    throw std::runtime_error("no dispatch " + op);
  return found->second;
}
