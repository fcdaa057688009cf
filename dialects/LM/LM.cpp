//===- LM.cpp - the lm dialect: registration, syntax, shared facts --------===//
#include "dialects/LM/LM.h"

#include "llmc/Frontend/ModelFacts.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace llmc::lm;

//===----------------------------------------------------------------------===//
// Shared facts
//===----------------------------------------------------------------------===//

// A storage and a DType have one order (lib/Target/Package/WritePackage.cpp asserts it).
unsigned llmc::lm::blockSize(Storage storage) { return llmc::blockSize(DType(storage)); }
uint64_t llmc::lm::storageBytes(Storage storage, uint64_t count) { return llmc::storageBytes(DType(storage), count); }

Storage llmc::lm::packedStorage(WeightOp weight) { return weight.getQuantize().value_or(weight.getStorage()); }

int64_t llmc::lm::sourceColumns(WeightOp weight) {
  ArrayRef<int64_t> shape = weight.getShape();
  return shape.size() == 2 ? shape[1] : 1;
}

Format llmc::lm::inputFormat(Arith arith) {
  switch (arith) {
  case Arith::F32:
    return Format::F32;
  case Arith::BF16_EO32:
    return Format::BF16;
  case Arith::Q8_G32:
    return Format::Q8;
  case Arith::BF16:
    return Format::BF16;
  case Arith::Q16_G32:
    return Format::Q16;
  case Arith::E4M3:
    return Format::E4M3;
  }
  llvm_unreachable("unknown arithmetic");
}

SmallVector<Type> llmc::lm::formattedTypes(RankedTensorType f32Rows, Format format) {
  MLIRContext *context = f32Rows.getContext();
  switch (format) {
  case Format::F32:
    return {f32Rows};
  case Format::BF16:
    return {f32Rows.clone(BFloat16Type::get(context))};
  case Format::Q8:
  case Format::Q16: {
    int64_t groups = llvm::divideCeil(f32Rows.getDimSize(1), 32);
    return {f32Rows.clone(IntegerType::get(context, format == Format::Q8 ? 8 : 16)),
            RankedTensorType::get({f32Rows.getDimSize(0), groups, 2}, f32Rows.getElementType())};
  }
  case Format::E4M3:
    return {f32Rows.clone(Float8E4M3FNType::get(context)), RankedTensorType::get({f32Rows.getDimSize(0), 1}, Float32Type::get(context))};
  }
  llvm_unreachable("unknown format");
}

StringRef llmc::lm::nameOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (StringRef name = nameOf(part); !name.empty())
        return name;
  return {};
}

int64_t llmc::lm::layerOf(StringRef name) {
  int64_t layer = -1;
  if (!name.consume_front("blk.") || name.consumeInteger(10, layer) || !name.starts_with("."))
    return -1;
  return layer;
}

//===----------------------------------------------------------------------===//
// Syntax: `%a, %b residual %r, @weight`. The generated parser of a variadic
// operand list would take the comma before the symbol.
//===----------------------------------------------------------------------===//

using Operand = OpAsmParser::UnresolvedOperand;

static ParseResult parseInputsAndWeight(OpAsmParser &parser, SmallVectorImpl<Operand> &inputs,
                                        std::optional<Operand> &residual, bool allowResidual,
                                        FlatSymbolRefAttr &weight) {
  Operand operand;
  if (parser.parseOperand(operand))
    return failure();
  inputs.push_back(operand);
  while (true) {
    if (allowResidual && succeeded(parser.parseOptionalKeyword("residual"))) {
      if (parser.parseOperand(operand) || parser.parseComma())
        return failure();
      residual = operand;
      return parser.parseAttribute(weight);
    }
    if (parser.parseComma())
      return failure();
    OptionalParseResult next = parser.parseOptionalOperand(operand);
    if (!next.has_value())
      return parser.parseAttribute(weight);
    if (failed(*next))
      return failure();
    inputs.push_back(operand);
  }
}

static ParseResult parseInputsAndWeight(OpAsmParser &parser, SmallVectorImpl<Operand> &inputs,
                                        std::optional<Operand> &residual, FlatSymbolRefAttr &weight) {
  return parseInputsAndWeight(parser, inputs, residual, /*allowResidual=*/true, weight);
}

static ParseResult parseInputsAndWeight(OpAsmParser &parser, SmallVectorImpl<Operand> &inputs,
                                        FlatSymbolRefAttr &weight) {
  std::optional<Operand> residual;
  return parseInputsAndWeight(parser, inputs, residual, /*allowResidual=*/false, weight);
}

static void printInputsAndWeight(OpAsmPrinter &printer, Operation *op, OperandRange inputs, Value residual,
                                 FlatSymbolRefAttr weight) {
  printer << inputs;
  if (residual)
    printer << " residual " << residual;
  printer << ", " << weight;
}

static void printInputsAndWeight(OpAsmPrinter &printer, Operation *op, OperandRange inputs,
                                 FlatSymbolRefAttr weight) {
  printInputsAndWeight(printer, op, inputs, Value(), weight);
}

//===----------------------------------------------------------------------===//
// Generated definitions
//===----------------------------------------------------------------------===//

#include "dialects/LM/LMDialect.cpp.inc"
#include "dialects/LM/LMEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/LM/LMAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/LM/LMTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/LM/LMOps.cpp.inc"

void LMDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/LM/LMAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/LM/LMTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/LM/LMOps.cpp.inc"
      >();
}
