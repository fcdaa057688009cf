//===- Pipeline.cpp - from tile kernels to the LLVM dialect for NVPTX -----===//

#include "llmc/Pipelines/TileToNVVM.h"

#include "llmc/Conversion/TileToCPU.h"
#include "llmc/Conversion/TileToNVVM.h"
#include "llmc/Transforms/Tile/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void llmc::buildTileToNVVMPipeline(OpPassManager &manager) {
  manager.addPass(createTileExpandMathPass(/*onlyTrigonometry=*/true));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createTilePipelineCudaPass());
  manager.addPass(createTilePipelineAttentionCudaPass());
  manager.addPass(createTileScheduleCudaPass());
  manager.addPass(createTileToNVVMPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createConvertNVVMToLLVMPass()); // those that are written as PTX
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void llmc::registerTileToNVVMPasses() {
  registerPass([]() -> std::unique_ptr<Pass> { return createTilePipelineCudaPass(); });
  registerPass([]() -> std::unique_ptr<Pass> { return createTilePipelineAttentionCudaPass(); });
  registerPass([]() -> std::unique_ptr<Pass> { return createTileScheduleCudaPass(); });
  registerPass([]() -> std::unique_ptr<Pass> { return createTileToNVVMPass(); });
  static PassPipelineRegistration<> pipeline("tile-to-llvm-cuda", "tile kernels to the LLVM dialect for sm_90a",
                                             [](OpPassManager &manager) { buildTileToNVVMPipeline(manager); });
}
