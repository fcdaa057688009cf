//===- Registration.cpp - the one file that includes InitAll* -------------===//
//
// InitAll* pulls in every upstream dialect and is slow to compile, so that it is included here only.
//
//===----------------------------------------------------------------------===//
#include "llmc/Pipelines/Registration.h"

#include "dialects/RT/RT.h"
#ifdef LLMC_HAS_LM
#include "dialects/LM/LM.h"
#endif
#ifdef LLMC_HAS_TILE
#include "dialects/Tile/Tile.h"
#endif

#ifdef LLMC_HAS_REFERENCE
#include "llmc/Conversion/LMToLinalg.h"
#include "llmc/Pipelines/ReferenceToLLVM.h"
#endif

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void llmc::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry.insert<rt::RTDialect>();
#ifdef LLMC_HAS_LM
  registry.insert<lm::LMDialect>();
#endif
#ifdef LLMC_HAS_TILE
  registry.insert<tile::TileDialect>();
#endif
}

void llmc::registerAllPasses() {
  mlir::registerAllPasses();
#ifdef LLMC_HAS_REFERENCE
  registerLMToLinalgPasses();
  registerReferenceToLLVMPipeline();
#endif
}
