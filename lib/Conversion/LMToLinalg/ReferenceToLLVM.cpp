//===- ReferenceToLLVM.cpp - from a kernel of the oracle to LLVM ----------===//
#include "llmc/Pipelines/ReferenceToLLVM.h"

#include "llmc/Conversion/LMToLinalg.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void llmc::buildReferenceToLLVMPipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addNestedPass<func::FuncOp>(createReferenceExpandMathPass());
  manager.addNestedPass<func::FuncOp>(createLowerAffinePass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createReferenceKernelEntryPass());
  manager.addNestedPass<func::FuncOp>(createConvertMathToLLVMPass());
  manager.addNestedPass<func::FuncOp>(createArithToLLVMConversionPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void llmc::registerReferenceToLLVMPipeline() {
  PassPipelineRegistration<>("reference-to-llvm", "from a kernel of the oracle (linalg on memrefs) to LLVM",
                             [](OpPassManager &manager) { buildReferenceToLLVMPipeline(manager); });
}
