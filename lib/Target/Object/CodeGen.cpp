//===- CodeGen.cpp - LLVM dialect to object code --------------------------===//
#include "lib/Target/Object/Optimize.h"
#include "llmc/Target/CodeGen.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"

using namespace llmc;

static std::unique_ptr<llvm::TargetMachine> machineOf(const CPUTarget &target, std::string &error) {
  if (target.architecture == Architecture::AArch64) {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    return createMachine(llvm::Triple("aarch64-unknown-linux-gnu"), target.cpu, target.features, llvm::Reloc::PIC_, error);
  }
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
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = machineOf(target, error);
  if (!machine)
    return module.emitError("no code generator: ") << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translate(module, *machine, context);
  if (!llvmModule)
    return mlir::failure();
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

  if (failed(emitCode(module, *llvmModule, *machine, form, code)))
    return mlir::failure();
  if (form == CodeForm::Object)
    if (std::string names = unknownSymbols(code, declared); !names.empty())
      return module.emitError("expected code without library calls, got calls of ") << names;
  return mlir::success();
}
