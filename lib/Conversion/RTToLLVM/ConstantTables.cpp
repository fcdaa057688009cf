//===- ConstantTables.cpp -------------------------------------------------===//
#include "lib/Conversion/RTToLLVM/ConstantTables.h"

using namespace mlir;
using namespace llmc;

ConstantTables::ConstantTables(ModuleOp module)
    : module(module), b(module.getBodyRegion()), loc(UnknownLoc::get(module.getContext())) {
  b.setInsertionPointToEnd(module.getBody());
}

LLVM::GlobalOp ConstantTables::global(StringRef name, Type type, LLVM::Linkage linkage) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(module.getBody());
  return LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, linkage, name, Attribute());
}

LLVM::GlobalOp ConstantTables::text(StringRef text) {
  LLVM::GlobalOp &op = texts[text];
  if (!op) {
    std::string bytes = (text + StringRef("\0", 1)).str();
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
    op = global("text." + std::to_string(texts.size() - 1), type, LLVM::Linkage::Internal);
    op.setValueAttr(b.getStringAttr(bytes));
  }
  return op;
}

LLVM::GlobalOp ConstantTables::bytes(StringRef name, StringRef bytes, uint64_t alignment) {
  if (bytes.empty())
    return {};
  LLVM::GlobalOp op = global(name, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()), LLVM::Linkage::Internal);
  op.setValueAttr(b.getStringAttr(bytes));
  op.setAlignment(alignment);
  return op;
}

LLVM::LLVMFuncOp ConstantTables::kernel(StringRef name) {
  LLVM::LLVMFuncOp &op = kernels[name];
  if (!op) {
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, i64, i64, i64});
    op = LLVM::LLVMFuncOp::create(b, loc, name, type);
    op.setVisibility_(LLVM::Visibility::Hidden);
  }
  return op;
}

LLVM::LLVMStructType ConstantTables::structType(ArrayRef<abi::Field> fields) {
  SmallVector<Type> types;
  for (abi::Field field : fields)
    types.push_back(field.kind == abi::Kind::I32   ? Type(b.getI32Type())
                    : field.kind == abi::Kind::I64 ? Type(b.getI64Type())
                                                   : LLVM::LLVMPointerType::get(b.getContext()));
  return LLVM::LLVMStructType::getLiteral(b.getContext(), types);
}

Value ConstantTables::emitRecord(ArrayRef<abi::Field> fields, const Record &record) {
  assert(fields.size() == record.size() && "a value for every field");
  LLVM::LLVMStructType type = structType(fields);
  Value result = LLVM::ZeroOp::create(b, loc, type);
  for (auto [index, value] : llvm::enumerate(record)) {
    bool pointer = fields[index].kind == abi::Kind::Pointer;
    assert((pointer || value.symbol.empty()) && (!pointer || value.number == 0) && "a symbol for each pointer");
    if (pointer ? value.symbol.empty() : value.number == 0)
      continue; // zero already
    Type field = type.getBody()[index];
    Value inserted;
    if (pointer)
      inserted = LLVM::AddressOfOp::create(b, loc, field, value.symbol);
    else // wraps like the conversion to uint32_t
      inserted = LLVM::ConstantOp::create(
          b, loc, field, IntegerAttr::get(field, APInt(field.getIntOrFloatBitWidth(), value.number, false, true)));
    result = LLVM::InsertValueOp::create(b, loc, result, inserted, index);
  }
  return result;
}

LLVM::GlobalOp ConstantTables::array(StringRef name, ArrayRef<abi::Field> fields, ArrayRef<Record> records) {
  if (records.empty())
    return {};
  auto type = LLVM::LLVMArrayType::get(structType(fields), records.size());
  LLVM::GlobalOp op = global(name, type, LLVM::Linkage::Internal);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getInitializerRegion());
  Value result = LLVM::ZeroOp::create(b, loc, type);
  for (auto [index, record] : llvm::enumerate(records))
    result = LLVM::InsertValueOp::create(b, loc, result, emitRecord(fields, record), index);
  LLVM::ReturnOp::create(b, loc, result);
  return op;
}

LLVM::GlobalOp ConstantTables::exported(StringRef name, ArrayRef<abi::Field> fields, const Record &record) {
  LLVM::GlobalOp op = global(name, structType(fields), LLVM::Linkage::External);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&op.getInitializerRegion());
  LLVM::ReturnOp::create(b, loc, emitRecord(fields, record));
  return op;
}
