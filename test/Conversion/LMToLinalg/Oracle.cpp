//===- Oracle.cpp - runs the oracle of an lm module in process ------------===//
#include "Oracle.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "llmc/Conversion/LMToLinalg.h"
#include "llmc/Pipelines/ReferenceToLLVM.h"
#include "llmc/abi.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

using namespace mlir;
using namespace llmc::test;

Matrix llmc::test::randomMatrix(int64_t rows, int64_t cols, uint32_t seed, float scale) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> distribution(0, scale);
  Matrix matrix(rows, cols);
  for (float &value : matrix.data)
    value = distribution(engine);
  return matrix;
}

struct Oracle::Impl {
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  std::string diagnostics;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<llvm::orc::LLJIT> jit;

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

  void load(const std::string &source);
  void compile();
};

void Oracle::Impl::load(const std::string &source) {
  registry.insert<lm::LMDialect, rt::RTDialect, func::FuncDialect, LLVM::LLVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "\n"; });
  module = parseSourceString<ModuleOp>(source, context.get());
  if (!module)
    fail("parse");
  PassManager passes(context.get());
  passes.addPass(createLMToReferencePass());
  check(passes.run(*module), "lm-to-reference");
}

// All kernels in one module: their symbols are unique.
void Oracle::Impl::compile() {
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(UnknownLoc::get(context.get()));
  for (auto func : module->getOps<func::FuncOp>())
    if (func->hasAttr("llmc.kernel"))
      kernels->push_back(func->clone());
  PassManager passes(context.get());
  buildReferenceToLLVMPipeline(passes);
  check(passes.run(*kernels), "reference-to-llvm");

  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(*kernels, *llvmContext);
  if (!code)
    fail("translation");
  auto host = take(llvm::orc::JITTargetMachineBuilder::detectHost(), "host");
  std::unique_ptr<llvm::TargetMachine> machine = take(host.createTargetMachine(), "target machine");
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(*code, modules);

  jit = take(llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(host)
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create(),
             "jit");
  if (auto error = jit->addIRModule({std::move(code), std::move(llvmContext)}))
    fail("jit: " + llvm::toString(std::move(error)));
}

Oracle::Oracle(const std::string &source) : impl(std::make_unique<Impl>()) {
  impl->load(source);
  impl->compile();
}

Oracle::~Oracle() = default;

namespace {
/// An activation in memory: padded columns, rows to spare, filled with a value that no kernel computes.
struct Buffer {
  static constexpr float canary = 12345.75f;
  int64_t rows, cols, stride;
  std::vector<float> data;

  Buffer(int64_t rows, int64_t cols)
      : rows(rows), cols(cols), stride((cols + LLMC_PAD - 1) / LLMC_PAD * LLMC_PAD), data((rows + LLMC_ROW_PAD) * stride, canary) {}

  Matrix read(const std::string &name) const {
    Matrix matrix(rows, cols);
    for (int64_t r = 0; r < rows + LLMC_ROW_PAD; ++r)
      for (int64_t c = 0; c < stride; ++c) {
        float value = data[r * stride + c];
        if (r >= rows ? value != canary : c >= cols && value != 0)
          throw std::runtime_error(name + ": wrote " + std::to_string(value) + " at row " + std::to_string(r) + ", column " +
                                   std::to_string(c));
        if (r < rows && c < cols)
          matrix.at(r, c) = value;
      }
    return matrix;
  }
};
} // namespace

std::map<std::string, Matrix> Oracle::run(const Step &step, const std::map<std::string, Matrix> &weights, int64_t unitsPerCall) {
  std::map<std::string, Matrix> results;
  std::vector<std::unique_ptr<Buffer>> buffers;
  llvm::DenseMap<Value, Buffer *> of;
  auto reference = impl->module->lookupSymbol<func::FuncOp>("reference");
  for (auto dispatch : reference.getOps<rt::DispatchOp>()) {
    int64_t rows = dispatch.getRows() == rt::Rows::Logits ? step.logitsRows.size() : step.ids.size();
    std::vector<void *> args;
    for (Value input : dispatch.getInputs())
      args.push_back(of.at(input)->data.data());
    for (auto weight : dispatch.getWeights().getAsRange<FlatSymbolRefAttr>())
      args.push_back(const_cast<float *>(weights.at(weight.getValue().str()).data.data()));
    for (auto field : dispatch.getFields().getAsRange<rt::FieldAttr>()) {
      const std::vector<int32_t> &values = field.getValue() == rt::Field::TokenIds    ? step.ids
                                           : field.getValue() == rt::Field::Positions ? step.positions
                                                                                      : step.logitsRows;
      args.push_back(const_cast<int32_t *>(values.data()));
    }
    Value result = dispatch.getResult(0);
    buffers.push_back(std::make_unique<Buffer>(rows, cast<RankedTensorType>(result.getType()).getDimSize(1)));
    of[result] = buffers.back().get();
    args.push_back(buffers.back()->data.data());

    auto variant = cast<rt::VariantAttr>(dispatch.getVariants()[0]);
    auto address = impl->take(impl->jit->lookup(variant.getKernel().getValue()), "lookup");
    auto kernel = address.toPtr<llmc_kernel_fn>();
    int64_t units = (rows + variant.getRowBlock() - 1) / variant.getRowBlock() * variant.getColBlocks();
    for (int64_t unit = 0; unit < units; unit += unitsPerCall)
      kernel(args.data(), rows, unit, std::min(units, unit + unitsPerCall));
    std::string name = dispatch.getOp().str();
    results[name] = buffers.back()->read(name);
  }
  return results;
}
