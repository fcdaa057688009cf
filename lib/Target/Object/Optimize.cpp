//===- Optimize.cpp -------------------------------------------------------===//
#include "lib/Target/Object/Optimize.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LegacyPassManager.h"
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

std::unique_ptr<llvm::Module> llmc::translate(mlir::ModuleOp module, llvm::TargetMachine &machine, llvm::LLVMContext &context) {
  std::unique_ptr<llvm::Module> llvmModule = mlir::translateModuleToLLVMIR(module, context, "kernel");
  if (!llvmModule) {
    module.emitError("translation to LLVM IR failed");
    return nullptr;
  }
  llvmModule->setTargetTriple(machine.getTargetTriple());
  llvmModule->setDataLayout(machine.createDataLayout());
  return llvmModule;
}

mlir::LogicalResult llmc::emitCode(mlir::ModuleOp module, llvm::Module &llvmModule, llvm::TargetMachine &machine, CodeForm form,
                                   llvm::SmallVectorImpl<char> &code) {
  llvm::raw_svector_ostream stream(code);
  if (form == CodeForm::LLVM) {
    llvmModule.print(stream, nullptr);
    return mlir::success();
  }
  llvm::legacy::PassManager emit;
  emit.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary(machine.getTargetTriple())));
  if (machine.addPassesToEmitFile(emit, stream, nullptr,
                                  form == CodeForm::Object ? llvm::CodeGenFileType::ObjectFile
                                                           : llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("the target writes no such file");
  emit.run(llvmModule);
  return mlir::success();
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
