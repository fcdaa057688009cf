//===- CompileCommand.cpp - llmc compile ----------------------------------===//
#include "Commands.h"

#include "llmc/Support/Text.h"
#include "llmc/Target/KernelCompiler.h"
#include "llmc/Target/TargetInfo.h"

#include <algorithm>
#include <map>

using namespace llmc;

static const char kExamples[] =
    "  llmc compile SmolLM2-135M-Instruct.gguf -o smollm2          an executable for every x86-64 with AVX2\n"
    "  llmc compile model-folder -o model --target-cpu=native      for this machine only\n"
    "  llmc compile model.gguf --emit=tile -o -                    what the kernels are\n"
    "  llmc compile model.gguf --stop-after=fused -o - | less      the IR after a phase\n"
    "  llmc compile model.gguf -o m --remarks                      why something was not fused\n";

void llmc::addModelFlags(Flags &flags, ModelOptions &options) {
  flags.section("numerics and limits");
  flags.choice("compute", options.compute, {"default", "f32", "q8"},
               "default: int16 activations for quantised weights, bf16 for bf16; q8: int8; f32: everything");
  flags.choice("kv-type", options.kvType, {"bf16", "f32"}, "elements of the KV cache (bf16; f32 under --compute=f32)");
  flags.number("max-tokens-per-step", options.maxTokens, 1, 1 << 16, "tokens of one step; prompts run in chunks of it");
  flags.number("max-seqs", options.maxSeqs, 1, 1 << 12, "sequences of one step");
  flags.number("max-logits", options.maxLogits, 1, 1 << 12, "rows of logits of one step");
  flags.section("optimisations, to measure what each is worth");
  flags.toggle("no-fuse-qkv", options.fuseQKV, false, "keep the q, k and v projections apart");
  flags.toggle("no-fuse-gate-up", options.fuseGateUp, false, "keep the gate and up projections apart");
  flags.toggle("no-fuse-residual", options.fuseResidual, false, "keep residual sums as launches of their own");
  flags.toggle("no-fuse-quantize", options.fuseQuantize, false, "keep rounding of activations as launches of their own");
}

static std::vector<std::string> split(const std::string &list) {
  std::vector<std::string> parts(1);
  for (char c : list)
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// Names to ISAs of cpuTargets(), weakest first, each once.
static std::vector<std::string> chosenIsas(const std::string &cpu, const std::string &list) {
  if (!cpu.empty() && !list.empty())
    throw UsageError("expected one of --target-cpu and --isas, got both");
  if (!cpu.empty() && cpu == "native")
    return {lookupCPUTarget(cpu).isa};
  std::vector<std::string> wanted = split(cpu.empty() ? list : cpu), isas;
  for (const CPUTarget &target : cpuTargets())
    if ((cpu.empty() && list.empty()) || std::find(wanted.begin(), wanted.end(), target.isa) != wanted.end())
      isas.push_back(target.isa);
  if (!cpu.empty() || !list.empty())
    for (const std::string &name : wanted)
      if (std::find(isas.begin(), isas.end(), name) == isas.end())
        throw UsageError((cpu.empty() ? "--isas: expected " : "--target-cpu: expected native, ") + cpuTargetNames() + ", got " +
                         quote(name));
  return isas;
}

/// --emit and --stop-after meet in one phase or one form of code.
static void choosePhase(CompileOptions &options, const std::string &emit) {
  static const std::map<std::string, std::string> phases = {{"lm", "decided"}, {"tile", "tile"}, {"rt", "planned"}};
  auto phase = phases.find(emit);
  if (phase == phases.end()) {
    options.emit = emit;
    return;
  }
  if (options.stopAfter.empty())
    options.stopAfter = phase->second;
}

void llmc::compileCommand(int argc, char **argv) {
  CompileOptions options;
  std::string target = "cpu", cpu, isas, emit = "package";
  bool cache = true;
  int64_t jobs = 2;
  options.cacheFolder = KernelCache::defaultFolder();
  std::vector<std::string> phases;
  for (const PhaseInfo &phase : irPhases())
    phases.push_back(phase.name);

  Flags flags("llmc compile", "Compiles a model ahead of time into one executable that serves it.", kExamples);
  flags.positional(options.model, "MODEL", "a GGUF file or a Hugging Face folder");
  flags.text("o", options.output, "FILE", "the output; - for standard output with --emit or --stop-after");
  flags.choice("target", target, {"cpu"}, "what to compile for");
  flags.text("target-cpu", cpu, "native|ISA", "one instruction set: native or one of " + cpuTargetNames());
  flags.text("isas", isas, "ISA,ISA", "instruction sets of the package (all: " + cpuTargetNames() + ")");
  addModelFlags(flags, options.ir);
  flags.section("looking inside");
  flags.choice("emit", emit, {"lm", "tile", "rt", "llvm", "asm", "object", "package"}, "what to write");
  flags.choice("stop-after", options.stopAfter, phases, "write the IR after this phase");
  flags.toggle("locations", options.locations, true, "print names of values with the IR, so that llmc-opt can go on from it");
  flags.text("print-ir-after", options.ir.printAfter, "PASS|all", "IR after a pass, on stderr");
  flags.toggle("remarks", options.ir.remarks, true, "why something was not fused, on stderr");
  flags.section("how");
  flags.number("jobs", jobs, 1, 1024, "worker processes at a time");
  flags.text("cache-dir", options.cacheFolder, "FOLDER", "kernel cache (" + options.cacheFolder + ")");
  flags.toggle("no-cache", cache, false, "compile every kernel anew");
  flags.text("stub", options.stub, "FILE", "the runtime executable (llmc-runtime-stub beside llmc)");
  if (!flags.parse(argc, argv))
    return;

  options.isas = chosenIsas(cpu, isas);
  options.jobs = unsigned(jobs);
  if (!cache)
    options.cacheFolder.clear();
  choosePhase(options, emit);
  bool text = !options.stopAfter.empty() || options.emit != "package";
  if (options.output.empty() && text)
    options.output = "-";
  if (options.output.empty())
    throw UsageError("llmc compile: expected -o FILE; see llmc compile --help");
  if (options.output == "-" && !text)
    throw UsageError("llmc compile: expected -o FILE for an executable, got -");
  compileModel(options);
}
