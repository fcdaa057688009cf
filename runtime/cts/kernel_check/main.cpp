//===- main.cpp - llmc-kernel-check ---------------------------------------===//
//
//   llmc-kernel-check PACKAGE [--steps N] [--seed S] [--json FILE]
//
// Runs random ragged steps on the device that the package is for and recomputes, after every launch, what the launch had to
// write. The last line is "N passed, N failed"; exit code 1 if any failed.
//
//===----------------------------------------------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/kernel_check/Checker.h"
#include "runtime/tool/PackageDevice.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>

using namespace llmc;
using namespace llmc::kernel_check;

namespace {

struct Flags {
  std::string package, json, isa;
  uint32_t steps = 20, maxTokens = UINT32_MAX, device = 0, kvTokens = 4096, threads = 0;
  uint64_t seed = 1;
  bool ptx = false;
};

DeviceOptions optionsOf(const Flags &flags) {
  DeviceOptions options;
  options.kvTokens = flags.kvTokens;
  options.isa = flags.isa;
  options.threads = flags.threads;
  options.device = flags.device;
  options.ptx = flags.ptx;
  return options;
}

bool check(const Flags &flags) {
  const PackageReader package(flags.package);
  const std::unique_ptr<WeightSource> weights = WeightSource::open(package);
  const std::unique_ptr<Device> device = makeDevice(package, package.manifest(), *weights, optionsOf(flags));
  const DeviceInfo info = device->info();
  const std::string name = info.name + " (" + info.detail + ")";
  std::printf("%s on %s, seed %llu, %u steps\n", flags.package.c_str(), name.c_str(), static_cast<unsigned long long>(flags.seed), flags.steps);
  Report report;
  Checker checker(*device, report);
  RandomSteps steps(device->module(), device->numBlocks(), flags.maxTokens, flags.seed);
  try {
    for (uint32_t i = 0; i < flags.steps; ++i)
      checker.run(steps.next());
  } catch (const Error &error) { // a device lost in mid-run: what was found before still counts
    report.fail(error.what());
  }
  report.print(stdout);
  if (!flags.json.empty()) {
    std::ofstream file(flags.json, std::ios::trunc);
    file << report.json(flags.package, name, flags.seed, flags.steps);
    if (!file.flush())
      throw Error(flags.json + ": cannot be written");
  }
  return report.failed() == 0;
}

} // namespace

int main(int argc, char **argv) {
  Flags flags;
  CLI::App app{"Checks every kernel of a package against a double-precision reference, on random ragged steps.", "llmc-kernel-check"};
  app.add_option("PACKAGE", flags.package, "what llmc compile made, for a CPU or a GPU")->required();
  app.add_option("--steps", flags.steps, "steps to execute (20)")->check(CLI::Range(1u, 1000000u));
  app.add_option("--seed", flags.seed, "of the steps (1)");
  app.add_option("--max-tokens", flags.maxTokens, "tokens of a step, at most (the package's limit)")->check(CLI::Range(1u, UINT32_MAX));
  app.add_option("--kv-tokens", flags.kvTokens, "tokens of the KV pool (4096)")->check(CLI::Range(16u, 1u << 24));
  app.add_option("--isa", flags.isa, "instruction set of a package for CPUs (the best)");
  app.add_option("--threads", flags.threads, "CPU threads of the device (all)")->check(CLI::Range(1u, 1024u));
  app.add_option("--device", flags.device, "number of the GPU (0)");
  app.add_flag("--ptx", flags.ptx, "GPU: let the driver compile the PTX");
  app.add_option("--json", flags.json, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return check(flags) ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "llmc-kernel-check: error: %s\n", error.what());
    return 1;
  }
}
