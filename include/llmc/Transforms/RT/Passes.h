//===- Passes.h - passes on the host program --------------------*- C++ -*-===//
//
// rt-plan-arena; see lib/Transforms/RT/Passes.td.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TRANSFORMS_RT_PASSES_H
#define LLMC_TRANSFORMS_RT_PASSES_H

#include "dialects/RT/RT.h"
#include "mlir/Pass/Pass.h"

namespace llmc {

#define GEN_PASS_DECL
#include "lib/Transforms/RT/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/RT/Passes.h.inc"

} // namespace llmc

#endif // LLMC_TRANSFORMS_RT_PASSES_H
