//===- CodeGen.cpp - LLVM dialect to object code --------------------------===//
#include "lib/Target/Object/Optimize.h"
#include "llmc/Target/CodeGen.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Cloning.h"

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

/// The gate of kernels with tile registers: as many stores of tiles as the module asks for, since any other is a spill, and no
/// calls, which would save them all. Empty: it passes.
static std::string wrongTiles(mlir::ModuleOp module, const llvm::Module &llvmModule, llvm::TargetMachine &machine) {
  size_t wanted = 0, products = 0, stores = 0, calls = 0;
  for (const llvm::Function &function : llvmModule)
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
        wanted += call->getIntrinsicID() == llvm::Intrinsic::x86_tilestored64_internal;
        products += call->getIntrinsicID() == llvm::Intrinsic::x86_tdpbf16ps_internal;
      }
  if (!products)
    return "";
  llvm::SmallVector<char, 0> text;
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(llvmModule);
  if (failed(emitCode(module, *copy, machine, CodeForm::Assembly, text)))
    return "no assembly";
  llvm::StringRef rest(text.data(), text.size()), line;
  while (!rest.empty()) {
    std::tie(line, rest) = rest.split('\n');
    stores += line.ltrim().starts_with("tilestored");
    calls += line.ltrim().starts_with("call");
  }
  if (stores == wanted && !calls)
    return "";
  return std::to_string(stores) + " stores of tiles and " + std::to_string(calls) + " calls, where " + std::to_string(wanted) +
         " stores and no calls were expected";
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
  if (std::string wrong = wrongTiles(module, *llvmModule, *machine); !wrong.empty())
    return module.emitError("tile registers: ") << wrong;

  if (failed(emitCode(module, *llvmModule, *machine, form, code)))
    return mlir::failure();
  if (form == CodeForm::Object)
    if (std::string names = unknownSymbols(code, declared); !names.empty())
      return module.emitError("expected code without library calls, got calls of ") << names;
  return mlir::success();
}
