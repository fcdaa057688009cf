//===- PlanGPU.cpp - llmc plan for a GPU ----------------------------------===//
//
// The ledger is the runtime's own plan (runtime/device/cuda/MemoryPlan.h) of a module with the sizes that the compiler would
// write into it.
//
//===----------------------------------------------------------------------===//
#include "Plan.h"

#include "llmc/Explain/Hardware.h"
#include "llmc/Support/Error.h"
#include "llmc/Target/Layout.h"
#include "runtime/device/cuda/MemoryPlan.h"

#include <algorithm>
#include <cstdio>

using namespace llmc;

namespace {

/// As much of a module as planMemory reads.
struct ModuleSizes {
  llmc_kv_group_v1 group = {};
  std::vector<llmc_variant_v1> variants;
  llmc_launch_v1 launch = {};
  llmc_module_v1 module = {};

  explicit ModuleSizes(const PlanRequest &request) {
    group.block_bytes = request.plan.kvBytesPerToken * LLMC_KV_BLOCK;
    for (const TileForm &form : request.plan.tileForms)
      variants.push_back({form.maxRows, form.rowBlock, form.colBlocks, form.spanRows, nullptr, ""});
    launch.rows = LLMC_ROWS_QUERY_TILES;
    launch.num_variants = uint32_t(variants.size());
    launch.variants = variants.data();
    module.max_tokens = uint32_t(request.options.maxTokens);
    module.max_seqs = uint32_t(request.options.maxSeqs);
    module.max_logits = uint32_t(request.options.maxLogits);
    module.vocab = uint32_t(request.facts.vocab);
    module.padded_vocab = uint32_t(padded(uint64_t(request.facts.vocab)));
    module.padded_hidden = uint32_t(padded(uint64_t(request.facts.hidden)));
    module.max_context = uint32_t(request.facts.maxContext);
    module.num_kv_groups = 1;
    module.kv_groups = &group;
    module.weights_bytes = request.plan.weightBytes;
    module.program.num_launches = 1;
    module.program.launches = &launch;
    module.program.arena_bytes = request.plan.arenaBytes;
  }
  ModuleSizes(const ModuleSizes &) = delete;
};

/// Bounds: what memory and tensor cores allow, with nothing else taking time.
void printBounds(const PlanRequest &request, const GPUTarget &target, uint64_t context) {
  const ModelPlan &plan = request.plan;
  const ModelFacts &facts = request.facts;
  double kv = double(plan.kvBytesPerToken) * double(context) / 2;
  double attention = 4.0 * double(facts.layers * facts.heads * facts.headDim) * double(context) / 2;
  double batch = double(request.options.maxSeqs);
  std::printf("\nbounds (%.1f MB of weights a step and, at half of %llu tokens, %.1f MB of KV a sequence;\nprefill %.2f GFLOP a token)"
              "\n\n  %-12s %14s %18s %14s   %s\n",
              double(plan.decodeWeightBytes) / 1e6, static_cast<unsigned long long>(context), kv / 1e6,
              (double(plan.matrixFlops) + attention) / 1e9, "card", "decode tok/s", ("at batch " + std::to_string(int(batch))).c_str(),
              "prefill tok/s", "");
  for (const Hardware &card : cardTable(target.isa)) {
    auto rate = [&](double sequences) {
      double flops = sequences * (double(plan.matrixFlops + plan.headFlops) + attention);
      return sequences / std::max((double(plan.decodeWeightBytes) + sequences * kv) / card.bandwidth, flops / card.bf16);
    };
    std::printf("  %-12s %14.0f %18.0f %14.0f   %s\n", card.name.c_str(), rate(1), rate(batch),
                card.bf16 / (double(plan.matrixFlops) + attention), card.description.c_str());
  }
}

} // namespace

void llmc::planGPU(const PlanRequest &request, const GPUTarget &target) {
  ModuleSizes sizes(request);
  DeviceOptions options;
  options.kvTokens = uint64_t(request.context);
  cuda::FreeMemory memory;
  memory.name = "the budget (--memory)";
  if (request.memory)
    memory.free = memory.total = request.memory;
  cuda::MemoryPlan plan = cuda::planMemory(sizes.module, options, memory);
  uint64_t tokens = uint64_t(plan.numBlocks) * LLMC_KV_BLOCK, perToken = request.plan.kvBytesPerToken;
  std::printf("\nmemory of the GPU, %s (the driver's context of some hundred MiB comes on top)\n", target.name.c_str());
  printRow("weights", plan.weights);
  printRow("arena", plan.arena, ("steps of up to " + std::to_string(request.options.maxTokens) + " tokens").c_str());
  printRow("step buffers", plan.step,
           (std::to_string(request.options.maxSeqs) + " sequences of up to " + std::to_string(request.facts.maxContext) + " tokens").c_str());
  printRow("kv pool", plan.kv, (std::to_string(tokens) + " tokens of " + std::to_string(perToken) + " bytes").c_str());
  printRow("total", plan.onDevice());
  printRow("pinned on the host", plan.stepStaging + plan.maskStaging + plan.outputStaging);
  if (request.memory) {
    uint64_t rest = plan.weights + plan.arena + plan.step + (64u << 20); // the runtime leaves as much to the driver
    uint64_t blocks = (request.memory - std::min(rest, request.memory)) / (perToken * LLMC_KV_BLOCK);
    std::printf("\n%llu tokens of KV fit (%llu sequences of %lld)\n", static_cast<unsigned long long>(blocks * LLMC_KV_BLOCK),
                static_cast<unsigned long long>(blocks * LLMC_KV_BLOCK / uint64_t(request.facts.maxContext)),
                static_cast<long long>(request.facts.maxContext));
  }
  printBounds(request, target, request.context ? uint64_t(request.context) : uint64_t(request.facts.maxContext));
}
