//===- ConstantTables.h - structs of constants as LLVM globals --*- C++ -*-===//
#ifndef LLMC_LIB_CONVERSION_RTTOLLVM_CONSTANTTABLES_H
#define LLMC_LIB_CONVERSION_RTTOLLVM_CONSTANTTABLES_H

#include "lib/Conversion/RTToLLVM/AbiLayout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/StringMap.h"

namespace llmc {

/// One field's value: a number, or the address of a symbol (empty: null).
struct Constant {
  int64_t number = 0;
  llvm::StringRef symbol; // of the module; outlives the tables

  Constant(uint64_t number) : number(int64_t(number)) {}
  Constant(mlir::LLVM::GlobalOp op) : symbol(op ? op.getSymName() : llvm::StringRef()) {}
  Constant(mlir::LLVM::LLVMFuncOp op) : symbol(op.getSymName()) {}
};

/// Writes internal constant globals into a module; equal texts are shared.
class ConstantTables {
public:
  ConstantTables(mlir::ModuleOp module);

  using Record = llvm::SmallVector<Constant>;

  /// A zero-terminated text.
  mlir::LLVM::GlobalOp text(llvm::StringRef text);
  /// Bytes at a multiple of `alignment`; null when there are none.
  mlir::LLVM::GlobalOp bytes(llvm::StringRef name, llvm::StringRef bytes, uint64_t alignment);
  /// An array of structs; null when there are no records.
  mlir::LLVM::GlobalOp array(llvm::StringRef name, llvm::ArrayRef<abi::Field> fields, llvm::ArrayRef<Record> records);
  /// One struct, exported under `name`.
  mlir::LLVM::GlobalOp exported(llvm::StringRef name, llvm::ArrayRef<abi::Field> fields, const Record &record);
  /// A kernel of another object, hidden.
  mlir::LLVM::LLVMFuncOp kernel(llvm::StringRef name);

private:
  mlir::LLVM::LLVMStructType structType(llvm::ArrayRef<abi::Field> fields);
  mlir::Value emitRecord(llvm::ArrayRef<abi::Field> fields, const Record &record);
  mlir::LLVM::GlobalOp global(llvm::StringRef name, mlir::Type type, mlir::LLVM::Linkage linkage);

  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  llvm::StringMap<mlir::LLVM::GlobalOp> texts;
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> kernels;
};

} // namespace llmc

#endif // LLMC_LIB_CONVERSION_RTTOLLVM_CONSTANTTABLES_H
