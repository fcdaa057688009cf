//===- GeneratePTX.cpp - LLVM dialect to PTX ------------------------------===//
#include "lib/Target/Object/Optimize.h"
#include "llmc/Target/CodeGen.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llmc;

/// Registers are what a kernel is planned around, so that only what is written as unrolled is unrolled here, and
/// loops over one thread's elements are not vectorised; ptxas still unrolls within its budget.
static llvm::PipelineTuningOptions tuning() {
  llvm::PipelineTuningOptions options;
  options.LoopVectorization = options.SLPVectorization = options.LoopInterleaving = false;
  options.LoopUnrolling = false; // but for loops with metadata that forces it
  return options;
}

/// ptxas unrolls short loops whole. Where the sums that a loop carries already fill registers, the loads of several
/// rounds in flight would spill: such loops get `.pragma "nounroll"`.
static void keepLargeLoopsRolled(llvm::Function &function) {
  constexpr size_t kLargestUnrolled = 16; // values carried
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder())
    if (size_t(std::distance(loop->getHeader()->phis().begin(), loop->getHeader()->phis().end())) > kLargestUnrolled)
      llvm::addStringMetadataToLoop(loop, "llvm.loop.unroll.disable");
}

/// Functions that code generation would call: a GPU has no library to find them in.
static std::string calledFunctions(const llvm::Module &module) {
  std::string names;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
      names += (names.empty() ? "" : ", ") + function.getName().str();
  return names;
}

mlir::LogicalResult llmc::generatePTX(mlir::ModuleOp module, const GPUTarget &target, CodeForm form,
                                      llvm::SmallVectorImpl<char> &code) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(llvm::Triple("nvptx64-nvidia-cuda"), target.isa,
                                                               target.features, llvm::Reloc::PIC_, error);
  if (!machine)
    return module.emitError("no code generator: ") << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translate(module, *machine, context);
  if (!llvmModule)
    return mlir::failure();
  for (llvm::Function &function : *llvmModule)
    if (!function.isDeclaration())
      function.addFnAttr("no-builtins");
  optimize(*llvmModule, *machine, tuning());
  for (llvm::Function &function : *llvmModule)
    if (!function.isDeclaration())
      keepLargeLoopsRolled(function);
  if (std::string names = calledFunctions(*llvmModule); !names.empty())
    return module.emitError("expected code without library calls, got calls of ") << names;
  return emitCode(module, *llvmModule, *machine, form, code);
}
