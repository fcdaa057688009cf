//===- BenchProfile.cpp - time of every launch of a step ------------------===//
#include "runtime/tool/BenchProfile.h"
#include "llmc/Support/Error.h"
#include "llmc/Support/ScratchFolder.h"
#include "runtime/device/KVBlocks.h"
#include "runtime/device/LaunchCost.h"
#include "runtime/engine/Batch.h"
#include "runtime/package/Profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace llmc {

namespace {

/// Sequences of equal length in step, straight on the device.
class Sequences {
public:
  Sequences(Device &device, uint64_t count, uint64_t context)
      : device_(device), batch_(device), count_(count), ids_(someIds(context, device.module().vocab)),
        blocks_(blocksOf(context)) {
    for (uint64_t block = 0; block < count * blocks_; ++block)
      tables_.push_back(int32_t(block));
  }

  /// The step of `shape`; it may run again and again, the same tokens overwrite the same places of the cache. Seconds.
  double step(const StepShape &shape) {
    const llmc_sampler_v1 greedy = defaultSampler();
    const uint64_t first = shape.context - shape.tokens;
    batch_.clear();
    for (uint64_t s = 0; s < count_; ++s) {
      batch_.add(std::span(ids_).subspan(first, shape.tokens), first, std::span(tables_).subspan(s * blocks_, blocks_));
      batch_.wantLogits(batch_.tokens() - 1, &greedy);
    }
    batch_.setGenerated(ofGenerated(shape) ? batch_.tokens() : 0);
    const auto start = std::chrono::steady_clock::now();
    device_.step(batch_.step());
    return secondsSince(start);
  }

private:
  Device &device_;
  Batch batch_;
  uint64_t count_;
  std::vector<int32_t> ids_, tables_;
  uint64_t blocks_;
};

/// One kernel of a step: its launches are those of equal ops of all layers.
struct KernelTime {
  uint64_t launches = 0;
  double seconds = 0;
  LaunchWork work;
};

Profile::Step measure(Device &device, Sequences &sequences, const StepShape &shape, uint64_t runs, LaunchTiming timing) {
  Profile::Step step{shape.sequences, shape.tokens, shape.context, runs, 0, {}};
  const llmc_program_v1 &program = programOf(device.module(), shape);
  std::vector<std::vector<double>> seconds(program.num_launches);
  std::vector<double> whole;
  sequences.step(shape); // warm
  for (uint64_t i = 0; i < runs; ++i)
    whole.push_back(sequences.step(shape));
  step.seconds = median(whole);
  std::vector<const char *> kernels(program.num_launches, "");
  device.setTimer([&](const llmc_launch_v1 &launch, const llmc_variant_v1 &variant, double time) {
    seconds[launch.op_id].push_back(time);
    kernels[launch.op_id] = variant.name ? variant.name : "";
  }, timing);
  sequences.step(shape);
  if (timing == LaunchTiming::Bursts) // are medians already
    runs = 0;
  else
    for (std::vector<double> &times : seconds)
      times.clear();
  for (uint64_t i = 0; i < runs; ++i)
    sequences.step(shape);
  device.setTimer(nullptr, LaunchTiming::InStep);
  for (uint32_t i = 0; i < program.num_launches; ++i)
    step.launches.push_back({program.launches[i].op, kernels[i], program.launches[i].layer, seconds[i].empty() ? 0 : median(seconds[i])});
  return step;
}

void print(const llmc_module_v1 &module, const Profile::Step &step) {
  const StepShape shape{step.sequences, step.tokens, step.context};
  std::map<std::pair<std::string, std::string>, KernelTime> kernels; // op without layer, kernel
  double sum = 0;
  const llmc_program_v1 &program = programOf(module, shape);
  LaunchWork elsewhere; // of launches whose work a later one does
  for (uint32_t i = 0; i < program.num_launches; ++i) {
    const Profile::Launch &measured = step.launches[i];
    const llmc_cost_v1 *cost = costOf(module, program.launches[i]);
    if (cost)
      elsewhere += workOf(*cost, program.launches[i], shape);
    sum += measured.seconds;
    if (formOf(program.launches[i], shape).units == 0)
      continue;
    KernelTime &kernel = kernels[{opInLayer(measured.op, measured.layer), measured.kernel}];
    ++kernel.launches;
    kernel.seconds += measured.seconds;
    kernel.work += std::exchange(elsewhere, {});
  }
  std::vector<std::pair<double, const decltype(kernels)::value_type *>> order;
  for (const auto &entry : kernels)
    order.emplace_back(-entry.second.seconds, &entry);
  std::sort(order.begin(), order.end());
  std::printf("%s: %.3f ms a step (median of %llu); its launches: %.3f ms\n\n  %6s %10s %8s %9s %9s  %s\n",
              describe(shape).c_str(), step.seconds * 1e3, static_cast<unsigned long long>(step.runs), sum * 1e3, "share",
              "ms", "launches", "GB/s", "GFLOP/s", "op (kernel)");
  for (const auto &[time, entry] : order) {
    const KernelTime &kernel = entry->second;
    auto rate = [&](double amount) { return kernel.seconds > 0 ? amount / kernel.seconds * 1e-9 : 0; };
    std::printf("  %5.1f%% %10.4f %8llu %9.1f %9.1f  %s (%s)\n", sum > 0 ? 100 * kernel.seconds / sum : 0, kernel.seconds * 1e3,
                static_cast<unsigned long long>(kernel.launches), rate(kernel.work.bytes()), rate(kernel.work.flops),
                entry->first.first.c_str(), entry->first.second.c_str());
  }
  std::printf("\n");
}

} // namespace

std::string profileFile(const std::string &executable) {
  return executable.substr(executable.find_last_of('/') + 1) + ".profile.json";
}

int benchProfile(Model &model, Device &device, const BenchFlags &flags) {
  const Manifest &manifest = model.manifest();
  const DeviceInfo info = device.info();
  Profile profile{manifest.version, manifest.model.name, manifest.weightsId(), device.module().isa,
                  info.name,        info.detail,         device.threads(),     {}};
  writeFile(flags.profile, profile.serialize()); // before anything slow: can it be written at all?
  device.startBackground();
  device.finishBackground();
  for (uint64_t count : flags.batches.empty() ? std::vector<uint64_t>{1} : flags.batches) {
    Sequences sequences(device, count, flags.prompt + 1);
    const uint64_t most = std::max<uint64_t>(1, device.module().max_tokens / count);
    StepShape shape{count, std::min(flags.prompt, most), 0};
    // What is in the cache before; the odd piece first, so that the last step is a whole one.
    for (uint64_t done = 0; done < flags.prompt;) {
      shape.tokens = done == 0 && flags.prompt % most ? flags.prompt % most : most;
      shape.context = done += shape.tokens;
      if (done < flags.prompt)
        sequences.step(shape);
    }
    for (const StepShape &what : {shape, StepShape{count, 1, flags.prompt + 1}}) {
      profile.steps.push_back(measure(device, sequences, what, flags.repeat,
                                      flags.bursts ? LaunchTiming::Bursts : LaunchTiming::InStep));
      print(device.module(), profile.steps.back());
    }
  }
  writeFile(flags.profile, profile.serialize());
  std::fprintf(stderr, "wrote %s; llmc explain --profile reads it\n", flags.profile.c_str());
  return 0;
}

} // namespace llmc
