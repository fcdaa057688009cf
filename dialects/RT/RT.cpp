//===- RT.cpp - registration and verifiers of the rt dialect --------------===//
#include "dialects/RT/RT.h"

#include "llmc/abi.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace llmc::rt;

#include "dialects/RT/RTDialect.cpp.inc"
#include "dialects/RT/RTEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/RT/RTAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/RT/RTOps.cpp.inc"

void RTDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/RT/RTAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/RT/RTOps.cpp.inc"
      >();
}

/// Variants must cover every row count: ascending bounds, the last one unlimited.
static LogicalResult verifyVariants(Operation *op, ArrayAttr variants) {
  if (variants.empty())
    return op->emitOpError("expected at least one kernel variant");
  uint64_t previous = 0;
  for (auto variant : variants.getAsRange<VariantAttr>()) {
    if (variant.getMaxRows() <= previous)
      return op->emitOpError("expected variants with ascending max_rows, got ")
             << variant.getMaxRows() << " after " << previous;
    bool leftOut = variant.getSpanRows() == LLMC_FUSED; // another launch does the work
    if (variant.getRowBlock() == 0 || (variant.getColBlocks() == 0 && !leftOut))
      return op->emitOpError("expected row_block and col_blocks of at least 1 in variant ") << variant.getKernel();
    previous = variant.getMaxRows();
  }
  if (previous != UINT32_MAX)
    return op->emitOpError("expected the last variant to have max_rows = 4294967295, got ") << previous;
  return success();
}

LogicalResult DispatchOp::verify() {
  if (failed(verifyVariants(*this, getVariants())))
    return failure();
  for (Type type : llvm::concat<const Type>(getInputs().getTypes(), getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      continue; // a KV cache of the lm dialect
    if (tensor.getRank() < 1 || llvm::any_of(tensor.getShape().drop_front(), ShapedType::isDynamic))
      return emitOpError("expected a tensor with static columns, got ") << type;
  }
  return success();
}

LogicalResult ProgramOp::verify() {
  int64_t arena = getArenaBytes(), logits = getLogitsOffset(), hidden = getHiddenOffset();
  if (arena < 0 || arena % 64 != 0)
    return emitOpError("expected arena_bytes to be a multiple of 64, got ") << arena;
  auto inside = [&](int64_t offset) { return offset >= 0 && offset <= arena; };
  if (!inside(logits))
    return emitOpError("expected logits_offset inside the arena, got ") << logits;
  if (hidden != -1 && !inside(hidden))
    return emitOpError("expected hidden_offset inside the arena or -1, got ") << hidden;
  for (Operation &op : getBody().front())
    if (!isa<LaunchOp>(op))
      return op.emitOpError("expected rt.launch in a program");
  return success();
}

LogicalResult LaunchOp::verify() {
  if (failed(verifyVariants(*this, getVariants())))
    return failure();
  auto program = cast<ProgramOp>((*this)->getParentOp());
  uint64_t arena = program.getArenaBytes();
  for (auto [index, arg] : llvm::enumerate(getArgs().getAsRange<ArgAttr>())) {
    bool weight = arg.getKind() == ArgKind::Weight || arg.getKind() == ArgKind::WeightF32;
    if (weight != bool(arg.getWeight()))
      return emitOpError("argument ") << index << (weight ? ": expected a weight" : ": expected no weight") << " for kind "
                                      << stringifyArgKind(arg.getKind());
    if (arg.getKind() == ArgKind::Arena && (arg.getValue() >= arena || arg.getValue() % 64 != 0))
      return emitOpError("argument ") << index << ": expected an offset that is a multiple of 64 inside the arena of "
                                      << arena << " bytes, got " << arg.getValue();
    if (arg.getKind() == ArgKind::Step && !symbolizeField(uint32_t(arg.getValue())))
      return emitOpError("argument ") << index << ": expected a step field, got " << arg.getValue();
  }
  for (auto value : getValues().getAsRange<ValueAttr>())
    if (value.getOffset() >= arena || value.getStride() < value.getCols() || value.getElement() > 6)
      return emitOpError("value ") << value.getName() << ": expected an offset inside the arena, stride >= cols and a known element";
  return success();
}
