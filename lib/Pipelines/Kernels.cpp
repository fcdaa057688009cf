//===- Kernels.cpp - cuts a module into jobs ------------------------------===//
#include "lib/Pipelines/Kernels.h"

#include "dialects/Tile/Tile.h"
#include "llmc/Conversion/RTToLLVM.h"
#include "llmc/Pipelines/Phases.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace llmc;

static std::string bytecode(Operation *op) {
  Location unknown = UnknownLoc::get(op->getContext());
  op->walk([&](Operation *inner) {
    inner->setLoc(unknown);
    for (Region &region : inner->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setLoc(unknown);
  });
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  (void)writeBytecodeToFile(op, stream, BytecodeWriterConfig("llmc"));
  return bytes;
}

std::vector<KernelJob> llmc::kernelJobs(ModuleOp module, const std::string &isa, const std::string &form) {
  OpBuilder b(module.getContext());
  std::vector<KernelJob> jobs;
  for (Operation &op : *module.getBody()) {
    bool reference = llvm::isa<func::FuncOp>(op) && op.hasAttr("llmc.kernel");
    if (!reference && !llvm::isa<tile::KernelOp>(op))
      continue;
    OwningOpRef<ModuleOp> kernel = ModuleOp::create(b.getUnknownLoc());
    (*kernel)->setAttr("llmc.pipeline", b.getStringAttr(reference ? "reference" : "cpu"));
    kernel->push_back(op.clone());
    jobs.push_back({SymbolTable::getSymbolName(&op).str(), bytecode(*kernel), isa, form});
  }
  return jobs;
}

KernelJob llmc::tablesJob(ModuleOp module, const std::string &isa, const std::string &form) {
  DiagnosticCollector diagnostics(*module.getContext());
  OwningOpRef<ModuleOp> tables = module.clone();
  PassManager manager(module.getContext());
  manager.addPass(createRTToLLVMPass({isa}));
  if (failed(manager.run(*tables)))
    diagnostics.fail("tables", "failed");
  return {"tables", bytecode(*tables), isa, form};
}
