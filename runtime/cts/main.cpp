//===- main.cpp - llmc-cts PACKAGE ----------------------------------------===//
#include "llmc/Support/Error.h"
#include "runtime/cts/Suite.h"
#include "runtime/tool/Flags.h"
#include "runtime/tool/PackageDevice.h"

#include <chrono>
#include <cstdio>
#include <new>

namespace {

using namespace llmc;
using namespace llmc::cts;

struct Options {
  LoadFlags load;
  std::string package, filter;
  bool quick = false;
  unsigned traces = 0;
};

// Evaluates in this order: a lost device fails everything that follows.
Checks allChecks() {
  Checks checks;
  addSteps(checks);
  addOutputs(checks);
  addInvariance(checks);
  addBlocks(checks);
  addRequests(checks);
  return checks;
}

bool runOne(const Check &check, Player &player) {
  const auto start = std::chrono::steady_clock::now();
  std::string error;
  try {
    check.run(player);
  } catch (const std::exception &e) {
    error = e.what();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s %s (%.2f s)%s%s\n", error.empty() ? "ok  " : "FAIL", check.name.c_str(), seconds, error.empty() ? "" : ": ",
              error.c_str());
  std::fflush(stdout);
  return error.empty();
}

int run(const Options &options) {
  const PackageReader package(options.package);
  const Manifest manifest = package.manifest();
  const std::unique_ptr<WeightSource> weights = WeightSource::open(package, options.load.weightsDir);
  DeviceOptions device;
  device.threads = unsigned(options.load.threads);
  device.isa = options.load.isa;
  device.device = unsigned(options.load.device);
  device.ptx = options.load.ptx;
  device.graphs = !options.load.noGraphs;
  device.syncLaunches = options.load.syncLaunches;
  device.swapBytes = kSwapBytes;
  device.kvBytes = options.load.kvBytes;
  device.kvTokens = options.load.context ? options.load.context : options.quick ? kQuickPoolTokens : kPoolTokens;
  const std::unique_ptr<Device> loaded = makeDevice(package, manifest, *weights, device);
  const DeviceInfo info = loaded->info();
  std::printf("%s on %s (%s), %u blocks of KV cache\n", options.package.c_str(), info.name.c_str(), info.detail.c_str(),
              loaded->numBlocks());
  Player player(*loaded, options.quick, options.traces ? options.traces : options.quick ? 3 : 20);
  int passed = 0, failed = 0;
  for (const Check &check : allChecks())
    if (check.name.find(options.filter) != std::string::npos)
      ++(runOne(check, player) ? passed : failed);
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed || !passed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app{"The conformance suite of llmc's devices: what any package must do on the device that it is for.", "llmc-cts"};
  app.add_option("PACKAGE", options.package, "an executable or payload made by llmc compile")->required();
  app.add_flag("--quick", options.quick, "small sizes, for memory checkers");
  app.add_option("--filter", options.filter, "only checks whose names contain this")->type_name("TEXT");
  app.add_option("--traces", options.traces, "random traces of requests (default 20; 3 with --quick)")->type_name("N")->check(CLI::Range(1u, 1000000u));
  addLoadFlags(app, options.load);
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "llmc-cts: error: %s\n", error.what());
    return 1;
  }
}
