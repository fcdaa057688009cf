//===- Phases.cpp - model facts to planned IR -----------------------------===//
#include "llmc/Pipelines/Phases.h"

#include "dialects/LM/LM.h"
#include "llmc/Conversion/LMToLinalg.h"
#include "llmc/Conversion/LMToTile.h"
#include "llmc/Frontend/BuildModel.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/Text.h"
#include "llmc/Transforms/LM/Passes.h"
#include "llmc/Transforms/RT/Passes.h"
#include "llmc/abi.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace llmc;

const std::vector<PhaseInfo> &llmc::irPhases() {
  static const std::vector<PhaseInfo> phases = {
      {"imported", "the model as its files say: lm ops on f32 tensors"},
      {"fused", "joint projections, gated activation, residual sums folded"},
      {"reference", "func @reference added: the oracle, linalg kernels in f32"},
      {"decided", "arithmetic, activation formats, KV blocks and weight layouts made explicit"},
      {"tile", "every lm op of @step a launch of tile.kernel variants"},
      {"planned", "launch lists over offsets into one arena (rt.program)"}};
  return phases;
}

/// Rows of the largest tile that a GPU's kernel reads, whatever the row count.
static constexpr int64_t kCudaRowPad = 256;

void llmc::buildPhase(OpPassManager &manager, llvm::StringRef phase, const ModelOptions &options) {
  bool cuda = options.target == "cuda";
  if (phase == "imported")
    manager.addPass(lm::createLMVerifyImportedPass());
  else if (phase == "fused")
    lm::buildLMFusionPipeline(manager, {options.fuseQKV, options.fuseGateUp, options.fuseResidual});
  else if (phase == "reference" && options.reference && !cuda)
    manager.addPass(createLMToReferencePass());
  else if (phase == "decided")
    lm::buildLMDecidePipeline(manager, {options.compute, options.quantize, options.kvType, LLMC_KV_BLOCK, options.fuseQuantize, cuda,
                                        options.numerics == "phase"});
  else if (phase == "tile")
    manager.addPass(createLMToTilePass({cuda, options.trapChecks, options.linearTile}));
  else if (phase == "planned")
    manager.addPass(createRTPlanArenaPass({options.maxTokens, options.maxSeqs, options.maxLogits, cuda ? kCudaRowPad : LLMC_ROW_PAD}));
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

static std::string describe(Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::StringRef name = lm::nameOf(diagnostic.getLocation()); !name.empty())
    stream << name << ": ";
  diagnostic.print(stream);
  return text;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext &context) : context(context) {
  handler = context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    std::string text = describe(diagnostic);
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstError.empty())
      firstError = text;
    else if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
      llvm::errs() << "llmc: warning: " << text << "\n";
    else if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
      llvm::errs() << "llmc: remark: " << text << "\n";
    return success();
  });
}

DiagnosticCollector::~DiagnosticCollector() { context.getDiagEngine().eraseHandler(handler); }

void DiagnosticCollector::fail(llvm::StringRef phase, llvm::StringRef otherwise) const {
  throw Error(("phase " + phase + ": " + (firstError.empty() ? otherwise.str() : firstError)).str());
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static std::vector<std::string> passNames(const ModelOptions &options) {
  std::vector<std::string> names;
  for (const PhaseInfo &phase : irPhases()) {
    OpPassManager manager("builtin.module");
    buildPhase(manager, phase.name, options);
    for (Pass &pass : manager.getPasses())
      names.push_back(pass.getArgument().str());
  }
  return names;
}

static void printAfter(PassManager &manager, const std::string &which) {
  manager.enableIRPrinting([](Pass *, Operation *) { return false; },
                           [which](Pass *pass, Operation *) { return which == "all" || pass->getArgument() == which; },
                           /*printModuleScope=*/true, /*printAfterOnlyOnChange=*/false, /*printAfterOnlyOnFailure=*/false,
                           llvm::errs());
}

OwningOpRef<ModuleOp> llmc::lowerModel(MLIRContext &context, const ModelFacts &facts, const ModelOptions &options,
                                       llvm::StringRef last) {
  if (!options.printAfter.empty() && options.printAfter != "all")
    if (std::vector<std::string> names = passNames(options); !llvm::is_contained(names, options.printAfter))
      throw Error("--print-ir-after: expected all or one of " + join(names) + ", got " + quote(options.printAfter));
  if (options.remarks)
    (void)remark::enableOptimizationRemarks(context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                            {std::string(".*"), {}, {}, {}, {}}, /*printAsEmitRemarks=*/true);
  DiagnosticCollector diagnostics(context);
  OwningOpRef<ModuleOp> module = buildModel(&context, facts);
  for (const PhaseInfo &phase : irPhases()) {
    PassManager manager(&context);
    buildPhase(manager, phase.name, options);
    if (!options.printAfter.empty())
      printAfter(manager, options.printAfter);
    if (failed(manager.run(*module)))
      diagnostics.fail(phase.name, "failed");
    if (last == phase.name)
      break;
  }
  return module;
}

namespace {
struct PhaseFlags : PassPipelineOptions<PhaseFlags> {
  Option<bool> cuda{*this, "cuda", llvm::cl::desc("for a GPU"), llvm::cl::init(false)};
  Option<bool> phases{*this, "phases", llvm::cl::desc("an arithmetic of its own for prompts"), llvm::cl::init(false)};
  Option<bool> trapChecks{*this, "trap-checks", llvm::cl::desc("GPU: check ids and block tables"), llvm::cl::init(false)};

  ModelOptions options() const {
    ModelOptions options;
    options.target = cuda ? "cuda" : "cpu";
    options.numerics = phases ? "phase" : "exact";
    options.trapChecks = trapChecks;
    return options;
  }
};
} // namespace

void llmc::registerPhasePipelines() {
  for (const PhaseInfo &phase : irPhases())
    PassPipelineRegistration<PhaseFlags>((std::string("llmc-") + phase.name), phase.summary,
                                         [&phase](OpPassManager &manager, const PhaseFlags &flags) {
                                           buildPhase(manager, phase.name, flags.options());
                                         });
  PassPipelineRegistration<PhaseFlags>("llmc-lower", "an imported model to planned launch lists",
                                       [](OpPassManager &manager, const PhaseFlags &flags) {
                                         for (const PhaseInfo &phase : irPhases())
                                           buildPhase(manager, phase.name, flags.options());
                                       });
}
