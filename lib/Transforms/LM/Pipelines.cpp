//===- Pipelines.cpp - the lm phases --------------------------------------===//
#include "llmc/Transforms/LM/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace llmc::lm;

void llmc::lm::buildLMFusionPipeline(OpPassManager &pm, const FusionOptions &options) {
  if (options.qkv)
    pm.addPass(createLMFuseQKVPass());
  if (options.gateUp)
    pm.addPass(createLMFuseGateUpPass());
  if (options.residual)
    pm.addPass(createLMFuseResidualPass());
  pm.addPass(createLMVerifyImportedPass());
}

void llmc::lm::buildLMDecidePipeline(OpPassManager &pm, const DecideOptions &options) {
  std::string target = options.cuda ? "cuda" : "cpu";
  if (options.cuda)
    pm.addPass(createLMSampleOnDevicePass());
  if (!options.quantize.empty())
    pm.addPass(createLMQuantizeWeightsPass({options.quantize}));
  std::string element =
      options.kvElement.empty() ? (options.compute == "f32" ? "f32" : "bf16") : options.kvElement;
  pm.addPass(createLMPageKVPass({element, options.kvBlock}));
  pm.addPass(createLMSetArithPass({options.compute, target}));
  if (options.phases)
    pm.addPass(createLMSplitPhasesPass());
  pm.addPass(createLMQuantizeActivationsPass());
  if (options.fuseQuantize)
    pm.addPass(createLMFuseQuantizePass());
  pm.addPass(createLMPackWeightsPass({target}));
  pm.addPass(createLMVerifyDecidedPass());
}

namespace {

struct FusionFlags : PassPipelineOptions<FusionFlags> {
  Option<bool> qkv{*this, "qkv", llvm::cl::desc("join q, k and v"), llvm::cl::init(true)};
  Option<bool> gateUp{*this, "gate-up", llvm::cl::desc("join gate and up"), llvm::cl::init(true)};
  Option<bool> residual{*this, "residual", llvm::cl::desc("fold residual sums"), llvm::cl::init(true)};
};

struct DecideFlags : PassPipelineOptions<DecideFlags> {
  Option<std::string> compute{*this, "compute", llvm::cl::desc("default, f32 or q8"), llvm::cl::init("default")};
  Option<std::string> quantize{*this, "quantize", llvm::cl::desc("fp8; empty: weights as they are stored"), llvm::cl::init("")};
  Option<std::string> kvElement{*this, "kv-element", llvm::cl::desc("bf16, f16, f32; empty: by compute"),
                                llvm::cl::init("")};
  Option<int64_t> kvBlock{*this, "kv-block", llvm::cl::desc("tokens per block"), llvm::cl::init(16)};
  Option<bool> fuseQuantize{*this, "fuse-quantize", llvm::cl::desc("fold rounding into producers"),
                            llvm::cl::init(true)};
  Option<bool> cuda{*this, "cuda", llvm::cl::desc("decide for a GPU"), llvm::cl::init(false)};
  Option<bool> phases{*this, "phases", llvm::cl::desc("an arithmetic of its own for prompts"), llvm::cl::init(false)};
};

} // namespace

void llmc::lm::registerLMPipelines() {
  PassPipelineRegistration<FusionFlags>("lm-fusion", "fuses an imported model",
                                        [](OpPassManager &pm, const FusionFlags &f) {
                                          buildLMFusionPipeline(pm, {f.qkv, f.gateUp, f.residual});
                                        });
  PassPipelineRegistration<DecideFlags>(
      "lm-decide", "decides arithmetic, activation formats, KV blocks and packing",
      [](OpPassManager &pm, const DecideFlags &f) {
        buildLMDecidePipeline(pm, {f.compute, f.quantize, f.kvElement, f.kvBlock, f.fuseQuantize, f.cuda, f.phases});
      });
}
