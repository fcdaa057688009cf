//===- ExplainCommand.cpp - llmc explain ----------------------------------===//
#include "Commands.h"

#include "llmc/Explain/Explanation.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/File.h"
#include "llmc/Support/ScratchFolder.h"
#include "llmc/Support/Text.h"
#include "runtime/device/ModuleLoader.h"
#include "runtime/package/PackageReader.h"

#include <algorithm>
#include <cstdio>

using namespace llmc;

namespace {

constexpr const char *kExamples =
    "  llmc explain smollm2                                   one token behind 1,023 others\n"
    "  llmc explain smollm2 --tokens=512                      a prompt of 512 tokens\n"
    "  llmc explain model --batch=64 --context=8192 --hardware=h200-sxm\n"
    "  ./smollm2 bench --profile && llmc explain smollm2 --profile=smollm2.profile.json\n"
    "  llmc explain smollm2 --format=html -o smollm2.html     the roofline as a picture\n"
    "  llmc explain smollm2 --format=json | jq '.kernels[0]'\n";

struct ExplainFlags {
  std::string package, profile, format = "text", output = "-", hardware, isa;
  int64_t tokens = 0, batch = 0, context = 0; // 0: not given
  uint64_t bandwidth = 0;
};

/// The module for `isa`; empty: the strongest.
LoadedModule loadModule(const PackageReader &package, const Manifest &manifest, const std::string &isa) {
  if (manifest.isas.empty())
    throw Error(package.path() + ": manifest.isas: expected an instruction set, got none");
  const std::string wanted = isa.empty() ? manifest.isas.back() : isa;
  if (std::find(manifest.isas.begin(), manifest.isas.end(), wanted) == manifest.isas.end())
    throw Error("--isa: expected " + join(manifest.isas) + " (what " + package.path() + " has), got " + quote(wanted));
  const std::string section = "module." + wanted;
  return LoadedModule(package.section(section), package.path() + ": " + section);
}

Profile readProfile(const std::string &file, const PackageReader &package, const Manifest &manifest) {
  Profile profile = Profile::parse(readTextFile(file), file);
  if (profile.weightsId != manifest.weightsId())
    throw Error(file + ": expected a profile of " + package.path() + " (model " + quote(manifest.model.name) + "), got one of model " +
                quote(profile.model) + " with other weights");
  if (std::find(manifest.isas.begin(), manifest.isas.end(), profile.isa) == manifest.isas.end())
    throw Error(file + ".isa: expected " + join(manifest.isas) + " (what " + package.path() + " has), got " + quote(profile.isa));
  return profile;
}

/// The profile's first step that has what the flags say.
const Profile::Step &stepOf(const Profile &profile, const ExplainFlags &flags) {
  std::vector<std::string> there;
  auto fits = [](int64_t flag, uint64_t value) { return flag == 0 || uint64_t(flag) == value; };
  for (const Profile::Step &step : profile.steps) {
    if (fits(flags.tokens, step.tokens) && fits(flags.batch, step.sequences) && fits(flags.context, step.context))
      return step;
    there.push_back("--tokens=" + std::to_string(step.tokens) + " --batch=" + std::to_string(step.sequences) +
                    " --context=" + std::to_string(step.context));
  }
  std::string wanted;
  for (auto [name, value] : {std::pair("--tokens=", flags.tokens), {"--batch=", flags.batch}, {"--context=", flags.context}})
    if (value)
      wanted += (wanted.empty() ? "" : " ") + std::string(name) + std::to_string(value);
  throw Error(flags.profile + ": expected one of its steps (" + join(there, "; ") + "), got " + wanted);
}

/// Decoding behind some 1,000 tokens unless the flags say otherwise.
StepShape shapeOf(const ExplainFlags &flags, const llmc_module_v1 &module) {
  StepShape shape;
  shape.sequences = flags.batch ? uint64_t(flags.batch) : 1;
  shape.tokens = flags.tokens ? uint64_t(flags.tokens) : 1;
  const uint64_t usual = std::min<uint64_t>(1024, module.max_context);
  shape.context = flags.context ? uint64_t(flags.context) : shape.tokens > 1 ? shape.tokens : usual;
  return shape;
}

std::string render(const Explanation &explanation, const std::string &format) {
  return format == "html" ? explainHtml(explanation) : format == "json" ? explainJson(explanation) : explainText(explanation);
}

} // namespace

void llmc::explainCommand(int argc, char **argv) {
  ExplainFlags f;
  Flags flags("llmc explain",
              "Where the time of a step goes: of every kernel of a compiled model the bytes it moves, the operations it computes, what\n"
              "it waits for and how long at least; with a profile also how long it took. Needs no GPU and reads no weights.",
              kExamples);
  flags.positional(f.package, "PACKAGE", "an executable of llmc compile");
  flags.section("the step");
  flags.number("tokens", f.tokens, 1, 1 << 24, "new tokens of each sequence (1: decoding)");
  flags.number("batch", f.batch, 1, 1 << 20, "sequences (1)");
  flags.number("context", f.context, 1, int64_t(1) << 32,
               "tokens of each sequence in the cache after the step (the new ones; decoding: 1024)");
  flags.section("the machine");
  flags.text("hardware", f.hardware, "NAME",
             "CPU: vm-2, laptop-ddr4, desktop-ddr5, server-ddr5; GPU: h100-pcie, h100-sxm, h200-sxm (a usual one; with a profile its card)");
  flags.bytes("bandwidth", f.bandwidth, "bytes a second from memory, instead of the machine's nominal ones");
  flags.text("isa", f.isa, "ISA", "of a CPU package: the instruction set (the profile's, else the best of the package)");
  flags.text("profile", f.profile, "FILE", "measured times, of PACKAGE bench --profile=FILE; the step is one of the file's");
  flags.section("the answer");
  flags.choice("format", f.format, {"text", "json", "html"}, "text, JSON (docs/explain.md) or one HTML page with a roofline (text)");
  flags.text("o", f.output, "FILE", "the output; - for standard output (-)");
  if (!flags.parse(argc, argv))
    return;

  const PackageReader package(f.package);
  const Manifest manifest = package.manifest();
  Profile profile;
  const Profile::Step *step = nullptr;
  if (!f.profile.empty()) {
    profile = readProfile(f.profile, package, manifest);
    if (!f.isa.empty() && f.isa != profile.isa)
      throw Error("--isa: expected " + profile.isa + " (what " + f.profile + " was measured with), got " + quote(f.isa));
    f.isa = profile.isa;
    step = &stepOf(profile, f);
  }
  const LoadedModule module = loadModule(package, manifest, f.isa);
  Hardware hardware = hardwareFor((*module).isa, f.hardware, profile.device);
  if (f.bandwidth) {
    hardware.bandwidth = double(f.bandwidth);
    hardware.description += ", with --bandwidth";
  }
  ExplainRequest request{*module, f.package, manifest.model.name, hardware, shapeOf(f, *module), nullptr, nullptr, f.profile};
  if (step) {
    request.profile = &profile;
    request.step = step;
    request.shape = {step->sequences, step->tokens, step->context};
  }
  const std::string answer = render(explain(request), f.format);
  if (f.output != "-")
    return writeFile(f.output, answer);
  if (std::fwrite(answer.data(), 1, answer.size(), stdout) != answer.size() || std::fflush(stdout) != 0)
    throw Error("standard output: cannot write");
}
