//===- TileToLLVM.cpp - the pipeline from tile kernels to LLVM ------------===//

#include "llmc/Pipelines/TileToLLVM.h"

#include "llmc/Conversion/TileToCPU.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void llmc::buildTileToLLVMPipeline(OpPassManager &manager, llvm::StringRef isa) {
  manager.addPass(createTileExpandMathPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createTileToCPUPass(isa));
  manager.addPass(createTileExpandMathPass()); // roundings that cache writes brought
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void llmc::registerTileToLLVMPasses() {
  registerPass([]() -> std::unique_ptr<Pass> { return createTileExpandMathPass(); });
  registerPass([]() -> std::unique_ptr<Pass> { return createTileToCPUPass(); });
  static PassPipelineRegistration<> avx2("tile-to-llvm-avx2", "tile kernels to the LLVM dialect for AVX2",
                                         [](OpPassManager &manager) { buildTileToLLVMPipeline(manager, "avx2"); });
  static PassPipelineRegistration<> avx512("tile-to-llvm-avx512vnni", "tile kernels to the LLVM dialect for AVX-512 VNNI",
                                           [](OpPassManager &manager) { buildTileToLLVMPipeline(manager, "avx512vnni"); });
  static PassPipelineRegistration<> bf16("tile-to-llvm-avx512bf16", "tile kernels to the LLVM dialect for AVX-512 with bf16 products",
                                         [](OpPassManager &manager) { buildTileToLLVMPipeline(manager, "avx512bf16"); });
  static PassPipelineRegistration<> neon("tile-to-llvm-neon_dotprod", "tile kernels to the LLVM dialect for AArch64 with dot products",
                                         [](OpPassManager &manager) { buildTileToLLVMPipeline(manager, "neon_dotprod"); });
  static PassPipelineRegistration<> amx("tile-to-llvm-amxbf16", "tile kernels to the LLVM dialect for AVX-512 and AMX",
                                        [](OpPassManager &manager) { buildTileToLLVMPipeline(manager, "amxbf16"); });
}
