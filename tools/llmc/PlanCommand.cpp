//===- PlanCommand.cpp - llmc plan ----------------------------------------===//
#include "Commands.h"
#include "Plan.h"

#include "llmc/Explain/Hardware.h"
#include "llmc/Support/Error.h"

#include <algorithm>
#include <cstdio>

using namespace llmc;

void llmc::printRow(const char *name, uint64_t bytes, const char *note) {
  std::printf("  %-28s %14llu  %9.1f MiB  %s\n", name, static_cast<unsigned long long>(bytes), double(bytes) / (1 << 20), note);
}

static void printSpeed(const ModelPlan &plan, const ModelFacts &facts, int64_t context) {
  uint64_t kv = plan.kvBytesPerToken * uint64_t(context) / 2;
  uint64_t attention = uint64_t(4 * facts.layers * facts.heads * facts.headDim) * uint64_t(context) / 2;
  std::printf("\npredicted speed (roofline; %.1f MB of weights and, at half the context, %.1f MB of KV a token;\n"
              "prefill %.2f GFLOP a token)\n\n  %-14s %12s %12s   %s\n",
              double(plan.decodeWeightBytes) / 1e6, double(kv) / 1e6, double(plan.matrixFlops + attention) / 1e9, "machine",
              "decode tok/s", "prefill tok/s", "");
  for (const Hardware &hardware : hardwareTable()) {
    double decode = std::max(double(plan.decodeWeightBytes + kv) / hardware.bandwidth,
                             double(plan.matrixFlops + plan.headFlops) / hardware.int8 + double(attention) / hardware.f32);
    double prefill = double(plan.matrixFlops) / hardware.int8 + double(attention) / hardware.f32;
    std::printf("  %-14s %12.0f %12.0f   %s\n", hardware.name.c_str(), 1 / decode, 1 / prefill,
                hardware.description.c_str());
  }
}

static void planCPU(const PlanRequest &request) {
  const ModelPlan &plan = request.plan;
  const ModelFacts &facts = request.facts;
  int64_t context = request.context ? request.context : facts.maxContext;
  uint64_t blocks = (uint64_t(context) + 15) / 16, kv = blocks * 16 * plan.kvBytesPerToken;
  uint64_t tokenizer = 5 * facts.tokenizer.serialize().size(); // measured, as the runtime's ledger has it
  uint64_t total = plan.weightBytes + plan.arenaBytes + kv + tokenizer;
  std::printf("\nmemory, one CPU\n");
  printRow("weights (huge-page copy)", plan.weightBytes, "anonymous; --mmap at run time: the file's pages instead");
  printRow("arena", plan.arenaBytes, ("steps of up to " + std::to_string(request.options.maxTokens) + " tokens").c_str());
  printRow("kv pool", kv, (std::to_string(context) + " tokens of " + std::to_string(plan.kvBytesPerToken) + " bytes").c_str());
  printRow("tokenizer", tokenizer);
  printRow("total", total);
  printSpeed(plan, facts, context);
  if (request.memory && total > request.memory) {
    uint64_t fixed = total - kv;
    uint64_t fits = request.memory > fixed && plan.kvBytesPerToken
                        ? (request.memory - fixed) / (16 * plan.kvBytesPerToken) * 16
                        : 0;
    throw Error("expected at most " + std::to_string(request.memory) + " bytes, got " + std::to_string(total) + "; " +
                (fits ? "--context=" + std::to_string(fits) + " would fit" : "not even the weights and arena fit"));
  }
}

void llmc::planCommand(int argc, char **argv) {
  std::string path, storage;
  ModelFlags model;
  int64_t context = 0;
  uint64_t memory = 0;
  Flags flags("llmc plan", "Memory ledger and predicted speed of a compiled model. Reads no weights.",
              "  llmc plan SmolLM2-135M-Instruct.gguf\n  llmc plan model-folder --context=8192 --memory=16GiB\n"
              "  llmc plan model-folder --target=cuda:sm_90a --memory=80GiB      a folder with config.json is enough\n");
  flags.positional(path, "MODEL", "a GGUF file or a Hugging Face folder");
  model.addTarget(flags, "what to plan for");
  flags.number("context", context, 0, int64_t(1) << 32, "tokens in the KV cache; 0: what the model was trained for");
  flags.bytes("memory", memory, "budget; the plan says whether it is kept (GPU: and how many tokens fit)");
  addRandomStorage(flags, storage);
  model.add(flags);
  if (!flags.parse(argc, argv))
    return;
  const GPUTarget *gpu = model.finish();
  ModelFacts facts = loadModelFacts(path, {true, randomStorage(storage).value_or(DType::BF16)});
  ModelPlan plan = planModel(facts, model.options);
  std::printf("%s, %s: %lld layers, hidden %lld, vocabulary %lld; %zu launches of %zu kernels\n",
              facts.name.empty() ? path.c_str() : facts.name.c_str(), facts.architecture.c_str(),
              static_cast<long long>(facts.layers), static_cast<long long>(facts.hidden), static_cast<long long>(facts.vocab),
              plan.launches, plan.kernels);
  PlanRequest request{facts, plan, model.options, context, memory};
  if (gpu)
    planGPU(request, *gpu);
  else
    planCPU(request);
}
