//===- CompileCommand.cpp - llmc compile ----------------------------------===//
#include "Commands.h"

#include "llmc/Conversion/LMToTile.h"
#include "llmc/Support/Text.h"
#include "llmc/Target/KernelCompiler.h"
#include "llmc/Target/TargetInfo.h"

#include <algorithm>
#include <map>

using namespace llmc;

static const char kExamples[] =
    "  llmc compile SmolLM2-135M-Instruct.gguf -o smollm2          an executable for every x86-64 with AVX2\n"
    "  llmc compile model-folder -o model --target-cpu=native      for this machine only\n"
    "  llmc compile model.gguf -o m --target-cpu=neon_dotprod      for AArch64; needs scripts/build-aarch64.sh once\n"
    "  llmc compile model.gguf -o model --target=cuda:sm_90a       for a Hopper GPU; needs none here\n"
    "  llmc compile config-folder -o m --weights=random:1 ...      no weights: to measure speed\n"
    "  llmc compile model.gguf --emit=tile -o -                    what the kernels are\n"
    "  llmc compile model.gguf --stop-after=fused -o - | less      the IR after a phase\n"
    "  llmc compile model.gguf -o m --remarks                      why something was not fused\n";

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
  const bool all = cpu.empty() && list.empty();
  const std::vector<std::string> wanted = split(cpu.empty() ? list : cpu);
  auto named = [&](const std::string &isa) { return std::find(wanted.begin(), wanted.end(), isa) != wanted.end(); };
  std::vector<CPUTarget> chosen;
  for (const CPUTarget &target : cpuTargets())
    if (all ? target.architecture == hostArchitecture() : named(target.isa))
      chosen.push_back(target);
  if (named(emulatedAmx().isa)) // for tests, so only by its name
    chosen.push_back(emulatedAmx());
  std::vector<std::string> isas;
  for (const CPUTarget &target : chosen)
    isas.push_back(target.isa);
  if (!all)
    for (const std::string &name : wanted)
      if (std::find(isas.begin(), isas.end(), name) == isas.end())
        throw UsageError((cpu.empty() ? "--isas: expected " : "--target-cpu: expected native, ") + cpuTargetNames() + ", got " +
                         quote(name));
  for (const CPUTarget &target : chosen) // the executable's own code is of one
    if (Architecture first = chosen.front().architecture; target.architecture != first)
      throw UsageError((cpu.empty() ? "--isas" : "--target-cpu") + std::string(": expected instruction sets of one architecture, got ") + isas.front() +
                       " (" + architectureName(first) + ") and " + target.isa + " (" + architectureName(target.architecture) + ")");
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

/// The forms of code that the target has.
static void checkForm(const CompileOptions &options, const std::string &emit, const GPUTarget *gpu) {
  for (const char *form : {"ptx", "cubin", "asm"})
    if (emit == form && (gpu != nullptr) == (emit == "asm"))
      throw UsageError("--emit: expected " + std::string(gpu ? "llvm, ptx, cubin or object" : "llvm, asm or object") +
                       " of the code for " + (gpu ? gpu->name : "a CPU") + ", got " + quote(emit));
  for (auto [given, flag] : {std::pair(options.ptxOnly, "--ptx-only"), std::pair(options.ir.trapChecks, "--trap-checks"),
                             std::pair(!options.ir.linearTile.empty(), "--linear-tile")})
    if (given && !gpu)
      throw UsageError(std::string(flag) + ": expected a GPU as --target, got cpu");
}

void llmc::compileCommand(int argc, char **argv) {
  CompileOptions options;
  ModelFlags model;
  std::string cpu, isas, emit = "package", weights = "embedded", storage;
  bool cache = true;
  int64_t jobs = 2;
  options.cacheFolder = KernelCache::defaultFolder();
  std::vector<std::string> phases;
  for (const PhaseInfo &phase : irPhases())
    phases.push_back(phase.name);

  Flags flags("llmc compile", "Compiles a model ahead of time into one executable that serves it.", kExamples);
  flags.positional(options.model, "MODEL", "a GGUF file or a Hugging Face folder");
  flags.text("o", options.output, "FILE", "the output; - for standard output with --emit or --stop-after");
  model.addTarget(flags, "what to compile for");
  flags.text("target-cpu", cpu, "native|ISA", "one instruction set: native or one of " + cpuTargetNames());
  flags.text("isas", isas, "ISA,ISA", "instruction sets of the package, of one architecture (" + cpuTargetNames(hostArchitecture()) + ")");
  model.add(flags);
  flags.section("weights");
  flags.text("weights", weights, "embedded|separate|random:SEED",
             "in the executable; in files beside it; none, made at load (then a folder with config.json is enough)");
  flags.bytes("max-shard-size", options.weights.maxShardBytes, "largest file of --weights=separate (one file)");
  addRandomStorage(flags, storage);
  flags.section("looking inside");
  flags.choice("emit", emit, {"lm", "tile", "rt", "llvm", "asm", "ptx", "cubin", "object", "package"},
               "what to write; cubin: -o is a folder");
  flags.toggle("ptx-only", options.ptxOnly, true, "GPU: PTX without cubins, not assembled and not gated here");
  flags.toggle("trap-checks", model.options.trapChecks, true, "GPU: kernels check token ids and block tables");
  flags.choice("linear-tile", model.options.linearTile, linearTileNames(),
               "GPU: the tile of dense products of more than 64 tokens, for measuring (the best by the measured table)");
  flags.choice("stop-after", options.stopAfter, phases, "write the IR after this phase");
  flags.toggle("locations", options.locations, true, "print names of values with the IR, so that llmc-opt can go on from it");
  flags.text("print-ir-after", model.options.printAfter, "PASS|all", "IR after a pass, on stderr");
  flags.toggle("remarks", model.options.remarks, true, "why something was not fused, on stderr");
  flags.section("how");
  flags.number("jobs", jobs, 1, 1024, "worker processes at a time");
  flags.text("cache-dir", options.cacheFolder, "FOLDER", "kernel cache (" + options.cacheFolder + ")");
  flags.toggle("no-cache", cache, false, "compile every kernel anew");
  flags.text("stub", options.stub, "FILE", "the runtime executable (llmc-runtime-stub beside llmc; for AArch64 llmc-runtime-stub-aarch64)");
  if (!flags.parse(argc, argv))
    return;

  const GPUTarget *gpu = model.finish();
  options.ir = model.options;
  if (gpu && (!cpu.empty() || !isas.empty()))
    throw UsageError(std::string(isas.empty() ? "--target-cpu" : "--isas") + ": expected no instruction sets of a CPU for " +
                     gpu->name + ", got " + quote(isas.empty() ? cpu : isas));
  options.isas = gpu ? std::vector<std::string>{gpu->isa} : chosenIsas(cpu, isas);
  checkForm(options, emit, gpu);
  uint64_t shard = options.weights.maxShardBytes;
  options.weights = parseWeightsOptions(weights);
  if (shard && options.weights.mode != WeightsOptions::Mode::Separate)
    throw UsageError("--max-shard-size: expected --weights=separate with it, got --weights=" + weights);
  options.weights.maxShardBytes = shard;
  options.randomStorage = randomStorage(storage);
  if (options.randomStorage && options.weights.mode != WeightsOptions::Mode::Random)
    throw UsageError("--random-storage: expected --weights=random:SEED with it, got --weights=" + weights);
  options.jobs = unsigned(jobs);
  if (!cache)
    options.cacheFolder.clear();
  choosePhase(options, emit);
  bool text = !options.stopAfter.empty() || (options.emit != "package" && options.emit != "cubin");
  if (options.output.empty() && text)
    options.output = "-";
  if (options.output.empty())
    throw UsageError(std::string("llmc compile: expected -o ") + (options.emit == "cubin" ? "FOLDER for cubins" : "FILE") +
                     "; see llmc compile --help");
  if (options.output == "-" && !text)
    throw UsageError("llmc compile: expected -o " + std::string(options.emit == "cubin" ? "FOLDER for cubins" : "FILE for an executable") +
                     ", got -");
  compileModel(options);
}
