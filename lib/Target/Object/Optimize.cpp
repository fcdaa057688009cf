//===- Optimize.cpp -------------------------------------------------------===//
#include "lib/Target/Object/Optimize.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Target/TargetOptions.h"

std::unique_ptr<llvm::TargetMachine> llmc::createMachine(const llvm::Triple &triple, const std::string &cpu,
                                                         const std::string &features, llvm::Reloc::Model relocation,
                                                         std::string &error) {
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, cpu, features, options, relocation, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

llvm::TargetLibraryInfoImpl llmc::noLibrary(const llvm::Triple &triple) {
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  return library;
}

void llmc::optimize(llvm::Module &module, llvm::TargetMachine &machine, const llvm::PipelineTuningOptions &tuning) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::TargetLibraryInfoImpl library = noLibrary(machine.getTargetTriple());
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}
