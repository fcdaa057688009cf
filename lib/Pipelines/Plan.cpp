//===- Plan.cpp - sizes and work of a model, from its planned IR ----------===//
#include "llmc/Pipelines/Phases.h"
#include "llmc/Pipelines/Registration.h"

#include "dialects/LM/LM.h"
#include "dialects/RT/RT.h"
#include "dialects/Tile/Tile.h"
#include "llmc/Target/Layout.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace llmc;

ModelPlan llmc::planModel(const ModelFacts &facts, const ModelOptions &options) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ModelOptions plain = options;
  plain.reference = false;
  OwningOpRef<ModuleOp> module = lowerModel(context, facts, plain, "planned");

  ModelPlan plan;
  plan.weightBytes = (*module)->getAttrOfType<IntegerAttr>("lm.weights_bytes").getInt();
  if (auto group = (*module)->getAttrOfType<DictionaryAttr>("rt.kv_group"))
    plan.kvBytesPerToken = group.getAs<IntegerAttr>("block_bytes").getInt() / LLMC_KV_BLOCK;
  plan.kernels = llvm::range_size(module->getOps<tile::KernelOp>());
  auto step = module->lookupSymbol<rt::ProgramOp>("step");
  plan.arenaBytes = step.getArenaBytes();
  if (auto prompt = module->lookupSymbol<rt::ProgramOp>("prompt"))
    plan.arenaBytes = std::max<uint64_t>(plan.arenaBytes, prompt.getArenaBytes());
  for (auto launch : step.getBody().getOps<rt::LaunchOp>()) {
    ++plan.launches;
    if (launch.getRows() == rt::Rows::QueryTiles)
      for (auto variant : launch.getVariants().getAsRange<rt::VariantAttr>()) {
        TileForm form{variant.getMaxRows(), variant.getRowBlock(), variant.getColBlocks(), variant.getSpanRows()};
        if (!llvm::is_contained(plan.tileForms, form))
          plan.tileForms.push_back(form);
      }
    for (auto arg : launch.getArgs().getAsRange<rt::ArgAttr>()) {
      auto weight = arg.getWeight() ? module->lookupSymbol<lm::WeightOp>(arg.getWeight().getValue()) : lm::WeightOp();
      if (!weight || launch.getOp() == "token_embd")
        continue; // the embedding reads one row a token
      auto layout = llmc_layout(*weight.getLayout());
      ArrayRef<int64_t> shape = weight.getShape();
      uint64_t rows = shape.size() == 2 ? shape.front() : 1, cols = shape.back();
      plan.decodeWeightBytes += packedBytes(layout, rows, cols);
      if (shape.size() == 2 && layout != LLMC_LAYOUT_ROWS_F32)
        (launch.getRows() == rt::Rows::Logits ? plan.headFlops : plan.matrixFlops) += 2 * rows * cols;
    }
  }
  return plan;
}
