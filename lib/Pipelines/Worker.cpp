//===- Worker.cpp - llmc --worker: one kernel, then exit ------------------===//
//
// Reads a module in bytecode, lowers it by the pipeline that its attribute llmc.pipeline names (none: it is in the
// LLVM dialect already) and writes code. Diagnostics go to stderr, where the parent reads them.
//
//===----------------------------------------------------------------------===//
#include "lib/Pipelines/WorkerGPU.h"
#include "llmc/Pipelines/Compile.h"
#include "llmc/Pipelines/ReferenceToLLVM.h"
#include "llmc/Pipelines/Registration.h"
#include "llmc/Pipelines/TileToLLVM.h"
#include "llmc/Pipelines/TileToNVVM.h"
#include "llmc/Support/Error.h"
#include "llmc/Target/CodeGen.h"
#include "llmc/Target/Cubin.h"
#include "llmc/Target/KernelCompiler.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <csignal>
#include <cstdlib>
#include <sys/prctl.h>

using namespace mlir;
using namespace llmc;

static LogicalResult lower(ModuleOp module, llvm::StringRef isa) {
  auto pipeline = module->getAttrOfType<StringAttr>("llmc.pipeline");
  if (!pipeline)
    return success();
  PassManager manager(module.getContext());
  if (pipeline.getValue() == "cpu")
    buildTileToLLVMPipeline(manager, isa);
  else if (pipeline.getValue() == "reference")
    buildReferenceToLLVMPipeline(manager);
  else if (pipeline.getValue() == "cuda")
    buildTileToNVVMPipeline(manager);
  else
    return module.emitError("expected pipeline cpu, cuda or reference, got ") << pipeline;
  module->removeAttr("llmc.pipeline");
  return manager.run(module);
}

static LogicalResult compileForCPU(ModuleOp module, const std::string &isa, const std::string &form, std::string &result) {
  CPUTarget target = lookupCPUTarget(isa);
  CodeForm codeForm = form == "object" ? CodeForm::Object : form == "asm" ? CodeForm::Assembly : CodeForm::LLVM;
  llvm::SmallVector<char, 0> code;
  if (failed(generateCode(module, target, codeForm, code)))
    return failure();
  result.assign(code.data(), code.size());
  return success();
}

// Arguments: --worker IN OUT ISA FORM NAME [PTXAS].
int llmc::runWorker(int argc, char **argv) try {
  if (argc != 7 && argc != 8)
    throw Error("--worker: expected IN OUT ISA FORM NAME [PTXAS]; it is for llmc's own use");
  prctl(PR_SET_PDEATHSIG, SIGKILL); // a killed compiler leaves no worker
  std::string in = argv[2], out = argv[3], isa = argv[4], form = argv[5], name = argv[6], ptxas = argc == 8 ? argv[7] : "";
  // For tests: what the parent makes of a worker that dies.
  if (const char *victim = std::getenv("LLMC_TEST_WORKER_ABORT"); victim && name == victim)
    std::abort();

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module;
  std::string code;
  auto compile = [&](bool frugal) -> LogicalResult {
    module = parseSourceFile<ModuleOp>(in, &context);
    if (module && frugal)
      (*module)->setAttr("llmc.frugal", UnitAttr::get(&context));
    if (!module || failed(lower(*module, isa)))
      return failure();
    const GPUTarget *gpu = findGPUTarget(isa);
    return gpu ? compileForGPU(*module, {*gpu, form, name, ptxas}, code) : compileForCPU(*module, isa, form, code);
  };
  try {
    if (failed(compile(/*frugal=*/false)))
      return 1;
  } catch (const GateError &) {
    if (!(*module)->hasAttr("llmc.has_frugal_form"))
      throw;
    if (failed(compile(/*frugal=*/true)))
      return 1;
  }
  writeFile(out, code);
  return 0;
} catch (const std::exception &error) {
  llvm::errs() << "llmc: error: " << error.what() << "\n";
  return 1;
}
