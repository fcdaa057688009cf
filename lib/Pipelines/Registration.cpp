//===- Registration.cpp - the one file that includes InitAll* -------------===//
//
// InitAll* pulls in every upstream dialect and is slow to compile, so that it is included here only.
//
//===----------------------------------------------------------------------===//
#include "llmc/Pipelines/Registration.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "dialects/Tile/Tile.h"
#include "llmc/Conversion/LMToLinalg.h"
#include "llmc/Conversion/LMToTile.h"
#include "llmc/Conversion/RTToLLVM.h"
#include "llmc/Pipelines/Phases.h"
#include "llmc/Pipelines/ReferenceToLLVM.h"
#include "llmc/Pipelines/TileToLLVM.h"
#include "llmc/Pipelines/TileToNVVM.h"
#include "llmc/Pipelines/TileToNVVM.h"
#include "llmc/Transforms/LM/Passes.h"
#include "llmc/Transforms/RT/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void llmc::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry.insert<lm::LMDialect, tile::TileDialect, rt::RTDialect>();
}

void llmc::registerAllPasses() {
  mlir::registerAllPasses();
  lm::registerLMPasses();
  lm::registerLMPipelines();
  registerLMToLinalgPasses();
  registerReferenceToLLVMPipeline();
  registerRTTransformsPasses();
  registerRTToLLVMPasses();
  mlir::registerPass([] { return createLMToTilePass(); });
  registerTileToLLVMPasses();
  registerTileToNVVMPasses();
  registerPhasePipelines();
}
