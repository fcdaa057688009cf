//===- RT.h - the host program ----------------------------------*- C++ -*-===//
//
// The rt dialect: the step as a list of kernel launches. See RTOps.td and Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_DIALECTS_RT_RT_H
#define LLMC_DIALECTS_RT_RT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/RT/RTDialect.h.inc"
#include "dialects/RT/RTEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/RT/RTAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/RT/RTOps.h.inc"

#endif // LLMC_DIALECTS_RT_RT_H
