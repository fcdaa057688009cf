//===- ModelFlags.cpp - the flags that decide the IR ----------------------===//
#include "Commands.h"

#include "llmc/Support/Text.h"

#include <tuple>
#include <utility>

using namespace llmc;

void ModelFlags::addTarget(Flags &flags, const std::string &help) {
  std::vector<std::string> names = {"cpu"};
  for (const GPUTarget &gpu : gpuTargets())
    names.push_back(gpu.name);
  flags.choice("target", target, names, help);
}

void ModelFlags::add(Flags &flags) {
  options.maxTokens = options.maxSeqs = options.maxLogits = 0; // of the target
  flags.section("numerics and limits");
  flags.choice("compute", options.compute, {"default", "f32", "q8"},
               "default: int16 activations for quantised weights, bf16 for bf16 and e4m3; q8: int8; f32: everything; GPU: bf16, e4m3 for e4m3");
  flags.choice("numerics", options.numerics, {"exact", "phase"},
               "exact: the same arithmetic for every token; phase: the layers' products of prompts in bf16, for CPUs with AMX");
  flags.choice("quantize", options.quantize, {"fp8"},
               "fp8: matrices of the layers from f32, f16 or bf16 to e4m3 with a scale for each row (default: as they are stored)");
  flags.choice("kv-type", options.kvType, {"bf16", "f32"}, "elements of the KV cache (bf16; f32 under --compute=f32)");
  flags.number("max-tokens-per-step", options.maxTokens, 1, 1 << 16,
               "tokens of one step; prompts run in chunks of it (512; GPU: 2048)");
  flags.number("max-seqs", options.maxSeqs, 1, 1 << 12, "sequences of one step (16; GPU: 64)");
  flags.number("max-logits", options.maxLogits, 1, 1 << 12, "rows of logits of one step (16; GPU: 64)");
  flags.section("optimisations, to measure what each is worth");
  flags.toggle("no-fuse-qkv", options.fuseQKV, false, "keep the q, k and v projections apart");
  flags.toggle("no-fuse-gate-up", options.fuseGateUp, false, "keep the gate and up projections apart");
  flags.toggle("no-fuse-residual", options.fuseResidual, false, "keep residual sums as launches of their own");
  flags.toggle("no-fuse-quantize", options.fuseQuantize, false, "keep rounding of activations as launches of their own");
}

const GPUTarget *ModelFlags::finish() {
  const GPUTarget *gpu = lookupTarget(target);
  for (auto [limit, cpuDefault, gpuDefault] :
       {std::tuple(&options.maxTokens, 512, 2048), {&options.maxSeqs, 16, 64}, {&options.maxLogits, 16, 64}})
    if (*limit == 0)
      *limit = gpu ? gpuDefault : cpuDefault;
  if (options.numerics == "phase" && (gpu || options.compute == "f32"))
    throw UsageError("--numerics=phase: expected a CPU as --target and --compute=default or q8, got " + (gpu ? gpu->name : "--compute=f32"));
  if (!gpu)
    return nullptr;
  options.target = "cuda";
  if (options.compute != "default")
    throw UsageError("--compute: expected default (bf16 products) for " + gpu->name + ", got " + quote(options.compute));
  if (options.kvType == "f32")
    throw UsageError("--kv-type: expected bf16 for " + gpu->name + ", got " + quote(options.kvType));
  return gpu;
}

void llmc::addRandomStorage(Flags &flags, std::string &name) {
  std::vector<std::string> names;
  for (DType type : kDTypes)
    names.push_back(storageName(type));
  flags.choice("random-storage", name, names,
               "storage of matrices where the folder has no weight files (bf16); of columns that are no multiple of 256, the type "
               "that llama.cpp's quantizer takes instead: q4_k q5_0, q5_k q5_1, q6_k q8_0, q2_k, q3_k and iq4_xs iq4_nl");
}

std::optional<DType> llmc::randomStorage(const std::string &name) { return storageOf(name); }
