//===- CodeGen.cpp - LLVM dialect to object code --------------------------===//
#include "lib/Target/Object/Optimize.h"
#include "llmc/Target/CodeGen.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"

using namespace llmc;

static std::unique_ptr<llvm::TargetMachine> machineOf(const CPUTarget &target, std::string &error) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  return createMachine(llvm::Triple("x86_64-unknown-linux-gnu"), target.cpu, target.features, llvm::Reloc::PIC_, error);
}

/// Symbols that code generation needed beyond those the module declares ("memcpy").
static std::string unknownSymbols(llvm::ArrayRef<char> code, const llvm::StringSet<> &declared) {
  auto object = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(code.data(), code.size()), "kernel"));
  if (!object)
    return llvm::toString(object.takeError());
  std::string names;
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() && !declared.contains(*name))
      names += (names.empty() ? "" : ", ") + name->str();
  }
  return names;
}

mlir::LogicalResult llmc::generateCode(mlir::ModuleOp module, const CPUTarget &target, CodeForm form,
                                       llvm::SmallVectorImpl<char> &code) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = mlir::translateModuleToLLVMIR(module, context, "kernel");
  if (!llvmModule)
    return module.emitError("translation to LLVM IR failed");
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = machineOf(target, error);
  if (!machine)
    return module.emitError("no code generator: ") << error;
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  llvmModule->setPICLevel(llvm::PICLevel::BigPIC);

  llvm::StringSet<> declared;
  for (llvm::Function &function : *llvmModule) {
    if (function.isDeclaration()) {
      declared.insert(function.getName());
      continue;
    }
    function.addFnAttr("no-builtins");
    function.setDSOLocal(true);
    if (!function.hasLocalLinkage())
      function.setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  optimize(*llvmModule, *machine);

  llvm::raw_svector_ostream stream(code);
  if (form == CodeForm::LLVM) {
    llvmModule->print(stream, nullptr);
    return mlir::success();
  }
  llvm::legacy::PassManager emit;
  emit.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary(machine->getTargetTriple())));
  if (machine->addPassesToEmitFile(emit, stream, nullptr,
                                   form == CodeForm::Object ? llvm::CodeGenFileType::ObjectFile
                                                            : llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("the target writes no such file");
  emit.run(*llvmModule);
  if (form == CodeForm::Object)
    if (std::string names = unknownSymbols(code, declared); !names.empty())
      return module.emitError("expected code without library calls, got calls of ") << names;
  return mlir::success();
}
